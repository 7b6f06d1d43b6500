"""Sends everything that goes to one client, in the order in which it was posted. The only writer of its descriptor.

Code that is about to wait flushes first, so that many replies share one write. What the client does not take at once is
sent by one task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, final

from ...framing.transports.interface import PeerGone
from ...lazy import anyio
from .streams import Stream, Streams, window_of

if TYPE_CHECKING:
    from ...errors.failures import Failure
    from ...framing.channel import Channel
    from ..memory import MemoryBudget


@final
class Writer:
    """Used on the loop's thread only. `on_lost(cause)` is called once, when nothing can be sent any more, `on_room()`
    when producers that waited may go on, `on_sent()` when `run` has sent all that was left over.
    """

    def __init__(
        self,
        channel: Channel,
        memory: MemoryBudget,
        *,
        on_lost: Callable[[BaseException | None], None],
        on_room: Callable[[], None],
        on_sent: Callable[[], None],
    ) -> None:
        self._channel = channel
        self.post: Final = channel.post
        """Queue one message, which may come in parts, for the next flush. Never blocks."""
        self._memory = memory
        self._counted = 0
        self._on_lost = on_lost
        self._on_room = on_room
        self._on_sent = on_sent
        self._left_over: anyio.Event | None = None
        self._room: list[anyio.Event] = []
        self._room_due = False
        self._streams = Streams(memory)

    @property
    def congested(self) -> bool:
        """True while producers should wait."""
        return self._channel.congested

    def fail(self, failure: Failure, body: bytes | None) -> None:
        """Queue a response that tells of a failure; None where none is sent."""
        if body is not None:
            self._channel.post(body)

    def counts(self) -> dict[str, int]:
        """Streams with messages that wait, and messages of streams that the reader has not taken yet."""
        return {"streams_ready": len(self._streams.ready), "streams_sending": self._streams.sending}

    def open_stream(self, encode: Callable[[int, bytes], bytes | None], service_params: Mapping[str, str]) -> Stream:
        """A stream whose messages leave when no posted message waits. `encode(number, value)` writes one event, or None."""
        return self._streams.open(encode, window_of(service_params))

    def flush(self) -> None:
        """Send what the client takes now; `run` sends the rest as it reads. Never blocks, never raises."""
        if self._channel.unsent or self._streams.ready:
            self._flush()
        if self._channel.unsent != self._counted:
            self._count()

    def close(self) -> None:
        """Nothing more is sent: free what is queued."""
        self._channel.discard_output()
        self._streams.close()
        self._count()

    def _count(self) -> None:
        """Tell the memory budget how much waits for the client."""
        change, self._counted = self._channel.unsent - self._counted, self._channel.unsent
        self._memory.add("replies", change)

    def _flush(self) -> None:
        while self._channel.unsent or self._streams.ready:
            if not self._channel.unsent:
                for message in self._streams.take_turn():
                    self._channel.post(message)
            congested = self._channel.congested
            try:
                done = self._channel.flush()
            except PeerGone as exc:
                self._on_lost(exc.__cause__)
                self._on_room()  # for threads; waiting tasks end with the daemon, and one of them may be about to wait
                return
            if done:
                self._streams.delivered()
            elif self._left_over is not None:
                self._left_over.set()
            if congested and not self._channel.congested:
                self._room_due = True  # told by `run`: the task that flushes here may be about to wait for just that
                if self._left_over is not None:
                    self._left_over.set()
            if not done:
                return

    def take_rest(self) -> bytes:
        """Remove and return everything posted that the client has not taken, in order. Nothing is sent afterwards."""
        while messages := self._streams.take_turn():
            for message in messages:
                self._channel.post(message)
        rest = self._channel.unsent_bytes()
        self._channel.discard_output()
        return rest

    @property
    def unsent(self) -> bool:
        """True while the client has not taken everything."""
        return bool(self._channel.unsent or self._streams.ready)

    @property
    def unsent_bytes(self) -> int:
        """How many posted bytes the client has not taken."""
        return self._channel.unsent

    async def wait_for_room(self) -> None:
        """Return when no longer congested, or at once when the client has gone."""
        while self._channel.congested:
            event = anyio.Event()
            self._room.append(event)
            await event.wait()

    async def wait_sent(self) -> None:
        """Return when the client has taken everything, or has gone. Cancel `run` before."""
        self.flush()
        while self.unsent:
            await self._send_some()

    async def run(self) -> None:
        """Send what was left over, until cancelled."""
        while True:
            self._left_over = anyio.Event()
            self._tell_of_room()
            if not self.unsent:
                await self._left_over.wait()
                self._tell_of_room()
            while self.unsent:
                await self._send_some()
            self._on_sent()

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
        self._on_room()
