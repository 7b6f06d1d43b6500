"""A byte transport over two descriptors, whatever they are. Never parses, never logs, never blocks the loop.

`ways` chooses how each is read and written; this module adds the waiting and the ending.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, final

from .choice import open_inlet, open_outlet
from .descriptors import Inlet, Outlet, is_open, require_output
from .interface import PeerGone, send_all

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable


@final
class StdioTransport:
    """A `ByteTransport` that reads `stdin_fd` and writes `stdout_fd` (they may be the same).

    Every failure to read is the end of input: a terminal that hung up (EIO), a reset connection, a descriptor that was
    never open. Every failure to write is `PeerGone`: a reader that went away, a full disk; what was cut can't be
    mended. Both are final. Raises `StdoutClosed` when there is no output to begin with.

    With `closefd` the transport owns the two descriptors and closes them. Without it they stay the caller's, and the
    peer sees the end of what was sent when the caller closes them. `inlet` and `outlet` choose the ways; the defaults
    choose well.
    """

    def __init__(
        self,
        stdin_fd: int,
        stdout_fd: int,
        *,
        closefd: bool = True,
        inlet: Callable[[int], Inlet] = open_inlet,
        outlet: Callable[[int], Outlet] = open_outlet,
    ) -> None:
        require_output(stdout_fd)
        self._owned = {fd for fd in (stdin_fd, stdout_fd) if closefd and is_open(fd)}
        self._inlet = inlet(stdin_fd)
        self._outlet = outlet(stdout_fd)
        self._stdin_fd = stdin_fd
        self._input_ended = False
        self._output_ended = False
        self._input_closed = False
        self._output_closed = False
        self._failure: OSError | None = None
        self._waits = 0

    def receive_nowait(self) -> bytes | None:
        if self._input_ended:
            return b""
        try:
            chunk = self._inlet.get()
        except BlockingIOError:
            return None
        except OSError:
            chunk = b""
        self._input_ended = chunk == b""
        return chunk

    async def receive(self) -> bytes:
        from anyio import wait_readable
        from anyio.lowlevel import checkpoint

        await checkpoint()
        while (chunk := self.receive_nowait()) is None:
            await self._wait(wait_readable, self._inlet.wait_on)
        return chunk

    def send_nowait(self, data: bytes | bytearray | memoryview) -> int:
        if self._output_ended:
            raise PeerGone from self._failure
        try:
            return self._outlet.put(memoryview(data))
        except BlockingIOError:
            return 0
        except OSError as error:
            self._output_ended = True
            self._failure = error
            raise PeerGone from error

    async def wait_sendable(self) -> None:
        from anyio import wait_writable

        await self._wait(wait_writable, None if self._output_ended else self._outlet.wait_on)

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        await send_all(self, data)

    def send_eof(self) -> None:
        if self._output_closed:
            return
        self._output_closed = self._output_ended = True
        self._wake(self._outlet.wait_on)
        if self._owned:
            self._outlet.finish()
        self._outlet.close()
        self._release(self._owned - {self._stdin_fd})

    def close(self) -> None:
        self.send_eof()
        if self._input_closed:
            return
        self._input_closed = self._input_ended = True
        self._wake(self._inlet.wait_on)
        self._inlet.close()
        self._release(self._owned)

    def _release(self, descriptors: set[int]) -> None:
        self._owned = self._owned - descriptors
        for fd in descriptors:
            os.close(fd)

    async def _wait(
        self, until: Callable[[int | socket.socket], Awaitable[None]], what: int | socket.socket | None
    ) -> None:
        from anyio import ClosedResourceError
        from anyio.lowlevel import checkpoint

        if what is None:  # always ready: others get their turn, and the caller tries again
            await checkpoint()
            return
        self._waits += 1
        try:
            await until(what)
        except ClosedResourceError:
            return  # `_wake`: the caller tries again and finds the end
        finally:
            self._waits -= 1

    def _wake(self, what: int | socket.socket | None) -> None:
        if self._waits and what is not None:  # somebody waits, so there is a loop
            import anyio

            anyio.notify_closing(what)
