"""Messages between a process and its worker, over a pair of sockets. The parent's end never blocks."""

from __future__ import annotations

import socket
from collections import deque
from contextlib import suppress

__all__ = ["Channel", "receive", "send"]

SIZE = 8  # bytes before each message that say how long it is
PIECE = 2**16  # bytes that are read at a time


def send(end: socket.socket, message: bytes) -> None:
    """Send a message, and wait until it is gone."""
    end.sendall(len(message).to_bytes(SIZE, "big") + message)


def receive(end: socket.socket) -> bytes | None:
    """The next message; None if the other end is closed."""
    size = _exactly(end, SIZE)
    return None if size is None else _exactly(end, int.from_bytes(size, "big"))


def _exactly(end: socket.socket, count: int) -> bytes | None:
    message = bytearray(count)
    rest = memoryview(message)
    while rest:
        got = end.recv_into(rest)
        if not got:
            return None
        rest = rest[got:]
    return bytes(message)


class Channel:
    """The parent's end. What the worker does not read yet waits here, so that no worker can block its parent.

    Attributes:
        closed: True if the worker has closed its end.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._out: deque[memoryview] = deque()
        self._in = bytearray()
        self.closed = False

    def fileno(self) -> int:
        return self._end.fileno()

    @property
    def is_sending(self) -> bool:
        """True if a message is not gone yet: call `flush` when the socket can be written to."""
        return bool(self._out)

    def put(self, message: bytes) -> None:
        """Send a message, as far as it goes."""
        self._out += [memoryview(len(message).to_bytes(SIZE, "big")), memoryview(message)]
        self.flush()

    def flush(self) -> None:
        with suppress(BlockingIOError):
            while self._out:
                try:
                    sent = self._end.send(self._out[0])
                except ConnectionError:  # the worker is gone, which its process tells
                    self._out.clear()
                    return
                self._out[0] = self._out[0][sent:]
                if not self._out[0]:
                    self._out.popleft()

    def take(self) -> list[bytes]:
        """The messages that have arrived as a whole."""
        with suppress(BlockingIOError, ConnectionError):
            while not self.closed:
                piece = self._end.recv(PIECE)
                self._in += piece
                self.closed = not piece
        messages = []
        while len(self._in) >= SIZE:
            last = SIZE + int.from_bytes(self._in[:SIZE], "big")
            if len(self._in) < last:
                break
            messages.append(bytes(self._in[SIZE:last]))
            del self._in[:last]
        return messages

    def close(self) -> None:
        self._end.close()
