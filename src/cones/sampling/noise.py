"""Reproducible standard normal noise: any span of any row can be redrawn.

Row i of iteration k has one generator per span of columns, seeded by (seed, k, i, span). Any process can redraw any
span without stored noise. The random state of a run is two numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cones.checks import check_integer, check_one_of
from cones.component import Storable
from cones.errors import InputError
from cones.kernels.buffers import aligned
from cones.kernels.spans import SPAN, tile_count, tile_slice
from cones.kernels.threads import for_blocks
from cones.sampling.samplers import GeneratorSampler, SpanSampler, TableSampler
from cones.types import Matrix, Vector

__all__ = ["DTYPES", "WORTH_THREADS", "NoiseStream", "Rng", "seed_from"]

# Drawing fewer normals than this is faster than waking a second thread.
WORTH_THREADS = 100_000
DTYPES = ("float64", "float32")
# The smallest size of a table: in a smaller one, spans would overlap too often.
SMALLEST_TABLE = 2**20

Use = Callable[[int, slice, Vector], None]
Rng = int | np.random.Generator | np.random.SeedSequence | None


@dataclass(frozen=True)
class NoiseStream(Storable):
    """The noise of all iterations of a run.

    Args:
        seed: a non-negative integer of any size; see `seed_from`.
        dtype: dtype of noise and candidates, "float64" or "float32".
        table: size of a shared table that noise is copied from; 0 to draw all noise afresh.
    """

    seed: int
    dtype: str = "float64"
    table: int = 0

    def __post_init__(self) -> None:
        check_integer("rng", self.seed, 0)
        check_one_of("dtype", self.dtype, DTYPES)
        if self.table and check_integer("noise_table", self.table, 0) < SMALLEST_TABLE:
            raise InputError(f"noise_table: expected 0 or at least {SMALLEST_TABLE} numbers, got {self.table}")

    def sampler(self, iteration: int, dim: int, rows: int) -> SpanSampler:
        """A sampler of the first `rows` rows of an iteration, for one thread."""
        if self.table:
            return TableSampler(self.seed, rows, self.dtype, iteration, dim, self.table)
        return GeneratorSampler(self.seed, rows, self.dtype, iteration, dim)

    def draw(self, iteration: int, dim: int, start: int, stop: int) -> Matrix:
        """Rows `start` to `stop` of the noise of an iteration, shape (stop - start, dim)."""
        noise = aligned((stop - start, dim), self.dtype)
        if noise.size >= WORTH_THREADS or dim > SPAN:
            self.for_spans(iteration, dim, start, stop, kept=noise)
        else:
            self.sampler(iteration, dim, stop).draw_rows(start, noise)
        return noise

    def for_spans(
        self, iteration: int, dim: int, start: int, stop: int, use: Use | None = None, kept: Matrix | None = None
    ) -> None:
        """Call `use(row - start, columns, normals)` for every span of rows `start` to `stop`, on all cores.

        Writes the normals to `kept`, shape (stop - start, dim), if given.
        """

        def work(first: int, last: int) -> None:
            sampler = self.sampler(iteration, dim, stop)
            buffer = aligned((min(SPAN, dim),), self.dtype)
            for piece in range(first, last):
                span, row = divmod(piece, stop - start)  # rows innermost: data of the span's columns stays in the cache
                columns = tile_slice(span, dim, SPAN)
                normals = buffer[: columns.stop - columns.start] if kept is None else kept[row, columns]
                sampler.draw(start + row, span, normals)
                if use is not None:
                    use(row, columns, normals)

        for_blocks(work, (stop - start) * tile_count(dim, SPAN), (stop - start) * dim >= WORTH_THREADS)


def seed_from(rng: Rng) -> int:
    """The integer seed of a run from the user's `rng`.

    An integer is returned unchanged. None takes entropy from the system. A generator yields 128 bits of its stream, so
    that two runs with the same generator differ.
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
    return sum(int(word) << (32 * index) for index, word in enumerate(words))
