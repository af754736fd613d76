"""Standard normal noise in which any row of any iteration can be drawn again.

Row i of iteration k comes from a generator of its own, seeded by (seed, k, i). Nothing has to be kept
to draw a row again, in this process or in another, and a run's random state is two numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from cones.beliefs.belief import Belief
from cones.checks import check_integer
from cones.errors import InputError
from cones.threads import for_row_blocks
from cones.types import Matrix, Vector

__all__ = ["AntitheticNoise", "IndependentNoise", "Noise", "seed_from"]

# Fewer normals than this are drawn sooner than a second thread wakes up.
WORTH_THREADS = 100_000

Rng = int | np.random.Generator | np.random.SeedSequence | None


@dataclass(frozen=True)
class Noise(ABC):
    """Where the candidates of an iteration come from.

    Args:
        seed: a non-negative integer of any size; see `seed_from`.
        popsize: candidates per iteration.
    """

    seed: int
    popsize: int

    @property
    @abstractmethod
    def rows(self) -> int:
        """Rows of noise drawn per iteration."""

    def draw(self, iteration: int, dim: int, start: int = 0, stop: int | None = None) -> Matrix:
        """Rows `start` to `stop` of the noise of an iteration, shape (stop - start, dim)."""
        stop = self.rows if stop is None else stop
        # Three words a row and a counter of 1 are a state of SFC64, NumPy's fastest generator; setting it
        # costs a tenth of making a generator. The words of a row do not depend on how many rows follow.
        words = np.random.SeedSequence((self.seed, iteration)).generate_state(3 * stop, np.uint64)
        states = np.ones((stop, 4), np.uint64)
        states[:, :3] = words.reshape(stop, 3)
        noise = np.empty((stop - start, dim))

        def fill(first: int, last: int) -> None:
            bits = np.random.SFC64(0)
            generator = np.random.Generator(bits)
            state = bits.state
            words = state["state"]["state"]
            for row in range(first, last):
                words[:] = states[row]
                bits.state = state
                generator.standard_normal(out=noise[row - start])

        if noise.size < WORTH_THREADS:
            fill(start, stop)
        else:
            for_row_blocks(fill, start, stop)
        return noise

    @abstractmethod
    def candidates(self, belief: Belief, noise: Matrix) -> Matrix:
        """The population that belongs to the noise, shape (popsize, dim)."""

    @abstractmethod
    def fold(self, utilities: Vector) -> tuple[Vector, Vector]:
        """Weights of each row of noise in sums of odd and of even functions of the noise."""


@dataclass(frozen=True)
class AntitheticNoise(Noise):
    """Pairs: candidate i is mean + L z_i, and candidate i + popsize/2 is mean - L z_i."""

    def __post_init__(self) -> None:
        if self.popsize < 2 or self.popsize % 2:
            raise InputError(
                f"popsize: expected an even number of at least 2 for antithetic pairs, got {self.popsize}; "
                "antithetic=False takes any"
            )

    @property
    def rows(self) -> int:
        return self.popsize // 2

    def candidates(self, belief: Belief, noise: Matrix) -> Matrix:
        half = len(noise)
        population = np.empty((2 * half, belief.dim))
        displacements = belief.displacements(noise, out=population[:half])
        np.subtract(belief.mean, displacements, out=population[half:])
        np.add(belief.mean, displacements, out=population[:half])
        return population

    def fold(self, utilities: Vector) -> tuple[Vector, Vector]:
        plus, minus = np.split(utilities, 2)
        return plus - minus, plus + minus


@dataclass(frozen=True)
class IndependentNoise(Noise):
    """Candidate i is mean + L z_i."""

    def __post_init__(self) -> None:
        check_integer("popsize", self.popsize, 2)

    @property
    def rows(self) -> int:
        return self.popsize

    def candidates(self, belief: Belief, noise: Matrix) -> Matrix:
        return belief.candidates(noise)

    def fold(self, utilities: Vector) -> tuple[Vector, Vector]:
        return utilities, utilities


def seed_from(rng: Rng) -> int:
    """The seed of a run from what users pass as `rng`.

    An integer is itself; None takes entropy from the system; a generator gives up 128 bits of its
    stream, so that two runs with one generator differ.
    """
    if rng is None:
        rng = np.random.SeedSequence()
    if isinstance(rng, np.random.SeedSequence):
        words = rng.generate_state(4)
    elif isinstance(rng, np.random.Generator):
        words = rng.integers(2**32, size=4, dtype=np.uint32)
    elif isinstance(rng, (int, np.integer)):
        return check_integer("rng", rng, 0)
    else:
        raise InputError(f"rng: expected an integer, a numpy Generator, a SeedSequence or None, got {rng!r}")
    return sum(int(word) << (32 * place) for place, word in enumerate(words))
