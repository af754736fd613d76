"""Standard normal noise of which any piece can be drawn again.

Row i of iteration k has generators of its own, one per span of columns, whose states come from (seed, k, i, span).
Nothing has to be kept to draw a piece again, in this process or in another, and a run's random state is two numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cones.checks import check_integer, check_one_of
from cones.errors import InputError
from cones.kernels.buffers import aligned, new_vector
from cones.kernels.spans import SPAN, tile_count, tile_slice
from cones.kernels.threads import for_blocks
from cones.sampling.samplers import GeneratorPen, Pen, TablePen
from cones.types import Matrix, Vector

if TYPE_CHECKING:
    from cones.beliefs.belief import Belief

__all__ = ["DTYPES", "AntitheticNoise", "IndependentNoise", "Noise", "seed_from"]

# Fewer normals than this are drawn sooner than a second thread wakes up.
WORTH_THREADS = 100_000
# Rows of noise that are multiplied with a full covariance's factor at a time.
PRODUCT_ROWS = 64
DTYPES = ("float64", "float32")
# Numbers that a table must have: with fewer, pieces would overlap too often.
SMALLEST_TABLE = 2**20

Use = Callable[[int, slice, Vector], None]
Rng = int | np.random.Generator | np.random.SeedSequence | None


@dataclass(frozen=True)
class Noise(ABC):
    """Where the candidates of an iteration come from.

    Args:
        seed: a non-negative integer of any size; see `seed_from`.
        popsize: candidates per iteration.
        dtype: of noise and candidates, "float64" or "float32".
        table: numbers in a table from which pieces are taken instead of drawing them; 0 for no table.
    """

    seed: int
    popsize: int
    dtype: str = "float64"
    table: int = 0

    def __post_init__(self) -> None:
        check_one_of("dtype", self.dtype, DTYPES)
        if self.table and check_integer("noise_table", self.table, 0) < SMALLEST_TABLE:
            raise InputError(f"noise_table: expected 0 or at least {SMALLEST_TABLE} numbers, got {self.table}")

    def pen(self, iteration: int, dim: int) -> Pen:
        """What draws the noise of an iteration, for one thread."""
        if self.table:
            return TablePen(self.seed, self.rows, self.dtype, iteration, dim, self.table)
        return GeneratorPen(self.seed, self.rows, self.dtype, iteration, dim)

    @property
    @abstractmethod
    def rows(self) -> int:
        """Rows of noise drawn per iteration."""

    @property
    def per_row(self) -> int:
        """Candidates that come from a row; they follow one another in the population."""
        return self.popsize // self.rows

    def draw(self, iteration: int, dim: int, start: int = 0, stop: int | None = None) -> Matrix:
        """Rows `start` to `stop` of the noise of an iteration, shape (stop - start, dim)."""
        stop = self.rows if stop is None else stop
        noise = aligned((stop - start, dim), self.dtype)
        self.for_spans(iteration, dim, start, stop, _nothing, noise)
        return noise

    def for_spans(self, iteration: int, dim: int, start: int, stop: int, use: Use, kept: Matrix | None = None) -> None:
        """Call `use(row - start, columns, normals)` for every span of rows `start` to `stop`, on all cores.

        The normals are written to `kept`, shape (stop - start, dim), if it is given.
        """

        def work(first: int, last: int) -> None:
            pen = self.pen(iteration, dim)
            buffer = aligned((min(SPAN, dim),), self.dtype)
            for place in range(first, last):
                span, row = divmod(place, stop - start)  # what belongs to a span's columns stays in the cache
                columns = tile_slice(span, dim, SPAN)
                normals = buffer[: columns.stop - columns.start] if kept is None else kept[row, columns]
                pen.draw(start + row, span, normals)
                use(row, columns, normals)

        for_blocks(work, (stop - start) * tile_count(dim, SPAN), (stop - start) * dim >= WORTH_THREADS)

    @abstractmethod
    def place(self, mean: Vector, displacement: Vector, candidates: Matrix) -> None:
        """Write candidates, shape (..., per_row, n), given displacements, shape (..., n), which may be overwritten."""

    @abstractmethod
    def fold(self, utilities: Vector) -> tuple[Vector, Vector]:
        """Weights of each row of noise in sums of odd and of even functions of the noise."""

    def candidates(
        self,
        belief: Belief,
        iteration: int,
        start: int,
        stop: int,
        kept: Matrix | None = None,
        out: Matrix | None = None,
    ) -> Matrix:
        """The candidates of rows `start` to `stop`, shape ((stop - start) per_row, dim), written to `out` if given.

        The noise is written to `kept`, shape (stop - start, dim), if that is given.
        """
        count, dim = stop - start, belief.dim
        whole = aligned((count * self.per_row, dim), self.dtype) if out is None else out
        population = whole.reshape(count, self.per_row, dim)
        if belief.separable and count * dim >= WORTH_THREADS:

            def use(row: int, columns: slice, normals: Vector) -> None:
                own = population[row, :, columns]
                self.place(belief.mean[columns], belief.displacements(normals, own[-1], columns), own)

            self.for_spans(iteration, dim, start, stop, use, kept)
        elif belief.separable:
            noise = aligned((count, dim), self.dtype) if kept is None else kept
            self.for_spans(iteration, dim, start, stop, _nothing, noise)
            self.place(belief.mean, belief.displacements(noise), population)
        else:
            self.place(belief.mean, self._mixed(belief, iteration, start, stop, kept), population)
        return whole

    def candidate(self, belief: Belief, iteration: int, index: int) -> Vector:
        """One candidate, without memory for the others that come from its row."""
        row, place = divmod(index, self.per_row)
        if not belief.separable:
            return np.array(self.candidates(belief, iteration, row, row + 1)[place])
        candidate = new_vector(belief.dim, self.dtype)

        def use(_: int, columns: slice, normals: Vector) -> None:
            own = aligned((self.per_row, normals.size), self.dtype)
            self.place(belief.mean[columns], belief.displacements(normals, own[-1], columns), own)
            candidate[columns] = own[place]

        self.for_spans(iteration, belief.dim, row, row + 1, use)
        return candidate

    def _mixed(self, belief: Belief, iteration: int, start: int, stop: int, kept: Matrix | None) -> Matrix:
        """Displacements of rows `start` to `stop` by a belief that mixes coordinates.

        The last bits of a product of matrices depend on how many rows it has: whatever rows are asked for, they are
        multiplied in the same blocks.
        """
        first, last = start - start % PRODUCT_ROWS, min(-(-stop // PRODUCT_ROWS) * PRODUCT_ROWS, self.rows)
        whole = kept is not None and (first, last) == (start, stop)
        noise = kept if kept is not None and whole else aligned((last - first, belief.dim), self.dtype)
        self.for_spans(iteration, belief.dim, first, last, _nothing, noise)
        if kept is not None and not whole:
            kept[:] = noise[start - first : stop - first]
        blocks = [belief.displacements(noise[k : k + PRODUCT_ROWS]) for k in range(0, last - first, PRODUCT_ROWS)]
        return np.concatenate(blocks)[start - first : stop - first]


def _nothing(row: int, columns: slice, normals: Vector) -> None:
    pass


@dataclass(frozen=True)
class AntitheticNoise(Noise):
    """Pairs: candidate 2 i is mean + L z_i, and candidate 2 i + 1 is mean - L z_i."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.popsize < 2 or self.popsize % 2:
            raise InputError(
                f"popsize: expected an even number of at least 2 for antithetic pairs, got {self.popsize}; "
                "antithetic=False (--independent) takes any"
            )

    @property
    def rows(self) -> int:
        return self.popsize // 2

    def place(self, mean: Vector, displacement: Vector, candidates: Matrix) -> None:
        np.add(mean, displacement, out=candidates[..., 0, :])
        np.subtract(mean, displacement, out=candidates[..., 1, :])

    def fold(self, utilities: Vector) -> tuple[Vector, Vector]:
        plus, minus = utilities[::2], utilities[1::2]
        return plus - minus, plus + minus


@dataclass(frozen=True)
class IndependentNoise(Noise):
    """Candidate i is mean + L z_i."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("popsize", self.popsize, 2)

    @property
    def rows(self) -> int:
        return self.popsize

    def place(self, mean: Vector, displacement: Vector, candidates: Matrix) -> None:
        np.add(mean, displacement, out=candidates[..., 0, :])

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
