"""Episodes of any gymnasium environment. Every thread of a worker keeps one environment and uses it again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cones.errors import InputError
from cones.rl.environments import made
from cones.rl.episode import CUT, ENDED, NUMBERS, UNENDED, Episode
from cones.rl.policy import NotFiniteError, Policy
from cones.rl.source import Source
from cones.types import Matrix, Vector

__all__ = ["GymnasiumEpisode", "played"]

OF_STEP = ("observation", "reward", "terminated", "truncated", "info")
NO_ACTION, NOT_FINITE, NO_STEP, NOT_SEEN = 1, 2, 3, 4


@dataclass(frozen=True)
class GymnasiumEpisode(Episode):
    """An episode of any environment of gymnasium.

    Args:
        horizon: the most steps of an episode, for environments that have no limit of their own.
    """

    horizon: int = 10_000

    OUTCOMES: ClassVar[Mapping[int, str]] = {
        NO_ACTION: "the policy's action after step {step} was not a finite number",
        NOT_FINITE: "the return after step {step} is not a finite number; check the rewards",
        NO_STEP: "the episode has no step",
        NOT_SEEN: "the observation after step {step} is not finite; check the environment, or wrap it",
    }

    def __call__(self, row: Vector) -> Vector:
        numbers, dim, size = np.empty(self.width), self.network.dim, self.network.sizes[0]
        shift, scale, floors = np.split(row[dim:-1], [size, 2 * size])
        moments = numbers[NUMBERS : NUMBERS + 2 * size].reshape(2, size)
        so_far = numbers[NUMBERS + 2 * size :]
        self._run(row[:dim], shift, scale, int(row[-1]), floors, numbers[:NUMBERS], moments, so_far)
        numbers[0] = np.nan if numbers[2] > ENDED else -numbers[0]
        return numbers

    def _run(
        self,
        parameters: Vector,
        shift: Vector,
        scale: Vector,
        seed: int,
        floors: Vector,
        result: Vector,
        moments: Matrix,
        so_far: Vector,
    ) -> None:
        """Writes return, length and outcome to `result`, the two moments of the observations to `moments`, and the
        return so far at each mark to `so_far`.
        """
        environment = _environment(self.task)
        observations: list[Vector] = []
        total, outcome, is_last = 0.0, ENDED, True
        mark = 0  # the next one
        if not np.isfinite(parameters).all():
            moments[:], result[:], so_far[:] = 0.0, (0.0, 0.0, NO_ACTION), 0.0
            return
        try:
            policy = Policy(self.task.name, self.network, parameters, shift, scale, self.space)
            for observation, reward, is_last in played(environment, policy, seed, self.horizon):
                observations.append(observation)
                total += reward
                if not np.isfinite(total):
                    outcome = NOT_FINITE
                    break
                if not is_last and mark < len(self.marks) and len(observations) == self.marks[mark]:
                    so_far[mark] = total
                    mark += 1
                    if total < floors[mark - 1]:
                        outcome = CUT
                        break
        except NotFiniteError as error:
            outcome = NOT_SEEN if error.of_observation else NO_ACTION
        except Exception as error:
            self.close()  # another attempt has a fresh environment
            error.add_note(f"cones: raised by {self.task.name} in step {len(observations) + 1} of an episode")
            raise
        if outcome == ENDED and not is_last:
            outcome = UNENDED
        so_far[mark:] = total
        seen = np.array(observations).reshape(-1, self.network.sizes[0])
        if not len(seen):
            moments[:], outcome = 0.0, outcome or NO_STEP
        else:
            moments[0] = seen.mean(axis=0)
            moments[1] = np.square(seen - moments[0]).sum(axis=0)
        result[:] = total, len(seen), outcome

    def close(self) -> None:
        _local.__dict__.pop("stack", ExitStack()).close()


def played(environment: Any, policy: Policy, seed: int | None, horizon: int) -> Iterator[tuple[Vector, float, bool]]:
    """The steps of an episode: the observation that the policy saw, the reward for its action, whether it is over."""
    observation, _ = _parts("reset", environment.reset(seed=seed), ("observation", "info"))
    for _ in range(horizon):
        seen = policy.seen(observation)
        observation, reward, terminated, truncated, _ = _parts("step", environment.step(policy.action(seen)), OF_STEP)
        try:
            gain = float(reward)
        except (TypeError, ValueError):
            raise InputError(f"reward: expected a number, got {type(reward).__name__} {reward!r:.80}") from None
        is_last = bool(terminated or truncated)
        yield seen, gain, is_last
        if is_last:
            return


def _parts(method: str, answer: Any, names: tuple[str, ...]) -> Any:
    """What `reset` or `step` has returned, if it has as many parts as gymnasium asks for."""
    if not isinstance(answer, (tuple, list)) or len(answer) != len(names):
        raise InputError(
            f"{method}: expected the environment to return ({', '.join(names)}), got {type(answer).__name__} "
            f"{answer!r:.80}; environments of the old gym need a wrapper"
        )
    return answer


_local = threading.local()


def _environment(task: Source) -> Any:
    """This thread's environment; one of another task is closed."""
    if "stack" not in _local.__dict__ or _local.task != task:
        _local.__dict__.pop("stack", ExitStack()).close()
        stack = ExitStack()
        _local.environment, _local.task = stack.enter_context(made(task)), task
        _local.stack = stack
    return _local.environment
