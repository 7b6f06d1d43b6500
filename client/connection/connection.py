"""What keeps one connection going: the task that reads, the task that writes, and how both end.

What a message means is `inbox`'s to know; the public face is `peer`. Nothing in here waits for a handler or a consumer,
and the reading never waits for the writing: two ends that both do so stand still for ever.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, assert_never, final

import anyio
from anyio.abc import TaskGroup

from ...errors.failures import ParseFailure
from ...framing.channel import Channel
from ...framing.events import EndOfInput, Fault, Frame, FrameLimits, Framing, NeedData
from ...framing.parser import parser_for
from ...framing.transports.interface import ByteTransport, PeerGone
from ..errors import ConnectionFailed, Loss
from ..messages import ServerRequest
from .handlers import Handlers
from .incoming import Incoming
from .pending import Awaited, Pending

MAX_REPLY_BYTES: Final = 256 * 1024 * 1024
"""The server is this side's own choice, so its replies may be larger than what a server takes from anybody."""

FLUSH_SECONDS: Final = 1.0
"""How long leaving waits for the server to take what was already sent, cancellations among it."""

LAST_WORDS_SECONDS: Final = 5.0
"""How long replies are still read after the server stopped reading: its drain window of 2 s, and a margin."""

SERVED_AT_ONCE: Final = 1024
"""Requests of the server that may wait for this side's answers. A server that asks more is broken."""

STALL_SECONDS: Final = 30.0
"""How long the server may be silent within a frame, as long as the daemon allows its clients."""

JUNK_SECONDS: Final = 1.0
"""How long the server may write what is no frame, without a rest, before nobody waits for its end any more."""

NO_FRAME: Final = "the server wrote bytes that are no frame"
NO_JSON: Final = "the server wrote a message that is no JSON"

CLOSED: Final = Loss("the connection was closed by this side")


