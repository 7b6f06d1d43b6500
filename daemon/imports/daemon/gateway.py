"""Requests to the gateway of another daemon: one to call, one to take a stream, one for its document. Retries nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, final
from urllib.parse import quote

from msgspec import Struct

from ....framing.http.sse import SseEvent, SseParser, TooLarge
from ...outbound.connection import HttpConnection, OutboundError, ResponseHead
from ...outbound.pool import ConnectionPool
from ...outbound.ssrf import EXPECTED_PUBLIC_URL, Destination, parse_url
from .model import Url

MAX_REPLY_BYTES: Final = 10 * 1024 * 1024
"""How large a result may be, or one event."""

MAX_DOCUMENT_BYTES: Final = 64 * 1024 * 1024

MAX_STREAMS: Final = 1024
"""Streams at the same time; each takes a connection of its own. The gateway's own limit is the same."""

DOCUMENT: Final = "openapi.json"

_EVENTS: Final = "text/event-stream"


class Reply(Struct, frozen=True):
    """A whole response."""

    head: ResponseHead
    body: bytes

    @property
    def status(self) -> int:
        return self.head.status


class Refused(Exception):
    """A stream did not begin: the reply in its place."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


def address_of(url: Url) -> Destination:
    """Where a gateway is. Raises `ValueError` for an address that is none, or that is refused."""
    given = url.url.partition("?")[0].removesuffix(DOCUMENT).rstrip("/") + "/"
    found = parse_url(given, allow_private=url.allow_private)
    if found == EXPECTED_PUBLIC_URL:
        raise ValueError(
            "its address is private, which is refused; allow_private=True"
            " (--import-private, or allow_private = true in discreet.toml) allows it"
        )
    if isinstance(found, str):
        raise ValueError(f"its address must be {found}")
    return found


@final
class Gateway:
    """The gateway at an address, for one event loop. Its methods raise `OutboundError`, `protocol` also for what is too large."""

    def __init__(self, at: Destination, *, allow_private: bool) -> None:
        self._at = at
        self._calls = ConnectionPool(allow_private=allow_private)
        self._streams = ConnectionPool(allow_private=allow_private, max_connections=MAX_STREAMS)

    async def document(self, headers: Mapping[str, str]) -> Reply:
        """The OpenAPI document of what the caller may call."""
        async with self._asked(self._calls, "GET", DOCUMENT, {**headers, "accept": "application/json"}) as answer:
            return await _whole(*answer, MAX_DOCUMENT_BYTES)

    async def call(self, method: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        """The answer to a call of an operation."""
        async with self._asked(self._calls, "POST", _path(method), {**headers, **_JSON}, body) as answer:
            return await _whole(*answer, MAX_REPLY_BYTES)

    async def events(self, method: str, body: bytes, headers: Mapping[str, str]) -> AsyncGenerator[SseEvent, None]:
        """The events of a subscription, until the stream ends, in order or not. Nothing is read before it is asked for.

        Raises `Refused`.
        """
        asked = {**headers, **_JSON, "accept": _EVENTS}
        async with self._asked(self._streams, "POST", _path(method), asked, body) as (connection, head):
            if head.status != 200 or not head.value(b"content-type").lower().startswith(_EVENTS):
                raise Refused(await _whole(connection, head, MAX_REPLY_BYTES))
            parser = SseParser(limit=MAX_REPLY_BYTES)
            try:
                while piece := await connection.read_body():
                    for event in parser.feed(piece):
                        yield event
            except TooLarge:
                raise OutboundError("protocol") from None

    async def aclose(self) -> None:
        """Close what is not in use."""
        await self._calls.aclose()
        await self._streams.aclose()

    @asynccontextmanager
    async def _asked(
        self, pool: ConnectionPool, verb: str, path: str, headers: Mapping[str, str], body: bytes = b""
    ) -> AsyncGenerator[tuple[HttpConnection, ResponseHead]]:
        to = self._at
        length = {"content-length": str(len(body))} if verb == "POST" else {}
        async with pool.connection(to) as connection:
            await connection.send(
                verb, to.request_target + path, [*({"host": to.authority} | length | dict(headers)).items()], body
            )
            yield connection, await connection.read_head()


_JSON: Final = {"content-type": "application/json"}


def _path(method: str) -> str:
    return f"operations/{quote(method, safe='/')}"


async def _whole(connection: HttpConnection, head: ResponseHead, limit: int) -> Reply:
    if head.value(b"content-encoding") not in ("", "identity"):
        raise OutboundError("protocol")  # nobody has asked for it
    body = bytearray()
    while piece := await connection.read_body():
        body += piece
        if len(body) > limit:
            raise OutboundError("protocol")
    return Reply(head, bytes(body))
