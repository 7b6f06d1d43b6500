"""Sends a request over one connection of HTTP/1.1, then reads its response. Follows, retries and logs nothing.

h11 knows the protocol; this module reads and writes for it. So it can tell whether bytes followed a response. Such a
connection is not used again, since the next request would take them for its answer.
"""

from __future__ import annotations

import os
import ssl
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, final  # Any: the events of h11

import h11
import msgspec

from ...framing.http import SseEvent, SseParser, TooLarge
from ...lazy import anyio
from .network import CLOSE_SECONDS, Destination

if TYPE_CHECKING:
    import socket

    from anyio.abc import ByteStream

MAX_HEAD_BYTES: Final = 65_536
"""The head of a response, and its trailers."""

MAX_INFORMATIONAL: Final = 20
"""Responses with a status of 1xx before the real one (RFC 9110, section 15.2)."""

READ_BYTES: Final = 65_536

_JOINED_BYTES: Final = 65_536
"""A body of at most so many bytes goes out in one piece with the head."""

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

LossReason: TypeAlias = Literal[
    "address", "connect", "connect-timeout", "connections", "encoding", "lost", "protocol", "tls", "too-large", "unresolved"
]  # fmt: skip
"""`address`: it is refused. `connections`: too many are open. `encoding`: the body is compressed. `lost`: the connection ended,
or never answered the request that it was given. `protocol`: what came is no HTTP, or more than the limits allow."""

PHRASES: Final[Mapping[LossReason, str]] = {
    "address": "its address is private, which is not allowed",
    "connect": "no connection",
    "connect-timeout": "no connection within the time limit",
    "connections": "too many connections are open",
    "encoding": "its answer is compressed in a way that can't be read",
    "lost": "the connection was lost",
    "protocol": "its answer is no HTTP",
    "tls": "the TLS handshake failed",
    "too-large": "its answer is too large",
    "unresolved": "the host is unknown",
}

_BEHIND_THE_REQUEST: Final = frozenset({"encoding", "lost", "protocol", "too-large"})


class OutboundError(Exception):
    """There is no response, or no whole one. `sent` is whether a part of the request may have left."""

    def __init__(self, reason: LossReason) -> None:
        super().__init__(reason)
        self.reason: Final = reason
        self.sent: Final = reason in _BEHIND_THE_REQUEST

    @property
    def phrase(self) -> str:
        """The reason for people. Never the text of another error, which may quote anything."""
        match self.__cause__:
            case ssl.SSLCertVerificationError() as cause:
                return f"its certificate is not trusted: {cause.verify_message}"
            case OSError(errno=int(number)) if number and self.reason == "connect":
                return os.strerror(number).lower()
            case _:
                return PHRASES[self.reason]


class ResponseHead(msgspec.Struct, frozen=True):
    """Names of headers are in lower case."""

    status: int
    headers: Headers

    def value(self, name: bytes) -> str:
        """The value of a header, values of several joined by commas; empty where there is none."""
        return ", ".join(value.decode("latin-1") for known, value in self.headers if known == name)


UNCOUNTED_BYTES: Final = 65_536
HELD_BYTES: Final = 1024 * 1024
"""A body of more than the first is counted against a budget, in steps of the second."""

Hold: TypeAlias = Callable[[int], None]
"""Counts bytes against a budget of memory; negative ones give them back. What it raises ends the reading."""


def _not_held(size: int) -> None:
    """Count nothing."""


GZIP: Final = frozenset({"gzip", "x-gzip"})
_GZIP_BITS: Final = 16 + zlib.MAX_WBITS


@final
class Gzip:
    """Undoes the compression of a body piece by piece (RFC 1952: members, one after the other). An empty body has none."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_BITS)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what is decoded with these bytes, at most `READ_BYTES` at once. Raises `OutboundError`."""
        self._begun = self._begun or bool(data)
        while data or not self._member.eof:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP_BITS)
            try:
                piece = self._member.decompress(data, READ_BYTES)
            except zlib.error:
                raise OutboundError("encoding") from None
            data = self._member.unconsumed_tail or self._member.unused_data
            if piece:
                yield piece
            if not data and len(piece) < READ_BYTES:
                return

    def end(self) -> None:
        """Take note that the body is over. Raises `OutboundError` where something is missing."""
        if self._begun and not self._member.eof:
            raise OutboundError("encoding")


@final
class Response:
    """A response whose body has not been read. Gzip is undone while it is read; no other compression is."""

    def __init__(self, head: ResponseHead, connection: HttpConnection) -> None:
        self.status: Final = head.status
        self.value: Final = head.value
        self._connection = connection
        self._encoding: Final = head.value(b"content-encoding").strip().lower()
        self._gzip = Gzip() if self._encoding in GZIP else None
        self._pieces: Iterator[bytes] = iter(())

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_compressed(self) -> bool:
        return self._encoding not in ("", "identity")

    @property
    def media_type(self) -> str:
        return self.value(b"content-type").partition(";")[0].strip().lower()

    async def read(self) -> bytes:
        """Some more of the body, at most 64 KiB; nothing at its end. Raises `OutboundError`."""
        if self.is_compressed and self._gzip is None:
            raise OutboundError("encoding")
        while (piece := next(self._pieces, None)) is None:
            data = await self._connection.read_body()
            if self._gzip is None:
                return data
            if not data:
                self._gzip.end()
                return b""
            self._pieces = self._gzip.feed(data)
        return piece

    async def read_all(self, limit: int, hold: Hold = _not_held) -> bytes:
        """The whole body. Raises `OutboundError`, also for one of more bytes when it is decompressed. `hold` counts what it takes
        while it is read."""
        announced = self.value(b"content-length")
        if announced.isdecimal() and int(announced[:18]) > limit:
            raise OutboundError("too-large")
        body, held = bytearray(), 0
        try:
            while piece := await self.read():
                size = len(body) + len(piece)
                if size > limit:
                    raise OutboundError("too-large")
                if size > held + UNCOUNTED_BYTES:
                    hold(HELD_BYTES)
                    held += HELD_BYTES
                body += piece
            return bytes(body)
        finally:
            if held:
                hold(-held)

    async def drain(self, limit: int = READ_BYTES) -> None:
        """Read and drop the rest of the body, as `HttpConnection.drain` does."""
        await self._connection.drain(limit)


