"""Runs one connection: the task that reads, the task that writes, and the end of both.

`incoming` interprets messages; `peer` is the public face. Nothing in here waits for a handler or a consumer. Reading never
waits for writing: if both ends did that, neither would ever go on.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, assert_never, final

import anyio
import msgspec
from anyio.abc import TaskGroup

from ..change_signal import ChangeSignal
from ..errors.failures import InvalidRequest, ParseFailure
from ..errors.printable import cut, printable
from ..framing.channel import Channel
from ..framing.events import EndOfInput, Fault, Frame, FrameLimits, Framing, NeedData
from ..framing.parser import parser_for
from ..framing.transports.interface import ByteTransport, PeerGone
from .errors import ConnectionFailed, ConnectionLoss
from .incoming import Handlers, IncomingMessages, ServerRequests
from .messages import MAX_MESSAGE_BYTES, STREAM_TAKEN, OutgoingRequest, encode_notification
from .pending import PendingRequest, PendingRequests, PendingStream
from .task_group import background_tasks

_SHOWN_CHARACTERS: Final = 120
_HEADER: Final = b"content-length:"

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

INITIALIZE: Final = "initialize"
"""Neither LSP nor MCP lets a client cancel it."""

CLOSED: Final = ConnectionLoss("the connection was closed by this side")


@final
class Connection:
    """One connection to a server. `pending` holds the open requests; `loss` says how the connection ended, once it has.

    `handlers` outlast the connection. `explain` is called once, after the input ended. A larger message than `max_message`
    bytes is dropped.
    """

    def __init__(
        self,
        transport: ByteTransport,
        tasks: TaskGroup,
        *,
        handlers: Handlers,
        framing: Framing,
        explain: Callable[[], Awaitable[ConnectionLoss]],
        max_message: int | None = None,
        stall_seconds: float = STALL_SECONDS,
        junk_seconds: float = JUNK_SECONDS,
    ) -> None:
        self._max_message = max_message or MAX_MESSAGE_BYTES
        self._parser = parser_for(framing, FrameLimits(max_body=self._max_message))
        self._stall_seconds = stall_seconds
        self._junk_seconds = junk_seconds
        self._junk_since = math.inf
        # No deadline for a whole frame, which may be late because the reading paused; see `_receive`.
        self._channel = Channel(transport, self._parser, frame_timeout=math.inf)
        self._transport = transport
        self._framing: Framing = framing
        self._explain = explain
        self._handlers = handlers
        self._understood = False  # whether any message has come
        self.pending = PendingRequests()
        self.checks_subscriptions: Final = True
        requests = ServerRequests(
            tasks, handlers, reply=self._reply, overrun=lambda why: self._end(ConnectionLoss(why))
        )
        self._incoming = IncomingMessages(self.pending, handlers, server_requests=requests, post=self._post)
        self.loss: ConnectionLoss | None = None
        self._write_loss: ConnectionLoss | None = None  # the server reads no more, but may still write
        self._posted = 0  # bytes, ever
        self._raw: list[bytes] = []
        self._to_write = anyio.Event()
        self._written = ChangeSignal()
        self._reading_resumed = ChangeSignal()
        self._lost = anyio.Event()
        tasks.start_soon(self._read_loop)
        tasks.start_soon(self._write_loop)

    # -- requests ----------------------------------------------------------------------------------------------

    async def start(self, request: PendingRequest, message: OutgoingRequest) -> None:
        """Queue a request that somebody will wait for. Raises `ConnectionFailed`; then nothing was sent."""
        await self._wait_for_space()
        self.pending.add(request)
        if isinstance(request, PendingStream):
            request.on_taken = partial(self._note_taken, request)
        self._post(message.encode())
        self._reading_resumed.notify()

    def forget(self, request: PendingRequest, cancellation: bytes | None = None) -> bool:
        """Stop waiting for a request. If the server has not answered yet, it is asked to cancel, with this message where one is
        given. Never waits.

        Returns whether the request was ever queued.
        """
        waits = self.pending.remove(request.id) is not None
        if waits:
            self._note_unanswered(request.size)
        sent = waits or request.done
        if sent and not request.done and request.method != INITIALIZE:
            self._post(cancellation or self._handlers.dialect.cancellation(request.id))
        return sent

    async def send(self, body: bytes) -> None:
        """Send a message that has no answer. Returns when the server's input has taken it. Raises `ConnectionFailed`."""
        await self._wait_for_space()
        self._note_unanswered(len(body))
        self._post(body)
        end = self._posted
        await self._wait_written(lambda: self._posted - self._channel.unsent >= end)

    def post(self, body: bytes) -> bool:
        """Queue a message that has no answer, behind all that was queued before; False where there is no room."""
        if not self.usable or self._channel.congested:
            return False
        self._note_unanswered(len(body))
        self._post(body)
        return True

    async def send_raw(self, data: bytes) -> None:
        """Send bytes that need not be a frame, between two frames."""
        await self._wait_for_space()
        self._raw.append(data)
        self._to_write.set()
        await self._wait_written(lambda: data not in self._raw)

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

    def _note_unanswered(self, size: int) -> None:
        self.pending.largest_unanswered = max(size, self.pending.largest_unanswered)

    async def _reply(self, body: bytes) -> None:
        try:
            await self._wait_for_space()
        except ConnectionFailed:
            return  # the server no longer reads
        self._note_unanswered(len(body))
        self._post(body)

    def _note_taken(self, stream: PendingStream) -> None:
        """A consumer took an event, or waits for one: there is room for more."""
        self._reading_resumed.notify()
        if stream.must_tell():
            self._post(encode_notification(STREAM_TAKEN, {"id": stream.id, "seq": stream.taken}))

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
                    self._written.notify()
                    await self._channel.wait_sendable()
                while self._raw:
                    await self._transport.send(self._raw[0])
                    del self._raw[0]
                self._written.notify()
        except PeerGone:
            self._write_loss = ConnectionLoss("the server stopped reading")
            self._written.notify()
            await anyio.sleep(DRAIN_SECONDS)
            self._end(self._write_loss)

    # -- reading -----------------------------------------------------------------------------------------------

    async def _read_loop(self) -> None:
        while not self._handle_events():
            while self.pending.reading_may_pause:
                await self._reading_resumed.wait()
            await self._receive()
        loss, wrote = await self._explain(), self._opening()
        self._end(msgspec.structs.replace(loss, reason=f"{loss.reason}; it wrote no message{wrote}") if wrote else loss)

    async def _receive(self) -> None:
        """Wait for bytes. Silence within a frame drops the frame and fails the pending requests."""
        with anyio.move_on_after(self._stall_seconds if self._parser.clock == "frame" else math.inf) as scope:
            await self._channel.receive_more()
            if self._is_flooded():
                self._incoming.take_garbage(NO_FRAME + self._opening())
        if scope.cancelled_caught:
            self._parser.clock_expired()
            self._incoming.fail_all("the server fell silent within a frame")

    def _is_flooded(self) -> bool:
        """Whether the server has written junk for `JUNK_SECONDS`. Only a pause would tell where the junk ends."""
        if self._parser.clock in (None, "frame"):
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
                        self._understood = True
                    else:
                        self._channel.refuse_body(ParseFailure("invalid-json"))
                case Fault():
                    last_fault = event
                case NeedData():
                    if last_fault is not None:
                        self._take_fault(last_fault)
                    return False
                case EndOfInput():
                    return True
                case _:
                    assert_never(event)

    def _take_fault(self, fault: Fault) -> None:
        if fault.failure == _OVERSIZE:
            largest = f"{self._max_message // 2**20} MiB"
            self._incoming.fail_all(f"the server wrote a message of more than {largest}, which is the client's limit")
        else:
            self._incoming.take_garbage((NO_JSON if fault.failure in _BODY_FAULTS else NO_FRAME) + self._opening())

    def _opening(self) -> str:
        """The end of a message on bytes that hold no message: what they are, and which framing would fit; or nothing."""
        if self._understood:
            return ""
        from ..errors.redaction import scrub  # late: only failures need it

        start = self._channel.opening
        text = scrub(start.decode(errors="replace").strip())
        if not text:
            return ""
        first, more, _ = text.partition("\n")
        hint = ""
        if self._framing == "content-length" and start.lstrip().startswith(b"{"):
            hint = "; messages that are lines have the framing newline (MCP, ACP)"
        elif self._framing == "newline" and start.lstrip().lower().startswith(_HEADER):
            hint = "; messages with headers have the framing content-length"
        return f": {printable(cut(first.rstrip(), _SHOWN_CHARACTERS))}{' …' if more else ''}{hint}"

    # -- ending ------------------------------------------------------------------------------------------------

    def _end(self, loss: ConnectionLoss) -> None:
        """End the connection, once. Pending requests fail, and so does every later one."""
        if self.loss is None:
            self.loss = loss
            self._lost.set()
            self.pending.fail_all(partial(ConnectionFailed, loss))
            self._written.notify()
            self._reading_resumed.notify()


_OVERSIZE: Final = InvalidRequest("oversize")
_BODY_FAULTS: Final = (ParseFailure("invalid-json"), ParseFailure("invalid-utf8"))
"""The frame was good, but its body was not."""


@asynccontextmanager
async def open_connection(
    transport: ByteTransport,
    handlers: Handlers,
    *,
    framing: Framing,
    explain: Callable[[], Awaitable[ConnectionLoss]],
    max_message: int | None = None,
) -> AsyncGenerator[Connection]:
    """A connection over a transport, for as long as the block runs. Leaving flushes it, in bounded time."""
    connection: Connection | None = None
    try:
        async with background_tasks() as tasks:
            connection = Connection(
                transport, tasks, handlers=handlers, framing=framing, explain=explain, max_message=max_message
            )
            yield connection
    finally:
        if connection is not None:
            await connection.close()
