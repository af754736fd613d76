"""CoNES as an Optuna sampler."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.samplers import BaseSampler
from optuna.samplers._base import _CONSTRAINTS_KEY, _process_constraints_after_trial
from optuna.search_space import IntersectionSearchSpace
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

import cones
from cones.checks import check_integer, check_positive
from cones.defaults import default_popsize
from cones.integrations.optuna.ranking import Standing, losses_of
from cones.integrations.optuna.space import Coordinates
from cones.integrations.optuna.study_replay import POSITION, Member, Position, StudyReplay, same
from cones.progress.limits import LIMITS
from cones.sampling import Rng, seed_from
from cones.space.parameters import Float
from cones.space.space import Space
from cones.strategy import Strategy

__all__ = ["CoNESSampler"]

NOT_FOR_HERE = {
    "seed": "use rng",
    "bounds": "the search space sets them",
    "restarts": "all populations of a study have the same size",
    **dict.fromkeys(LIMITS, "use n_trials or timeout of study.optimize, or study.stop() in a callback"),
}


class CoNESSampler(BaseSampler):  # type: ignore[misc]
    """An Optuna sampler by convex natural evolution strategies, for studies of hundreds of trials or more.

    It samples float, integer and categorical parameters together, also on a logarithmic scale or in steps. Like
    Optuna's other relative samplers it learns the parameters from the first finished trial. `independent_sampler`
    samples parameters that not all trials have, with a warning.

    Floats and integers have a Gaussian belief, categories a categorical one; see `cones.Space`.

    The study stores all state. With a storage, a new process with the same settings continues the run, and several
    processes share a population. Trials that violate constraints rank by their violation behind those that do not,
    pruned trials by how far they came behind these, and failed ones last.

    Args:
        x0: initial values of parameters, by name; the middle of their ranges by default.
        sigma0: initial standard deviation, as a share of the width of each range.
        rng: seed, `numpy.random.Generator`, `SeedSequence` or None. A seed makes a study repeatable if its trials run
            one after the other.
        popsize: trials per iteration; by default that of `cones.CoNES` for as many coordinates.
        independent_sampler: samples parameters outside the common search space; `RandomSampler` by default.
        warn_independent_sampling: warn when it is used.
        constraints_func: as for Optuna's other samplers: a function of a finished trial that returns numbers, each at
            most 0 if its constraint holds.
        **settings: of `cones.CoNES`, such as radius, belief, shaping, optimizer.

    Example:
        >>> import optuna
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> def objective(trial):
        ...     x = trial.suggest_float("x", -5.0, 5.0)
        ...     kind = trial.suggest_categorical("kind", ["bad", "good"])
        ...     return (x - 2.0) ** 2 + (kind == "bad")
        >>> study = optuna.create_study(sampler=CoNESSampler(rng=0))
        >>> study.optimize(objective, n_trials=200)
        >>> study.best_params["kind"], study.best_value < 0.01
        ('good', True)
    """

    def __init__(
        self,
        x0: Mapping[str, Any] | None = None,
        sigma0: float = 0.25,
        *,
        rng: Rng = None,
        popsize: int | None = None,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        **settings: Any,
    ) -> None:
        for name in settings:
            if name in NOT_FOR_HERE:
                raise TypeError(f"CoNESSampler() takes no argument {name!r}: {NOT_FOR_HERE[name]}")
        self._x0 = {} if x0 is None else dict(x0)
        self._sigma0 = check_positive("sigma0", sigma0)
        self._popsize = None if popsize is None else check_integer("popsize", popsize, 2)
        self._settings = settings
        if constraints_func is not None and not callable(constraints_func):
            raise TypeError(f"constraints_func: expected a function, got {constraints_func!r:.80}")
        self._constraints_func = constraints_func
        self._strategy(
            Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0)), 0
        )  # check the settings now, not in the second trial
        self._seed = seed_from(rng)
        self._independent = independent_sampler or optuna.samplers.RandomSampler(seed=self._seed % 2**32)
        self._warns = warn_independent_sampling
        self._warned: set[str] = set()
        self._space = IntersectionSearchSpace()
        self._lock = threading.Lock()
        self._run: _Run | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_run": None}  # the study stores the state of the run

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def reseed_rng(self) -> None:
        self._independent.reseed_rng()  # candidates do not depend on a generator

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        if len(study.directions) > 1:
            raise ValueError(
                "If the study is being used for multi-objective optimization, CoNESSampler cannot be used."
            )
        self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Any) -> None:
        if self._constraints_func is not None:
            _process_constraints_after_trial(self._constraints_func, study, trial, state)
        self._independent.after_trial(study, trial, state, values)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        space = self._space.calculate(study)
        return {name: distribution for name, distribution in space.items() if not distribution.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        with self._lock:
            coordinates = Coordinates(search_space, self._x0)
            run = self._run_on(search_space, coordinates)
            state = run.follow(_members(study, run.name), self._seed)
            if "fixed_params" in trial.system_attrs:  # enqueued: no candidate of ours
                return coordinates.params(run.strategy.result.mean)
            candidate = state.next_candidate(run.strategy.popsize, trial.number)
            parents = tuple(member.number for member in state.told[-1]) if state.told else ()
            position = Position(run.name, state.seed, len(state.told), candidate, parents)
            study._storage.set_trial_system_attr(trial._trial_id, POSITION, position.attribute())
            return coordinates.params(run.strategy.ask()[candidate])

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        if self._warns and param_name not in self._warned and _any_complete(study):
            self._warned.add(param_name)
            optuna.logging.get_logger("optuna.samplers.CoNESSampler").warning(
                f"The parameter '{param_name}' in trial#{trial.number} is sampled independently by "
                f"{type(self._independent).__name__} instead of CoNESSampler, because not all trials have it with the "
                "same distribution. Set warn_independent_sampling=False if this is intended."
            )
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def _run_on(self, space: Mapping[str, BaseDistribution], coordinates: Coordinates) -> _Run:
        """The run on a search space. Another search space starts another run."""
        parts = {
            "version": cones.__version__,
            "space": {name: distribution_to_json(distribution) for name, distribution in space.items()},
            "settings": repr((sorted(self._x0.items()), self._sigma0, self._popsize, sorted(self._settings.items()))),
        }
        name = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
        if self._run is None or self._run.name != name:
            if unknown := self._x0.keys() - space.keys():
                names = ", ".join(sorted(unknown))
                warnings.warn(f"x0: no parameters named {names} in this search space", RuntimeWarning, stacklevel=2)
            self._run = _Run(name, lambda seed: self._strategy(coordinates.space, seed))
        return self._run

    def _strategy(self, space: Space, seed: int) -> Strategy:
        return cones.CoNES(
            space,
            self._sigma0,
            popsize=self._popsize or default_popsize(len(space.names)),
            rng=seed,
            maxiter=math.inf,  # Optuna ends the study
            **self._settings,
        )


class _Run:
    """A strategy that follows the trials of a study."""

    def __init__(self, name: str, make: Any) -> None:
        self.name = name
        self._make = make
        self._begin(0)

    def _begin(self, seed: int) -> None:
        self._seed = seed
        self.strategy: Strategy = self._make(seed)
        self._told: list[tuple[Member, ...]] = []

    def follow(self, members: list[Member], seed: int) -> StudyReplay:
        """Tell the strategy the new populations of the study, or all of them if the study went another way."""
        state = StudyReplay.of(members, self.strategy.popsize, seed)
        known = len(self._told)
        if state.seed != self._seed or known > len(state.told) or not all(map(same, self._told, state.told)):
            self._begin(state.seed)
            known = 0
        for population in state.told[known:]:
            self.strategy.tell(self.strategy.ask(), losses_of([member.standing or Standing() for member in population]))
            self._told.append(population)
        return state


def _members(study: Study, name: str) -> list[Member]:
    sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
    members = []
    for trial in study.get_trials(deepcopy=False):
        position = Position.of(trial.system_attrs.get(POSITION))
        if position is not None and position.run == name:
            members.append(Member(trial.number, position, _standing(trial, sign)))
    return members


def _standing(trial: FrozenTrial, sign: float) -> Standing | None:
    """How a trial ended; None if it is running."""
    if not trial.state.is_finished():
        return None
    violations = trial.system_attrs.get(_CONSTRAINTS_KEY) or ()
    violation = float(sum(max(number, 0.0) for number in violations))
    if trial.state == TrialState.COMPLETE:
        return Standing(sign * trial.value, violation)
    reported = trial.intermediate_values
    if trial.state == TrialState.PRUNED and reported and not math.isnan(last := reported[max(reported)]):
        return Standing(sign * last, violation, pruned_at=max(reported))
    return Standing()


def _any_complete(study: Study) -> bool:
    return bool(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))
