"""The noise of a population for an estimator: kept since `ask`, or redrawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cones.kernels.buffers import aligned
from cones.kernels.spans import SPAN, TILE, tile_count, tile_slice
from cones.kernels.threads import for_blocks
from cones.sampling.noise import WORTH_THREADS
from cones.sampling.population import Population
from cones.sampling.samplers import SpanSampler
from cones.types import Matrix

__all__ = ["NoiseBlock"]

# Rows per block: a span of this many rows stays in the cache.
BLOCK = 4


@dataclass(frozen=True)
class NoiseBlock:
    """All rows of the noise of a population, shape (plan.rows, dim).

    `kept` is the noise, and `candidates` what the population makes of it, if they were kept. Redrawn noise gives the
    same results to the last bit.
    """

    population: Population
    kept: Matrix | None = None
    candidates: Matrix | None = None

    def matrix(self) -> Matrix:
        return self.population.noise_rows() if self.kept is None else self.kept

    def over_columns(self, use: Callable[[slice, Iterator[tuple[slice, Matrix, Matrix]]], None]) -> None:
        """See `cones.beliefs.gaussian.gaussian.NoiseRows`."""
        population = self.population
        # A transform needs whole rows.
        kept = self.matrix() if population.plan.transform is not None else self.kept
        dim, rows = population.belief.dim, population.plan.rows

        def work(first: int, last: int) -> None:
            sampler = population.noise.sampler(population.iteration, dim, rows) if kept is None else None
            buffer = aligned((BLOCK, min(width, dim)), population.noise.dtype)
            for piece in range(first, last):
                columns = tile_slice(piece, dim, width)
                use(columns, self._blocks(piece, columns, kept, sampler, buffer))

        width = SPAN if kept is None else TILE
        count = tile_count(dim, width)
        for_blocks(work, count, count > 1)

    def over_spans(self, use: Callable[[slice, Matrix], None]) -> None:
        """See `cones.beliefs.gaussian.gaussian.NoiseRows`."""
        population = self.population
        kept = self.matrix() if population.plan.transform is not None else self.kept
        dim, rows = population.belief.dim, population.plan.rows
        buffer = aligned((rows, min(SPAN, dim)), population.noise.dtype) if kept is None else None
        for piece in range(tile_count(dim, SPAN)):
            columns = tile_slice(piece, dim, SPAN)
            if kept is not None:
                use(columns, kept[:, columns])
            elif buffer is not None:
                normals = buffer[:, : columns.stop - columns.start]
                self._redraw(piece, normals)
                use(columns, normals)

    def _redraw(self, piece: int, normals: Matrix) -> None:
        """Write one span of all rows."""
        population, (rows, width) = self.population, normals.shape

        def work(first: int, last: int) -> None:
            sampler = population.noise.sampler(population.iteration, population.belief.dim, rows)
            for row in range(first, last):
                sampler.draw(row, piece, normals[row])

        for_blocks(work, rows, rows * width >= WORTH_THREADS)

    def _blocks(
        self, piece: int, columns: slice, kept: Matrix | None, sampler: SpanSampler | None, buffer: Matrix
    ) -> Iterator[tuple[slice, Matrix, Matrix]]:
        width, count = columns.stop - columns.start, self.population.plan.rows
        for start in range(0, count, BLOCK):
            rows = slice(start, min(start + BLOCK, count))
            space = buffer[: rows.stop - start, :width]
            if kept is not None:
                yield rows, kept[rows, columns], space
            elif sampler is not None:
                for row in range(start, rows.stop):
                    sampler.draw(row, piece, space[row - start])
                yield rows, space, space