@final
class EventReader:
    """The events of a response (`text/event-stream`), each of at most `limit` bytes. Raises `OutboundError`."""

    def __init__(self, response: Response, *, limit: int) -> None:
        self._response = response
        self._parser = SseParser(limit=limit)
        self._events: deque[SseEvent] = deque()

    @property
    def retry_seconds(self) -> float | None:
        """The seconds that the server asks to wait before a reconnection."""
        return self._parser.retry_seconds

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SseEvent:
        while not self._events:
            piece = await self._response.read()
            if not piece:
                raise StopAsyncIteration
            try:
                self._events.extend(self._parser.feed(piece))
            except TooLarge:
                raise OutboundError("too-large") from None
        return self._events.popleft()


@final
class HttpConnection:
    """A request at a time: `send`, `read_head`, `read_body` until it returns nothing, `is_reusable`. `read_head` and
    `read_body` raise `OutboundError`. `request` is the first two."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._at_end = False
        self.idle_until = 0.0

    async def send(self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        """Send a request whose headers say how long the body is.

        A server may answer and close before it has read all: then there is a response nevertheless.
        """
        pieces = self._h11.send(h11.Request(method=method, target=target, headers=list(headers))) or b""
        if body:
            pieces += self._h11.send(h11.Data(data=body[:_JOINED_BYTES])) or b""
        try:
            await self._stream.send(pieces)
            for start in range(_JOINED_BYTES, len(body), _JOINED_BYTES):
                piece = self._h11.send(h11.Data(data=body[start : start + _JOINED_BYTES]))
                await self._stream.send(piece or b"")
            self._h11.send(h11.EndOfMessage())
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            self._h11.send_failed()

    async def request(
        self, method: str, to: Destination, headers: Mapping[str, str], body: bytes = b"", *, target: str = ""
    ) -> Response:
        """The response to a request of the destination, or of another target at its server. Raises `OutboundError`."""
        length = {"content-length": str(len(body))} if method == "POST" else {}
        fields = {"host": to.authority, "accept-encoding": "identity", **length, **headers}
        await self.send(method, target or to.request_target, [*fields.items()], body)
        return Response(await self.read_head(), self)

    async def read_head(self) -> ResponseHead:
        """The head of the response; those of informational ones are skipped."""
        for _ in range(MAX_INFORMATIONAL + 1):
            event = await self._next_event()
            if isinstance(event, h11.Response):
                return ResponseHead(event.status_code, [(name, value) for name, value in event.headers])
            if not isinstance(event, h11.InformationalResponse):
                raise OutboundError("lost")
        raise OutboundError("protocol")

    async def read_body(self) -> bytes:
        """Some more of the body; nothing at its end."""
        while self._h11.their_state is h11.SEND_BODY:
            event = await self._next_event()
            if isinstance(event, h11.Data) and event.data:
                return bytes(event.data)
        return b""

    async def drain(self, limit: int) -> None:
        """Read and drop about `limit` bytes of the body at most, so that the connection can be used again. Raises nothing."""
        try:
            while limit >= 0 and (piece := await self.read_body()):
                limit -= len(piece)
        except OutboundError:
            pass

    def is_reusable(self) -> bool:
        """Whether the next request may use it. To be asked once, when a response has been read."""
        if self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE or self._h11.trailing_data[0]:
            return False
        self._h11.start_next_cycle()
        return not self.is_broken()

    def is_broken(self) -> bool:
        """Whether the server has closed it, or sent bytes without a request, while it was not used."""
        return _is_readable(self._stream.extra(anyio.abc.SocketAttribute.raw_socket))

    async def aclose(self) -> None:
        """Close it, within a second and in spite of cancellation."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
            await self._stream.aclose()

    async def _next_event(self) -> Any:
        while True:
            try:
                event = self._h11.next_event()
                if event is not h11.NEED_DATA:
                    return event
                self._h11.receive_data(await self._read())
            except h11.RemoteProtocolError as exc:
                raise OutboundError("lost" if self._at_end else "protocol") from exc

    async def _read(self) -> bytes:
        try:
            return await self._stream.receive(READ_BYTES)
        except anyio.EndOfStream:
            self._at_end = True
            return b""
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as exc:
            raise OutboundError("lost") from exc


def _is_readable(sock: socket.socket) -> bool:
    """Whether a read would not wait, also where the descriptor's number is too large for `select`."""
    import select  # late: only connections that are kept need it

    if sock.fileno() < 0:
        return True
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])
