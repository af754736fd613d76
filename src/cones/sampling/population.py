"""The candidates of an iteration, made when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cones.beliefs.belief import Belief
from cones.errors import InputError
from cones.kernels.buffers import Shelf
from cones.sampling.noise import Noise
from cones.space.bounds import Box
from cones.types import Matrix, Vector

__all__ = ["Population"]

# Bytes of candidates that are made at a time, if a row of noise does not need more.
CHUNK_BYTES = 2**26


@dataclass(frozen=True)
class Population:
    """All that the candidates are made of: a few vectors, however many candidates there are.

    It stands for an array of shape (popsize, n). Iterating gives its rows in chunks, arrays of shape (k, n):

        losses = np.concatenate([fun(chunk) for chunk in population])

    Indexing gives one candidate. Sent to another process, it takes the belief along and not the candidates.
    """

    belief: Belief
    noise: Noise
    iteration: int
    box: Box | None = None

    def __len__(self) -> int:
        return self.noise.popsize

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.belief.dim

    @property
    def bytes(self) -> int:
        """That all candidates together take."""
        return len(self) * self.belief.dim * (4 if self.noise.dtype == "float32" else 8)

    @property
    def chunk_size(self) -> int:
        """Candidates per chunk: all that come from a row of noise, or of as many rows as are small."""
        per_row = self.noise.per_row
        row_bytes = self.bytes // self.noise.rows
        return per_row * max(1, min(self.noise.rows, CHUNK_BYTES // max(row_bytes, 1)))

    def __iter__(self) -> Iterator[Matrix]:
        size, shelf = self.chunk_size, Shelf()
        for first in range(0, len(self), size):
            last = min(first + size, len(self))
            yield self.block(first, last, out=shelf.take((last - first, self.belief.dim), self.noise.dtype))

    def __getitem__(self, index: int) -> Vector:
        if not isinstance(index, (int, np.integer)):
            raise TypeError(f"expected the place of one candidate, got {index!r}; block(first, last) gives several")
        if not -len(self) <= index < len(self):
            raise IndexError(f"expected a place below {len(self)}, the number of candidates, got {index}")
        candidate = self.noise.candidate(self.belief, self.iteration, int(index) % len(self))
        return candidate if self.box is None else self.box.reflect(candidate)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Matrix:
        return self.block(0, len(self)).astype(dtype or self.noise.dtype, copy=False)

    def block(self, first: int, last: int, kept: Matrix | None = None, out: Matrix | None = None) -> Matrix:
        """Candidates `first` to `last`.

        The noise of their rows is written to `kept` if it is given, and the candidates to `out`, if it is given and
        they are all those of their rows.
        """
        if not 0 <= first <= last <= len(self):
            raise InputError(f"first, last: expected a range within the {len(self)} candidates, got {first} to {last}")
        per_row = self.noise.per_row
        start, stop = first // per_row, -(-last // per_row)
        place = out if (first, last) == (start * per_row, stop * per_row) else None
        made = self.noise.candidates(self.belief, self.iteration, start, stop, kept, place)
        made = made[first - start * per_row : last - start * per_row]
        return made if self.box is None else self.box.reflect(made)