@final
class Connection:
    """`pending` is what this side waits for, `loss` how it ended, once it has. What `served` offers outlasts it."""

    def __init__(
        self,
        transport: ByteTransport,
        tasks: TaskGroup,
        *,
        served: Handlers,
        framing: Framing,
        explain: Callable[[], Awaitable[Loss]],
        stall_seconds: float = STALL_SECONDS,
        junk_seconds: float = JUNK_SECONDS,
    ) -> None:
        self._parser = parser_for(framing, FrameLimits(max_body=MAX_REPLY_BYTES))
        self._stall_seconds = stall_seconds
        self._junk_seconds = junk_seconds
        self._junk_since = math.inf
        # No deadline for a whole frame, which may be late because the reading paused; see `_fill`.
        self._channel = Channel(transport, self._parser, frame_timeout=math.inf)
        self._transport = transport
        self._tasks = tasks
        self._explain = explain
        self._served = served
        self.pending = Pending()
        self.inbox = Incoming(self.pending, served, post=self._post, begin=self._begin)
        self.loss: Loss | None = None
        self._deaf: Loss | None = None  # the server reads no more, but may still have something to say
        self._serving = 0
        self._posted = 0  # bytes, ever
        self._raw: list[bytes] = []
        self._to_write = anyio.Event()
        self._written = anyio.Event()
        self._wanted = anyio.Event()
        self._over = anyio.Event()
        tasks.start_soon(self._read)
        tasks.start_soon(self._write)

    # -- what callers start and leave --------------------------------------------------------------------------

    async def start(self, awaited: Awaited, body: bytes) -> None:
        """Queue a request for which somebody will wait. Raises `ConnectionFailed`; then nothing was sent."""
        await self._room()
        self.pending.add(awaited)
        self._post(body)
        self.reading_wanted()

    def leave(self, awaited: Awaited) -> bool:
        """Forget a request, however it went; the server is told when it has not answered. Never waits.

        Returns whether the request was ever queued.
        """
        sent = self.pending.find(awaited.id) is not None or awaited.answered
        self.pending.remove(awaited.id)
        if sent and not awaited.answered:
            self._post(self._served.dialect.cancellation(awaited.id))
        return sent

    async def send(self, body: bytes) -> None:
        """Send what nobody answers; returns when the server's input has taken it. Raises `ConnectionFailed`."""
        await self._room()
        self._post(body)
        mine = self._posted
        await self._until(lambda: self._posted - self._channel.unsent >= mine)

    async def send_raw(self, data: bytes) -> None:
        """Send bytes that need not be a frame, between two frames."""
        await self._room()
        self._raw.append(data)
        self._to_write.set()
        await self._until(lambda: data not in self._raw)

    def reading_wanted(self) -> None:
        """Somebody waits, or a consumer has taken an event: the reading may go on."""
        self._wanted.set()

    @property
    def usable(self) -> bool:
        """Whether the server still takes what is sent, as far as is known."""
        return self._unwritable is None

    async def lost(self) -> Loss:
        """Wait for the end; how it came."""
        await self._over.wait()
        assert self.loss is not None
        return self.loss

    async def close(self) -> None:
        """End it once its tasks have ended: who still waits hears of it, and what was queued gets a bounded chance."""
        self._lose(CLOSED)
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

    async def _room(self) -> None:
        """Wait while much is queued: the server reads slowly, and so this side sends slowly."""
        try:
            await self._until(lambda: not self._channel.congested)
        except ConnectionFailed as exc:
            raise ConnectionFailed(exc.loss, sent=False) from None

    async def _until(self, written: Callable[[], bool]) -> None:
        while not self._unwritable and not written():
            await self._written.wait()
        if loss := self._unwritable:
            raise ConnectionFailed(loss)

    @property
    def _unwritable(self) -> Loss | None:
        return self.loss or self._deaf

    async def _write(self) -> None:
        try:
            while True:
                await self._to_write.wait()
                self._to_write = anyio.Event()
                while not self._channel.flush():
                    self._tell_written()
                    await self._channel.wait_sendable()
                while self._raw:
                    await self._transport.send(self._raw[0])
                    del self._raw[0]
                self._tell_written()
        except PeerGone:
            self._deaf = Loss("the server stopped reading")
            self._tell_written()
            await anyio.sleep(LAST_WORDS_SECONDS)
            self._lose(self._deaf)

    def _tell_written(self) -> None:
        self._written.set()
        self._written = anyio.Event()

    # -- reading -----------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        while not self._take_events():
            while self.pending.reading_may_rest:
                self._wanted = anyio.Event()
                await self._wanted.wait()
            await self._fill()
        self._lose(await self._explain())

    async def _fill(self) -> None:
        """Wait for bytes. Silence within a frame ends the frame, and whoever waits should not wait for the rest of it."""
        with anyio.move_on_after(self._stall_seconds if self._parser.mid_frame else math.inf) as scope:
            if (fault := await self._channel.receive_more()) is not None:
                self.inbox.fail_all(_what_came(fault))
            elif self._is_flooded():
                self.inbox.fail_all(NO_FRAME)
        if scope.cancelled_caught:
            self._parser.frame_timed_out()
            self.inbox.fail_all("the server fell silent within a frame")

    def _is_flooded(self) -> bool:
        """Whether what comes has been no frame for long. Its end, which nobody knows, would be told by a rest."""
        if not self._parser.waits_for_silence:
            self._junk_since = math.inf
            return False
        now = anyio.current_time()
        self._junk_since = min(self._junk_since, now)
        return now - self._junk_since >= self._junk_seconds

    def _take_events(self) -> bool:
        """Work off what has come; True behind the last of it.

        What is no frame fails those who still wait after all of it; not at the end, whose own reason says more.
        """
        lost: Fault | None = None
        while True:
            event = self._channel.next_event()
            match event:
                case Frame(body):
                    if not self.inbox.take(body):
                        self._channel.refuse_body(ParseFailure("invalid-json"))
                case Fault():
                    lost = event
                case NeedData():
                    if lost is not None:
                        self.inbox.fail_all(_what_came(lost))
                    return False
                case EndOfInput():
                    return True
                case _:
                    assert_never(event)

    def _begin(self, request: ServerRequest) -> None:
        if self._serving >= SERVED_AT_ONCE:
            self._lose(Loss(f"the server sent more than {SERVED_AT_ONCE} requests at once"))
            return
        self._serving += 1
        self._tasks.start_soon(self._answer, request, self._served.admit(request))

    async def _answer(self, request: ServerRequest, scope: anyio.CancelScope) -> None:
        try:
            answer = await self._served.answer(request, scope)
            await self._room()
            self._post(answer)
        except ConnectionFailed:
            return  # nobody is there to hear the answer
        finally:
            self._serving -= 1

    # -- ending ------------------------------------------------------------------------------------------------

    def _lose(self, loss: Loss) -> None:
        """The end, once: everyone who waits is told, and whoever comes later."""
        if self.loss is None:
            self.loss = loss
            self._over.set()
            self.pending.fail_all(partial(ConnectionFailed, loss))
            self._tell_written()
            self.reading_wanted()


def _what_came(fault: Fault) -> str:
    return NO_JSON if fault.failure in _BAD_BODIES else NO_FRAME


_BAD_BODIES: Final = (ParseFailure("invalid-json"), ParseFailure("invalid-utf8"))
"""What is wrong within a frame, which itself was none of the trouble."""
