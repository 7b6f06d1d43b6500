"""Hands what passes in a session to the process that records it, so that those who talk never wait for it.

What that process has not taken yet waits in memory, up to a bound. When that is reached, or the file can't be written, the
recording ends and the session goes on.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from queue import SimpleQueue
from time import monotonic
from typing import Final, Literal, TypeAlias, final

import msgspec

from ..framing.parser import FramingChoice
from .recorder_process import UNWRITABLE, Begin, Kind, encode

BACKLOG_BYTES: Final = 256 * 1024 * 1024
"""What may wait to be recorded: as much as one message of a server may have."""

FINISH_SECONDS: Final = 30.0
"""How long the end of a session waits for what is still to be recorded: some 100 MB at the scrubber's pace."""

Stream: TypeAlias = Literal["client", "server", "stderr"]

_KINDS: Final[dict[Stream, Kind]] = {"client": Kind.CLIENT, "server": Kind.SERVER, "stderr": Kind.STDERR}
_SKIPPED: Final[dict[Stream, Kind]] = {"client": Kind.SKIPPED_CLIENT, "server": Kind.SKIPPED_SERVER}


@final
class Recorder:
    """Takes what passes by, in the order in which it does. Only `finish` ever waits.

    `backlog` is in bytes. `problem` says why the recording is not whole, once that is known.
    """

    def __init__(
        self,
        fd: int,
        *,
        command: Sequence[str],
        framing: FramingChoice,
        hide_paths: bool = False,
        backlog: int = BACKLOG_BYTES,
    ) -> None:
        """Start the recording, to the descriptor `fd`, which is closed here. Raises `OSError`."""
        self.problem: str | None = None
        self._began = monotonic()
        self._backlog = backlog
        self._handed_in = 0  # bytes, counted by those who hand in
        self._taken = 0  # bytes, counted by the thread
        self._skipped: dict[Stream, int] = {}
        self._deaf = False
        self._notes: SimpleQueue[bytes | None] = SimpleQueue()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "discreet.recording.recorder_process"],
                stdin=subprocess.PIPE,
                stdout=fd,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # a Ctrl-C is for the session, and the recording outlasts it
            )
        finally:
            os.close(fd)
        words = tuple(word.encode(errors="backslashreplace").decode() for word in command)
        self._notes.put(encode(Kind.BEGIN, 0.0, msgspec.msgpack.encode(Begin(words, framing, hide_paths))))
        self._thread = threading.Thread(target=self._hand_over, name="discreet-scribe", daemon=True)
        self._thread.start()

    def hear(self, stream: Stream, data: bytes, *, rested: bool = False) -> None:
        """Some bytes of one stream; none at its end. `rested`: the stream was silent for 250 ms before."""
        note = encode(_KINDS[stream], self._now(), data, rested=rested)
        if self._handed_in + len(note) - self._taken > self._backlog:
            self._deaf = True
        if self._deaf:
            self._skipped[stream] = self._skipped.get(stream, 0) + len(data)
        else:
            self._handed_in += len(note)
            self._notes.put(note)

    def finish(self, status: int | None) -> None:
        """The session is over, with the server's exit status. Waits, in bounded time, until all is written."""
        for stream, size in self._skipped.items():
            if stream in _SKIPPED:
                self._notes.put(encode(_SKIPPED[stream], self._now(), size=size))
        self._notes.put(encode(Kind.END, self._now(), msgspec.msgpack.encode(status)))
        self._notes.put(None)
        try:
            self.problem = _problem(self._process.wait(FINISH_SECONDS))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            self.problem = "the recording was not finished in time and ends early"
        self._thread.join()
        if self.problem is None and self._skipped:
            self.problem = "the recording could not keep up and ends early"

    def _now(self) -> float:
        return round((monotonic() - self._began) * 1000, 3)

    def _hand_over(self) -> None:
        """On the thread: write notes for as long as somebody reads them."""
        assert self._process.stdin is not None  # asked for above
        with self._process.stdin as pipe:
            while (note := self._notes.get()) is not None:
                try:
                    _write(pipe.fileno(), note)
                except BrokenPipeError:  # it has ended: its status will tell why
                    self._deaf = True
                    return
                self._taken += len(note)


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _problem(status: int) -> str | None:
    """What the exit status of the process that records means."""
    if status == 0:
        return None
    if status > UNWRITABLE:
        return f"the recording can't be written and ends early: {os.strerror(status - UNWRITABLE)}"
    return "the recording failed and ends early"
