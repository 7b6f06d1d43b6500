"""HTTP/1.1 on one connection: its bytes become requests of an ASGI app, whose answers become bytes, within limits.

httptools reads. What two readers could understand in two ways is refused: a proxy or a cache in front must see the same requests
as the gateway (RFC 9112, section 11.2).
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import sys
from asyncio.sslproto import SSLProtocol
from collections import Counter, deque
from contextvars import copy_context
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final, cast, final
from urllib.parse import unquote

import httptools

from ...daemon.logs import RepeatedWarning, log
from ..answers import WITHOUT_BODY
from ..requests import FIRST, WHOLE_BODY, in_task

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from ...daemon.memory import MemoryBudget
    from ...daemon.settings import Settings
    from ..asgi import App, Message, Scope

CHUNK_OVERHEAD: Final = 8
"""Bytes that a chunked body may have for each of its own. The smallest chunk has 5 beside its byte."""

EOF_SECONDS: Final = 2.0
"""How long a client that sends nothing more may wait for its answer. Whether it still reads can't be told: one that has gone
looks the same."""

LINGER_SECONDS: Final = 2.0
"""How long a client that was answered before it had sent all may go on sending. Were the connection closed at once, the system
would reset it, and the client could lose its answer (RFC 9112, section 9.6).
"""

BACKLOG: Final = 100
"""Connections that are accepted in one turn of the loop."""

ACCEPT_PAUSE_SECONDS: Final = 1.0
"""How long no connection is accepted when there are no descriptors for one more."""

RESERVED_DESCRIPTORS: Final = 32
"""Descriptors that connections leave to requests: for files, stores, child processes, and modules that load late. A quarter of
them all, where that is less."""

FRESH_SECONDS: Final = 0.1
"""How long a daemon that ends waits for the first request of a client that has connected."""

IDLE_SECONDS: Final = 75
"""How long a connection may stay open between two requests. Longer than the 60 s of common proxies, which then close first."""

PARSED_BYTES: Final = 4 * 1024
"""How much is given to the parser at a time. It makes a request of every 27 bytes, all of which wait for the first one."""

PIPELINED_BYTES: Final = 2000
"""What a parsed request takes that waits for those before it (CPython 3.11, measured)."""

UNREAD_BYTES: Final = 64 * 1024
"""Bytes of a body that may wait for the app before no more is read."""

TLS_BUFFER_BYTES: Final = 32 * 1024
"""What each connection with TLS reads into. asyncio takes 256 KiB; a record has 16 KiB at most."""

TLS_WRITTEN_BYTES: Final = 64 * 1024 + 1
"""Written bytes from which a client with TLS has to take some before more is written: when the transport below, too, says that it
has enough, as it says later when some are taken."""

MAX_JOINED: Final = 64 * 1024
"""Bytes of a body that are copied to stand behind the head. Larger ones are written by themselves."""

_LINE_BYTES: Final = 4
"""What a header line has beside its name and its value: the colon, a blank, and the line's end."""

_ONCE: Final = (b"host", b"content-length", b"transfer-encoding", b"authorization", b"content-type")
"""Headers of which a second one could be read by somebody else."""

_BLANK: Final = 0x20
"""It and tabs may stand around the value of a header, and are no part of it (RFC 9110, section 5.6.3). The parser takes no other
byte that is less."""

_SLASH: Final = 0x2F

_ABSOLUTE: Final = re.compile(rb"(https?)://([^/?@:][^/?@]*)(/.*|\?.*|)", re.IGNORECASE)
"""A target in absolute form (RFC 9112, section 3.2.2): scheme, authority, and path with query. User info is refused (RFC 9110,
section 4.2.4)."""

_OFFERS: Final = frozenset({b"upgrade", b"http2-settings", b"connection"})
"""The headers with which a client offers to go on in another protocol."""

_CONTROL: Final = re.compile(rb"[\0-\x08\x0a-\x1f\x7f]")
"""What no header of an answer may hold (RFC 9110, section 5.5)."""

_STATUS_LINES: Final = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}


@lru_cache(1)
def _date_line(now: int) -> bytes:
    """The header `Date` of an answer that leaves now (RFC 9110, section 6.6.1)."""
    return f"date: {formatdate(now, usegmt=True)}\r\n".encode()


