"""Records a session in a thread of its own. The session never waits for the recording.

What the thread has not taken yet is queued in memory, up to a bound. When the bound is reached, or the file can't be written, the
recording ends and the session goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Lock, Thread
from time import monotonic
from typing import Final, assert_never, final

from msgspec import Raw

from ..client.messages import MAX_MESSAGE_BYTES
from ..client.process import StderrLines
from ..errors.failures import ParseFailure
from ..errors.redaction import load_environment, scrub_fields
from ..framing.events import EndOfInput, Fault, Frame, FrameLimits, NeedData
from ..framing.parser import FramingChoice, Parser, parser_for
from .format import (
    VERSION,
    ClosedEntry,
    EndEntry,
    Entry,
    MessageEntry,
    OmittedEntry,
    Sender,
    StartEntry,
    StderrEntry,
    StreamName,
    dump,
    load,
    write_entry,
)
from .lines import Tail
from .scrubber import MessageScrubber

STDERR_CHARACTERS: Final = 8192
"""How much of a line of stderr is recorded. The daemon's log keeps as much of a field."""

TOO_DEEP: Final = "too-deep"
"""The reason of an omission: the message is nested too deeply to be searched for secrets."""

NOT_RECORDED: Final = "not-recorded"
"""The reason of an omission: the bytes came faster than they could be recorded."""

QUEUE_BYTES: Final = 256 * 1024 * 1024
"""How much may be queued: as much as one message of a server may hold."""

FINISH_SECONDS: Final = 30.0
"""How long `finish` waits for the rest of the recording: about 100 MB at the scrubber's speed."""


@final
class RecordingBuilder:
    """Passes the entries of one session to `write`, in order. `ms` is always in milliseconds since the start.

    Whatever the bytes are, it only reads them. No IO of its own, no clock, no thread.
    """

    def __init__(
        self, write: Callable[[Entry], None], *, command: Sequence[str], framing: FramingChoice, hide_paths: bool
    ) -> None:
        self._write = write
        self._scrubber = MessageScrubber(hide_paths=hide_paths)
        limits = FrameLimits(max_body=MAX_MESSAGE_BYTES)
        self._parsers: dict[Sender, Parser] = {
            "client": parser_for(framing, limits),
            "server": parser_for(framing, limits),
        }
        self._stderr = StderrLines(self._add_stderr_line)
        self._ms = 0.0
        self._framing: FramingChoice = framing
        scrubbed = scrub_fields(list(command))
        assert isinstance(scrubbed, list)  # the copy of a list is a list
        self._command = tuple(map(str, scrubbed))
        self._scrubber.scrub(list(command))  # remembers the secrets of the command line
        self._has_start = False

    def feed(self, stream: StreamName, ms: float, data: bytes, *, rested: bool = False) -> None:
        """Take some bytes; none at the end of that stream. `rested`: the stream was silent for 250 ms before them."""
        self._ms = ms
        if stream == "stderr":
            return self._stderr.feed(data) if data else self._stderr.finish()
        parser = self._parsers[stream]
        while rested and (clock := parser.clock) in ("short", "long"):
            parser.clock_expired()
            self._handle_events(stream, parser)
            rested = clock == "short"  # a long silence begins with a short one
        if data:
            parser.receive_data(data)
        else:
            parser.end_of_input()
        self._handle_events(stream, parser)
        if not data:
            self._add(ClosedEntry(ms=ms, sender=stream))

    def skip(self, sender: Sender, ms: float, size: int) -> None:
        """Note that `size` bytes were not recorded. No more bytes may be fed."""
        self._add(OmittedEntry(ms=ms, sender=sender, reason=NOT_RECORDED, size=size))

    def end(self, ms: float, status: int | None) -> None:
        """End the session. Incomplete messages and lines are recorded first."""
        self._ms = ms
        for sender, parser in self._parsers.items():
            parser.end_of_input()
            self._handle_events(sender, parser)
        self._stderr.finish()
        self._add(EndEntry(ms=ms, status=status))

    def _handle_events(self, sender: Sender, parser: Parser) -> None:
        while True:
            event = parser.next_event()
            match event:
                case Frame(body):
                    self._add_message(sender, parser, body)
                case Fault(failure, size):
                    self._add(OmittedEntry(ms=self._ms, sender=sender, reason=failure.reason, size=size))
                case NeedData() | EndOfInput():
                    return
                case _:
                    assert_never(event)

    def _add_message(self, sender: Sender, parser: Parser, body: bytes) -> None:
        """Add a message. If it is none, tell the parser, which then reports a fault at the right time."""
        try:
            scrubbed = self._scrubber.scrub(load(body))
            text = Raw(dump(scrubbed.message))
        except RecursionError:
            self._add(OmittedEntry(ms=self._ms, sender=sender, reason=TOO_DEEP, size=len(body)))
        except UnicodeError:
            parser.refuse_body(ParseFailure("invalid-utf8"))
        except ValueError:
            parser.refuse_body(ParseFailure("invalid-json"))
        else:
            self._add(MessageEntry(ms=self._ms, sender=sender, message=text, scrubbed=dict(scrubbed.removed)))

    def _add_stderr_line(self, line: str) -> None:
        self._add(StderrEntry(ms=self._ms, text=self._scrubber.scrub_text(line, cap=STDERR_CHARACTERS)))

    def _add(self, entry: Entry) -> None:
        if not self._has_start:
            self._has_start = True
            found = self._parsers["client"].framing or self._parsers["server"].framing or "auto"
            framing: FramingChoice = found if self._framing == "auto" else self._framing
            self._write(StartEntry(ms=0.0, version=VERSION, framing=framing, command=self._command))
        self._write(entry)


