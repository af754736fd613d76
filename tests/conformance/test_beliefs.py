"""What every belief must do: draws, densities, moves and divergences that agree with each other."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from conformance.variants import BELIEFS, FAMILIES, GAUSSIANS, arrays_of, assert_same, through_a_file
from helpers import random_belief, random_step, scaled

from cones import InputError
from cones.component import components

pytestmark = pytest.mark.parametrize("kind", BELIEFS)
DIM, DRAWS = 3, 200_000


def noise_of(rows: int, dim: int = DIM, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, dim))


def test_start_has_the_mean_and_the_deviations_that_were_asked_for(kind: str) -> None:
    if kind not in GAUSSIANS:
        belief = random_belief(kind, 3, 0)
        assert belief.dim == belief.mode().size == 3
        assert belief.log_density(belief.mode()[None])[0] >= belief.log_density(belief.candidates(noise_of(50))).max()
        return
    mean, deviation = np.array([1.0, -2.0, 0.0]), np.array([0.5, 3.0, 1e-3])
    belief = components("belief")[kind].start(mean, deviation)
    np.testing.assert_array_equal(belief.mean, mean)
    np.testing.assert_allclose(belief.standard_deviations(), deviation, rtol=1e-14)
    assert belief.dim == 3
    assert belief.is_finite()
    mean[0] = deviation[0] = 7.0
    assert belief.mean[0] == 1.0


def test_candidates_have_the_mean_and_the_deviations_of_the_belief(kind: str) -> None:
    belief = random_belief(kind, DIM, 0)
    X = belief.candidates(noise_of(DRAWS))
    error = belief.standard_deviations() / np.sqrt(DRAWS)
    assert (np.abs(X.mean(axis=0) - belief.mean) < 5 * error).all()
    np.testing.assert_allclose(X.std(axis=0), belief.standard_deviations(), rtol=0.02)
    assert belief.spread() == pytest.approx(np.sqrt(np.mean(belief.standard_deviations() ** 2)))


def test_draw_writes_the_candidate_of_z_and_that_of_its_mirror_image(kind: str) -> None:
    belief, noise = random_belief(kind, DIM, 1), noise_of(6)
    before, one, two = noise.copy(), np.full((6, 1, DIM), np.nan), np.full((6, 2, DIM), np.nan)
    belief.draw(noise, one)
    belief.draw(noise, two)
    np.testing.assert_array_equal(noise, before)
    np.testing.assert_array_equal(one[:, 0], belief.candidates(noise))
    np.testing.assert_allclose(two[:, 0], belief.candidates(noise), rtol=1e-13)
    np.testing.assert_allclose(two[:, 1], belief.candidates(-noise), rtol=1e-13)


def test_a_separable_belief_draws_span_by_span(kind: str) -> None:
    belief, noise = random_belief(kind, 5, 2), noise_of(4, 5)
    whole = np.empty((4, 2, 5))
    belief.draw(noise, whole)
    if not belief.separable and kind in FAMILIES:  # variables are drawn one by one, of whole rows
        np.testing.assert_array_equal(belief.candidates(noise[2:3]), whole[2:3, 0])
        return
    if not belief.separable:
        changed = noise.copy()
        changed[:, 0] += 1.0
        assert not np.array_equal(belief.candidates(changed)[:, 1:], belief.candidates(noise)[:, 1:])
        return
    for columns in (slice(0, 2), slice(2, 5)):
        part = np.empty((4, 2, columns.stop - columns.start))
        belief.draw(noise[:, columns], part, columns)
        np.testing.assert_array_equal(part, whole[:, :, columns])


def test_density_and_draws_agree(kind: str) -> None:
    """E_p[ q / p ] = 1 and E_p[ log p - log q ] = KL(p || q), for draws from p."""
    p = random_belief(kind, DIM, 3)
    q = p.moved(random_step(kind, DIM, 4))
    X = p.candidates(noise_of(DRAWS, seed=5))
    logs = p.log_density(X) - q.log_density(X)
    assert logs.shape == (DRAWS,)
    assert abs(logs.mean() - p.kl(q)) < 5 * logs.std() / np.sqrt(DRAWS)
    near = p.moved(scaled(random_step(kind, DIM, 6), 0.1))
    ratios = np.exp(near.log_density(X) - p.log_density(X))
    assert abs(ratios.mean() - 1.0) < 5 * ratios.std() / np.sqrt(DRAWS)
    assert ratios.std() > 0.01


def test_divergence_is_zero_from_itself_and_positive_from_others(kind: str) -> None:
    p, q = random_belief(kind, DIM, 10), random_belief(kind, DIM, 11)
    assert p.kl(p) == pytest.approx(0.0, abs=1e-14)
    assert p.kl(q) > 0.0
    assert q.kl(p) > 0.0


def test_divergence_wants_its_own_kind(kind: str) -> None:
    other = next(name for name in BELIEFS if name != kind)
    expected = rf"other: expected a {components('belief')[kind].__name__} of 3 dimensions"
    for wrong in (random_belief(other, 3, 0), random_belief(kind, 2, 0), 3.0):
        with pytest.raises(InputError, match=expected):
            random_belief(kind, 3, 0).kl(wrong)


@pytest.mark.parametrize("size", [1e-6, 1.0, 20.0])
def test_move_gives_the_moved_belief_and_the_divergence_of_the_change(kind: str, size: float) -> None:
    before = random_belief(kind, 5, 13)
    step = scaled(random_step(kind, 5, 14), size)
    arrays, copies = list(arrays_of(step)), [array.copy() for array in arrays_of(step)]
    state = pickle.dumps(before.state())
    after, kl = before.move(step)
    assert_same(after.state(), before.moved(step).state())
    assert kl == pytest.approx(after.kl(before), rel=1e-8)
    assert pickle.dumps(before.state()) == state
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_a_zero_step_changes_nothing(kind: str) -> None:
    before = random_belief(kind, 5, 15)
    after, kl = before.move(scaled(random_step(kind, 5, 16), 0.0))
    assert kl == 0.0
    np.testing.assert_array_equal(after.mean, before.mean)
    assert after.kl(before) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.filterwarnings("error")
def test_a_step_far_too_large_leaves_a_belief_that_can_be_drawn_from_or_says_that_it_is_not(kind: str) -> None:
    before = random_belief(kind, 4, 17)
    for sign in (1.0, -1.0):
        after, kl = before.move(scaled(random_step(kind, 4, 18), sign * 1e6))
        assert kl > 0.0  # perhaps infinite
        deviations = after.standard_deviations()
        assert (deviations > 0.0).all()
        if after.is_finite() and np.isfinite(deviations).all():
            assert np.isfinite(after.candidates(noise_of(3, 4))).all()


def test_is_finite_sees_the_mean(kind: str) -> None:
    belief = random_belief(kind, 3, 19)
    assert belief.is_finite()
    for bad in (np.nan, np.inf) if kind in GAUSSIANS else (np.nan,):  # a margin keeps other families finite
        assert not belief.moved(_shifted(belief, kind, bad)).is_finite()


def _shifted(belief, kind: str, by: float):
    step = scaled(random_step(kind, belief.dim, 20), 0.0)
    step.shift[1] = by
    return step


def test_a_file_a_pickle_and_the_state_give_it_back_bit_for_bit(kind: str, tmp_path: Path) -> None:
    belief = random_belief(kind, 4, 23).moved(random_step(kind, 4, 24))
    noise = noise_of(5, 4)
    for again in (
        type(belief).from_state(belief.state()),
        through_a_file(belief, tmp_path),
        pickle.loads(pickle.dumps(belief)),
    ):
        assert_same(again.state(), belief.state())
        np.testing.assert_array_equal(again.candidates(noise), belief.candidates(noise))
        step = random_step(kind, 4, 25)
        assert_same(again.moved(step).state(), belief.moved(step).state())
        assert again.move(step)[1] == belief.move(step)[1]


def test_arrays_are_read_only(kind: str, tmp_path: Path) -> None:
    belief = random_belief(kind, 3, 0)
    for owner in (belief, belief.moved(random_step(kind, 3, 1)), through_a_file(belief, tmp_path)):
        arrays = list(arrays_of(owner.state()))
        assert len(arrays) >= 1
        for array in arrays:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 7.0


def test_a_state_that_does_not_fit_is_refused(kind: str) -> None:
    state = random_belief(kind, 3, 0).state()
    for name in state:
        for wrong in (np.zeros(2), np.array(["a", "b", "c"])):
            if kind in ("bernoulli", "poisson") and name == "natural" and wrong.dtype == float:
                continue  # those of another dimension
            with pytest.raises((InputError, KeyError)):
                type(random_belief(kind, 3, 0)).from_state({**state, name: wrong})