def _most_descriptors() -> int:
    """How many descriptors may be open so that one more connection leaves the reserved ones free."""
    import resource  # late: Windows has none, and never asks

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit - min(RESERVED_DESCRIPTORS, limit // 4)


@final
class HttpServer:
    """Has an app answer all clients that connect to a socket. Closes the connections of one address that are too many."""

    def __init__(self, app: App, settings: Settings, memory: MemoryBudget, tls: ssl.SSLContext | None) -> None:
        self.app: Final = app
        self.memory: Final = memory
        self.seconds: Final = settings.frame_timeout
        """How long a client may take for a handshake of TLS, for a head, or to read what it is sent."""
        self.head_bytes: Final = settings.max_header_bytes
        self.open: Final[set[HttpProtocol]] = set()
        self.tasks: asyncio.TaskGroup
        self._most = settings.http_max_connections
        self._by_address = Counter[str]()
        self._too_many = RepeatedWarning("http.too_many_connections")
        self._accept_failed = RepeatedWarning("http.accept_failed", level="error")
        self._descriptors = sys.maxsize
        """How many may be open when a connection is accepted."""
        self._tls = tls
        self._stop_listening: Callable[[], None] | None = None
        """None until it runs."""
        self._changed = asyncio.Event()
        self._ending = False
        self.draining = False
        self.on_settled: Callable[[], None] = lambda: None
        """Called when `settled` may have become true by the passing of time."""
        self._accepting = 0
        """Connections that are accepted and have no protocol yet."""
        self._waits = True

    async def run(self, listening: socket.socket) -> None:
        """Serve until `end`, and until all is answered then."""
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        async with asyncio.TaskGroup() as self.tasks:
            try:
                loop.add_reader(listening, self._accept, listening)
            except NotImplementedError:  # Windows, whose loop accepts by itself
                server = await loop.create_server(self._protocol, sock=listening)
                self._stop_listening = server.close
            else:
                self._descriptors = _most_descriptors()
                self._stop_listening = partial(self._close, listening)
            try:
                while self.open or not self._ending:
                    self._changed.clear()
                    await self._changed.wait()
            finally:
                self._stop_listening()
                for connection in self.open:
                    connection.transport.abort()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(BACKLOG):
            try:
                self._check_descriptors(listening)
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as exc:  # no more descriptors, or no memory: some connections may end
                self._accept_failed(reason=exc.strerror)
                loop = asyncio.get_running_loop()
                loop.remove_reader(listening)
                loop.call_later(ACCEPT_PAUSE_SECONDS, self._accept_again, listening)
                return
            self._accepting += 1
            self.tasks.create_task(self._take(connection))

    def _check_descriptors(self, listening: socket.socket) -> None:
        """Raises `OSError` where the next descriptor is a reserved one. The system gives the lowest that is free."""
        probe = os.dup(listening.fileno())
        os.close(probe)
        if probe >= self._descriptors:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def _accept_again(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    async def _take(self, connection: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        except OSError:  # it has gone again
            connection.close()
        finally:
            self._accepting -= 1
            if self.draining:
                self.on_settled()

    def _close(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(listening)
            self._accept(listening)
            listening.close()

    def accept_no_more(self) -> None:
        """Listen no more. What has connected is accepted first: closing the socket would reset it, and a proxy that has sent a
        request by then can't tell whether that was executed.
        """
        if self._stop_listening is not None and not self.draining:
            self.draining = True
            self._stop_listening()
            asyncio.get_running_loop().call_later(FRESH_SECONDS, self._stop_waiting)

    def _stop_waiting(self) -> None:
        self._waits = False
        self.on_settled()

    @property
    def settled(self) -> bool:
        """Whether, at the end, no client that has connected may be about to send its first request."""
        if not (self.draining and self._waits):
            return True
        return not self._accepting and not any(connection.fresh for connection in self.open)

    def end(self) -> None:
        """End each connection when what was accepted over it is answered."""
        self._ending = True
        self.accept_no_more()
        for connection in [*self.open]:
            connection.shut_down()
        self._changed.set()

    def _protocol(self) -> asyncio.BaseProtocol:
        if self._tls is None:
            return HttpProtocol(self, counted=False)
        within = HttpProtocol(self, counted=True)
        loop, seconds = asyncio.get_running_loop(), self.seconds
        return _CountedTls(self, loop, within, self._tls, None, server_side=True, ssl_handshake_timeout=seconds)

    def enter(self, transport: asyncio.Transport) -> str | None:
        """The address of one more connection, which is there until `leave`; None where it is closed."""
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) else ""  # that of a unix socket is a text
        if self._by_address[address] >= self._most:
            self._too_many(limit=self._most)
            transport.abort()
            return None
        self._by_address[address] += 1
        return address

    def leave(self, address: str | None) -> None:
        self._changed.set()
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]


@final
class _CountedTls(SSLProtocol):
    """Counts a connection with TLS before its handshake: asyncio tells the protocol within only when that is through. Nor does it
    tell of bytes that the transport below has and the client does not take.
    """

    max_size = TLS_BUFFER_BYTES

    def __init__(self, server: HttpServer, *given: Any, **limits: Any) -> None:
        super().__init__(*given, **limits)
        self._server = server
        self._address: str | None = None
        self._set_write_buffer_limits(high=TLS_WRITTEN_BYTES)  # type: ignore[attr-defined]

    def _get_write_buffer_size(self) -> int:  # pyright: ignore[reportUnusedFunction] - the base calls it
        size: int = super()._get_write_buffer_size()  # type: ignore[misc]
        below = cast("asyncio.Transport | None", self._transport)
        return size if below is None else size + below.get_write_buffer_size()

    def connection_made(self, transport: Any) -> None:  # Any: as the base has it
        super().connection_made(transport)
        self._address = self._server.enter(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._server.leave(self._address)
        super().connection_lost(exc)


@final
class _Cycle:
    """One request and its answer: `receive` and `send` are those of ASGI."""

    def __init__(self, protocol: HttpProtocol, scope: Scope, *, keep_alive: bool, expects_100: bool) -> None:
        self.scope: Final = scope
        self.keep_alive = keep_alive
        self.body: bytes | bytearray = bytearray()
        """What has come of the body, and was not received."""
        self.more_body = True
        self.begun = self.started = self.answered = self.gone = False
        self._protocol = protocol
        self._expects_100 = expects_100
        self._received = False  # the whole body
        self._waiter: asyncio.Future[None] | None = None
        self._chunked = False
        self._head = b""

    def wake(self) -> None:
        """Something has changed that `receive` waits for."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def receive(self) -> Message:
        while not (self.gone or self.answered):
            if self.body or not (self.more_body or self._received):
                body, self.body = bytes(self.body), bytearray()
                self._received = not self.more_body
                self._protocol.read_as_needed()
                return {"type": "http.request", "body": body, "more_body": self.more_body}
            if self._expects_100 and not self.started:
                self._expects_100 = False
                self._protocol.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._waiter = waiter = asyncio.get_running_loop().create_future()  # first: what comes meanwhile wakes it
            await in_task()
            await waiter
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Raises `RuntimeError` for a header that no answer may have: then the connection has to end."""
        congested = self._protocol.congested
        if congested is not None and not self.gone:
            await in_task()
            await asyncio.shield(congested)
        if self.gone:
            return
        if not self.started:
            self._start(message["status"], message["headers"])
        elif not self.answered:
            self._write(message.get("body", b""), more=message.get("more_body", False))

    def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        lines, told = [_STATUS_LINES[status], _date_line(int(time()))], dict(headers)
        for name, value in headers:
            if _CONTROL.search(value):
                raise RuntimeError("a header of the answer holds control characters")
            lines += (name, b": ", value, b"\r\n")
        streams = b"content-length" not in told and status not in WITHOUT_BODY and self.scope["method"] != "HEAD"
        if told.get(b"connection") == b"close" or (self._expects_100 and self.more_body):
            self.keep_alive = False  # a client that was not told to go on may leave out its body
        if streams and self.scope["http_version"] == "1.1":
            self._chunked = True
            lines.append(b"transfer-encoding: chunked\r\n")
        elif streams:
            self.keep_alive = False  # the end of the connection is that of the body
        if not self.keep_alive and b"connection" not in told:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        self.started, self._head = True, b"".join(lines)
        if streams:  # what follows may take its time; else it follows at once, and leaves together with the head
            self._protocol.transport.write(self._head)
            self._head = b""

    def _write(self, body: bytes, *, more: bool) -> None:
        head, self._head = self._head, b""
        if self.scope["method"] == "HEAD":
            body = b""
        elif self._chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"" if more else b"0\r\n\r\n")
        if head and len(body) > MAX_JOINED:
            self._protocol.transport.write(head)
            self._protocol.transport.write(body)
        elif head or body:
            self._protocol.transport.write(head + body)
        if not more:
            self.answered = True
            if self._waiter is not None:
                self.wake()
            self._protocol.on_answered(self)


@final
class HttpProtocol(asyncio.Protocol):
    """One connection. Unless it is `counted` elsewhere it counts among those of its address.

    A client may send requests before it has its answers. What comes behind a whole request stays as it is until that one is
    answered, and counts in the memory budget. Trailers are dropped.

    A request begins outside of all tasks, as soon as all that came with its head is read: one that needs not wait costs no task.
    """

    transport: asyncio.Transport

    def __init__(self, server: HttpServer, *, counted: bool) -> None:
        self.server: Final = server
        self.congested: asyncio.Future[None] | None = None
        """While the client does not take what is sent to it: done when it does again, or has gone."""
        self._counts = not counted
        self._address: str | None = None
        self._loop = asyncio.get_running_loop()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.fresh = True
        """Whether no request has come."""
        self._idle_since = monotonic()
        self._parser: Any = self._new_parser()
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._in_head = False
        self._tabbed = False
        """Whether the head has a tab behind a coding, where the parser knows none: it is parsed again without."""
        self._untold = b""
        """What came behind such a head."""
        self._status = 0
        """With which a head was refused."""
        self._overhead = 0
        """Bytes of a request beside its body."""
        self._cycles: deque[_Cycle] = deque()
        """What has come and is not answered: the first is answered now, of the last the body may not be here."""
        self._reading: _Cycle | None = None
        """The last one, also where it was answered before its body came."""
        self._ahead = b""
        """What was sent ahead, and is not parsed."""
        self._counted = 0
        """Bytes in the memory budget for what was sent ahead."""
        self._paused = False
        self._lingers = False
        """Whether all is said, and what still comes is dropped."""

    def _new_parser(self) -> Any:  # httptools has no types
        parser = httptools.HttpRequestParser(self)
        # What follows the last request is never answered. Codings are checked here: `_refusal` takes `chunked` alone.
        parser.set_dangerous_leniencies(lenient_data_after_close=True, lenient_transfer_encoding=True)
        return parser

    # -- the connection ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self.server.open.add(self)
        peer, local = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self._client = peer[:2] if isinstance(peer, tuple) else None
        self._local = local[:2] if isinstance(local, tuple) else (local, None)
        self._scheme = "http" if transport.get_extra_info("sslcontext") is None else "https"
        self._start("idle", IDLE_SECONDS, self._look_idle)
        self._start("head", self.server.seconds, partial(self._refuse, 408))
        if self._counts:
            self._address = self.server.enter(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.open.discard(self)
        self._stop(*self._timers)
        self._ahead = b""
        self._count(0)
        for cycle in self._cycles:
            cycle.gone = True
            cycle.wake()
        self._cycles.clear()
        self.resume_writing()
        self._parser = None
        self.server.leave(self._address)

    def eof_received(self) -> bool | None:
        """A client that has sent all it wants may still wait for its answers."""
        if self._lingers:
            return None
        if self._cycles and self._cycles[-1].more_body:
            self._drop_last()  # the rest of the body can't come any more
        if not self._cycles or self._scheme == "https":
            return None
        if not self._ahead:
            self._cycles[-1].keep_alive = False
        self._start("eof", EOF_SECONDS, self.transport.abort)
        return True

    def shut_down(self) -> None:
        """End the connection when what was accepted is answered."""
        if self._cycles:
            self._cycles[-1].keep_alive = False
        else:
            self._close()

    def pause_writing(self) -> None:
        self.congested = self.congested or self._loop.create_future()
        if "write" not in self._timers:
            self._look_written("write", sys.maxsize)

    def resume_writing(self) -> None:
        self._stop("write")
        congested, self.congested = self.congested, None
        if congested is not None:
            congested.set_result(None)

    def read_as_needed(self) -> None:
        """Read on, unless what is here has to be worked off before."""
        last = (
            self._cycles[-1] if self._cycles else None
        )  # what is whole takes no more room, and its client may still go away
        paused = bool(self._ahead) or (last is not None and last.more_body and len(last.body) > UNREAD_BYTES)
        if paused != self._paused and not self.transport.is_closing():
            self._paused = paused
            (self.transport.pause_reading if paused else self.transport.resume_reading)()

    # -- time limits -------------------------------------------------------------------------------------------

    def _start(self, timer: str, seconds: float, call: Callable[[], None]) -> None:
        if timer not in self._timers:
            self._timers[timer] = self._loop.call_later(seconds, call)

    def _stop(self, *timers: str) -> None:
        for timer in timers:
            if (running := self._timers.pop(timer, None)) is not None:
                running.cancel()

    def _look_idle(self) -> None:
        """Close a connection on which nothing is asked. One timer serves it all its life."""
        self._timers.pop("idle", None)
        left = self._idle_since + IDLE_SECONDS - monotonic() if not self._cycles else IDLE_SECONDS
        if left <= 0:
            self._close()
        else:
            self._start("idle", left, self._look_idle)

    def _close(self, *, unread: bool = False) -> None:
        """Close the connection when what was sent is taken, or when that takes too long. A client of which bytes are `unread`
        learns first that nothing more comes, and closes it then.
        """
        transport = self.transport  # with TLS closing does the same
        if unread and not self._lingers and transport.can_write_eof() and not transport.get_write_buffer_size():
            self._lingers, self._ahead = True, b""
            self._count(0)
            self.read_as_needed()
            try:
                transport.write_eof()
            except OSError:  # it has gone
                return transport.abort()
            self._start("linger", LINGER_SECONDS, self._close)
        else:
            transport.close()
            if "close" not in self._timers:
                self._look_written("close", sys.maxsize)

    def _look_written(self, timer: str, before: int) -> None:
        """Cut a client that has taken nothing while as much as `before` was left of what is written. Else look again later."""
        self._timers.pop(timer, None)
        left = self.transport.get_write_buffer_size()
        if left < before:
            self._start(timer, self.server.seconds, partial(self._look_written, timer, left))
        else:
            log.info("http.client_too_slow")
            self.transport.abort()

    # -- from bytes to requests --------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._lingers:
            return
        if self._ahead or len(data) > PARSED_BYTES or self._is_answering:
            self._ahead += data
            self._parse_ahead()
        else:
            self._parse(data)
            if len(self._cycles) > 1:  # they count, too, that came in one piece
                self._parse_ahead()
        self._begin()

    def _parse_ahead(self) -> None:
        """Parse what has come, up to the end of a request whose answer must be waited for."""
        at, end = 0, len(self._ahead)
        while at < end and not (self._is_answering or self._lingers or self.transport.is_closing()):
            self._parse(self._ahead[at : at + PARSED_BYTES])
            at += PARSED_BYTES
        if self._lingers:
            return
        self._ahead = self._ahead[at:]
        if "eof" in self._timers and not self._ahead and self._cycles:
            self._cycles[-1].keep_alive = False
        waiting = len(self._ahead) + max(len(self._cycles) - 1, 0) * PIPELINED_BYTES
        if waiting > self._counted and not self.server.memory.fits(waiting - self._counted):
            log.info("http.sent_too_much_ahead")
            self._ahead = b""
            self.transport.abort()
        else:
            self._count(waiting)
        self.read_as_needed()

    def _count(self, size: int) -> None:
        if size != self._counted:
            self.server.memory.add("requests", size - self._counted)
            self._counted = size

    def _parse(self, data: bytes) -> None:
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as exc:
            return self._parse_again(data[exc.args[0] :])
        except httptools.HttpParserError:
            return self._refuse(self._status or 400)
        if self._tabbed and not self._in_head:
            return self._parse_again(self._untold)
        if self._overhead > self.server.head_bytes:
            return self._refuse(431)
        if self._cycles:
            if "head" in self._timers:
                self._stop("head")
        elif self._in_head:  # most heads come in one piece, and need none
            self._start("head", self.server.seconds, partial(self._refuse, 408))

    def _parse_again(self, rest: bytes) -> None:
        """Parse a head again, without what keeps the parser from the `rest` behind it: a tab behind the coding, or an offer to go
        on in another protocol, as clients make it that would rather speak HTTP/2. A server may ignore it (RFC 9110, section 7.8).
        """
        method, version, headers = self._parser.get_method(), self._parser.get_http_version(), self._headers
        if method == b"CONNECT":
            return self._refuse(400)
        tokens = [
            token.strip() for name, value in headers if name == b"connection" for token in value.lower().split(b",")
        ]
        lines = [b"%b %b HTTP/%b" % (method, self._url, version.encode())]
        lines += [b"%b: %b" % header for header in headers if header[0] not in _OFFERS]
        lines += [b"connection: close"] if b"close" in tokens else []
        self._parser = self._new_parser()
        self._parse(b"\r\n".join((*lines, b"", rest)))

    def on_message_begin(self) -> None:
        self._in_head, self._tabbed, self._url, self._headers = True, False, b"", []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            name = name.lower()
            if value and value[-1] <= _BLANK:
                self._tabbed = self._tabbed or (name == b"transfer-encoding" and b"\t" in value)
                value = value.rstrip(b" \t")
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        parser = self._parser
        size, self._in_head, self._overhead = self._overhead, False, 0
        if self._tabbed or parser.should_upgrade():  # the head comes once more
            self._reading, self._untold = None, b""
            return
        version, given = parser.get_http_version(), dict(self._headers)
        self._status = self._refusal(given, version, size)
        if not self._status and self._url[0] != _SLASH:
            self._status = self._read_target(parser.get_method())
        if self._status:
            raise ValueError  # the parser ends with an error of its own
        raw_path, _, query = self._url.partition(b"?")
        path = raw_path.decode("latin-1")
        scope = {
            "type": "http", "asgi": _ASGI, "http_version": version, "method": parser.get_method().decode("latin-1"),
            "scheme": self._scheme, "path": unquote(path) if "%" in path else path, "raw_path": raw_path,
            "query_string": query, "root_path": "", "headers": self._headers, "client": self._client, "server": self._local,
        }  # fmt: skip
        if self.fresh:
            self.fresh, scope[FIRST] = False, True
        self._reading = cycle = _Cycle(
            self,
            scope,
            keep_alive=version != "1.0" and parser.should_keep_alive(),
            expects_100=version != "1.0" and b"expect" in given and given[b"expect"].lower() == b"100-continue",
        )
        self._cycles.append(cycle)

    def _refusal(self, given: dict[bytes, bytes], version: str, size: int) -> int:
        """The status with which a head is refused; 0 where it is not. `size` is that of the head and of what came beside it, but
        for what came in one piece with the request before it.
        """
        headers = self._headers
        if version not in ("1.0", "1.1"):
            return 505
        if b"#" in self._url:  # a target has no fragment
            return 400
        if size > self.server.head_bytes - PARSED_BYTES:
            lines = sum(len(name) + len(value) + _LINE_BYTES for name, value in headers)
            if len(self._url) + lines > self.server.head_bytes:
                return 431
        if len(given) < len(headers):
            names = [name for name, _ in headers]
            if any(names.count(name) > 1 for name in _ONCE):
                return 400
        if b"host" not in given and version == "1.1":
            return 400
        coding = given.get(b"transfer-encoding")  # how the body's end is told (RFC 9112, section 6)
        if coding is None:
            return 0
        if coding.lower() != b"chunked":
            return 501
        return 400 if b"content-length" in given or version == "1.0" else 0

    def _read_target(self, method: bytes) -> int:
        """Make a path of an absolute target, whose authority takes the place of `Host` (RFC 9112, section 3.2.2). Return the
        status with which a target is refused; 0 where it is not.
        """
        if self._url == b"*":
            return 0 if method == b"OPTIONS" else 400
        found = _ABSOLUTE.fullmatch(self._url)
        if found is None:
            return 400
        scheme, authority, path = found.groups()
        if scheme.decode().lower() != self._scheme:  # it must not be taken for secured, or for not secured
            return 421
        self._url = path if path[:1] == b"/" else b"*" if not path and method == b"OPTIONS" else b"/" + path
        self._headers = [(b"host", authority), *(header for header in self._headers if header[0] != b"host")]
        return 0

    def on_body(self, body: bytes) -> None:
        # Not below 0: what a body allows is for its own chunks, and not for a trailer behind them.
        self._overhead = max(0, self._overhead - len(body) * (1 + CHUNK_OVERHEAD))
        cycle = self._reading
        if cycle is not None and not cycle.answered:
            cycle.body += body
            if cycle.begun:
                cycle.wake()
                self.read_as_needed()
        elif self._tabbed:
            self._untold += body

    def on_message_complete(self) -> None:
        self._overhead = 0
        cycle = self._reading
        if cycle is not None and not self._parser.should_upgrade():
            cycle.more_body = False
            if (
                not self._parser.should_keep_alive()
            ):  # a trailer may say so, too, and what follows is not parsed any more
                cycle.keep_alive = False
                if cycle.answered:
                    self._close()
            if cycle.begun:
                cycle.wake()

    def _refuse(self, status: int) -> None:
        """Answer and close. Where other requests wait for their answers, only close behind these: this would be taken for one of
        them. A request in whose body the fault is has no other answer; where that has begun the connection is cut.
        """
        match status:
            case 408:
                log.info("http.head_timed_out")
            case 431:
                log.info("http.head_too_large")
            case _:
                log.info("http.malformed", status=status)
        self._stop(*(self._timers.keys() - {"write", "linger", "close"}))
        if self._lingers or self.transport.is_closing():
            return
        faulty, self._reading = self._reading, None
        if faulty is not None and not faulty.more_body:
            faulty = None  # it is whole
        if faulty is not None and not faulty.answered:
            if faulty.started:
                return self.transport.abort()
            self._drop_last()
        if self._cycles:
            self._cycles[-1].keep_alive = False
            return
        if faulty is None or not faulty.answered:
            self.transport.write(_STATUS_LINES[status] + b"connection: close\r\ncontent-length: 0\r\n\r\n")
        self._close(unread=True)

    def _drop_last(self) -> None:
        """Answer the last request no more."""
        cycle = self._cycles.pop()
        cycle.gone = True
        cycle.wake()

    # -- from requests to answers ------------------------------------------------------------------------------

    @property
    def _is_answering(self) -> bool:
        """Whether a whole request has come that is not answered, or several, the last of which may not be whole."""
        cycles = self._cycles
        return bool(cycles) and (not cycles[0].more_body or len(cycles) > 1)

    def _begin(self) -> None:
        """Begin to answer the request whose turn it is, unless that was done."""
        if not self._cycles or self._cycles[0].begun or self.transport.is_closing():
            return
        cycle = self._cycles[0]
        cycle.begun = True
        if not cycle.more_body:
            cycle.scope[WHOLE_BODY] = cycle.body = bytes(cycle.body)
        work, variables = self._answer(cycle), copy_context()
        try:
            awaited = variables.run(work.send, None)
        except StopIteration:
            return
        assert awaited is None, "it calls `in_task` before it waits"
        self.server.tasks.create_task(work, context=variables)

    async def _answer(self, cycle: _Cycle) -> None:
        """Have the app answer. Whatever it raises ends the connection."""
        try:
            await self.server.app(cycle.scope, cycle.receive, cycle.send)
        except asyncio.CancelledError:  # the end did not wait for a client that takes nothing
            log.info("http.client_cut")
            raise
        except Exception as exc:  # noqa: BLE001 - a fault of our own, which must not cost more than one request
            log.error("daemon.fault", exc=exc)
        if not (cycle.answered or cycle.gone):
            self.transport.abort()

    def on_answered(self, cycle: _Cycle) -> None:
        self._cycles.popleft()
        self._idle_since = monotonic()
        if not cycle.more_body and self._reading is cycle:
            self._reading = None  # an idle connection keeps nothing of it
        if not cycle.keep_alive:
            return self._close(unread=cycle.more_body or bool(self._ahead))
        if self._cycles or self._ahead:
            self._loop.call_soon(self._go_on)
        elif cycle.more_body:  # what still comes of a body that was not waited for has no more time than a head
            self._idle_since += self.server.seconds - IDLE_SECONDS
            self._stop("idle")
            self._look_idle()
            self.read_as_needed()

    def _go_on(self) -> None:
        """Turn to what was sent ahead: one request in each turn of the loop."""
        if not self.transport.is_closing():
            self._parse_ahead()
            self._begin()
