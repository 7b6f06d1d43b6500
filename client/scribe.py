"""Records a session on a thread of its own, so that those who talk never wait for it.

What is handed in waits in memory, up to a bound. When that is reached, or the file can't be written, the recording ends
and the session goes on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import Final, Literal, TypeAlias, final

from ..framing.parser import FramingChoice
from .recording import RecordingWriter, Sender
from .transcript import Transcript

BACKLOG_BYTES: Final = 256 * 1024 * 1024
"""What may wait to be recorded: as much as one message of a server may have."""

FINISH_SECONDS: Final = 30.0
"""How long the end of a session waits for what is still to be recorded: some 150 MB at the scrubber's pace."""

Stream: TypeAlias = Literal["client", "server", "stderr"]

_Job: TypeAlias = Callable[[], None]


@final
class Scribe:
    """Takes what passes by, in the order in which it does. Only `finish` ever waits; nothing here raises.

    `backlog` is in bytes. `problem` says why the recording is not whole, once that is so.
    """

    def __init__(
        self,
        writer: RecordingWriter,
        *,
        command: Sequence[str],
        framing: FramingChoice,
        hide_paths: bool = False,
        backlog: int = BACKLOG_BYTES,
    ) -> None:
        self.problem: str | None = None
        self._writer = writer
        self._began = monotonic()
        self._backlog = backlog
        self._handed_in = 0  # bytes, counted by those who hand in
        self._recorded = 0  # bytes, counted by the thread
        self._skipped: dict[Sender, int] = {"client": 0, "server": 0}
        self._deaf = False
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._transcript = Transcript(writer.write, command=command, framing=framing, hide_paths=hide_paths)
        self._thread = threading.Thread(target=self._work, name="discreet-scribe", daemon=True)
        self._thread.start()

    def hear(self, stream: Stream, data: bytes, *, rested: bool = False) -> None:
        """Some bytes of one stream; none at its end. `rested`: the stream was silent for 250 ms before."""
        if self._handed_in + len(data) - self._recorded > self._backlog:
            self._deaf = True
            self.problem = "the recording could not keep up and ends early"
        if self._deaf:
            if stream != "stderr":
                self._skipped[stream] += len(data)
            return
        self._handed_in += len(data)
        self._jobs.put(partial(self._take, stream, self._now(), data, rested=rested))

    def finish(self, status: int | None) -> None:
        """The session is over, with the server's exit status. Waits, in bounded time, until all is written."""
        self._jobs.put(partial(self._end, self._now(), status))
        self._jobs.put(None)
        self._thread.join(FINISH_SECONDS)
        if self._thread.is_alive():
            self.problem = "the recording was not finished in time and ends early"

    def _now(self) -> float:
        return round((monotonic() - self._began) * 1000, 3)

    # -- on the thread -----------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                job()
        except OSError as exc:
            self.problem = f"the recording can't be written and ends early: {os.strerror(exc.errno or 0)}"
        finally:
            self._deaf = True
            self._writer.close()

    def _take(self, stream: Stream, ms: float, data: bytes, *, rested: bool) -> None:
        if stream == "stderr":
            self._transcript.take_stderr(ms, data)
        else:
            self._transcript.take(stream, ms, data, rested=rested)
        self._recorded += len(data)

    def _end(self, ms: float, status: int | None) -> None:
        for sender, size in self._skipped.items():
            if size:
                self._transcript.skipped(sender, ms, size)
        self._transcript.end(ms, status)
