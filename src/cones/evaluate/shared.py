"""Values in shared memory: their arrays are copied once for all processes, and not at all in the processes."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from multiprocessing.shared_memory import SharedMemory
from typing import Any

__all__ = ["SharedValue"]

LINE = 64  # bytes of a cache line, at which every array begins


@dataclass(frozen=True)
class SharedValue:
    """A pickled value without its arrays, which lie in shared memory: a few hundred bytes, whatever their size.

    Args:
        memory: the name of the shared memory.
        pickled: the rest of the value.
        spans: first and last byte of each array.
    """

    memory: str
    pickled: bytes
    spans: tuple[tuple[int, int], ...]

    @staticmethod
    def of(value: Any) -> SharedValue:
        buffers: list[pickle.PickleBuffer] = []
        pickled = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        parts, spans, end = [buffer.raw() for buffer in buffers], [], 0
        for part in parts:
            first = -(-end // LINE) * LINE
            end = first + part.nbytes
            spans.append((first, end))
        memory = SharedMemory(create=True, size=max(end, 1))
        assert memory.buf is not None
        for part, (first, last) in zip(parts, spans, strict=True):
            memory.buf[first:last] = part
        _held[memory.name] = memory
        return SharedValue(memory.name, pickled, tuple(spans))

    def opened(self) -> Any:
        """The value, in any process. Its arrays are views of the shared memory."""
        if self.memory not in _held:
            for name in list(_held):
                _held.pop(name).close()
            _held[self.memory] = SharedMemory(self.memory)
        buffer = _held[self.memory].buf
        assert buffer is not None
        return pickle.loads(self.pickled, buffers=[buffer[first:last].toreadonly() for first, last in self.spans])

    def forget(self) -> None:
        """Free the memory, in the process that made it."""
        memory = _held.pop(self.memory)
        memory.close()
        memory.unlink()


_held: dict[str, SharedMemory] = {}  # in a worker, that of the last iteration
