"""What every design must do: cover the population, and weigh its noise as the candidates are drawn."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance.variants import assert_same, make, through_a_file, variants
from helpers import signed_noise

from cones import DiagonalGaussian, InputError
from cones.sampling import Design, NoiseStream, Plan, Population

every_design = variants("design")
ANY_SIZE = ("independent",)  # the others draw pairs


def plans(design: Design, popsize: int, seed: int = 0, iterations: int = 25) -> tuple[list[Plan], Any]:
    """The plans of some iterations, half of them with odd losses and half with even ones; and the state."""
    rng, state, made = np.random.default_rng(seed), None, []
    for age in range(iterations):
        plan = design.plan(state, popsize, age)
        z = signed_noise(Population(DiagonalGaussian(np.zeros(2), 1.0), plan, NoiseStream(seed), age))
        losses = z[:, 0] if age < iterations // 2 else z[:, 0] ** 2
        state = design.update(state, plan, losses + 0.01 * rng.standard_normal(popsize))
        made.append(plan)
    return made, state


@every_design
@pytest.mark.parametrize("popsize", range(2, 12))
def test_a_plan_covers_the_population_or_the_size_is_refused_at_once(name: str, settings, popsize: int) -> None:
    design = make("design", name, settings)
    if popsize % 2 and name not in ANY_SIZE:
        message = f"popsize: expected an even number of at least 2 for antithetic pairs, got {popsize}"
        with pytest.raises(InputError, match=message):
            design.check(popsize)
        return
    design.check(popsize)
    belief = DiagonalGaussian([1.0, 2.0], [1.0, 9.0])
    for age, plan in enumerate(plans(design, popsize)[0]):
        assert plan.popsize == plan.rows * plan.per_row == popsize
        population = Population(belief, plan, NoiseStream(0), age)
        assert np.asarray(population).shape == population.shape == (popsize, 2)
        np.testing.assert_allclose(np.asarray(population), belief.candidates(signed_noise(population)), atol=1e-13)


@every_design
@pytest.mark.parametrize("popsize", [0, 1, -2, 2.5, "many"])
def test_populations_that_make_no_sense_are_refused(name: str, settings, popsize: Any) -> None:
    with pytest.raises(InputError, match="popsize: expected"):
        make("design", name, settings).check(popsize)


@every_design
def test_fold_gives_the_weights_of_odd_and_even_sums(name: str, settings) -> None:
    """Sums over rows of noise with these weights are the sums over candidates with the utilities."""
    belief = DiagonalGaussian(np.zeros(4), 1.0)
    for age, plan in enumerate(plans(make("design", name, settings), 8)[0]):
        population = Population(belief, plan, NoiseStream(1), age)
        z, rows = signed_noise(population), population.noise_rows()
        u = np.random.default_rng(age).standard_normal(8)
        odd, even = plan.fold(u)
        assert odd.shape == even.shape == (plan.rows,)
        for function in (lambda z: z[:, 0], lambda z: z[:, 1] ** 3, lambda z: np.sin(z @ [1.0, 2.0, 3.0, 4.0])):
            assert odd @ function(rows) == pytest.approx(u @ function(z), abs=1e-12)
        for function in (lambda z: z[:, 0] ** 2, lambda z: z[:, 1] * z[:, 2], lambda z: np.cos(z[:, 3])):
            assert even @ function(rows) == pytest.approx(u @ function(z), abs=1e-12)
        assert even.sum() == pytest.approx(u.sum())


@every_design
def test_plans_are_functions_of_the_state(name: str, settings, tmp_path: Path) -> None:
    """The state can be stored; a plan or an update that is repeated gives the same and changes nothing."""
    design = make("design", name, settings)
    made, state = plans(design, 8)
    again = through_a_file(state, tmp_path)
    assert_same(again, state)
    before, utilities = pickle.dumps(state), np.random.default_rng(0).standard_normal(8)
    for age in range(12):
        assert design.plan(again, 8, age) == design.plan(state, 8, age)
    for plan in (made[0], made[-1]):
        assert_same(design.update(again, plan, utilities), design.update(state, plan, utilities))
    assert pickle.dumps(state) == before
    np.testing.assert_array_equal(utilities, np.random.default_rng(0).standard_normal(8))


@every_design
def test_utilities_that_say_nothing_are_no_error(name: str, settings) -> None:
    design = make("design", name, settings)
    for utilities in (np.zeros(8), np.full(8, 1e200), np.full(8, -3.0)):
        with np.errstate(all="ignore"):
            state = design.update(None, design.plan(None, 8, 0), utilities)
        assert design.plan(state, 8, 1).popsize == 8


@every_design
def test_a_plan_can_be_stored_and_sent(name: str, settings, tmp_path: Path) -> None:
    plan = plans(make("design", name, settings), 8)[0][-1]
    assert through_a_file(plan, tmp_path) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_auto_draws_pairs_where_losses_are_even_and_now_and_then_where_they_are_odd() -> None:
    auto = make("design", "auto", {})
    mirrored = [plan.mirrored for plan in plans(auto, 100, iterations=60)[0]]
    assert mirrored[0]
    assert mirrored[10]
    assert mirrored[20]
    assert mirrored[3:10].count(True) <= 2  # odd losses
    assert all(mirrored[45:])  # even losses
