"""Frames over a byte transport: one reader, one writer, and the clocks that the parser does not have.

Owns the outgoing buffer, the frame deadline (section 1 of docs/protocol.md), the rest that ends a quarantine, and the
folding of a burst of faults into one. Never looks into a body and never logs.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final, final

from ..errors.failures import ParseFailure
from .encoder import encode_frame
from .events import END_OF_INPUT, NEED_DATA, Event, Fault, Frame, Framing
from .parser import Parser
from .transports.interface import ByteTransport, PeerGone

REST_SECONDS: Final = 0.25
"""How long polled silence must last to end a quarantine or any other dropping."""

FOLD_SECONDS: Final = 0.02
"""Faults that follow each other with less silence than this, and no frame between, are one loss and one error."""

OUTGOING_HIGH: Final = 256 * 1024
"""Bytes that wait for the reader before whoever produces more is asked to wait."""


@final
class Channel:
    """Sends and receives frames. Not thread-safe; `next_nowait`, `post` and `flush` need no event loop.

    `frame_timeout` is in seconds from a frame's first byte to its last. `on_timeout(size)` hears of every partial
    frame that was dropped for it, with the bytes that had come. `unsent` counts the bytes that were posted and not
    yet taken; `broken` turns true when the reader has gone. `received` and `waiting` are what a channel before this one,
    over the same transport, left behind: its `leftover()` and `unsent_bytes()`.
    """

    def __init__(
        self,
        transport: ByteTransport,
        parser: Parser,
        *,
        frame_timeout: float = 30.0,
        on_timeout: Callable[[int], None] = lambda _: None,
        received: bytes = b"",
        waiting: bytes = b"",
    ) -> None:
        self._transport = transport
        self._parser = parser
        self._frame_timeout = frame_timeout
        self._on_timeout = on_timeout
        self._frame_since: float | None = None
        self._progress = 0
        self._loss: Fault | None = None
        self._held: Frame | None = None
        self._outgoing: list[bytes] = []
        self._sending = memoryview(waiting)
        self.unsent = len(waiting)
        self.broken = False
        self.pulse = 0
        if received:
            parser.receive_data(received)

    # -- in ----------------------------------------------------------------------------------------------------

    def next_nowait(self) -> Event:
        """The next frame, loss or the end out of what was received, or NEED_DATA."""
        if self._held is not None:
            frame, self._held = self._held, None
            return frame
        while True:
            event = self._parser.next_event()
            if type(event) is Frame:
                self._frame_since = None
                if self._loss is None:
                    return event
                self._held = event
                loss, self._loss = self._loss, None
                return loss
            if event is NEED_DATA:
                return event
            if event is END_OF_INPUT:
                return self._take_loss() or event
            if self._loss is None and type(event) is Fault:  # a further one without a frame between is the same loss
                self._loss = event

    def refuse_body(self, failure: ParseFailure) -> None:
        """The frame that came last holds no JSON text; its error comes out of `next_nowait` when it is due."""
        self._parser.refuse_body(failure)

    def leftover(self) -> bytes | None:
        """What was received and did not come out yet, for the channel that takes over; None while it can't be told.

        Bytes tell all while nothing is wrong with the input (`Parser.leftover`). Changes nothing.
        """
        return None if self._loss is not None or self._held is not None else self._parser.leftover()

    @property
    def framing(self) -> Framing | None:
        """What the peer speaks; None while the byte that decides has not come."""
        return self._parser.framing

    def _take_loss(self) -> Fault | None:
        loss, self._loss = self._loss, None
        return loss

    def fill_nowait(self) -> bool:
        """Take in what has arrived; False when nothing has."""
        data = self._transport.receive_nowait()
        if data is None:
            return False
        self._take_in(data)
        return True

    async def fill(self) -> Fault | None:
        """Wait for bytes, or for the moment at which their absence means something.

        Returns the loss that is due because nothing followed it. Cancelling loses nothing.
        """
        wait, expire = self._next_clock()
        if expire is None:
            self._take_in(await self._transport.receive())
            return None
        if self.fill_nowait():  # reading may have paused for longer than the clock allows: look before it strikes
            return None
        from anyio import move_on_after  # late: the first replies leave without an event loop

        with move_on_after(wait) as scope:
            self._take_in(await self._transport.receive())
        return expire() if scope.cancelled_caught else None

    def _take_in(self, data: bytes) -> None:
        self.pulse += 1
        if data:
            self._parser.receive_data(data)
        else:
            self._parser.end_of_input()

    def _next_clock(self) -> tuple[float, Callable[[], Fault | None] | None]:
        """Which silence ends first, in how many seconds, and what it means."""
        parser = self._parser
        if self._loss is not None:
            return FOLD_SECONDS, self._take_loss
        if parser.wants_rest:
            return REST_SECONDS, self._rested
        if not parser.mid_frame:
            self._frame_since = None
            return 0.0, None
        now = monotonic()
        if self._frame_since is None or parser.progress != self._progress:
            self._frame_since, self._progress = now, parser.progress
        return max(0.0, self._frame_since + self._frame_timeout - now), self._frame_timed_out

    def _rested(self) -> None:
        self._parser.input_rested()

    def _frame_timed_out(self) -> None:
        self._on_timeout(self._parser.pending)
        self._frame_since = None
        self._parser.frame_timed_out()

    # -- out ---------------------------------------------------------------------------------------------------

    def post(self, body: bytes) -> None:
        """Queue one frame; `flush` sends it. Never blocks. After the reader has gone it is dropped."""
        if not self.broken:
            frame = encode_frame(body, self._parser.framing or "content-length")
            self._outgoing.append(frame)
            self.unsent += len(frame)

    @property
    def congested(self) -> bool:
        """True while so much waits for the reader that producers should wait too."""
        return self.unsent >= OUTGOING_HIGH

    def flush(self) -> bool:
        """Hand over what is queued, in one write where it fits; True when nothing is left.

        Raises `PeerGone`, once; afterwards everything that is posted is dropped.
        """
        while self.unsent:
            if not self._sending:
                self._sending = memoryview(b"".join(self._outgoing))
                self._outgoing.clear()
            try:
                taken = self._transport.send_nowait(self._sending)
            except PeerGone:
                self.drop()
                raise
            self.pulse += taken > 0
            self._sending = self._sending[taken:]
            self.unsent -= taken
            if self._sending:
                return False
        return True

    def unsent_bytes(self) -> bytes:
        """What was posted and not yet taken: the rest of a frame, and whole ones."""
        return b"".join((self._sending, *self._outgoing))

    def drop(self) -> None:
        """Give up on the reader: forget what is queued, and whatever is posted from now on."""
        self.broken = True
        self.unsent = 0
        self._sending = memoryview(b"")
        self._outgoing.clear()

    async def wait_sendable(self) -> None:
        """Wait until the reader takes more, or has gone, which the next `flush` says."""
        await self._transport.wait_sendable()

    def close(self) -> None:
        self._transport.close()
