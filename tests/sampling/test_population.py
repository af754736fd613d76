"""Populations: candidates from noise and a belief."""

import numpy as np
import pytest
from helpers import random_belief, signed_noise

from cones import DiagonalGaussian
from cones.sampling import NoiseBlock, NoiseStream, Plan, Population


class Doubled:
    """A transform of the noise."""

    def __call__(self, noise: np.ndarray) -> np.ndarray:
        return 2.0 * noise


def test_antithetic_candidates_mirror_at_the_mean() -> None:
    belief = DiagonalGaussian([1.0, -2.0], [1.0, 9.0])
    population = Population(belief, Plan(6, mirrored=True), NoiseStream(0), 0)
    rows, X = population.noise_rows(), np.asarray(population)
    assert rows.shape == (3, 2)
    np.testing.assert_allclose(X[::2], belief.mean + rows * [1.0, 3.0])
    np.testing.assert_allclose(X[::2] + X[1::2], np.tile(2.0 * belief.mean, (3, 1)))


@pytest.mark.parametrize("kind", ["diagonal", "full"])
@pytest.mark.parametrize("mirrored", [True, False])
@pytest.mark.parametrize("transform", [None, Doubled()], ids=["plain", "transformed"])
def test_every_way_to_the_candidates_gives_the_same(kind: str, mirrored: bool, transform) -> None:
    belief, stream = random_belief(kind, 5, 0), NoiseStream(3)
    population = Population(belief, Plan(8, mirrored, transform), stream, 4)
    X, z = np.asarray(population), signed_noise(population)
    np.testing.assert_allclose(X, belief.candidates(z), atol=1e-14)
    rows = stream.draw(4, 5, 0, population.plan.rows)
    np.testing.assert_array_equal(population.noise_rows(), rows if transform is None else 2.0 * rows)
    np.testing.assert_array_equal(np.stack([population[k] for k in range(8)]), X)
    np.testing.assert_array_equal(population.block(3, 7), X[3:7])
    kept = np.empty((population.plan.rows, 5))
    population.block(0, 8, kept)
    np.testing.assert_array_equal(kept, population.noise_rows())
    np.testing.assert_array_equal(NoiseBlock(population).matrix(), kept)


def test_a_block_of_noise_gives_every_column_once() -> None:
    dim = 40_000
    population = Population(DiagonalGaussian(np.zeros(dim), 1.0), Plan(6, mirrored=True), NoiseStream(3), 4)
    for block in (NoiseBlock(population), NoiseBlock(population, population.noise_rows())):
        seen = np.full((3, dim), np.nan)

        def use(columns, blocks, seen=seen) -> None:
            for which, normals, _ in blocks:
                assert np.isnan(seen[which, columns]).all()
                seen[which, columns] = normals

        block.over_columns(use)
        np.testing.assert_array_equal(seen, population.noise_rows())
