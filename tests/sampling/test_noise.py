import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cones import DiagonalGaussian, InputError
from cones.kernels.spans import SPAN
from cones.sampling import AntitheticNoise, IndependentNoise, seed_from, seeded

KINDS = [AntitheticNoise, IndependentNoise]


@pytest.mark.parametrize("kind", KINDS)
@given(
    seed=st.integers(0, 2**128 - 1), iteration=st.integers(0, 2**40), start=st.integers(0, 9), stop=st.integers(0, 10)
)
def test_any_rows_can_be_drawn_again(kind, seed: int, iteration: int, start: int, stop: int) -> None:
    noise = kind(seed, 20)
    whole = noise.draw(iteration, 3)
    stop = max(start, stop)
    np.testing.assert_array_equal(noise.draw(iteration, 3, start, stop), whole[start:stop])


def test_threads_do_not_change_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = IndependentNoise(3, 11)
    alone = noise.draw(5, 400)
    monkeypatch.setattr(seeded, "WORTH_THREADS", 1)
    for threads in ("1", "2", "7"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        np.testing.assert_array_equal(noise.draw(5, 400), alone)


def test_noise_is_standard_normal_and_rows_are_independent() -> None:
    noise = IndependentNoise(0, 200).draw(1, 2000)
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-3
    correlations = np.corrcoef(noise)[np.triu_indices(200, 1)] * np.sqrt(2000)
    assert stats.kstest(correlations, "norm").pvalue > 1e-3


def test_seeds_iterations_and_rows_differ() -> None:
    blocks = [IndependentNoise(seed, 4).draw(iteration, 5) for seed in (0, 1) for iteration in (0, 1)]
    assert len(np.unique(np.concatenate(blocks))) == 4 * 4 * 5


def test_the_upper_words_of_a_large_seed_are_not_the_iteration() -> None:
    small, large = IndependentNoise(5, 4), IndependentNoise(5 + 7 * 2**32, 4)
    assert not np.intersect1d(small.draw(7, 5), large.draw(0, 5)).size


def test_antithetic_candidates_mirror_at_the_mean() -> None:
    belief = DiagonalGaussian([1.0, -2.0], [1.0, 9.0])
    noise = AntitheticNoise(0, 6)
    rows = noise.draw(0, 2)
    X = noise.candidates(belief, 0, 0, 3)
    assert rows.shape == (3, 2)
    np.testing.assert_allclose(X[::2], belief.mean + rows * [1.0, 3.0])
    np.testing.assert_allclose(X[::2] + X[1::2], np.tile(2.0 * belief.mean, (3, 1)))


@pytest.mark.parametrize("kind", KINDS)
def test_fold_gives_the_weights_of_odd_and_even_sums(kind) -> None:
    noise = kind(0, 8)
    rows = noise.draw(0, 1)
    z = noise.candidates(DiagonalGaussian([0.0], 1.0), 0, 0, noise.rows)[:, 0]
    u = np.random.default_rng(0).standard_normal(8)
    odd, even = noise.fold(u)
    assert odd @ rows[:, 0] ** 3 == pytest.approx(u @ z**3)
    assert even @ rows[:, 0] ** 2 == pytest.approx(u @ z**2)


@pytest.mark.parametrize("popsize", [0, 1, 7])
def test_antithetic_pairs_need_an_even_population(popsize: int) -> None:
    with pytest.raises(InputError, match=f"popsize: expected an even number .* got {popsize}"):
        AntitheticNoise(0, popsize)


def test_seed_from_what_users_pass() -> None:
    assert seed_from(7) == 7
    assert seed_from(np.int64(7)) == 7
    assert seed_from(np.random.default_rng(1)) == seed_from(np.random.default_rng(1))
    generator = np.random.default_rng(1)
    assert seed_from(generator) != seed_from(generator)
    assert seed_from(np.random.SeedSequence(1)) == seed_from(np.random.SeedSequence(1))
    assert seed_from(None) != seed_from(None)
    with pytest.raises(InputError, match="rng: expected at least 0, got -1"):
        seed_from(-1)
    with pytest.raises(InputError, match=r"rng: expected an integer, a numpy Generator, .* got 'x'"):
        seed_from("x")  # type: ignore[arg-type]


@pytest.mark.parametrize("table", [0, 2**20])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_spans_of_long_rows_are_normal_independent_and_drawn_again_by_any_thread(
    dtype: str, table: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise, dim = IndependentNoise(5, 12, dtype, table), 5 * SPAN + 17
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    alone = noise.draw(2, dim)
    assert alone.dtype == dtype
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    np.testing.assert_array_equal(noise.draw(2, dim), alone)
    np.testing.assert_array_equal(noise.draw(2, dim, 4, 6), alone[4:6])
    assert stats.kstest(alone.ravel(), "norm").pvalue > 1e-3
    pieces = alone[:, : 5 * SPAN].reshape(60, SPAN)
    correlations = np.corrcoef(pieces)[np.triu_indices(60, 1)] * np.sqrt(SPAN)
    if not table:
        assert stats.kstest(correlations, "norm").pvalue > 1e-3
        # The first numbers of spans, where a poor start would show.
        assert stats.kstest(pieces[:, :20].ravel(), "norm").pvalue > 1e-3
        assert len(np.unique(pieces[:, 0])) == 60
    assert not np.array_equal(noise.draw(3, dim)[0], alone[0])


def test_the_first_span_is_the_row_of_fewer_dimensions() -> None:
    noise = IndependentNoise(5, 3)
    np.testing.assert_array_equal(noise.draw(1, 3 * SPAN)[:, :100], noise.draw(1, 100))


def test_a_table_must_be_large() -> None:
    with pytest.raises(InputError, match=r"noise_table: expected 0 or at least 1048576 numbers, got 1000"):
        IndependentNoise(0, 4, table=1000)
    with pytest.raises(InputError, match="dtype: expected one of 'float64', 'float32', got 'int'"):
        IndependentNoise(0, 4, "int")
