"""Sends and receives frames over a byte transport. Never looks into a body and never logs.

Owns the outgoing buffer and the clocks that a parser does not have: the frame time-out (docs/protocol.md, section 1), and the
silences that end a loss or make its fault due (section 1.1, rules 7 to 9).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from time import monotonic
from typing import Final, final

from ..errors.failures import InvalidRequest, ParseFailure
from ..lazy import anyio
from .encoder import encode_frame, encode_frame_parts
from .events import Clock, Event, Framing
from .parser import Parser
from .transports.interface import ByteTransport, PeerGone

SILENCE_SECONDS: Final[Mapping[Clock, float]] = {"short": 0.02, "long": 0.25}
"""Of the polled input. A long one ends a quarantine and any other dropping. Without a short one, what comes next may be part
of the same loss."""

HIGH_WATER_BYTES: Final = 256 * 1024
"""Unsent bytes from which on `congested` is true."""


LARGE_BYTES: Final = 64 * 1024
"""A part of a frame from this size on is written by itself: to copy it costs more than a system call."""

OPENING_BYTES: Final = 256
"""How much of the beginning is kept, to report input that is no message."""


@final
class Channel:
    """One end of a connection. Not thread-safe; only `receive_more` and `wait_sendable` need an event loop.

    `frame_timeout` is in seconds, from a frame's first byte to its last. `on_timeout(size)` is called for every partial
    frame that a time-out drops, with its size in bytes. `unsent` counts the bytes that were posted and not yet sent;
    `congested` is true while these are so many that producers should wait. `broken` becomes true when the peer has gone;
    `activity` changes with every chunk that is received or sent. To take over from another channel on the same transport,
    pass its `leftover()` as `received` and its `unsent_bytes()` as `waiting`.
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
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._transport = transport
        self._parser = parser
        self._frame_timeout = frame_timeout
        self._on_timeout = on_timeout
        self._clock = clock
        self._frame_began: float | None = None
        self._progress = 0
        self._outgoing: list[bytes] = []
        self._in_parts = False  # some of these are parts of frames, which large ones of them are not to be joined with
        self._sending = memoryview(waiting)
        self.unsent = len(waiting)
        self.congested = self.unsent >= HIGH_WATER_BYTES
        self.broken = False
        self.activity = 0
        self.opening = received[:OPENING_BYTES]
        self.next_event: Final[Callable[[], Event]] = parser.next_event
        """The next frame or fault of what was received, or `NEED_DATA`, or `END_OF_INPUT`."""
        if received:
            parser.receive_data(received)

    # -- receiving ---------------------------------------------------------------------------------------------

    def refuse_body(self, failure: InvalidRequest | ParseFailure) -> None:
        """Report that the last frame is no JSON object or array; `next_event` returns the fault when it is due."""
        self._parser.refuse_body(failure)

    def leftover(self) -> bytes | None:
        """The received bytes that are not returned as frames yet, for a channel that takes over. Changes nothing.

        None while bytes alone can't describe the state, after a fault (`Parser.leftover`).
        """
        return self._parser.leftover()

    @property
    def framing(self) -> Framing | None:
        """The framing of the peer; None until the first byte that decides it."""
        return self._parser.framing

    def receive_more_nowait(self) -> bool:
        """Receive what has arrived; returns False if nothing has."""
        data = self._transport.receive_nowait()
        if data is None:
            return False
        if data and len(self.opening) == OPENING_BYTES:
            self.activity += 1
            self._parser.receive_data(data)
        else:
            self._feed_parser(data)
        return True

    def watch_input(self, on_input: Callable[[], None]) -> Callable[[], object] | None:
        """Do what `ByteTransport.watch_input` does."""
        return self._transport.watch_input(on_input)

    @property
    def idle(self) -> bool:
        """True while no clock runs: no frame has begun, and no silence would change anything."""
        return self._parser.clock is None

    def frame_seconds(self) -> float | None:
        """The seconds that the frame which has begun may still take: infinite where none has.

        None while a silence is awaited, so that only `receive_more` will do.
        """
        if self._parser.clock in SILENCE_SECONDS:
            return None
        seconds = self._seconds_left()
        return inf if seconds is None else seconds

    async def receive_more(self) -> None:
        """Wait for bytes, or until silence or a time-out changes the state; then call `next_event`.

        Always a checkpoint, so that a peer that writes faster than it is read can't hold the event loop. Cancelling it
        loses nothing.
        """
        seconds = self._seconds_left()
        if seconds is None:
            self._feed_parser(await self._transport.receive())
            return
        if self.receive_more_nowait():  # reading may have paused for longer than the timer: look at the input first
            await anyio.lowlevel.checkpoint()
            return

        with anyio.move_on_after(seconds) as scope:
            self._feed_parser(await self._transport.receive())
        if scope.cancelled_caught:
            if self._parser.clock == "frame":
                self._on_timeout(self._parser.pending)
                self._frame_began = None
            self._parser.clock_expired()

    def _feed_parser(self, data: bytes) -> None:
        self.activity += 1
        if data:
            if len(self.opening) < OPENING_BYTES:
                self.opening += data[: OPENING_BYTES - len(self.opening)]
            self._parser.receive_data(data)
        else:
            self._parser.end_of_input()

    def _seconds_left(self) -> float | None:
        """The seconds until the parser's clock expires; None if none runs."""
        parser = self._parser
        clock = parser.clock
        if clock != "frame":
            self._frame_began = None
            return None if clock is None else SILENCE_SECONDS[clock]
        now = self._clock()
        if self._frame_began is None or parser.progress != self._progress:
            self._frame_began, self._progress = now, parser.progress
        return max(0.0, self._frame_began + self._frame_timeout - now)

    # -- sending -----------------------------------------------------------------------------------------------

    def post(self, *parts: bytes) -> None:
        """Queue one frame, whose body is these parts; `flush` sends it. Never blocks. If the channel is broken, it is dropped.

        A large part of several is written as it is, without a copy that holds all of them.
        """
        if self.broken:
            return
        if len(parts) == 1:
            body = parts[0]
            if self._parser.framing == "newline":
                frame = encode_frame(body, "newline")
            else:  # written out: each reply comes here
                frame = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            self._outgoing.append(frame)
            self.unsent += len(frame)
        else:
            pieces = encode_frame_parts(parts, self._parser.framing or "content-length")
            self._outgoing += pieces
            self._in_parts = True
            self.unsent += sum(map(len, pieces))
        self.congested = self.unsent >= HIGH_WATER_BYTES

    def flush(self) -> bool:
        """Send what is queued, in one write if it fits; returns True if nothing is left. Never blocks.

        Raises `PeerGone`, once; frames that are posted later are dropped.
        """
        while self.unsent:
            if not self._sending:
                self._sending = memoryview(self._take_outgoing())
            try:
                taken = self._transport.send_nowait(self._sending)
            except PeerGone:
                self.discard_output()
                raise
            self.activity += taken > 0
            self._sending = self._sending[taken:]
            self.unsent -= taken
            self.congested = self.unsent >= HIGH_WATER_BYTES
            if self._sending:
                return False
        return True

    def _take_outgoing(self) -> bytes:
        """Take the bytes of the next write: all frames up to a large part, or the first one if no memory is left to join them."""
        outgoing = self._outgoing
        end = len(outgoing)
        if self._in_parts:
            end = next((at for at, piece in enumerate(outgoing) if len(piece) >= LARGE_BYTES), end) or 1
            self._in_parts = end < len(outgoing)
        try:
            joined = outgoing[0] if end == 1 else b"".join(outgoing[:end])
        except MemoryError:
            return outgoing.pop(0)
        del outgoing[:end]
        return joined

    def unsent_bytes(self) -> bytes:
        """The queued bytes that are not sent yet: the rest of a frame, and whole frames."""
        return b"".join((self._sending, *self._outgoing))

    def discard_output(self) -> None:
        """Drop what is queued and everything that is posted later; the channel is broken from now on."""
        self.broken = True
        self.unsent = 0
        self.congested = False
        self._sending = memoryview(b"")
        self._outgoing.clear()
        self._in_parts = False

    async def wait_sendable(self) -> None:
        """Wait until `flush` would send something or raise `PeerGone`."""
        await self._transport.wait_sendable()
