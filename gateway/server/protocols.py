"""uvicorn's protocol with the limits that it lacks: how long a client may take for TLS, to send a head or to read, how large a
head may be, how much it may send ahead, and how many connections one address may have.
"""

from __future__ import annotations

import asyncio
from asyncio.sslproto import SSLProtocol
from collections import Counter
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...daemon.logs import RepeatedWarning, log

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sized

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
"""What a parsed request takes that waits for those before it (uvicorn 0.54 on CPython 3.13, measured)."""

TLS_BUFFER_BYTES: Final = 32 * 1024
"""What each connection with TLS reads into. asyncio takes 256 KiB; a record has 16 KiB at most."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds, sizes in bytes. `head_seconds` is for a handshake of TLS, too; `write_seconds` is how long a client may
    take nothing of what is sent to it."""

    head_seconds: float
    write_seconds: float
    head_bytes: int
    connections_per_address: int


class _Counted:
    """Counts the connections of each address from when they are accepted, and closes those that are too many. A base class."""

    limits: ClassVar[Limits]
    by_address: ClassVar[Counter[str]]
    too_many: ClassVar[RepeatedWarning]

    _address: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) else ""  # that of a unix socket is a text
        super().connection_made(transport)  # type: ignore[misc]
        if self.by_address[address] >= self.limits.connections_per_address:
            self.too_many(limit=self.limits.connections_per_address)
            transport.abort()
            return
        self._address = address
        self.by_address[address] += 1

    def connection_lost(self, exc: Exception | None) -> None:
        if self._address is not None:
            counts = self.by_address
            counts[self._address] -= 1
            if not counts[self._address]:
                del counts[self._address]
            self._address = None
        super().connection_lost(exc)  # type: ignore[misc]


