"""Every criterion: met when it should be, not before, and says so; and survives a checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conformance.variants import through_a_file

from cones import DiagonalGaussian, InputError
from cones.component import components
from cones.progress import COLUMNS, Descent, History, State
from cones.progress.limits import LIMITS, criteria_from
from cones.progress.stopping import first_met


def history_of(**columns: list[float]) -> History:
    history = History()
    for values in zip(*columns.values(), strict=True):
        history.append({**dict.fromkeys(COLUMNS, 1.0), **dict(zip(columns, values, strict=True))})
    return history


STATE = State(DiagonalGaussian([0.0, 0.0], 1.0), popsize=100, iteration=30, evaluations=900, best_fun=5.0, seconds=2.0)
FALLING = [float(x) for x in range(30, 0, -1)]

# name, limit, (state, history) not met, (state, history) met, success
CASES = [
    ("ftarget", 4.0, (STATE, history_of(best=[5.0])), (replace(STATE, best_fun=4.0), history_of(best=[4.0])), True),
    (
        "xtol",
        1e-3,
        (replace(STATE, belief=DiagonalGaussian([0.0, 0.0], 1e-8)), history_of(step=[1.0])),
        (replace(STATE, belief=DiagonalGaussian([0.0, 0.0], 1e-8)), history_of(step=[1e-4])),
        True,
    ),
    (
        "ftol",
        0.1,
        (STATE, history_of(mean_loss=FALLING, loss_deviation=[0.01] * 30)),
        (STATE, history_of(mean_loss=[1.0] * 20 + [0.5] * 10, loss_deviation=[0.01] * 30)),
        True,
    ),
    ("maxfev", 1000, (STATE, history_of(best=[1.0])), (replace(STATE, evaluations=901), history_of(best=[1.0])), False),
    ("maxiter", 31, (STATE, history_of(best=[1.0])), (replace(STATE, iteration=31), history_of(best=[1.0])), False),
    ("maxtime", 2.5, (STATE, history_of(best=[1.0])), (replace(STATE, seconds=2.5), history_of(best=[1.0])), False),
    (
        "stagnation",
        10,
        (STATE, history_of(best=[1.0] * 30, mean_loss=FALLING)),
        (STATE, history_of(best=[1.0] * 30, mean_loss=[2.0] * 30)),
        False,
    ),
    (
        "plateau",
        30,
        (STATE, history_of(best=[1.0] * 30, mean_loss=FALLING)),
        (STATE, history_of(best=[1.0] * 30, mean_loss=[*FALLING[:12], *[18.0] * 18])),
        False,
    ),
]


def alone(name: str, limit: float):
    limits = {**dict.fromkeys(("xtol", "ftol", "stagnation")), "maxiter": 10**9, name: limit}
    return tuple(c for c in criteria_from(2, 100, limits) if c.name == name)


def test_every_criterion_has_a_case_and_a_limit() -> None:
    assert {case[0] for case in CASES} == set(LIMITS) == set(components("criterion"))


@pytest.mark.parametrize(("name", "limit"), [case[:2] for case in CASES])
def test_a_criterion_survives_a_file(name: str, limit: float, tmp_path: Path) -> None:
    (criterion,) = alone(name, limit)
    again = through_a_file(criterion, tmp_path)
    assert again == criterion
    assert again.reason() == criterion.reason()


@pytest.mark.parametrize(("name", "limit", "before", "after", "success"), CASES, ids=[case[0] for case in CASES])
def test_criterion(name: str, limit: float, before, after, success: bool) -> None:
    criteria = alone(name, limit)
    assert first_met(criteria, *before) is None
    reason = first_met(criteria, *after)
    assert reason is not None
    assert reason.name == name
    assert f"{name} = {limit:g}" in reason.message
    assert reason.success is success
    assert (reason.status == 0) is success


def test_statuses_tell_budgets_apart() -> None:
    statuses = [alone(name, limit)[0].status for name, limit in (("maxfev", 100), ("maxiter", 1), ("maxtime", 1.0))]
    assert len(set(statuses)) == 3


@pytest.mark.parametrize(("age", "stops"), [(1, False), (5, False), (6, True), (30, True)])
def test_stagnation_waits_while_the_best_improves(age: int, stops: bool) -> None:
    """The best of the descent may be as old as half of the window."""
    state = replace(STATE, descent=Descent(best=1.0, improved=30 - age))
    assert (first_met(alone("stagnation", 10), state, history_of(mean_loss=[2.0] * 30)) is not None) is stops


def test_stagnation_by_default_follows_the_popsize_of_the_descent() -> None:
    """100 + 100 n^1.5 / popsize, whatever the popsize of the first descent was."""
    (criterion,) = (c for c in criteria_from(16, 10, {}) if c.name == "stagnation")
    assert criterion.limit == 100 + 640
    still = history_of(mean_loss=[2.0] * 801)
    for popsize in (10, 20, 40, 80):
        window = 100 + 6400 // popsize
        for iteration, stops in ((window, False), (window + 1, True)):
            state = replace(STATE, popsize=popsize, iteration=iteration, descent=Descent(best=1.0, improved=1))
            assert criterion.met(state, still) is stops


@pytest.mark.parametrize(
    ("offset", "difference", "stops"),
    [
        (0.0, 1e-12, True),
        (0.0, 1e-10, False),
        (1e3, 5e-11, True),
        (1e3, 1e-9, False),
        (-1e6, 5e-8, True),
        (1e6, 1e-6, False),
    ],
)
def test_losses_within_their_own_rounding_are_equal(offset: float, difference: float, stops: bool) -> None:
    losses = [offset, offset + difference] * 15
    history = history_of(mean_loss=losses, loss_deviation=[difference] * 30)
    assert (first_met(alone("ftol", 1e-11), STATE, history) is not None) is stops


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_deviations_that_do_not_change_the_mean_are_converged(dtype: str) -> None:
    mean = np.array([1e7, -3.0, 0.0], dtype)
    lost = (np.spacing(np.abs(mean)) / 4.0).astype(dtype)
    lost[2] = 1e-12
    history = history_of(step=[0.0])
    (criterion,) = alone("xtol", 1e-11)
    for coordinate, deviation, met in ((0, lost[0], True), (0, 0.1 * abs(mean[0]), False), (2, 1e-9, False)):
        deviations = lost.copy()
        deviations[coordinate] = deviation
        np.testing.assert_array_equal((mean + lost)[:2], mean[:2])
        belief = DiagonalGaussian.from_deviation(mean.copy(), deviations)
        assert criterion.met(replace(STATE, belief=belief), history) is met


def test_maxfev_keeps_its_reserve() -> None:
    (criterion,) = alone("maxfev", 1000)
    state = replace(STATE, evaluations=895)
    assert not criterion.met(state, history_of(best=[1.0]))
    assert replace(criterion, reserve=10).met(state, history_of(best=[1.0]))


def test_nan_losses_never_count_as_converged() -> None:
    nan = [np.nan] * 30
    assert first_met(alone("ftol", 1.0), STATE, history_of(mean_loss=nan, loss_deviation=nan)) is None


def test_defaults() -> None:
    limits = {c.name: c.limit for c in criteria_from(20, 100, {})}
    assert limits == {"xtol": 1e-11, "ftol": 1e-11, "maxiter": 1000, "stagnation": 100 + 89}
    limits = {c.name: c.limit for c in criteria_from(20, 100, {"maxfev": 1e5, "xtol": None})}
    assert limits == {"ftol": 1e-11, "maxfev": 100_000, "stagnation": 189}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"maxfev": 99}, "maxfev: expected at least popsize = 100, got 99"),
        ({"maxfev": 0}, "maxfev: expected at least 1, got 0"),
        ({"maxiter": 2.5}, "maxiter: expected an integer, got 2.5"),
        ({"maxtime": -1.0}, "maxtime: expected a positive number"),
        ({"ftarget": np.nan}, "ftarget: expected a finite number, got nan"),
        ({"xtol": -1.0}, "xtol: expected at least 0"),
        ({"ftol": "tight"}, "ftol: expected a number, got 'tight'"),
        ({"stagnation": 1}, "stagnation: expected at least 2, got 1"),
        ({"maxiter": -np.inf}, "maxiter: expected an integer, got -inf"),
    ],
)
def test_bad_limits_are_named(limits: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        criteria_from(2, 100, limits)


def test_an_infinite_budget_is_none() -> None:
    assert not {c.name for c in criteria_from(20, 100, {"maxiter": np.inf})} & {"maxfev", "maxiter", "maxtime"}


@pytest.mark.parametrize("name", ["stagnation", "ftol"])
def test_rows_before_a_restart_do_not_count(name: str) -> None:
    still = history_of(best=[1.0] * 30, mean_loss=[2.0] * 30, loss_deviation=[0.0] * 30)
    assert first_met(alone(name, 10), STATE, still) is not None
    assert first_met(alone(name, 10), replace(STATE, began=25), still) is None


def test_a_typo_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'maxfevs'"):
        criteria_from(2, 100, {"maxfevs": 100})


@pytest.mark.parametrize(("limit", "ends"), [(7.0, True), (3.99, False), (2.0, False)])
def test_a_restart_ends_when_it_converges_to_a_loss_above_the_best(limit: float, ends: bool) -> None:
    """Its mean loss is a geometric series with a known limit; the best loss of the run is 4."""
    levels = [limit + 100.0 * 0.9**k for k in range(60)]
    restarted = replace(STATE, iteration=60, restarts=1, best_fun=4.0, descent=Descent(best=min(levels), improved=60))
    (stagnation,) = alone("stagnation", 1000)
    assert stagnation.met(restarted, history_of(mean_loss=levels)) is ends
    assert not stagnation.met(replace(restarted, restarts=0), history_of(mean_loss=levels))


def test_a_restart_that_creeps_goes_on() -> None:
    levels = [10.0 - 0.01 * k for k in range(60)]  # not geometric: nobody knows where it ends
    restarted = replace(STATE, iteration=60, restarts=1, best_fun=4.0, descent=Descent(best=min(levels), improved=60))
    (stagnation,) = alone("stagnation", 1000)
    assert not stagnation.met(restarted, history_of(mean_loss=levels))
