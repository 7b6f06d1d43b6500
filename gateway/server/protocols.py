"""uvicorn's protocol with the limits that it lacks: how long a client may take for TLS, to send a head or to read, how large a
head may be, how much it may send ahead, and how many connections one address may have.

uvicorn has no settings for these, and no documented place to add them: its protocol is extended here, and nowhere else.
"""

from __future__ import annotations

import asyncio
from asyncio.sslproto import SSLProtocol
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, final

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ...daemon.logs import RepeatedWarning, log

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from ...daemon.memory import MemoryBudget


# A transport that sends the head of an answer together with the beginning of its body. uvicorn writes them one by one, and each
# write is a call of the system, which takes a tenth of the time of a small request.


MAX_JOINED: Final = 64 * 1024
"""Bytes of a body that are copied to stand behind the head. Larger ones are written by themselves."""

_HEAD: Final = b"HTTP/1.1 "
"""How each head begins. A body that begins so waits as a head does, which harms nothing."""


@final
class JoinedWrites:
    """The transport of one connection, as uvicorn uses it. A head waits for the next write, or for the next turn of the loop."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._head: bytes | None = None
        self.is_closing: Final = transport.is_closing

    def write(self, data: bytes) -> None:
        head = self._head
        if head is not None:
            self._head = None
            if len(data) > MAX_JOINED:
                self._transport.write(head)
            else:
                data = head + data
        elif data.startswith(_HEAD):
            self._head = data
            self._loop.call_soon(self._send_head)
            return
        self._transport.write(data)

    def _send_head(self) -> None:
        head, self._head = self._head, None
        if head is not None:
            self._transport.write(head)

    def close(self) -> None:
        self._send_head()
        self._transport.close()

    def abort(self) -> None:
        self._head = None
        self._transport.abort()

    def __getattr__(self, name: str) -> Any:  # all else is the transport's own
        return getattr(self._transport, name)


# Has httptools read on where a client offers another protocol beside its request, as those do that would rather speak HTTP/2. A
# server may ignore the offer (RFC 9110, section 7.8). httptools instead takes what follows the head for the other protocol.


_OFFERS: Final = frozenset({b"upgrade", b"http2-settings", b"connection"})


@final
class IgnoringUpgrades:
    """The parser of one protocol of uvicorn. While `offered` is true, its callbacks tell of a request that they will tell of
    once more, without the offer."""

    def __init__(self, protocol: Any) -> None:  # a protocol of uvicorn
        self._protocol = protocol
        self._parser = _new(protocol)

    @property
    def offered(self) -> bool:
        return bool(self._parser.should_upgrade())

    def feed_data(self, data: bytes) -> None:
        """Raises `HttpParserError`."""
        while True:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as exc:
                if self._parser.get_method() == b"CONNECT":
                    raise httptools.HttpParserError from None
                data = self._head_again() + data[exc.args[0] :]
                self._parser = _new(self._protocol)

    def _head_again(self) -> bytes:
        """The head that was read, without the offer."""
        headers: list[tuple[bytes, bytes]] = self._protocol.headers
        tokens = [
            token.strip() for name, value in headers if name == b"connection" for token in value.lower().split(b",")
        ]
        lines = [b"%b %b HTTP/%b" % (self._parser.get_method(), self._protocol.url, self.get_http_version().encode())]
        lines += [b"%b: %b" % (name, value) for name, value in headers if name not in _OFFERS]
        lines += [b"connection: close"] if b"close" in tokens else []
        return b"\r\n".join((*lines, b"", b""))

    # -- what uvicorn asks for ---------------------------------------------------------------------------------

    def get_http_version(self) -> str:
        return str(self._parser.get_http_version())

    def get_method(self) -> bytes:
        return bytes(self._parser.get_method())

    def should_keep_alive(self) -> bool:
        return bool(self._parser.should_keep_alive())

    def should_upgrade(self) -> bool:
        return False


def _new(protocol: Any) -> Any:  # httptools has no types
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does: what follows is never answered
    return parser


_TIMED_OUT: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_HEAD_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)

CHUNK_OVERHEAD: Final = 8
"""Bytes that a chunked body may have for each of its own. The smallest chunk has 5 beside its byte."""


EOF_SECONDS: Final = 2.0
"""How long a client that sends nothing more may wait for its answer. Whether it still reads can't be told: one that has gone
looks the same."""

PARSED_BYTES: Final = 4 * 1024
"""How much is given to the parser at a time. It makes a request of every 27 bytes, all of which wait for the first one."""

PIPELINED_BYTES: Final = 2000
"""Bytes that a parsed request takes while it waits for those before it (uvicorn 0.54 on CPython 3.13, measured)."""

TLS_BUFFER_BYTES: Final = 32 * 1024
"""The buffer that each connection with TLS reads into. asyncio takes 256 KiB; a record has 16 KiB at most."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds, sizes in bytes. `head_seconds` is for a handshake of TLS, too; `write_seconds` is how long a client may
    take nothing of what is sent to it."""

    head_seconds: float
    write_seconds: float
    head_bytes: int
    connections_per_address: int


@final
class Connections:
    """Counts the connections of each address from when they are accepted, and closes those that are too many."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._by_address = Counter[str]()
        self._too_many = RepeatedWarning("http.too_many_connections")

    def enter(self, transport: asyncio.Transport) -> str | None:
        """The address of one more connection, which is there until `leave`; None where it is closed."""
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) else ""  # that of a unix socket is a text
        if self._by_address[address] >= self._limit:
            self._too_many(limit=self._limit)
            transport.abort()
            return None
        self._by_address[address] += 1
        return address

    def leave(self, address: str | None) -> None:
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]


