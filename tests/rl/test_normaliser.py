from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cones.rl.normaliser import Normaliser

NUMBERS = st.floats(-1e3, 1e3)


@given(st.lists(st.integers(1, 6).flatmap(lambda n: arrays(float, (n, 3), elements=NUMBERS)), min_size=1, max_size=5))
def test_merging_is_as_good_as_having_seen_all(blocks: list[np.ndarray]) -> None:
    seen = Normaliser.empty(3)
    for block in blocks:
        mean = block.mean(axis=0)
        seen = seen.merged(len(block), mean, np.square(block - mean).sum(axis=0))
    everything = np.concatenate(blocks)
    assert seen.count == len(everything)
    np.testing.assert_allclose(seen.mean, everything.mean(axis=0), rtol=1e-9, atol=1e-9)
    if seen.count > 1:
        deviation = everything.std(axis=0, ddof=1)
        varies = deviation > 1e-6
        np.testing.assert_allclose(seen.scale[varies], 1.0 / deviation[varies], rtol=1e-6)
        np.testing.assert_array_equal(seen.scale[deviation < 1e-8], 0.0)
        np.testing.assert_array_equal(seen.shift, seen.mean)


def test_before_anything_was_seen_observations_stay_as_they_are() -> None:
    empty = Normaliser.empty(2)
    once = empty.merged(1, np.array([3.0, 4.0]), np.zeros(2))
    for seen in (empty, once, empty.merged(0, np.array([1.0, 1.0]), np.zeros(2))):
        np.testing.assert_array_equal(seen.shift, 0.0)
        np.testing.assert_array_equal(seen.scale, 1.0)
