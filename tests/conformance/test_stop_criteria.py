"""Every criterion: met when it should be, not before, and says so; and survives a checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conformance.variants import through_a_file

from cones import DiagonalGaussian, InputError
from cones.component import components
from cones.progress import COLUMNS, History, State
from cones.progress.stopping import LIMITS, criteria_from, first_met


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
]
# Where the message does not have the name of the criterion.
MESSAGES = {"stagnation": "has improved in the last 10 iterations"}


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
    assert MESSAGES.get(name, f"{name} = {limit:g}") in reason.message
    assert reason.success is success
    assert (reason.status == 0) is success


def test_statuses_tell_budgets_apart() -> None:
    statuses = [alone(name, limit)[0].status for name, limit in (("maxfev", 100), ("maxiter", 1), ("maxtime", 1.0))]
    assert len(set(statuses)) == 3


@pytest.mark.parametrize(("name", "least"), [("best", [1.0] * 29 + [0.5])])
def test_stagnation_waits_while_the_best_improves(name: str, least: list[float]) -> None:
    assert first_met(alone("stagnation", 10), STATE, history_of(**{name: least, "mean_loss": [2.0] * 30})) is None


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