@final
class Recorder:
    """Records a session to the descriptor `fd`, and shows each entry to `tail`. Only `finish` ever waits.

    `max_queue` is in bytes.
    """

    def __init__(
        self,
        fd: int,
        *,
        command: Sequence[str],
        framing: FramingChoice,
        hide_paths: bool = False,
        tail: Tail | None = None,
        max_queue: int = QUEUE_BYTES,
    ) -> None:
        self._fd = fd
        self._tail = tail
        self._began = monotonic()
        self._max_queue = max_queue
        self._queued = 0  # bytes ever
        self._taken = 0  # bytes ever, counted by the recorder's thread
        self._skipped: dict[Sender, int] = {}
        self._stopped = False
        self._problem: str | None = None
        self._lock = Lock()
        self._queue: SimpleQueue[tuple[StreamName, float, bytes, bool] | None] = SimpleQueue()
        self._status: int | None = None
        self._builder: Callable[[], RecordingBuilder] = lambda: RecordingBuilder(
            self._write, command=command, framing=framing, hide_paths=hide_paths
        )
        self._thread = Thread(target=self._run, name="discreet-recorder", daemon=True)
        self._thread.start()

    def observe(self, stream: StreamName, data: bytes, *, rested: bool = False) -> None:
        """Record some bytes of one stream; none at its end. `rested`: the stream was silent for 250 ms before them."""
        with self._lock:
            if self._queued + len(data) - self._taken > self._max_queue:
                self._stopped = True
            if not self._stopped:
                self._queued += len(data)
                self._queue.put((stream, self._now(), data, rested))
            elif stream != "stderr":
                self._skipped[stream] = self._skipped.get(stream, 0) + len(data)

    def finish(self, status: int | None) -> str | None:
        """End the session with the server's exit status. Waits until all is written, at most `FINISH_SECONDS`.

        Returns why the recording is incomplete; None if it is whole.
        """
        self._status = status
        self._queue.put(None)
        self._thread.join(FINISH_SECONDS)
        if self._thread.is_alive():
            return "the recording was not finished in time and is incomplete"
        if self._problem is None and self._stopped:
            return "the recording could not keep up and is incomplete"
        return self._problem

    def _now(self) -> float:
        return round((monotonic() - self._began) * 1000, 3)

    def _run(self) -> None:
        try:
            load_environment(os.environ)
            builder = self._builder()
            while (item := self._queue.get()) is not None:
                stream, ms, data, rested = item
                builder.feed(stream, ms, data, rested=rested)
                self._taken += len(data)
            for sender, size in self._skipped.items():
                builder.skip(sender, self._now(), size)
            builder.end(self._now(), self._status)
            if self._tail is not None:
                self._tail.close()
        except OSError as exc:
            self._problem = f"the recording can't be written and is incomplete: {os.strerror(exc.errno or 0)}"
        except Exception:  # noqa: BLE001 - a fault of the recorder must not show secrets in a traceback, nor end the session
            self._problem = "the recording failed and is incomplete"
        finally:
            self._stopped = self._stopped or self._problem is not None
            os.close(self._fd)

    def _write(self, entry: Entry) -> None:
        write_entry(self._fd, entry)
        if self._tail is not None:
            self._tail.show(entry)
