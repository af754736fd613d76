"""The noise of an iteration as the gradient needs it: kept from `ask`, or drawn again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cones.kernels.buffers import aligned
from cones.kernels.spans import SPAN, TILE, tile_count, tile_slice
from cones.kernels.threads import for_blocks
from cones.types import Matrix

if TYPE_CHECKING:
    from cones.sampling.noise import Noise
    from cones.sampling.samplers import Pen

__all__ = ["BLOCK", "Rows"]

# Rows at a time: a span of so many stays in the cache.
BLOCK = 4


@dataclass(frozen=True)
class Rows:
    """All rows of the noise of an iteration, shape (noise.rows, dim).

    `kept` is the noise itself, if it was kept. What is computed from the rows is the same to the last bit if not.
    """

    noise: Noise
    iteration: int
    dim: int
    kept: Matrix | None = None

    def matrix(self) -> Matrix:
        return self.noise.draw(self.iteration, self.dim) if self.kept is None else self.kept

    def over_columns(self, use: Callable[[slice, Iterator[tuple[slice, Matrix, Matrix]]], None]) -> None:
        """Call `use(columns, blocks)` for pieces that cover all columns, on all cores.

        `blocks` are the rows in those columns, a few at a time: (which rows, their normals, memory of the same shape to
        compute in). That memory may be the one of the normals, which are not to be changed in any other way.
        """

        def work(first: int, last: int) -> None:
            pen = self.noise.pen(self.iteration, self.dim) if self.kept is None else None
            buffer = aligned((BLOCK, min(width, self.dim)), self.noise.dtype)
            for piece in range(first, last):
                columns = tile_slice(piece, self.dim, width)
                use(columns, self._blocks(piece, columns, pen, buffer))

        width = SPAN if self.kept is None else TILE
        count = tile_count(self.dim, width)
        for_blocks(work, count, count > 1)

    def _blocks(
        self, piece: int, columns: slice, pen: Pen | None, buffer: Matrix
    ) -> Iterator[tuple[slice, Matrix, Matrix]]:
        width = columns.stop - columns.start
        for start in range(0, self.noise.rows, BLOCK):
            stop = min(start + BLOCK, self.noise.rows)
            rows, space = slice(start, stop), buffer[: stop - start, :width]
            if pen is None or self.kept is not None:
                assert self.kept is not None
                yield rows, self.kept[rows, columns], space
                continue
            for place in range(stop - start):
                pen.draw(start + place, piece, space[place])
            yield rows, space, space
