"""From frames to the dispatcher: the loop that reads, and stops reading while too much waits."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, Protocol, assert_never, final

from ...errors.failures import InvalidRequest
from ...framing.events import END_OF_INPUT, NEED_DATA, Fault, Frame
from ...lazy import anyio
from ..dispatch.responder import note_dropped, note_fault, note_reply
from ..dispatch.task_pool import task_switch
from ..logs import log
from ..memory import SMALL, map_large_blocks, reserve
from ..rpc.envelope import Call, Dropped, Message, NoJson, Refused, Reply, Scalar, decode, split_batch

if TYPE_CHECKING:
    from ...framing.channel import Channel
    from ..dispatch.request import RequestMetrics
    from ..dispatch.responder import Responder
    from ..dispatch.scheduler import Scheduler
    from .writer import Writer


FILLS_BEFORE_LOOP: Final = 4
"""Enough for a first burst of requests and the end of input behind it."""


MEMORY_SECONDS: Final = 0.05
"""How long nothing is read after memory ran out."""


class Acceptor(Protocol):
    """What takes the calls."""

    def accept(self, call: Call) -> None: ...

    def read_again(self, body: bytes) -> Message | None:
        """The message in a body that is no JSON; None where there is none."""
        ...


class Intake(Protocol):
    """The side of the connection that the reader feeds."""

    @property
    def full(self) -> bool:
        """True while nothing more should be read."""
        ...

    @property
    def batches(self) -> bool:
        """Whether a message may be an array of messages."""
        ...

    def take_reply(self, reply: Reply) -> bool:
        """Take a response to a request that the daemon sent; False when there is no such request."""
        ...


@final
class Reader:
    """Reads one channel until its end. `ended` turns true when the end of input was read."""

    def __init__(
        self,
        channel: Channel,
        dispatcher: Acceptor,
        responder: Responder,
        writer: Writer,
        scheduler: Scheduler,
        intake: Intake,
        metrics: RequestMetrics,
    ) -> None:
        self._channel = channel
        self._dispatcher = dispatcher
        self._responder = responder
        self._writer = writer
        self._scheduler = scheduler
        self._intake = intake
        self._metrics = metrics
        self._room: anyio.Event | None = None
        self.ended = False

    def switch(self, dispatcher: Acceptor, responder: Responder) -> None:
        """Hand the calls to others, from the next one on."""
        self._dispatcher = dispatcher
        self._responder = responder

    def begin(self) -> None:
        """Read what has arrived already, before there is a loop; not more of it than delays the loop noticeably."""
        for _ in range(FILLS_BEFORE_LOOP):
            if not (self._channel.receive_more_nowait() and self._read_received()):
                break
        self._writer.flush()
        if self._metrics.inline:
            self._metrics.end_read()

    async def run(self) -> None:
        """Read until the end of input. Cancelling it loses nothing that was received."""
        leave_task, enter_task = task_switch()
        while not self.ended:
            try:
                leave_task()  # inline handlers and identity providers run in a turn
                try:
                    hungry = self._turn()
                finally:
                    enter_task()
                if self.ended:
                    break
                if not hungry:
                    await self._wait_for_room()
                elif not await self._watch():
                    await self._channel.receive_more()
            except MemoryError:  # what came is still there: go on when others have ended
                await self._wait_for_memory()
        self._writer.flush()

    def _turn(self) -> bool:
        """Work off what was received and send what came of it; True when more bytes are needed."""
        hungry = self._read_received()
        self._writer.flush()
        if self._scheduler.progressed:
            self._scheduler.flush()
        if self._metrics.inline:
            self._metrics.end_read()
        return hungry

    async def _watch(self) -> bool:
        """Take turns in callbacks of the event loop for as long as nothing but input is awaited, and no clock but that of the
        frame time-out. False where the loop has no such way, or something else is awaited.
        """
        seconds = self._channel.frame_seconds()
        if seconds is None:
            return False
        unwatched = anyio.Event()
        fault: BaseException | None = None
        timed = seconds < inf

        def on_input() -> None:
            nonlocal fault
            if unwatched.is_set():
                return
            try:
                if not self._channel.receive_more_nowait():
                    return
                hungry = self._turn()
                if hungry and (self._channel.idle or (timed and self._channel.frame_seconds() is not None)):
                    return
            except BaseException as exc:  # noqa: BLE001 - for `run`, whose task it would end
                fault = exc
            unwatched.set()

        stop = self._channel.watch_input(on_input)
        if stop is None:
            return False
        try:
            with anyio.move_on_after(seconds):
                await unwatched.wait()
        finally:
            stop()
        if fault is not None:
            raise fault
        return unwatched.is_set()

    @staticmethod
    async def _wait_for_memory() -> None:
        reserve.free()
        log.error("memory.exhausted")
        await anyio.sleep(MEMORY_SECONDS)
        reserve.keep()

    def take_again(self, call: Call) -> None:
        """Take a call that the dialect has held back, and go on reading."""
        try:
            self._dispatcher.accept(call)
        except Exception as exc:  # noqa: BLE001 - as for one that was just read
            self._take_own_fault(call, exc)
        self._scheduler.flush()
        self.look_again()

    def read_all(self) -> None:
        """Take everything that was received, however much waits."""
        self._read_received(whatever_waits=True)
        if self._metrics.inline:
            self._metrics.end_read()

    def look_again(self) -> None:
        """Something was started or sent: there may be room now."""
        if self._room is not None and not self._intake.full:
            self._room.set()
            self._room = None

    def _read_received(self, *, whatever_waits: bool = False) -> bool:
        """Work off what was received; True when more bytes are needed, False when too much waits, or at the end."""
        channel, intake = self._channel, self._intake
        while whatever_waits or not intake.full:
            event = channel.next_event()
            if type(event) is Frame:
                message: Message | None = None
                if len(event.body) > SMALL:
                    map_large_blocks()
                try:
                    message = decode(event.body)
                    if isinstance(message, NoJson):
                        message = self._dispatcher.read_again(event.body) or message
                    if isinstance(message, Call):
                        self._dispatcher.accept(message)
                    else:
                        self._take_rare(message, event.body)
                except Exception as exc:  # noqa: BLE001 - a fault of our own must cost one message, not all of them
                    self._take_own_fault(message, exc)
            elif event is NEED_DATA:
                return True
            elif event is END_OF_INPUT:
                self.ended = True
                return False
            elif type(event) is Fault:
                self._take_fault(event)
        return False

    async def _wait_for_room(self) -> None:
        while self._intake.full:
            self._room = anyio.Event()
            await self._room.wait()

    def _take_fault(self, fault: Fault) -> None:
        note_fault(fault, self._channel.opening, self._channel.framing)
        self._responder.refuse_bytes(fault.failure)

    def _take_own_fault(self, message: Message | None, exc: Exception) -> None:
        """Answer the message whose handling failed in the daemon's own code, if it has an id, and go on."""
        if isinstance(exc, MemoryError):
            reserve.free()
        call_id = message.id if isinstance(message, Call) else None
        log.error("daemon.fault", id=call_id, exc=exc)
        if call_id is not None:
            self._responder.fault(call_id)

    def _take_batch(self, body: bytes) -> None:
        for member in split_batch(body):
            try:
                if isinstance(member, Call):
                    self._dispatcher.accept(member)
                else:
                    self._take_rare(member)
            except Exception as exc:  # noqa: BLE001 - as for a message that came by itself
                self._take_own_fault(member, exc)

    def _take_rare(self, message: Reply | Refused | Dropped | NoJson, body: bytes | None = None) -> None:
        """Take a message that is no call. `body` is all of it; None for one of a batch, which holds no further batch."""
        match message:
            case NoJson(failure):
                self._channel.refuse_body(failure)
            case Scalar(_, failure) if body is not None:
                self._channel.refuse_body(failure)
            case Refused(_, InvalidRequest("batch-not-supported")) if body is not None and self._intake.batches:
                self._take_batch(body)
            case Refused(call_id, failure):
                self._responder.refuse(call_id, failure)
            case Reply():
                if not self._intake.take_reply(message):
                    note_reply(message)
            case Dropped():
                note_dropped()
            case _:
                assert_never(message)
