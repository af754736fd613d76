"""Narrower from the mean, then anew."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import cones
from cones.errors import InputError
from cones.restarts import DescentEnd, Refining


def follow(levels: list[float], **settings: Any) -> list[tuple[float, bool]]:
    """What follows descents that end at these levels: the factor of the spread, and whether it starts at the mean."""
    rng, state, found = np.random.default_rng(0), None, []
    for number, level in enumerate(levels):
        following, state = Refining(**settings).next(state, DescentEnd(number, 8, 8, 100, level=level), rng)
        assert following is not None
        assert (following.popsize, following.limit) == (8, math.inf)
        found.append((following.factor, following.at_mean))
    return found


def test_narrower_from_the_mean_and_then_anew() -> None:
    anew, narrower = (1.0, False), (0.5, True)
    # The third descent starts at x0 and ends higher than the first; the fourth ends lower than it.
    assert follow([5.0, 4.0, 6.0, 4.9, 4.8], factor=0.5) == [narrower, anew, anew, narrower, anew]
    assert follow([math.inf, 5.0, math.inf, math.inf]) == [anew, (0.25, True), anew, anew]
    assert Refining(limit=2).next(None, DescentEnd(2, 8, 8, 100), np.random.default_rng(0))[0] is None


@pytest.mark.parametrize("settings", [{"limit": -1}, {"factor": -0.5}, {"factor": 1.5}, {"factor": math.nan}])
def test_bad_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InputError, match=r"restarts\."):
        Refining(**settings)


@pytest.mark.parametrize("belief", ["diagonal", "full"])
def test_a_run_goes_on_narrower_from_its_mean_and_begins_anew_at_x0(belief: str) -> None:
    """On a noisy sphere each descent ends on a plateau."""
    x0, rng = np.full(5, 3.0), np.random.default_rng(1)
    es = cones.CoNES(
        x0, 2.0, belief=belief, radius="adaptive", restarts="refining,factor=0.25", plateau=30, popsize=10, rng=0,
        stagnation=None, maxiter=600,
    )  # fmt: skip
    starts: list[tuple[np.ndarray, float]] = []
    while not es.stop():
        X = es.ask()
        before = es.state
        es.tell(X, (X**2).sum(axis=1) + rng.normal(0.0, 5.0, len(X)))
        if es.state.restarts > before.restarts:
            start = es.state.belief
            starts.append((start.mean, float(start.standard_deviations()[0])))
            if es.state.descent.at_mean:
                np.testing.assert_allclose(
                    start.standard_deviations(), es.state.earlier.belief.standard_deviations() / 4
                )
                assert np.linalg.norm(start.mean) < 0.7 * np.linalg.norm(x0)
            else:
                np.testing.assert_array_equal(start.standard_deviations(), 2.0)
                np.testing.assert_array_equal(start.mean, x0)
            assert es.state.earlier.belief is not None
    kinds = [spread == 2.0 for _, spread in starts]
    assert not kinds[0]
    assert set(kinds) == {True, False}
    assert (False, False) not in pairwise(kinds)
    assert np.linalg.norm(es.result.mean) < 0.3 * np.linalg.norm(x0)