class _Guard:
    """Limits a protocol of uvicorn. A base class: uvicorn makes the objects, and calls them itself.

    A client may send requests before it has its answers. What comes behind a whole request stays as it is until that one is
    answered, and counts in the memory budget.
    """

    limits: ClassVar[Limits]
    memory: ClassVar[MemoryBudget]
    transport: asyncio.Transport
    flow: Any  # Any: uvicorn's FlowControl
    pipeline: Sized = ()
    """The requests that are parsed and wait, of httptools; h11 itself stops behind a request."""
    cycle: Any  # Any: uvicorn's RequestResponseCycle, of either protocol
    client: tuple[str, int] | None
    _unset_keepalive_if_required: Callable[[], None]

    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _eof_timer: asyncio.TimerHandle | None = None
    _linger_timer: asyncio.TimerHandle | None = None
    _ahead: bytes = b""
    """What was sent ahead, and is not parsed."""
    _counted = 0
    """Bytes in the memory budget for what was sent ahead."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(JoinedWrites(transport))  # type: ignore[misc]
        self._head_timer = _later(self.limits.head_seconds, self._head_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        self._ahead = b""
        self._count(0)
        super().connection_lost(exc)  # type: ignore[misc]
        self._unset_keepalive_if_required()  # after a reset uvicorn leaves its timer, which would keep all this until it fires

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
        elif self._eof_timer is not None and not self._between_requests:
            self.cycle.keep_alive = False
        waiting = len(self._ahead) + len(self.pipeline) * PIPELINED_BYTES
        if waiting > self._counted and not self.memory.fits(waiting - self._counted):
            log.info("http.sent_too_much_ahead")
            self._ahead = b""
            self.transport.abort()
        else:
            self._count(waiting)

    def _count(self, size: int) -> None:
        if size != self._counted:
            self.memory.add("requests", size - self._counted)
            self._counted = size

    def _parse(self, data: bytes) -> None:
        super().data_received(data)  # type: ignore[misc]
        if self._between_requests:
            if self._head_timer is None and self._linger_timer is None:  # most heads come in one piece, and need none
                self._head_timer = _later(self.limits.head_seconds, self._head_late)
        elif self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def on_response_complete(self) -> None:
        """After an answer that did not wait for the body: what still comes of it is no head, and has no more time than one."""
        super().on_response_complete()  # type: ignore[misc]
        if self._ahead or self._counted:
            self._parse_ahead()
        if self.cycle.more_body and self._linger_timer is None and not self.transport.is_closing():
            self._linger_timer = _later(self.limits.head_seconds, self._lingered)

    def eof_received(self) -> bool | None:
        """A client that has sent all it wants may still wait for the answer."""
        if self._between_requests or self.transport.get_extra_info("sslcontext") is not None:
            return None
        if self.cycle.more_body:
            return None  # the rest of the body can't come any more
        if not self._ahead:
            self.cycle.keep_alive = False
        self._eof_timer = _later(EOF_SECONDS, self.transport.abort)
        return True

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP: uvicorn's own answer."""
        log.info("http.malformed", status=400)
        super().send_400_response(msg)  # type: ignore[misc]

    def pause_writing(self) -> None:
        super().pause_writing()  # type: ignore[misc]
        if self._write_timer is None:
            self._write_timer = _later(self.limits.write_seconds, self._write_late)

    def resume_writing(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()  # type: ignore[misc]

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
        self._linger_timer = None
        if self._between_requests:
            self.transport.close()

    def _write_late(self) -> None:
        log.info("http.client_too_slow")
        self.transport.abort()

    def _refuse(self, answer: bytes) -> None:
        """Answer and close; only close where another request is not yet answered, for which this would be taken."""
        self._stop_timers()
        if self.transport.is_closing():
            return
        if self._between_requests:
            self.transport.write(answer)
            self.transport.close()
        else:
            self.transport.abort()

    def _stop_timers(self) -> None:
        for timer in (self._head_timer, self._write_timer, self._eof_timer, self._linger_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._write_timer = self._eof_timer = self._linger_timer = None


def _later(seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
    return asyncio.get_running_loop().call_later(seconds, call)


def protocol_factory(
    limits: Limits, memory: MemoryBudget, tls: ssl.SSLContext | None
) -> Callable[..., asyncio.BaseProtocol]:
    """Return the factory of protocols for a server with these limits, of httptools where that is installed."""
    counted = {"limits": limits, "by_address": Counter(), "too_many": RepeatedWarning("http.too_many_connections")}
    guarded = (_Guard, *_parser_bases())
    if tls is None:
        return _new_class(_Counted, *guarded, memory=memory, **counted)
    of_http = _new_class(*guarded, limits=limits, memory=memory)
    # asyncio's own server with TLS tells a protocol of a connection only when the handshake is through
    of_tls = _new_class(_Counted, SSLProtocol, max_size=TLS_BUFFER_BYTES, **counted)

    def make(**of_uvicorn: Any) -> asyncio.BaseProtocol:
        loop, inner, seconds = asyncio.get_running_loop(), of_http(**of_uvicorn), limits.head_seconds
        return of_tls(loop, inner, tls, None, server_side=True, ssl_handshake_timeout=seconds)

    return make


def _new_class(*bases: type, **members: Any) -> Callable[..., asyncio.BaseProtocol]:
    made: Any = type("Guarded", bases, members)  # Any: no checker knows what such bases make
    new: Callable[..., asyncio.BaseProtocol] = made
    return new


def _parser_bases() -> tuple[type, ...]:
    if find_spec("httptools") is None:
        return (H11Protocol,)
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol  # late: it is optional

    return _HeadLimit, HttpToolsProtocol


class _HeadLimit:
    """Limits what comes of a request beside its body, and drops trailers. httptools itself has no limit; h11 is given one by
    uvicorn's own setting."""

    limits: ClassVar[Limits]

    parser: Any  # Any: httptools has no types
    url: bytes

    _in_head = False
    _overhead = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        from .upgrades import IgnoringUpgrades  # late: httptools is optional

        self.parser = IgnoringUpgrades(self)
        super().connection_made(transport)  # type: ignore[misc]

    def data_received(self, data: bytes) -> None:
        self._overhead += len(data)
        super().data_received(data)  # type: ignore[misc]
        if self._overhead > self.limits.head_bytes:
            log.info("http.head_too_large")
            self._refuse(_HEAD_TOO_LARGE)  # type: ignore[attr-defined]

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()  # type: ignore[misc]

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            super().on_header(name, value)  # type: ignore[misc]

    def on_headers_complete(self) -> None:
        self._in_head, self._overhead = False, 0
        if not self.url.startswith((b"/", b"*")):
            raise ValueError("the target is neither a path nor *")  # the parser turns it into an error of its own
        if not self.parser.offered:
            super().on_headers_complete()  # type: ignore[misc]

    def on_body(self, body: bytes) -> None:
        self._overhead -= len(body) * (1 + CHUNK_OVERHEAD)
        super().on_body(body)  # type: ignore[misc]

    def on_message_complete(self) -> None:
        self._overhead = 0
        if not self.parser.offered:
            super().on_message_complete()  # type: ignore[misc]
