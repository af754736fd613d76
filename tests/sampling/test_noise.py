import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cones import InputError
from cones.kernels.spans import SPAN
from cones.sampling import NoiseStream, noise, seed_from


@given(
    seed=st.integers(0, 2**128 - 1), iteration=st.integers(0, 2**40), start=st.integers(0, 9), stop=st.integers(0, 10)
)
def test_any_rows_can_be_drawn_again(seed: int, iteration: int, start: int, stop: int) -> None:
    stream = NoiseStream(seed)
    whole = stream.draw(iteration, 3, 0, 20)
    stop = max(start, stop)
    np.testing.assert_array_equal(stream.draw(iteration, 3, start, stop), whole[start:stop])


def test_threads_do_not_change_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = NoiseStream(3)
    alone = stream.draw(5, 400, 0, 11)
    monkeypatch.setattr(noise, "WORTH_THREADS", 1)
    for threads in ("1", "2", "7"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        np.testing.assert_array_equal(stream.draw(5, 400, 0, 11), alone)


def test_noise_is_standard_normal_and_rows_are_independent() -> None:
    drawn = NoiseStream(0).draw(1, 2000, 0, 200)
    assert stats.kstest(drawn.ravel(), "norm").pvalue > 1e-3
    correlations = np.corrcoef(drawn)[np.triu_indices(200, 1)] * np.sqrt(2000)
    assert stats.kstest(correlations, "norm").pvalue > 1e-3


def test_seeds_iterations_and_rows_differ() -> None:
    blocks = [NoiseStream(seed).draw(iteration, 5, 0, 4) for seed in (0, 1) for iteration in (0, 1)]
    assert len(np.unique(np.concatenate(blocks))) == 4 * 4 * 5


def test_the_upper_words_of_a_large_seed_are_not_the_iteration() -> None:
    small, large = NoiseStream(5), NoiseStream(5 + 7 * 2**32)
    assert not np.intersect1d(small.draw(7, 5, 0, 4), large.draw(0, 5, 0, 4)).size


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
    stream, dim = NoiseStream(5, dtype, table), 5 * SPAN + 17
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    alone = stream.draw(2, dim, 0, 12)
    assert alone.dtype == dtype
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    np.testing.assert_array_equal(stream.draw(2, dim, 0, 12), alone)
    np.testing.assert_array_equal(stream.draw(2, dim, 4, 6), alone[4:6])
    assert stats.kstest(alone.ravel(), "norm").pvalue > 1e-3
    pieces = alone[:, : 5 * SPAN].reshape(60, SPAN)
    correlations = np.corrcoef(pieces)[np.triu_indices(60, 1)] * np.sqrt(SPAN)
    if not table:
        assert stats.kstest(correlations, "norm").pvalue > 1e-3
        # The first numbers of spans, where a poor start would show.
        assert stats.kstest(pieces[:, :20].ravel(), "norm").pvalue > 1e-3
        assert len(np.unique(pieces[:, 0])) == 60
    assert not np.array_equal(stream.draw(3, dim, 0, 1)[0], alone[0])


def test_the_first_span_is_the_row_of_fewer_dimensions() -> None:
    stream = NoiseStream(5)
    np.testing.assert_array_equal(stream.draw(1, 3 * SPAN, 0, 3)[:, :100], stream.draw(1, 100, 0, 3))


def test_a_table_must_be_large() -> None:
    with pytest.raises(InputError, match=r"noise_table: expected 0 or at least 1048576 numbers, got 1000"):
        NoiseStream(0, table=1000)
    with pytest.raises(InputError, match="dtype: expected one of 'float64', 'float32', got 'int'"):
        NoiseStream(0, "int")
