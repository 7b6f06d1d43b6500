"""Everything that leaves, in the order in which it was posted. The one writer of stdout.

Whoever is about to give up control flushes first, so many replies share one write and none waits for another; what
the reader does not take at once is left to one task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, final

from ...framing.transports.interface import PeerGone
from .streams import Streams

if TYPE_CHECKING:
    import anyio

    from ...framing.channel import Channel


@final
class Writer:
    """Used on the loop's thread only. `on_gone(cause)` is called once, when nothing can be sent any more."""

    def __init__(self, channel: Channel, on_gone: Callable[[BaseException | None], None]) -> None:
        self._channel = channel
        self._on_gone = on_gone
        self._left_over: anyio.Event | None = None
        self._room: list[anyio.Event] = []
        self._room_due = False
        self.streams = Streams()
        self.on_room: Callable[[], None] = lambda: None

    @property
    def congested(self) -> bool:
        """True while producers should wait."""
        return self._channel.congested

    def post(self, body: bytes) -> None:
        """Queue one message for the next flush. Never blocks."""
        self._channel.post(body)

    def flush(self) -> None:
        """Send what the reader takes now; the rest follows as it reads. Never blocks, never raises."""
        while self._channel.unsent or self.streams.ready:
            if not self._channel.unsent:
                for message in self.streams.take_turn():
                    self._channel.post(message)
            congested = self._channel.congested
            try:
                done = self._channel.flush()
            except PeerGone as exc:
                self._on_gone(exc.__cause__)
                self.on_room()  # threads; tasks that wait end with the daemon, and one of them may be just going to sleep
                return
            if done:
                self.streams.delivered()
            elif self._left_over is not None:
                self._left_over.set()
            if congested and not self._channel.congested:
                self._room_due = True  # told by `run`: the task that flushes here may be about to wait for just that
                if self._left_over is not None:
                    self._left_over.set()
            if not done:
                return

    def take_rest(self) -> bytes:
        """Everything posted that the reader has not taken, in order, for whoever sends it instead. Nothing is sent after."""
        while messages := self.streams.take_turn():
            for message in messages:
                self._channel.post(message)
        rest = self._channel.unsent_bytes()
        self._channel.discard_output()
        return rest

    @property
    def unsent(self) -> bool:
        """True while something waits for the reader."""
        return bool(self._channel.unsent or self.streams.ready)

    async def wait_for_room(self) -> None:
        """Return when no longer congested; at once where there is no reader any more."""
        import anyio  # late: the first replies leave without an event loop

        while self._channel.congested:
            event = anyio.Event()
            self._room.append(event)
            await event.wait()

    async def wait_sent(self) -> None:
        """Return when everything posted was taken, or no reader is left. Cancel `run` before."""
        self.flush()
        while self.unsent:
            await self._send_some()

    async def run(self) -> None:
        """Send what was left over, until cancelled."""
        import anyio  # late, as above

        while True:
            self._left_over = anyio.Event()
            self._tell_of_room()
            if not self.unsent:
                await self._left_over.wait()
                self._tell_of_room()
            while self.unsent:
                await self._send_some()

    async def _send_some(self) -> None:
        await self._channel.wait_sendable()
        self.flush()
        self._tell_of_room()

    def _tell_of_room(self) -> None:
        if self._room_due:
            self._room_due = False
            self._wake_waiting()

    def _wake_waiting(self) -> None:
        waiting, self._room = self._room, []
        for event in waiting:
            event.set()
        self.on_room()
