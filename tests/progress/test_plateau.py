"""Plateaus, which end noisy descents."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from cones.beliefs import DiagonalGaussian
from cones.progress import Descent, History, State
from cones.progress.plateau import Plateau


def met(
    losses: np.ndarray, began: int = 0, limit: int = 10, share: float = 0.05, costs: np.ndarray | None = None
) -> bool:
    """Whether a descent that began at an iteration of a run with these mean losses is on a plateau."""
    history = History()
    for place, loss in enumerate(losses):
        if costs is not None:
            history.note({"cost": costs[: place + 1].sum()})
        history.append({"mean_loss": loss})
    state = replace(State(DiagonalGaussian(np.zeros(2), np.ones(2)), popsize=4), iteration=len(losses), began=began)
    return Plateau(limit, share).met(state, history)


def second_implementation(losses: np.ndarray, share: float) -> bool:
    """For lengths that are multiples of three."""
    windows = losses.reshape(3, -1)[1:]
    middle, last = windows.mean(axis=1)
    variances = (np.diff(windows, axis=1) ** 2).mean(axis=1) / 2
    error = np.sqrt((variances / windows.shape[1]).sum())
    progress = losses[:10].mean() - last
    return bool(middle - last + error <= share * max(progress, 0.0))


def test_windows_are_thirds_of_the_cost() -> None:
    """Each loss as often as it costs: where that makes the plateau, the windows by cost see it, too."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(40):
        losses = np.exp(-np.arange(60) / rng.uniform(3.0, 60.0))
        costs = np.sort(rng.integers(1, 9, 60)).astype(float)
        third = costs.sum() / 3
        spent = np.cumsum(costs)
        middle, last = losses[(spent > third) & (spent <= 2 * third)], losses[spent > 2 * third]
        errors = [np.sqrt((np.diff(window) ** 2).mean() / 2 / window.size) for window in (middle, last)]
        gain = middle.mean() - last.mean() + np.hypot(*errors)
        found.append(bool(gain <= 0.1 * (losses[:10].mean() - last.mean())))
        assert (
            met(
                np.concatenate([np.ones(5), losses]),
                began=5,
                share=0.1,
                costs=np.concatenate([np.full(5, 99.0), costs]),
            )
            == found[-1]
        )
    assert set(found) == {True, False}


def test_noise_is_no_plateau() -> None:
    """Slow progress in noise ends no descent, and a flat loss does once its noise averages out."""
    for seed in range(10):
        noise = 0.3 * np.random.default_rng(seed).standard_normal(360)
        slow, flat = 2.0 - np.arange(360) / 100.0, np.maximum(2.0 - np.arange(360) / 10.0, -2.0)
        assert not any(met((slow + noise)[:age], limit=60, share=0.1) for age in (60, 90, 120, 240, 360))
        assert met(flat + noise, limit=60, share=0.1)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_a_plateau_is_what_the_definition_says(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    for length in (12, 60, 201):
        losses = np.exp(-np.arange(length) / rng.uniform(3, 100)) + rng.normal(0.0, 0.1, length)
        assert met(losses, share=share) == second_implementation(losses, share)


def test_a_slow_descent_that_goes_on_from_another_is_judged_by_both() -> None:
    """It gains a hundredth of what the first one has, steadily: no plateau of its own."""
    first, slow = np.linspace(10.0, 0.0, 40), -np.arange(200) / 400.0
    losses = np.concatenate([np.full(7, 99.0), first, slow])  # a descent before both has nothing to do with them
    restart = np.concatenate([np.zeros(7), np.ones(40), np.full(200, 2.0)])

    def met_at(age: int, losses: np.ndarray, at_mean: bool = True) -> bool:
        history, descent = History(), Descent(at_mean=at_mean)
        for loss, number in zip(losses[: 47 + age], restart, strict=False):
            history.append({"mean_loss": loss, "restart": number})
        state = replace(
            State(DiagonalGaussian(np.zeros(2), np.ones(2)), popsize=4),
            iteration=47 + age, began=47, restarts=2, descent=descent,
        )  # fmt: skip
        return Plateau(10).met(state, history)

    assert [age for age in range(60, 200) if met_at(age, losses)] == list(range(80, 200))
    assert not any(met_at(age, losses, at_mean=False) for age in range(60, 200))
    fast = np.concatenate([losses[:47], 20.0 * slow])
    assert not any(met_at(age, fast) for age in range(60, 200))


def test_noted_numbers_are_of_the_next_row() -> None:
    history = History()
    history.append({"mean_loss": 3.0})
    history.note({"cost": 5.0})
    history.note({"cost": 7.0})  # an evaluation that was repeated
    history.append({"mean_loss": 2.0})
    history.append({"mean_loss": 1.0})
    np.testing.assert_array_equal(history["cost"], [math.nan, 7.0, math.nan])


def test_progress_is_no_plateau_whatever_its_scale() -> None:
    steps = np.arange(90.0)
    for scale, offset in ((1.0, 0.0), (1e-8, 1.0), (1e12, -1e15)):
        assert not met(offset - scale * steps)
        assert met(offset - scale * np.minimum(steps, 25.0))
        assert met(offset + scale * steps)


def test_a_descent_has_its_least_iterations_and_is_judged_by_its_own_losses() -> None:
    flat = np.zeros(30)
    assert met(flat, limit=30)
    assert not met(flat, limit=31)
    falling = -np.arange(30.0)
    assert not met(np.concatenate([flat, falling]), began=30)
    assert met(np.concatenate([falling, flat]), began=30)
    assert not met(np.concatenate([falling, flat]), began=31, limit=30)


def test_losses_that_are_not_finite_do_not_count() -> None:
    losses = -np.arange(90.0)
    losses[::7], losses[1::9] = math.nan, math.inf
    assert not met(losses)
    assert met(np.full(90, math.nan))
