"""ES, NES and CoNES with ask and tell: iterations, candidates in memory or in chunks, and restarts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

from cones.arrivals import Arrivals, Results
from cones.beliefs import Belief, Gaussian
from cones.checks import check_integer, check_kind
from cones.errors import InputError
from cones.estimators import Sample
from cones.handover import checked_pair
from cones.incremental import LARGEST_POPULATION, IncrementalStrategy
from cones.iteration import Algorithm, AlgorithmState
from cones.kernels.buffers import aligned
from cones.progress import Descent, Earlier, Outcome
from cones.progress.stopping import ENDS_OF_DESCENT, SEARCHED, MaxFev, MaxIter, StopReason, first_met, share_spent
from cones.restarts import AxisSearch, DescentEnd, NextDescent, Restarts
from cones.restarts.start import found_by, generator, start_of
from cones.sampling import NoiseBlock, NoiseStream, Plan, Population
from cones.sampling.worth import frame_noise, weighted
from cones.space.lagrangian import Lagrangian, Told
from cones.steps import IterationInfo
from cones.types import Matrix, Vector

__all__ = ["EvolutionStrategy"]

# With constraints, bounds are part of the Lagrangian up to this dimension.
CLIPPED_UP_TO = 100
# Noise of populations whose candidates are asked for one by one. No run has as many iterations.
SINGLE_DRAWS = 2**32
# A search along the axes compares n pairs of candidates at once.
SEARCHED_UP_TO = 1000


class EvolutionStrategy(IncrementalStrategy):
    """A method composed of components; created by `cones.ES`, `cones.NES` and `cones.CoNES`."""

    SAVED_FIELDS: ClassVar[tuple[str, ...]] = (
        *IncrementalStrategy.SAVED_FIELDS, "start", "noise", "algorithm", "chunked", "restarts", "first_popsize",
        "noisy",
    )  # fmt: skip

    def __init__(
        self,
        start: Belief | None,
        noise: NoiseStream,
        algorithm: Algorithm,
        chunked: bool | None = None,
        restarts: Restarts | None = None,
        first_popsize: int | None = None,
        noisy: bool | None = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        check_kind("start", start, (Belief, type(None)))
        if start is not None and start.dim != self.state.belief.dim:
            raise InputError(f"start: expected {self.state.belief.dim} coordinates, got {start.dim}")
        check_kind("chunked", chunked, (bool, type(None)))
        check_kind("noisy", noisy, (bool, type(None)))
        check_kind("noise", noise, NoiseStream)
        check_kind("algorithm", algorithm, Algorithm)
        self.start = start  # the belief of a restart; None without restarts
        self.noise = noise
        self.algorithm = algorithm
        self.chunked = chunked
        check_kind("restarts", restarts, (Restarts, type(None)))
        self.restarts = restarts
        self.noisy = noisy  # what the user says about the loss; None if nothing
        self.first_popsize = self.popsize if first_popsize is None else check_integer("popsize", first_popsize, 2)
        self._asked_noise: NoiseBlock | None = None
        self._buffer: Matrix | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_asked_noise": None, "_buffer": None}

    @property
    def _components(self) -> AlgorithmState:
        components = self.state.components
        return components if isinstance(components, AlgorithmState) else AlgorithmState()

    @property
    def _search(self) -> AxisSearch | None:
        """The search along the axes under way; None in a descent."""
        components = self.state.components
        return components if isinstance(components, AxisSearch) else None

    def _sample(self) -> Matrix | Population:
        state = self.state
        if (search := self._search) is not None:
            self._asked_noise = None
            return search.candidates()
        components, age = self._components, state.iteration - state.began
        population = self.algorithm.draw(components, state.belief, self.noise, state.popsize, state.iteration, age)
        plan, clipped = population.plan, bool(state.lagrangian and state.lagrangian.bounds)
        if not clipped:
            population = population.within(self.box)
        if population.bytes > LARGEST_POPULATION if self.chunked is None else self.chunked:
            self._asked_noise = NoiseBlock(population)
            return population
        # Reuse the buffer: clearing new memory would cost as much as a pass over it.
        if self._buffer is None or len(self._buffer) < plan.rows:
            self._buffer = aligned((plan.rows, state.belief.dim), self.noise.dtype)
        kept = self._buffer[: plan.rows]
        candidates = population.block(0, plan.popsize, kept)
        self._asked_noise = NoiseBlock(population, kept, candidates)
        return self.box.clip(candidates) if clipped and self.box is not None else candidates

    def new_lagrangian(self, count: int) -> Lagrangian:
        box, dim = self.box, self.state.belief.dim
        # Integers are reflected and rounded, and keep their neighbours, as without constraints.
        if box is None or box.whole is not None or self.chunked or dim > CLIPPED_UP_TO:
            return Lagrangian.start(count)
        return Lagrangian.start(count, box.beyond(self.state.belief.mean[None, :]).shape[1])

    def _beyond(self, candidates: Matrix | Population, lagrangian: Lagrangian) -> Matrix:
        noise = self._asked_noise
        if noise is None or self.box is None or not lagrangian.bounds:
            return super()._beyond(candidates, lagrangian)
        return self.box.beyond(noise.population.block(0, self.popsize, drawn=noise.kept))

    def _move(self, losses: Vector, told: Told | None = None) -> Outcome:
        noise, components = self._asked_noise, self._components
        if (search := self._search) is not None:
            search = search.told(losses)
            return Outcome(
                self.state.belief, search, {"step": 0.0, "kl": 0.0, "searched_axes": float(search.live.sum())}
            )
        if noise is None or not (losses < math.inf).any():
            return self._unmoved()
        utilities = self.algorithm.shaping(losses)
        sample = Sample(noise.population, noise, losses, utilities, components.past, told)
        return self.algorithm.update(components, sample, self._info())

    def _draw(self, number: int) -> Population:
        # Not in pairs: one would wait for the other.
        plan = self.algorithm.estimator.plan(self._components.estimator, Plan(self.popsize))
        return Population(self.state.belief, plan, self.noise, SINGLE_DRAWS + number).within(self.box)

    def _single(self) -> Arrivals:
        if self._search is not None:
            raise InputError("X, count: expected the whole population in a search along the axes, got a part of it")
        return super()._single()

    def _asked_population(self) -> Population | None:
        return None if self._asked_noise is None else self._asked_noise.population

    def _move_by(self, results: Results, weights: Vector) -> Outcome:
        belief, components = self.state.belief, self._components
        assert isinstance(belief, Gaussian)
        population = Population(belief, Plan(len(weights)), self.noise, self.state.iteration, self.box)
        noise = NoiseBlock(population, frame_noise(belief, results.points, results.drawn))
        utilities = weighted(self.algorithm.shaping(results.losses), weights)
        sample = Sample(population, noise, results.losses, utilities, components.past, points=results.candidates)
        return self.algorithm.update(components, sample, self._info())

    def _info(self) -> IterationInfo:
        """Evaluations of this descent so far, and the budget that it plans for."""
        state, plan = self.state, self.state.descent.plan
        spent = state.evaluations - state.began_evaluations
        box = None if state.lagrangian and state.lagrangian.bounds else self.box
        if plan == math.inf:
            return IterationInfo(spent, box=box)
        rest = spent + self._left()
        return IterationInfo(spent, rest if plan is None else min(plan, rest), box)

    def _left(self) -> float:
        """Evaluations that are left of the budget; infinite if that is unknown."""
        state, left = self.state, math.inf
        for criterion in self.criteria:
            if isinstance(criterion, MaxFev):
                left = min(left, criterion.limit - criterion.reserve - state.evaluations)
            elif isinstance(criterion, MaxIter):
                left = min(left, (criterion.limit - state.iteration) * state.popsize)
        return left

    def stop(self) -> StopReason | None:
        search = self._search
        if search is None:
            return super().stop()
        others = tuple(criterion for criterion in self.criteria if criterion.name not in ENDS_OF_DESCENT)
        return first_met(others, self.state, self.history) or (SEARCHED if search.ended else None)

    def restart_if_ended(self) -> None:
        """Restart if the descent has ended and the policy has another one that the budget allows."""
        if self._search is not None:
            self.state = replace(self.state, popsize=max(self._search.popsize, 2))
        state = self.state
        if self.start is None or self.restarts is None or state.descent.best == math.inf:
            return
        reason, search = self.stop(), self._search
        spent = state.evaluations - state.began_evaluations
        if reason is None and spent + state.popsize <= state.descent.limit:
            return
        if reason is not None and reason.name not in (*ENDS_OF_DESCENT, SEARCHED.name):
            return
        rng, level = generator(self.noise.seed, state.restarts), math.inf if search is not None else self._level()
        end = DescentEnd(
            state.restarts,
            self.first_popsize,
            state.popsize,
            spent,
            self._left(),
            1.0 - share_spent(self.criteria, state),
            self._is_searchable(),
            search is not None and search.found,
            level,
        )
        following, policy = checked_pair(
            self.restarts.next(state.earlier.policy, end, rng), (NextDescent, type(None)), self.restarts
        )
        if following is None:
            return
        better = level < state.earlier.level or state.earlier.belief is None
        feasible = state.descent.violation <= state.catol and self.ends_feasible()
        converged = state.descent.best if reason is not None and reason.success and feasible else math.inf
        belief, components, popsize = start_of(self.start, self.box, following, rng), None, following.popsize
        if following.along_axes and isinstance(self.start, Gaussian) and state.best_x is not None:
            if isinstance(state.earlier.search, AxisSearch):
                components = state.earlier.search.next_round()
            else:
                components = AxisSearch.start(state.best_x, state.best_fun, self.start, self.box, rng)
            popsize = max(components.popsize, 2)
        elif following.at_found and search is not None and isinstance(self.start, Gaussian):
            belief = found_by(search, self.start)
        elif following.at_mean and isinstance(self.start, Gaussian) and isinstance(state.belief, Gaussian):
            ratios = state.belief.standard_deviations() / self.start.standard_deviations()
            belief = self.start.restarted(state.belief.mean, following.factor).scaled(ratios)
        anew = replace(
            state,
            belief=belief,
            components=components,
            popsize=popsize,
            fault="",
            restarts=state.restarts + 1,
            began=state.iteration,
            began_evaluations=state.evaluations,
            lagrangian=state.lagrangian and self.new_lagrangian(state.lagrangian.count),
            descent=Descent(
                improved=state.iteration,
                plan=following.plan,
                limit=following.limit,
                at_mean=following.at_mean,
            ),
            earlier=Earlier(
                state.belief if better else state.earlier.belief,
                level if better else state.earlier.level,
                min(converged, state.earlier.converged),
                policy,
                search or state.earlier.search,
            ),
        )
        if first_met(self.criteria, anew, self.history) is None:
            self.state = anew

    def _is_searchable(self) -> bool:
        """True if a search along the axes is possible, and not done: a deterministic loss of real numbers."""
        state, search = self.state, self._search or self.state.earlier.search
        whole = self.box is not None and self.box.whole is not None
        return (
            (not isinstance(search, AxisSearch) or bool(search.live.any()))
            and isinstance(self.start, Gaussian)
            and state.lagrangian is None
            and state.best_x is not None
            and math.isfinite(state.best_fun)
            and not (whole or self.noisy or self.chunked)
            and self.arrivals is None
            and state.belief.dim <= SEARCHED_UP_TO
            and self.noise.dtype == "float64"
        )
