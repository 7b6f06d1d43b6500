"""From frames to the dispatcher: the loop that reads, and stops reading while too much waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, assert_never, final

from ...framing.events import END_OF_INPUT, NEED_DATA, Fault, Frame
from ..rpc.envelope import NULL_ID, Call, Dropped, NoJson, Refused, Reply, decode
from .request_log import note_dropped, note_fault, note_reply

if TYPE_CHECKING:
    import anyio

    from ...framing.channel import Channel
    from ..dispatch.dispatcher import Dispatcher
    from .writer import Writer


FILLS_BEFORE_LOOP: Final = 4
"""Enough for a first burst of requests and the end of input behind it."""


@final
class Reader:
    """Reads one channel until its end. `on_reply` gets the responses to requests that the daemon sent."""

    def __init__(
        self, channel: Channel, dispatcher: Dispatcher, outbox: Writer, on_reply: Callable[[Reply], bool]
    ) -> None:
        self._channel = channel
        self._dispatcher = dispatcher
        self._outbox = outbox
        self._on_reply = on_reply
        self._room: anyio.Event | None = None
        self.ended = False

    def read_nowait(self, *, at_most_what_fits: bool = True) -> bool:
        """Work off what was received; True when more bytes are needed, False when too much waits, or at the end."""
        channel, dispatcher = self._channel, self._dispatcher
        while not (at_most_what_fits and dispatcher.full):
            event = channel.next_event()
            if type(event) is Frame:
                message = decode(event.body)
                if isinstance(message, Call):
                    dispatcher.accept(message)
                else:
                    self._take_rare(message)
            elif event is NEED_DATA:
                return True
            elif event is END_OF_INPUT:
                self.ended = True
                return False
            elif type(event) is Fault:
                self._take_fault(event)
        return False

    def begin(self) -> None:
        """Read what has arrived already, before there is a loop; not more of it than delays the loop noticeably."""
        for _ in range(FILLS_BEFORE_LOOP):
            if not (self._channel.receive_more_nowait() and self.read_nowait()):
                break
        self._outbox.flush()

    async def run(self) -> None:
        """Read until the end of input. Cancelling it loses nothing that was received."""
        while True:
            hungry = self.read_nowait()
            self._outbox.flush()
            if self.ended:
                return
            if hungry:
                fault = await self._channel.receive_more()
                if fault is not None:
                    self._take_fault(fault)
            else:
                await self._wait_for_room()

    async def _wait_for_room(self) -> None:
        import anyio  # late: the first replies leave without an event loop

        while self._dispatcher.full:
            self._room = anyio.Event()
            await self._room.wait()

    def look_again(self) -> None:
        """Something was started or sent: there may be room now."""
        if self._room is not None and not self._dispatcher.full:
            self._room.set()
            self._room = None

    def _take_fault(self, fault: Fault) -> None:
        note_fault(fault)
        self._dispatcher.say(NULL_ID, fault.failure)

    def _take_rare(self, message: Reply | Refused | Dropped | NoJson) -> None:
        match message:
            case NoJson(failure):
                self._channel.refuse_body(failure)
            case Refused(call_id, failure):
                self._dispatcher.refuse(call_id, failure)
            case Reply():
                if not self._on_reply(message):
                    note_reply(message)
            case Dropped():
                note_dropped()
            case _:
                assert_never(message)
