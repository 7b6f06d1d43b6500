"""One request and its response: redirects within the server, the time until a stream begins, the body piece by piece.

Knows nothing of operations. Raises `UpstreamFault` and `OutboundError`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urljoin

from ...client.outbound.network import Destination, parse_url
from ...lazy import anyio
from .model import UpstreamFault
from .request import HttpRequest

if TYPE_CHECKING:
    from ...client.outbound.connection import HttpConnection, ResponseHead  # late: loads h11
    from ...client.outbound.pool import ConnectionPool

ACCEPTED: Final = "gzip"
"""The compression that is asked for."""

PIECE_BYTES: Final = 65_536
"""The largest piece that comes out of a compressed body at once."""

_GZIP_BITS: Final = 16 + zlib.MAX_WBITS
_IDENTITY: Final = frozenset({"", "identity"})
_GZIP: Final = frozenset({"gzip", "x-gzip"})


@final
class Gzip:
    """Undoes the compression of a body piece by piece (RFC 1952: members, one after the other). An empty body has none."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_BITS)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what is decoded with these bytes. Raises `UpstreamFault`."""
        self._begun = self._begun or bool(data)
        while data or not self._member.eof:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP_BITS)
            try:
                piece = self._member.decompress(data, PIECE_BYTES)
            except zlib.error:
                raise UpstreamFault("encoding") from None
            data = self._member.unconsumed_tail or self._member.unused_data
            if piece:
                yield piece
            if not data and len(piece) < PIECE_BYTES:
                return

    def end(self) -> None:
        """Take note that the body is over. Raises `UpstreamFault` where something is missing."""
        if self._begun and not self._member.eof:
            raise UpstreamFault("encoding")


MAX_REDIRECTS: Final = 5

UNCOUNTED_BYTES: Final = 65_536
HELD_BYTES: Final = 1024 * 1024
"""A body of more than the first is counted against the daemon's memory budget, in steps of the second."""

MAX_DRAINED_BYTES: Final = 65_536
"""How much of a body that nobody wants is read, so that its connection can be used again."""

_FOLLOWED: Final = frozenset({301, 302, 303, 307, 308})
_SAFE: Final = frozenset({"GET", "HEAD"})


@final
class Response:
    """The head of a response, and its body, decompressed."""

    def __init__(self, head: ResponseHead, connection: HttpConnection) -> None:
        self.status: Final = head.status
        self.head: Final = head
        self._connection = connection
        self._encoding = head.value(b"content-encoding").strip().lower()
        self._gzip = Gzip() if self._encoding in _GZIP else None
        self._pieces: Iterator[bytes] = iter(())

    async def read(self) -> bytes:
        """Some more of the body, at most 64 KiB; nothing at its end."""
        if self._gzip is None and self._encoding not in _IDENTITY:  # nobody asked for it
            raise UpstreamFault("encoding")
        while (piece := next(self._pieces, None)) is None:
            data = await self._connection.read_body()
            if self._gzip is None:
                return data
            if not data:
                self._gzip.end()
                return b""
            self._pieces = self._gzip.feed(data)
        return piece

    async def drain(self) -> None:
        """Read a body that nobody wants, unless it is large: then its connection is closed."""
        await self._connection.drain(MAX_DRAINED_BYTES)

    async def read_all(self, limit: int, hold: Callable[[int], None]) -> bytes:
        """The whole body. Raises `UpstreamFault` for one of more bytes when it is decompressed.

        `hold` counts what a large one takes while it is read; what it raises ends the reading.
        """
        announced = self.head.value(b"content-length")
        if announced.isdecimal() and int(announced[:18]) > limit:
            raise UpstreamFault("too-large")
        body, held = bytearray(), 0
        try:
            while piece := await self.read():
                size = len(body) + len(piece)
                if size > limit:
                    raise UpstreamFault("too-large")
                if size > held + UNCOUNTED_BYTES:
                    hold(HELD_BYTES)
                    held += HELD_BYTES
                body += piece
            return bytes(body)
        finally:
            if held:
                hold(-held)


@asynccontextmanager
async def open_response(
    pool: ConnectionPool, to: Destination, request: HttpRequest, *, head_seconds: float = math.inf
) -> AsyncGenerator[Response]:
    """The response to a request. Redirects of a GET or HEAD within the server are followed, others are responses."""
    target = request.target
    status = 0
    for _ in range(MAX_REDIRECTS + 1):
        async with pool.connection(to) as connection:
            head = await _exchange(connection, to, request, target, head_seconds)
            followed = _target_of_redirect(head, to, request.method, target)
            response = Response(head, connection)
            status = head.status
            if followed is None:
                yield response
                return
            await response.drain()
        target = followed
    raise UpstreamFault("redirect", status)


async def _exchange(
    connection: HttpConnection, to: Destination, request: HttpRequest, target: str, head_seconds: float
) -> ResponseHead:
    with anyio.move_on_after(head_seconds):
        await connection.send(request.method, target, [("host", to.authority), *request.headers], request.body)
        return await connection.read_head()
    raise UpstreamFault("timeout")


def _target_of_redirect(head: ResponseHead, to: Destination, method: str, target: str) -> str | None:
    """Where a redirect leads on the same server; None for whatever must not be followed.

    The same server is the same scheme, host and port (RFC 6454), so no credential goes to another one, nor over another scheme.
    """
    location = head.value(b"location")
    if head.status not in _FOLLOWED or method not in _SAFE or not location:
        return None
    try:
        found = parse_url(urljoin(f"{to.scheme}://{to.authority}{target}", location), allow_private=True)
    except ValueError:
        return None
    return found.request_target if isinstance(found, Destination) and found.origin == to.origin else None
