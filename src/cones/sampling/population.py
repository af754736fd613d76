"""The candidates of an iteration, computed on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cones.beliefs import Belief
from cones.errors import InputError
from cones.kernels.buffers import BufferPool, aligned, new_vector
from cones.sampling.design import PRODUCT_ROWS, Plan
from cones.sampling.noise import WORTH_THREADS, NoiseStream
from cones.space.bounds import Box
from cones.types import Matrix, Vector

__all__ = ["Population"]

# Bytes of candidates per chunk, unless one row of noise needs more.
CHUNK_BYTES = 2**26


@dataclass(frozen=True)
class Population:
    """A lazy array of shape (popsize, n). It holds a few vectors, whatever the number of candidates.

    Iterating yields chunks of rows, arrays of shape (k, n):

        losses = np.concatenate([fun(chunk) for chunk in population])

    Indexing returns one candidate. Pickling a population pickles the belief and not the candidates.
    """

    belief: Belief
    plan: Plan
    noise: NoiseStream
    iteration: int
    box: Box | None = None

    def within(self, box: Box | None) -> Population:
        """The population with its candidates reflected into a box."""
        return self if box is None else replace(self, box=box)

    def __len__(self) -> int:
        return self.plan.popsize

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.belief.dim

    @property
    def bytes(self) -> int:
        """Size of the whole population in bytes."""
        return len(self) * self.belief.dim * np.dtype(self.noise.dtype).itemsize

    @property
    def chunk_size(self) -> int:
        """Candidates per chunk: those of as many rows of noise as fit into CHUNK_BYTES, and of at least one."""
        rows = self.plan.rows
        return self.plan.per_row * max(1, min(rows, CHUNK_BYTES // max(self.bytes // rows, 1)))

    def __iter__(self) -> Iterator[Matrix]:
        size, pool = self.chunk_size, BufferPool()
        for first in range(0, len(self), size):
            last = min(first + size, len(self))
            yield self.block(first, last, out=pool.take((last - first, self.belief.dim), self.noise.dtype))

    def __getitem__(self, index: int) -> Vector:
        if not isinstance(index, (int, np.integer)):
            raise TypeError(f"expected the index of one candidate, got {index!r}; block(first, last) gives several")
        if not -len(self) <= index < len(self):
            raise IndexError(f"expected an index below {len(self)}, the number of candidates, got {index}")
        row, which = divmod(int(index) % len(self), self.plan.per_row)
        candidate = self._one(row, which) if self._by_spans else np.array(self._made(row, row + 1)[0, which])
        return candidate if self.box is None else self.box.reflect(candidate)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Matrix:
        return self.block(0, len(self)).astype(dtype or self.noise.dtype, copy=False)

    def block(
        self,
        first: int,
        last: int,
        kept: Matrix | None = None,
        out: Matrix | None = None,
        drawn: Matrix | None = None,
    ) -> Matrix:
        """Candidates `first` to `last`, from all rows of noise `drawn` before, if given.

        Writes the noise of their rows to `kept`, if given. Writes the candidates to `out`, if given and if `first` and
        `last` split no mirrored pair.
        """
        if not 0 <= first <= last <= len(self):
            raise InputError(f"first, last: expected a range within the {len(self)} candidates, got {first} to {last}")
        per_row = self.plan.per_row
        start, stop = first // per_row, -(-last // per_row)
        whole = out if (first, last) == (start * per_row, stop * per_row) else None
        made = self._made(start, stop, kept, whole, drawn).reshape(-1, self.belief.dim)
        made = made[first - start * per_row : last - start * per_row]
        return made if self.box is None else self.box.reflect(made)

    def noise_rows(self, start: int = 0, stop: int | None = None) -> Matrix:
        """Rows `start` to `stop` of the noise behind the candidates."""
        stop = self.plan.rows if stop is None else stop
        if self.plan.transform is None:
            return self.noise.draw(self.iteration, self.belief.dim, start, stop)
        size = self.plan.block
        first, last = self._aligned(start, stop, size)
        noise = self.noise.draw(self.iteration, self.belief.dim, first, last)
        blocks = [self.plan.transform(noise[k : k + size]) for k in range(0, last - first, size)]
        return np.concatenate(blocks)[start - first : stop - first]

    def _aligned(self, start: int, stop: int, size: int) -> tuple[int, int]:
        """The blocks of rows that hold rows `start` to `stop`.

        The last bits of a product of matrices depend on how many rows it has: whatever rows are asked for, they are
        multiplied in the same blocks.
        """
        return start - start % size, min(-(-stop // size) * size, self.plan.rows)

    @property
    def _by_spans(self) -> bool:
        """True if spans of a candidate can be computed independently."""
        return self.belief.separable and self.plan.transform is None

    def _made(
        self,
        start: int,
        stop: int,
        kept: Matrix | None = None,
        out: Matrix | None = None,
        drawn: Matrix | None = None,
    ) -> Matrix:
        """The candidates of rows `start` to `stop`, shape (stop - start, per_row, n). Writes their noise to `kept`."""
        count, dim = stop - start, self.belief.dim
        whole = aligned((count * self.plan.per_row, dim), self.noise.dtype) if out is None else out
        candidates = whole.reshape(count, self.plan.per_row, dim)
        if self._by_spans and count * dim >= WORTH_THREADS and drawn is None:

            def use(row: int, columns: slice, normals: Vector) -> None:
                self.belief.draw(normals[None], candidates[row : row + 1, :, columns], columns)

            self.noise.for_spans(self.iteration, dim, start, stop, use, kept)
            return candidates
        size = count if self.belief.separable else PRODUCT_ROWS
        first, last = (start, stop) if self.belief.separable else self._aligned(start, stop, PRODUCT_ROWS)
        noise = self.noise_rows(first, last) if drawn is None else drawn[first:last]
        if (first, last) == (start, stop):
            for k in range(0, count, max(size, 1)):
                self.belief.draw(noise[k : k + size], candidates[k : k + size])
        else:
            made = np.empty((last - first, self.plan.per_row, dim), whole.dtype)
            for k in range(0, last - first, size):
                self.belief.draw(noise[k : k + size], made[k : k + size])
            candidates[:] = made[start - first : stop - first]
        if kept is not None:
            kept[:] = noise[start - first : stop - first]
        return candidates

    def _one(self, row: int, which: int) -> Vector:
        """One candidate, without allocating its mirrored partner."""
        candidate = new_vector(self.belief.dim, self.noise.dtype)

        def use(_: int, columns: slice, normals: Vector) -> None:
            own = aligned((1, self.plan.per_row, normals.size), self.noise.dtype)
            self.belief.draw(normals[None], own, columns)
            candidate[columns] = own[0, which]

        self.noise.for_spans(self.iteration, self.belief.dim, row, row + 1, use)
        return candidate
