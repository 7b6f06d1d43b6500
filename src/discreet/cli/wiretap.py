"""A byte transport that remembers what passes through it, so that the demo can show the wire itself."""

import re
from collections.abc import Callable
from typing import Final, final

from ..framing.transports.interface import ByteTransport

_HEADER: Final = re.compile(rb"Content-Length: \d+\r\n\r\n")


@final
class Wiretap:
    """A `ByteTransport` in front of another; `on_received` is called whenever something has come."""

    def __init__(self, transport: ByteTransport, on_received: Callable[[], object] = bool) -> None:
        self._transport = transport
        self._on_received = on_received
        self._frames = bytearray()
        self._raw: list[str] = []
        self._received = bytearray()

    @property
    def received(self) -> bytes:
        """What has come since the last `take`."""
        return bytes(self._received)

    def take(self) -> tuple[list[str], list[str]]:
        """What was sent and what came since the last time: the bodies of frames, and raw bytes, which go first."""
        taken = self._raw + _bodies(self._frames), _bodies(self._received)
        self._raw = []
        self._frames.clear()
        self._received.clear()
        return taken

    def receive_nowait(self) -> bytes | None:
        data = self._transport.receive_nowait()
        self._take_in(data or b"")
        return data

    async def receive(self) -> bytes:
        data = await self._transport.receive()
        self._take_in(data)
        return data

    def send_nowait(self, data: bytes | bytearray | memoryview) -> int:
        taken = self._transport.send_nowait(data)
        self._frames += memoryview(data)[:taken]
        return taken

    async def wait_sendable(self) -> None:
        await self._transport.wait_sendable()

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        await self._transport.send(data)
        self._raw.append(bytes(data).decode(errors="replace"))  # a peer sends frames with `send_nowait`

    def send_eof(self) -> None:
        self._transport.send_eof()

    def close(self) -> None:
        self._transport.close()

    def _take_in(self, data: bytes) -> None:
        self._received += data
        self._on_received()


def _bodies(data: bytearray) -> list[str]:
    return [body.decode(errors="replace") for body in _HEADER.split(bytes(data)) if body]
