"""What every shaping of losses must do, alone and in a run."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from conformance.variants import through_a_file

import cones
from cones import InputError
from cones.estimators import SHAPINGS, Shaping, shaping_from

every_shaping = pytest.mark.parametrize("name", SHAPINGS)
# Those that see nothing but the order of the losses, and those that do not see their scale either.
RANKS = ("centred_ranks", "normal_scores", "recombination_weights")
SCALE_FREE = (*RANKS, "standardised")
WITH_SCALE = ("raw",)


def test_every_shaping_says_what_it_sees() -> None:
    assert {*SCALE_FREE, *WITH_SCALE} == set(SHAPINGS)


@every_shaping
def test_low_losses_have_low_utilities_and_nothing_is_written_over(name: str) -> None:
    losses = np.random.default_rng(0).exponential(size=25)
    before = losses.copy()
    utilities = SHAPINGS[name](losses)
    np.testing.assert_array_equal(losses, before)
    np.testing.assert_array_equal(np.argsort(utilities), np.argsort(losses))
    assert utilities.dtype == np.float64


@every_shaping
def test_candidates_may_come_in_any_order(name: str) -> None:
    rng = np.random.default_rng(1)
    losses, order = rng.exponential(size=20), rng.permutation(20)
    np.testing.assert_allclose(SHAPINGS[name](losses[order]), SHAPINGS[name](losses)[order], rtol=1e-12, atol=1e-12)


@every_shaping
@pytest.mark.parametrize("bad", [[np.nan], [np.inf], [-np.inf], [np.nan, np.inf, -np.inf], [np.nan] * 7])
def test_failures_never_reach_the_gradient(name: str, bad: list[float]) -> None:
    losses = np.concatenate([np.random.default_rng(2).normal(size=20), bad])
    utilities = SHAPINGS[name](losses)
    assert np.isfinite(utilities).all()
    assert (utilities[np.isnan(losses)] == utilities.max()).all()


@every_shaping
def test_nan_acts_as_the_worst_loss(name: str) -> None:
    losses = np.random.default_rng(3).normal(size=20)
    for count in (1, 4):
        one, other = losses.copy(), losses.copy()
        one[:count], other[:count] = np.nan, np.inf
        np.testing.assert_array_equal(SHAPINGS[name](one), SHAPINGS[name](other))


@pytest.mark.parametrize("name", SCALE_FREE)
@pytest.mark.parametrize("factor", [1e-200, 1e-3, 1e200])
def test_scale_and_offset_do_not_matter(name: str, factor: float) -> None:
    losses = np.random.default_rng(4).integers(0, 50, 20).astype(float)
    np.testing.assert_allclose(SHAPINGS[name](factor * losses), SHAPINGS[name](losses), atol=1e-9)
    np.testing.assert_allclose(SHAPINGS[name](losses + 1000.0), SHAPINGS[name](losses), atol=1e-9)
    assert abs(SHAPINGS[name](np.random.default_rng(4).normal(size=20)).sum()) < 1e-12 * 20  # no ties


@every_shaping
def test_equal_losses_say_nothing(name: str) -> None:
    utilities = SHAPINGS[name](np.full(6, 0.1))
    np.testing.assert_array_equal(utilities, np.full(6, utilities[0]))


@every_shaping
def test_it_can_be_named_stored_and_sent(name: str, tmp_path: Path) -> None:
    shaping = shaping_from(name)
    assert shaping == Shaping(name) == shaping_from(shaping)
    assert str(shaping) == name
    assert through_a_file(shaping, tmp_path) == shaping
    assert pickle.loads(pickle.dumps(shaping)) == shaping
    losses = np.array([3.0, 1.0, 2.0])
    np.testing.assert_array_equal(shaping(losses), SHAPINGS[name](losses))
    with pytest.raises(InputError, match=rf"shaping: expected one of .*'{name}'.* did you mean {name}\?"):
        shaping_from(name + "x")


@every_shaping
@pytest.mark.parametrize("method", ["es", "nes", "cones"])
def test_a_run_with_it_descends(name: str, method: str) -> None:
    settings = {"optimizer": cones.SGD(0.05, 0.01)} if name in WITH_SCALE else {}
    result = cones.minimize(
        lambda X: ((X - 2.0) ** 2).sum(axis=1),
        np.zeros(10),
        method=method,
        shaping=name,
        vectorized=True,
        rng=0,
        maxiter=200,
        **settings,
    )
    assert result.history["mean_loss"][-1] < 0.3 * result.history["mean_loss"][0]
