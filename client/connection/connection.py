"""Runs one connection: the task that reads, the task that writes, and the end of both.

`incoming` interprets messages; `peer` is the public face. Nothing in here waits for a handler or a consumer. Reading never
waits for writing: if both ends did that, neither would ever go on.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, assert_never, final

import anyio
import msgspec
from anyio.abc import TaskGroup

from ...errors.failures import InvalidRequest, ParseFailure
from ...errors.printable import cut, printable
from ...framing.channel import Channel
from ...framing.events import EndOfInput, Fault, Frame, FrameLimits, Framing, NeedData
from ...framing.parser import parser_for
from ...framing.transports.interface import ByteTransport, PeerGone
from ..errors import ConnectionFailed, ConnectionLoss
from ..messages import MAX_MESSAGE_BYTES, STREAM_TAKEN, OutgoingRequest, ServerRequest, encode_notification
from .handlers import Handlers
from .incoming import IncomingMessages
from .pending import PendingRequest, PendingRequests, PendingStream

# Answers the server's requests, each in a task of its own. Bounds what waits meanwhile, in number and in bytes.
#
# Never reads, and never ends the connection itself: `overrun` is told why it must end.


MAX_SERVER_REQUESTS: Final = 1024
"""Requests of the server that may run at once. A server that sends more is broken."""

MAX_REQUEST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of requests that may run at once. A single request may be larger."""

MAX_REPLY_BYTES: Final = MAX_MESSAGE_BYTES
"""Bytes of replies that may wait until the server reads. A single reply may be larger."""


@final
class Answers:
    """The requests of one connection that are not answered yet.

    `post` queues a message to the server; `wait_for_space` waits until it may be called. It raises `ConnectionFailed` when
    the server no longer reads.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        handlers: Handlers,
        *,
        post: Callable[[bytes], None],
        wait_for_space: Callable[[], Awaitable[None]],
        overrun: Callable[[ConnectionLoss], None],
    ) -> None:
        self._tasks = tasks
        self._handlers = handlers
        self._post = post
        self._wait_for_space = wait_for_space
        self._overrun = overrun
        self._running = 0
        self._request_bytes = 0
        self._reply_bytes = 0

    def start(self, request: ServerRequest) -> None:
        """Start the request's handler. Never waits."""
        request = self._without_needless_params(request)
        if self._running >= MAX_SERVER_REQUESTS:
            self._overrun(ConnectionLoss(f"the server sent more than {MAX_SERVER_REQUESTS} requests at once"))
        elif self._request_bytes and self._request_bytes + request.size > MAX_REQUEST_BYTES:
            self._overrun(ConnectionLoss(f"the server sent more than {MAX_REQUEST_BYTES} bytes of requests at once"))
        else:
            self._running += 1
            self._request_bytes += request.size
            self._tasks.start_soon(self._answer, request, self._handlers.register(request))

    def _without_needless_params(self, request: ServerRequest) -> ServerRequest:
        """A request without a handler is refused by its id and method alone. What else it holds is freed."""
        if request.method in self._handlers.requests:
            return request
        return ServerRequest(request.id, request.method, None, len(request.id) + len(request.method))

    async def _answer(self, request: ServerRequest, scope: anyio.CancelScope) -> None:
        try:
            await self._send(await self._handlers.answer(request, scope))
        except ConnectionFailed:
            return  # the server no longer reads
        finally:
            self._running -= 1
            self._request_bytes -= request.size

    async def _send(self, reply: bytes) -> None:
        if self._reply_bytes and self._reply_bytes + len(reply) > MAX_REPLY_BYTES:
            self._overrun(ConnectionLoss(f"the server left more than {MAX_REPLY_BYTES} bytes of replies unread"))
        self._reply_bytes += len(reply)
        try:
            await self._wait_for_space()
            self._post(reply)
        finally:
            self._reply_bytes -= len(reply)


# Keeps the first bytes that a server writes, to show them if none of it turns out to be a message. Interprets nothing.


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
        self.watch_input = transport.watch_input
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


FLUSH_SECONDS: Final = 1.0
"""How long `close` waits for the server to take what was already sent, cancellations included."""

DRAIN_SECONDS: Final = 5.0
"""How long replies are still read after the server stopped reading: the daemon's drain window of 2 s, and a margin."""

STALL_SECONDS: Final = 30.0
"""How long the server may be silent within a frame. The daemon allows its clients the same."""

JUNK_SECONDS: Final = 1.0
"""How long the server may write bytes that are no frame, without a pause, before the pending requests fail."""