@final
class GuardedProtocol(HttpToolsProtocol):
    """Limits the protocol of one connection. Without `connections` it is counted elsewhere.

    A client may send requests before it has its answers. What comes behind a whole request stays as it is until that one is
    answered, and counts in the memory budget. Trailers are dropped.
    """

    def __init__(
        self, limits: Limits, memory: MemoryBudget, connections: Connections | None, **of_uvicorn: Any
    ) -> None:
        super().__init__(**of_uvicorn)
        self._limits = limits
        self._memory = memory
        self._connections = connections
        self._address: str | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._ahead = b""
        """Bytes that were sent ahead and are not parsed."""
        self._counted = 0
        """Bytes in the memory budget for what was sent ahead."""
        self._in_head = False
        self._overhead = 0
        """Bytes of a request beside its body."""

    # -- the connection ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.parser: Any = IgnoringUpgrades(self)  # Any: as uvicorn uses it
        super().connection_made(JoinedWrites(transport))  # type: ignore[arg-type]
        self._start("head", self._limits.head_seconds, self._head_late)
        if self._connections is not None:
            self._address = self._connections.enter(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connections is not None:
            self._connections.leave(self._address)
        self._stop(*self._timers)
        self._ahead = b""
        self._count(0)
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # after a reset uvicorn leaves its timer, which would keep all this until it fires

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """A client that has sent all it wants may still wait for the answer."""
        if self._between_requests or self.transport.get_extra_info("sslcontext") is not None:
            return None
        if self.cycle.more_body:
            return None  # the rest of the body can't come any more
        if not self._ahead:
            self.cycle.keep_alive = False
        self._start("eof", EOF_SECONDS, self.transport.abort)
        return True

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start("write", self._limits.write_seconds, self._write_late)

    def resume_writing(self) -> None:
        self._stop("write")
        super().resume_writing()

    def _write_late(self) -> None:
        log.info("http.client_too_slow")
        self.transport.abort()

    def _start(self, timer: str, seconds: float, call: Callable[[], None]) -> None:
        if timer not in self._timers:
            self._timers[timer] = self.loop.call_later(seconds, call)

    def _stop(self, *timers: str) -> None:
        for timer in timers:
            if (running := self._timers.pop(timer, None)) is not None:
                running.cancel()

    # -- requests ----------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._ahead or len(data) > PARSED_BYTES or self._answering:
            self._ahead += data
            self._parse_ahead()
        else:
            self._parse(data)

    def _parse_ahead(self) -> None:
        """Parse what has come, up to the end of a request whose answer must be waited for."""
        at, end = 0, len(self._ahead)
        while at < end and not self._answering and not self.transport.is_closing():
            self._parse(self._ahead[at : at + PARSED_BYTES])
            at += PARSED_BYTES
        self._ahead = self._ahead[at:]
        if self._ahead:
            self.flow.pause_reading()
        elif "eof" in self._timers and not self._between_requests:
            self.cycle.keep_alive = False
        waiting = len(self._ahead) + len(self.pipeline) * PIPELINED_BYTES
        if waiting > self._counted and not self._memory.fits(waiting - self._counted):
            log.info("http.sent_too_much_ahead")
            self._ahead = b""
            self.transport.abort()
        else:
            self._count(waiting)

    def _count(self, size: int) -> None:
        if size != self._counted:
            self._memory.add("requests", size - self._counted)
            self._counted = size

    def _parse(self, data: bytes) -> None:
        self._overhead += len(data)
        super().data_received(data)
        if self._overhead > self._limits.head_bytes:
            log.info("http.head_too_large")
            self._refuse(_HEAD_TOO_LARGE)
        if not self._between_requests:
            self._stop("head")
        elif "linger" not in self._timers:  # most heads come in one piece, and need none
            self._start("head", self._limits.head_seconds, self._head_late)

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._overhead = False, 0
        if not self.url.startswith((b"/", b"*")):
            raise ValueError("the target is neither a path nor *")  # the parser turns it into an error of its own
        if not self.parser.offered:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._overhead -= len(body) * (1 + CHUNK_OVERHEAD)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._overhead = 0
        if not self.parser.offered:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """After an answer that did not wait for the body: what still comes of it is no head, and has no more time than one."""
        super().on_response_complete()
        if self._ahead or self._counted:
            self._parse_ahead()
        if self.cycle.more_body and not self.transport.is_closing():
            self._start("linger", self._limits.head_seconds, self._lingered)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is no HTTP, as uvicorn does."""
        log.info("http.malformed", status=400)
        super().send_400_response(msg)

    @property
    def _answering(self) -> bool:
        """Whether a whole request has come that is not answered, or several, the last of which may not be whole."""
        return not self._between_requests and (not self.cycle.more_body or bool(self.pipeline))

    @property
    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _head_late(self) -> None:
        log.info("http.head_timed_out")
        self._refuse(_TIMED_OUT)

    def _lingered(self) -> None:
        self._stop("linger")
        if self._between_requests:
            self.transport.close()

    def _refuse(self, answer: bytes) -> None:
        """Answer and close; only close where another request is not yet answered, for which this would be taken."""
        self._stop(*self._timers)
        if self.transport.is_closing():
            return
        if self._between_requests:
            self.transport.write(answer)
            self.transport.close()
        else:
            self.transport.abort()


@final
class _CountedTls(SSLProtocol):
    """Counts a connection with TLS before its handshake: asyncio tells the protocol within only when that is through."""

    max_size = TLS_BUFFER_BYTES

    def __init__(self, connections: Connections, *given: Any, **limits: Any) -> None:
        super().__init__(*given, **limits)
        self._connections = connections
        self._address: str | None = None

    def connection_made(self, transport: Any) -> None:  # Any: as the base has it
        super().connection_made(transport)
        self._address = self._connections.enter(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.leave(self._address)
        super().connection_lost(exc)


def protocol_factory(
    limits: Limits, memory: MemoryBudget, tls: ssl.SSLContext | None
) -> Callable[..., asyncio.BaseProtocol]:
    """Return the factory of protocols for a server with these limits."""
    connections = Connections(limits.connections_per_address)

    def make(**of_uvicorn: Any) -> asyncio.BaseProtocol:
        if tls is None:
            return GuardedProtocol(limits, memory, connections, **of_uvicorn)
        loop, inner, seconds = (
            asyncio.get_running_loop(),
            GuardedProtocol(limits, memory, None, **of_uvicorn),
            limits.head_seconds,
        )
        return _CountedTls(connections, loop, inner, tls, None, server_side=True, ssl_handshake_timeout=seconds)

    return make
