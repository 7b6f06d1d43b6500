"""Requests to the gateway of another daemon: one to call, one to take a stream, one for its document. Retries nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeAlias, final
from urllib.parse import quote

from msgspec import Struct

from ... import call_tracing
from ...client.outbound.connection import ResponseHead
from ...client.outbound.pool import ConnectionPool
from ...client.outbound.ssrf import EXPECTED_PUBLIC_URL, Destination, parse_url
from ...framing.http.sse import SseEvent, SseParser, TooLarge
from ..http.exchange import Response
from ..http.faults import UpstreamFault
from .model import Url

MAX_REPLY_BYTES: Final = 10 * 1024 * 1024
"""How large a result may be, or one event."""

MAX_DOCUMENT_BYTES: Final = 64 * 1024 * 1024

MAX_STREAMS: Final = 1024
"""Streams at the same time; each takes a connection of its own. The gateway's own limit is the same."""

DOCUMENT: Final = "openapi.json"

_EVENTS: Final = "text/event-stream"

Hold: TypeAlias = Callable[[int], None]
"""Counts bytes against the daemon's memory budget; negative ones give them back."""


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
    """The gateway at an address, for one event loop. Its methods raise `OutboundError` and `UpstreamFault`."""

    def __init__(self, at: Destination, *, allow_private: bool) -> None:
        self._at = at
        self._calls = ConnectionPool(allow_private=allow_private)
        self._streams = ConnectionPool(allow_private=allow_private, max_connections=MAX_STREAMS)

    async def document(self, headers: Mapping[str, str]) -> Reply:
        """The OpenAPI document of what the caller may call."""
        async with self._asked(self._calls, "GET", DOCUMENT, {**headers, "accept": "application/json"}) as response:
            return await _whole(response, MAX_DOCUMENT_BYTES, _hold_nothing)

    async def call(self, method: str, body: bytes, headers: Mapping[str, str], hold: Hold) -> Reply:
        """The answer to a call of an operation. `hold` counts what a large one takes while it is read."""
        async with self._asked(self._calls, "POST", _path(method), {**headers, **_JSON}, body) as response:
            return await _whole(response, MAX_REPLY_BYTES, hold)

    async def events(
        self, method: str, body: bytes, headers: Mapping[str, str], hold: Hold
    ) -> AsyncGenerator[SseEvent, None]:
        """The events of a subscription, until the stream ends, in order or not. Nothing is read before it is asked for.

        Raises `Refused`.
        """
        asked = {**headers, **_JSON, "accept": _EVENTS}
        async with self._asked(self._streams, "POST", _path(method), asked, body) as response:
            if response.status != 200 or not response.head.value(b"content-type").lower().startswith(_EVENTS):
                raise Refused(await _whole(response, MAX_REPLY_BYTES, hold))
            parser = SseParser(limit=MAX_REPLY_BYTES)
            try:
                while piece := await response.read():
                    for event in parser.feed(piece):
                        yield event
            except TooLarge:
                raise UpstreamFault("too-large") from None

    async def aclose(self) -> None:
        """Close what is not in use."""
        await self._calls.aclose()
        await self._streams.aclose()

    @asynccontextmanager
    async def _asked(
        self, pool: ConnectionPool, verb: str, path: str, headers: Mapping[str, str], body: bytes = b""
    ) -> AsyncGenerator[Response]:
        to, tracer = self._at, call_tracing.tracer
        length = {"content-length": str(len(body))} if verb == "POST" else {}
        span = None if tracer is None else tracer.http_request(verb, to.host, to.port)
        traced = {} if span is None else span.headers
        error: BaseException | None = None
        try:
            async with pool.connection(to) as connection:
                sent = {"host": to.authority, **length, **traced, **headers}
                await connection.send(verb, to.request_target + path, list(sent.items()), body)
                response = Response(await connection.read_head(), connection)
                if span is not None:
                    span.answered(response.status)
                yield response
        except GeneratorExit:  # the consumer has enough
            raise
        except BaseException as exc:
            error = exc
            raise
        finally:
            if span is not None:
                span.end(error)


_JSON: Final = {"content-type": "application/json"}


def _path(method: str) -> str:
    return f"operations/{quote(method, safe='/')}"


def _hold_nothing(size: int) -> None:
    """Nobody counts what is read before a daemon serves."""


async def _whole(response: Response, limit: int, hold: Hold) -> Reply:
    return Reply(response.head, await response.read_all(limit, hold))