NO_FRAME: Final = "the server wrote bytes that are no frame"
NO_JSON: Final = "the server wrote a message that is no JSON"
TOO_LARGE: Final = (
    f"the server wrote a message of more than {MAX_MESSAGE_BYTES // 2**20} MiB, which is the client's limit"
)

CLOSED: Final = ConnectionLoss("the connection was closed by this side")


@final
class Connection:
    """One connection to a server. `pending` holds the open requests; `loss` says how the connection ended, once it has.

    `handlers` outlast the connection. `explain` is called once, after the input ended.
    """

    def __init__(
        self,
        transport: ByteTransport,
        tasks: TaskGroup,
        *,
        handlers: Handlers,
        framing: Framing,
        explain: Callable[[], Awaitable[ConnectionLoss]],
        stall_seconds: float = STALL_SECONDS,
        junk_seconds: float = JUNK_SECONDS,
    ) -> None:
        self._parser = parser_for(framing, FrameLimits(max_body=MAX_MESSAGE_BYTES))
        self._stall_seconds = stall_seconds
        self._junk_seconds = junk_seconds
        self._junk_since = math.inf
        # No deadline for a whole frame, which may be late because the reading paused; see `_receive`.
        self._transport = OpeningBytes(transport)
        self._channel = Channel(self._transport, self._parser, frame_timeout=math.inf)
        self._framing: Framing = framing
        self._explain = explain
        self._handlers = handlers
        self.pending = PendingRequests()
        self.checks_subscriptions: Final = True
        answers = Answers(tasks, handlers, post=self._post, wait_for_space=self._wait_for_space, overrun=self._end)
        self._incoming = IncomingMessages(self.pending, handlers, post=self._post, start_answer=answers.start)
        self.loss: ConnectionLoss | None = None
        self._write_loss: ConnectionLoss | None = None  # the server reads no more, but may still write
        self._posted = 0  # bytes, ever
        self._raw: list[bytes] = []
        self._to_write = anyio.Event()
        self._written = anyio.Event()
        self._reading_resumed = anyio.Event()
        self._lost = anyio.Event()
        tasks.start_soon(self._read_loop)
        tasks.start_soon(self._write_loop)

    # -- requests ----------------------------------------------------------------------------------------------

    async def start(self, request: PendingRequest, message: OutgoingRequest) -> None:
        """Queue a request that somebody will wait for. Raises `ConnectionFailed`; then nothing was sent."""
        await self._wait_for_space()
        self.pending.add(request)
        body = message.encode()
        request.fingerprint = hash(body)
        self._post(body)
        self.resume_reading()

    def forget(self, request: PendingRequest) -> bool:
        """Stop waiting for a request. If the server has not answered yet, it is asked to cancel. Never waits.

        Returns whether the request was ever queued.
        """
        sent = self.pending.find(request.id) is not None or request.done
        self.pending.remove(request.id)
        if sent and not request.done:
            self._post(self._handlers.dialect.cancellation(request.id))
        return sent

    async def send(self, body: bytes) -> None:
        """Send a message that has no answer. Returns when the server's input has taken it. Raises `ConnectionFailed`."""
        await self._wait_for_space()
        self._post(body)
        end = self._posted
        await self._wait_written(lambda: self._posted - self._channel.unsent >= end)

    async def send_raw(self, data: bytes) -> None:
        """Send bytes that need not be a frame, between two frames."""
        await self._wait_for_space()
        self._raw.append(data)
        self._to_write.set()
        await self._wait_written(lambda: data not in self._raw)

    def resume_reading(self) -> None:
        """Look again whether reading may go on: a request was added, or a consumer took an event."""
        self._reading_resumed.set()

    def tell_taken(self, stream: PendingStream) -> None:
        """Tell the server which events of a stream were taken. Never waits."""
        self._post(encode_notification(STREAM_TAKEN, {"id": stream.id, "seq": stream.taken}))

    @property
    def usable(self) -> bool:
        """Whether the server still takes messages, as far as is known."""
        return self._unwritable is None

    async def wait_lost(self) -> ConnectionLoss:
        """Wait for the connection's end and return its cause."""
        await self._lost.wait()
        assert self.loss is not None
        return self.loss

    async def close(self) -> None:
        """Call it after the tasks have ended. Fails the pending requests and flushes what was queued, in bounded time."""
        self._end(CLOSED)
        with anyio.move_on_after(FLUSH_SECONDS, shield=True):
            try:
                while not self._channel.flush():
                    await self._channel.wait_sendable()
            except PeerGone:
                return

    # -- writing -----------------------------------------------------------------------------------------------

    def _post(self, body: bytes) -> None:
        if self.loss is None:
            before = self._channel.unsent
            self._channel.post(body)
            self._posted += self._channel.unsent - before
            self._to_write.set()

    async def _wait_for_space(self) -> None:
        """Wait while the write queue is long: a server that reads slowly slows this side's sending."""
        try:
            await self._wait_written(lambda: not self._channel.congested)
        except ConnectionFailed as exc:
            raise ConnectionFailed(exc.loss, sent=False) from None

    async def _wait_written(self, enough: Callable[[], bool]) -> None:
        while not self._unwritable and not enough():
            await self._written.wait()
        if loss := self._unwritable:
            raise ConnectionFailed(loss)

    @property
    def _unwritable(self) -> ConnectionLoss | None:
        return self.loss or self._write_loss

    async def _write_loop(self) -> None:
        try:
            while True:
                await self._to_write.wait()
                self._to_write = anyio.Event()
                while not self._channel.flush():
                    self._notify_written()
                    await self._channel.wait_sendable()
                while self._raw:
                    await self._transport.send(self._raw[0])
                    del self._raw[0]
                self._notify_written()
        except PeerGone:
            self._write_loss = ConnectionLoss("the server stopped reading")
            self._notify_written()
            await anyio.sleep(DRAIN_SECONDS)
            self._end(self._write_loss)

    def _notify_written(self) -> None:
        self._written.set()
        self._written = anyio.Event()

    # -- reading -----------------------------------------------------------------------------------------------

    async def _read_loop(self) -> None:
        while not self._handle_events():
            while self.pending.reading_may_pause:
                self._reading_resumed = anyio.Event()
                await self._reading_resumed.wait()
            await self._receive()
        self._end(self._with_opening(await self._explain()))

    async def _receive(self) -> None:
        """Wait for bytes. Silence within a frame drops the frame and fails the pending requests."""
        with anyio.move_on_after(self._stall_seconds if self._parser.mid_frame else math.inf) as scope:
            await self._channel.receive_more()
            if self._is_flooded():
                self._incoming.fail_all(NO_FRAME + self._transport.describe(self._framing))
        if scope.cancelled_caught:
            self._parser.frame_timed_out()
            self._incoming.fail_all("the server fell silent within a frame")

    def _is_flooded(self) -> bool:
        """Whether the server has written junk for `JUNK_SECONDS`. Only a pause would tell where the junk ends."""
        if self._parser.awaited_silence is None:
            self._junk_since = math.inf
            return False
        now = anyio.current_time()
        self._junk_since = min(self._junk_since, now)
        return now - self._junk_since >= self._junk_seconds

    def _handle_events(self) -> bool:
        """Handle everything that was received. True at the end of the input.

        A fault fails the requests that are still pending after the last event. At the end of the input it fails nothing:
        the reason of the end says more.
        """
        last_fault: Fault | None = None
        while True:
            event = self._channel.next_event()
            match event:
                case Frame(body):
                    if self._incoming.handle(body):
                        self._transport.forget()
                    else:
                        self._channel.refuse_body(ParseFailure("invalid-json"))
                case Fault():
                    last_fault = event
                case NeedData():
                    if last_fault is not None:
                        self._incoming.fail_all(self._fault_text(last_fault))
                    return False
                case EndOfInput():
                    return True
                case _:
                    assert_never(event)

    def _fault_text(self, fault: Fault) -> str:
        if fault.failure == _OVERSIZE:
            return TOO_LARGE
        return (NO_JSON if fault.failure in _BODY_FAULTS else NO_FRAME) + self._transport.describe(self._framing)

    def _with_opening(self, loss: ConnectionLoss) -> ConnectionLoss:
        """The loss, and what the server wrote instead of messages before it."""
        wrote = self._transport.describe(self._framing)
        return msgspec.structs.replace(loss, reason=f"{loss.reason}; it wrote no message{wrote}") if wrote else loss

    # -- ending ------------------------------------------------------------------------------------------------

    def _end(self, loss: ConnectionLoss) -> None:
        """End the connection, once. Pending requests fail, and so does every later one."""
        if self.loss is None:
            self.loss = loss
            self._lost.set()
            self.pending.fail_all(partial(ConnectionFailed, loss))
            self._notify_written()
            self.resume_reading()


_OVERSIZE: Final = InvalidRequest("oversize")
_BODY_FAULTS: Final = (ParseFailure("invalid-json"), ParseFailure("invalid-utf8"))
"""The frame was good, but its body was not."""
