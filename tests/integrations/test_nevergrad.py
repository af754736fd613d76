"""Against nevergrad itself: its registry, its parametrizations, its executors, its functions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nevergrad as ng
import numpy as np
import pytest
from nevergrad.common import errors
from nevergrad.functions import ArtificialFunction, FarOptimumFunction

import cones
from cones.integrations.nevergrad import ConfiguredCoNES, NevergradProblem


def sphere(x: np.ndarray) -> float:
    return float(((np.asarray(x) - 0.7) ** 2).sum())


def apart(x: np.ndarray) -> bool:
    return bool(x[0] >= x[1] + 0.5)


def seeded(parametrization: Any, seed: int = 0) -> Any:
    parametrization.random_state.seed(seed)
    return parametrization


class TestOptimizer:
    def test_is_in_the_registry_and_beats_random_search(self) -> None:
        losses = {}
        for name in ("CoNES", "RandomSearch"):
            optimizer = ng.optimizers.registry[name](seeded(ng.p.Array(shape=(10,))), budget=1500)
            losses[name] = sphere(optimizer.minimize(sphere).value)
            assert optimizer.num_ask == optimizer.num_tell == 1500
        assert losses["CoNES"] < 0.05 * losses["RandomSearch"]

    def test_is_the_same_run_as_cones_itself(self) -> None:
        optimizer = ConfiguredCoNES(popsize=10, belief="full")(seeded(ng.p.Array(shape=(4,))), budget=50)
        optimizer.minimize(sphere)
        seed = int(np.random.RandomState(0).randint(2**31))
        es = cones.CoNES(np.zeros(4), 1.0, popsize=10, belief="full", rng=seed, maxfev=50)
        for _ in range(5):
            X = es.ask()
            es.tell(X, [sphere(x) for x in X])
        np.testing.assert_array_equal(optimizer.strategy.state.belief.mean, es.state.belief.mean)

    def test_parametrizations_of_all_kinds(self) -> None:
        parametrization = ng.p.Instrumentation(
            ng.p.Array(shape=(2, 2)).set_bounds(-1.0, 2.0),
            rate=ng.p.Log(lower=1e-4, upper=1.0),
            layers=ng.p.Scalar(lower=1, upper=9).set_integer_casting(),
            kind=ng.p.Choice(["a", "b", "c"]),
        )

        def loss(x: np.ndarray, rate: float, layers: int, kind: str) -> float:
            assert (np.abs(x - 0.5) <= 1.5).all()
            assert 1e-4 <= rate <= 1.0
            assert layers in range(1, 10)
            return float((x**2).sum() + (np.log10(rate) + 2.0) ** 2 + 0.1 * (layers - 3) ** 2 + (kind != "b"))

        best = ng.optimizers.registry["CoNES"](seeded(parametrization), budget=800).minimize(loss)
        assert best.kwargs["kind"] == "b"
        assert loss(*best.args, **best.kwargs) < 0.3

    def test_choices_are_choices(self) -> None:
        """Bits, as one that nevergrad's own discrete optimizers take, and beside numbers."""
        bits = seeded(ng.p.TransitionChoice([0, 1], repetitions=20))
        best = ng.optimizers.registry["CoNES"](bits, budget=600).minimize(lambda x: 20.0 - sum(x))
        assert sum(best.value) == 20
        mixed = seeded(ng.p.Dict(x=ng.p.Array(shape=(3,)), kind=ng.p.Choice(["a", "b"]), fixed=7))
        optimizer = ConfiguredCoNES(sigma0=0.5)(mixed, budget=500)
        best = optimizer.minimize(lambda v: sphere(v["x"]) + (v["kind"] != "b") + (v["fixed"] != 7))
        assert best.value["kind"] == "b"
        assert best.loss < 0.01
        assert isinstance(optimizer.strategy.state.belief, cones.Product)
        nested = seeded(ng.p.Choice([ng.p.Array(shape=(2,)), 3.0]))  # a choice between parameters is not one of ours
        assert ng.optimizers.registry["CoNES"](nested, budget=40).strategy.space is None

    def test_workers_in_any_order(self) -> None:
        optimizer = ConfiguredCoNES(popsize=4)(seeded(ng.p.Array(shape=(3,))), budget=103, num_workers=3)
        with ThreadPoolExecutor(3) as pool:
            best = optimizer.minimize(sphere, executor=pool, batch_mode=False)
        assert best.loss < 1.0
        assert optimizer.strategy.state.iteration >= 15  # at the end of a population some are evaluated twice

    def test_candidates_that_never_come_back_do_not_hold_up_the_others(self) -> None:
        optimizer = ConfiguredCoNES(popsize=4)(seeded(ng.p.Array(shape=(3,))))
        lost = optimizer.ask()
        for _ in range(3):
            candidate = optimizer.ask()
            optimizer.tell(candidate, sphere(candidate.value))
        again = optimizer.ask()
        np.testing.assert_array_equal(again.value, lost.value)
        optimizer.tell(again, sphere(again.value))
        assert optimizer.strategy.state.iteration == 1
        optimizer.tell(lost, 0.0)
        assert optimizer.strategy.state.evaluations == 4

    def test_population_is_at_least_the_workers(self) -> None:
        optimizer = ng.optimizers.registry["CoNES"](2, num_workers=31)
        assert optimizer.strategy.popsize == 32

    def test_recommends_the_mean_of_a_noisy_function(self) -> None:
        function = ArtificialFunction("sphere", block_dimension=3, noise_level=1.0)
        function.parametrization.random_state.seed(0)
        optimizer = ng.optimizers.registry["CoNES"](function.parametrization, budget=400)
        best = optimizer.minimize(function)
        np.testing.assert_allclose(best.value, optimizer.strategy.state.belief.mean)

    def test_constraints_are_kept(self) -> None:
        parametrization = seeded(ng.p.Array(shape=(2,)))
        parametrization.register_cheap_constraint(apart)
        best = ng.optimizers.registry["CoNES"](parametrization, budget=400).minimize(sphere)
        assert best.value[0] >= best.value[1] + 0.5
        assert best.loss == pytest.approx(0.125, abs=0.02)

    def test_a_dumped_optimizer_goes_on(self, tmp_path: Path) -> None:
        family = ConfiguredCoNES(popsize=6)
        whole = family(seeded(ng.p.Array(shape=(3,))), budget=60)
        whole.minimize(sphere)
        first = family(seeded(ng.p.Array(shape=(3,))), budget=60)
        for _ in range(20):
            candidate = first.ask()
            first.tell(candidate, sphere(candidate.value))
        first.dump(tmp_path / "optimizer.pickle")
        second = family.load(tmp_path / "optimizer.pickle")
        for _ in range(40):
            candidate = second.ask()
            second.tell(candidate, sphere(candidate.value))
        np.testing.assert_array_equal(second.strategy.state.belief.mean, whole.strategy.state.belief.mean)

    def test_what_it_did_not_ask_for_is_refused(self) -> None:
        optimizer = ng.optimizers.registry["CoNES"](2)
        with pytest.raises(errors.TellNotAskedNotSupportedError, match="only candidates from its own ask"):
            optimizer.tell(optimizer.parametrization.spawn_child(new_value=np.zeros(2)), 1.0)

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"maxfev": 10}, errors.NevergradTypeError, "use budget"),
            ({"rng": 10}, errors.NevergradTypeError, "random_state"),
            ({"nonsense": 1}, errors.NevergradTypeError, "unexpected keyword argument 'nonsense'"),
            ({"popsize": 1}, errors.NevergradValueError, "popsize: expected at least 2"),
            ({"radius": -1.0}, errors.NevergradValueError, "radius"),
        ],
    )
    def test_settings_are_checked(self, settings: dict[str, Any], error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            ConfiguredCoNES(**settings)


class TestProblem:
    def test_is_the_function(self) -> None:
        function = ArtificialFunction("rastrigin", block_dimension=2, num_blocks=2, rotation=True)
        function.parametrization.random_state.seed(1)
        problem = NevergradProblem(function)
        X = np.random.default_rng(0).standard_normal((5, 4))
        np.testing.assert_allclose(problem(X), [function(x) for x in X])  # its prior is the identity
        assert problem(X[0]) == pytest.approx(function(X[0]))
        assert np.isnan(problem.best)

    def test_can_be_minimised(self) -> None:
        function = ArtificialFunction("ellipsoid", block_dimension=5)
        function.parametrization.random_state.seed(1)
        problem = NevergradProblem(function)
        result = cones.minimize(problem, np.zeros(problem.dim), vectorized=True, rng=0, maxiter=300, ftarget=1e-3)
        assert result.fun < 1e-4 * problem(np.zeros(problem.dim))

    def test_refuses(self) -> None:
        with pytest.raises(errors.NevergradTypeError, match="expected an ExperimentFunction, got function"):
            NevergradProblem(sphere)
        with pytest.raises(errors.NevergradValueError, match="one objective, got 2 losses"):
            NevergradProblem(FarOptimumFunction(multiobjective=True))([0.0, 0.0])
