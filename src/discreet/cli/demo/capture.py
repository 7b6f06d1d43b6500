"""A byte transport that keeps a copy of what it sends and receives, so that the demo can show the messages."""

import re
from collections.abc import Callable
from typing import Final, final

from msgspec import Struct

from ...framing.transports.interface import ByteTransport

_HEADER: Final = re.compile(rb"Content-Length: \d+\r\n\r\n")


class CapturedMessages(Struct, frozen=True):
    """Messages without their headers. In `sent`, bytes that were sent raw come first."""

    sent: list[str]
    received: list[str]


@final
class CapturingTransport:
    """A `ByteTransport` in front of another one. Calls `on_received` whenever bytes have arrived."""

    def __init__(self, transport: ByteTransport, on_received: Callable[[], object] = bool) -> None:
        self._transport = transport
        self._on_received = on_received
        self._frames = bytearray()
        self._raw: list[str] = []
        self._received = bytearray()

    @property
    def received(self) -> bytes:
        """The bytes that have arrived since the last `take`."""
        return bytes(self._received)

    def take(self) -> CapturedMessages:
        """Return what was sent and received since the last `take`, and forget it."""
        taken = CapturedMessages(self._raw + _bodies(self._frames), _bodies(self._received))
        self._raw = []
        self._frames.clear()
        self._received.clear()
        return taken

    def receive_nowait(self) -> bytes | None:
        data = self._transport.receive_nowait()
        self._capture_received(data or b"")
        return data

    async def receive(self) -> bytes:
        data = await self._transport.receive()
        self._capture_received(data)
        return data

    def watch_input(self, on_input: Callable[[], None]) -> Callable[[], object] | None:
        return self._transport.watch_input(on_input)

    def send_nowait(self, data: bytes | bytearray | memoryview) -> int:
        count = self._transport.send_nowait(data)
        self._frames += memoryview(data)[:count]
        return count

    async def wait_sendable(self) -> None:
        await self._transport.wait_sendable()

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        await self._transport.send(data)
        self._raw.append(bytes(data).decode(errors="replace"))  # a peer sends its frames with `send_nowait`

    def send_eof(self) -> None:
        self._transport.send_eof()

    def close(self) -> None:
        self._transport.close()

    def _capture_received(self, data: bytes) -> None:
        self._received += data
        self._on_received()


def _bodies(data: bytearray) -> list[str]:
    return [body.decode(errors="replace") for body in _HEADER.split(bytes(data)) if body]
