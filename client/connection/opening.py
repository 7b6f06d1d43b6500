"""Keeps the first bytes that a server writes, to show them if none of it turns out to be a message. Interprets nothing."""

from __future__ import annotations

from typing import Final, final

from ...errors.printable import cut, printable
from ...framing.events import Framing
from ...framing.transports.interface import ByteTransport

_KEPT_BYTES: Final = 512
_SHOWN_CHARACTERS: Final = 120
_HEADER: Final = b"content-length:"


@final
class OpeningBytes:
    """A `ByteTransport` that passes everything on, and remembers how the incoming bytes began until `forget` is called."""

    def __init__(self, transport: ByteTransport) -> None:
        self._transport = transport
        self._kept = bytearray()
        self._wanted = True
        self.send_nowait = transport.send_nowait
        self.wait_sendable = transport.wait_sendable
        self.send = transport.send
        self.send_eof = transport.send_eof
        self.close = transport.close

    def receive_nowait(self) -> bytes | None:
        data = self._transport.receive_nowait()
        return data if data is None else self._remembered(data)

    async def receive(self) -> bytes:
        return self._remembered(await self._transport.receive())

    def forget(self) -> None:
        """A message came: what follows is shown no more."""
        if self._wanted:
            self._wanted = False
            self._kept.clear()

    def describe(self, framing: Framing) -> str:
        """The end of a message on bytes that hold no message: what they are, and which framing would fit; or nothing."""
        from ...errors.redaction import scrub  # late: only failures need it

        text = scrub(bytes(self._kept).decode(errors="replace").strip())
        first, more, _ = text.partition("\n")
        if not text:
            return ""
        return (
            f": {printable(cut(first.rstrip(), _SHOWN_CHARACTERS))}{' …' if more else ''}{self._framing_hint(framing)}"
        )

    def _framing_hint(self, framing: Framing) -> str:
        start = bytes(self._kept).lstrip()
        if framing == "content-length" and start.startswith(b"{"):
            return "; messages that are lines have the framing newline (MCP, ACP)"
        if framing == "newline" and start.lower().startswith(_HEADER):
            return "; messages with headers have the framing content-length"
        return ""

    def _remembered(self, data: bytes) -> bytes:
        if self._wanted and len(self._kept) < _KEPT_BYTES:
            self._kept += data[: _KEPT_BYTES - len(self._kept)]
        return data
