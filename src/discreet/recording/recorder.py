"""Passes the bytes of a session to the process that records them, so that the session never waits for the recording.

Bytes that this process has not taken yet are queued in memory, up to a bound. When the bound is reached, or the file can't
be written, the recording ends and the session goes on.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from queue import SimpleQueue
from time import monotonic
from typing import Final, final

import msgspec

from ..framing.parser import FramingChoice
from ..module_path import for_children
from .format import StreamName
from .recorder_process import UNWRITABLE, PacketKind, RecordingOptions, TailStyle, encode_packet

QUEUE_BYTES: Final = 256 * 1024 * 1024
"""How much may be queued: as much as one message of a server may hold."""

FINISH_SECONDS: Final = 30.0
"""How long `finish` waits for the rest of the recording: about 100 MB at the scrubber's speed."""

_KINDS: Final[dict[StreamName, PacketKind]] = {
    "client": PacketKind.CLIENT,
    "server": PacketKind.SERVER,
    "stderr": PacketKind.STDERR,
}
_SKIPPED: Final[dict[StreamName, PacketKind]] = {
    "client": PacketKind.SKIPPED_CLIENT,
    "server": PacketKind.SKIPPED_SERVER,
}


@final
class Recorder:
    """Records a session in another process. Only `finish` ever waits.

    `max_queue` is in bytes. `problem` says why the recording is incomplete, once that is known.
    """

    def __init__(
        self,
        fd: int,
        *,
        command: Sequence[str],
        framing: FramingChoice,
        hide_paths: bool = False,
        tail: TailStyle | None = None,
        max_queue: int = QUEUE_BYTES,
    ) -> None:
        """Start recording to the descriptor `fd`, which is closed here, and with `tail` print to stderr. Raises `OSError`."""
        self.problem: str | None = None
        self._began = monotonic()
        self._max_queue = max_queue
        self._queued = 0  # bytes ever, counted by the session's thread
        self._written = 0  # bytes ever, counted by the recorder's thread
        self._skipped: dict[StreamName, int] = {}
        self._stopped = False
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "discreet.recording.recorder_process"],
                stdin=subprocess.PIPE,
                stdout=fd,
                stderr=subprocess.DEVNULL if tail is None else None,
                bufsize=0,
                env={**os.environ, "PYTHONPATH": for_children()},
                start_new_session=True,  # a Ctrl-C is for the session; the recording must outlast it
            )
        finally:
            os.close(fd)
        words = tuple(word.encode(errors="backslashreplace").decode() for word in command)
        options = RecordingOptions(words, framing, hide_paths, tail)
        self._queue.put(encode_packet(PacketKind.BEGIN, 0.0, msgspec.msgpack.encode(options)))
        self._thread = threading.Thread(target=self._write_queue, name="discreet-recorder", daemon=True)
        self._thread.start()

    def observe(self, stream: StreamName, data: bytes, *, rested: bool = False) -> None:
        """Record some bytes of one stream; none at its end. `rested`: the stream was silent for 250 ms before them."""
        packet = encode_packet(_KINDS[stream], self._now(), data, rested=rested)
        if self._queued + len(packet) - self._written > self._max_queue:
            self._stopped = True
        if self._stopped:
            self._skipped[stream] = self._skipped.get(stream, 0) + len(data)
        else:
            self._queued += len(packet)
            self._queue.put(packet)

    def finish(self, status: int | None) -> None:
        """End the session with the server's exit status. Waits until all is written, at most `FINISH_SECONDS`."""
        for stream, size in self._skipped.items():
            if stream in _SKIPPED:
                self._queue.put(encode_packet(_SKIPPED[stream], self._now(), size=size))
        self._queue.put(encode_packet(PacketKind.END, self._now(), msgspec.msgpack.encode(status)))
        self._queue.put(None)
        try:
            self.problem = _problem(self._process.wait(FINISH_SECONDS))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            self.problem = "the recording was not finished in time and is incomplete"
        self._thread.join()
        if self.problem is None and self._skipped:
            self.problem = "the recording could not keep up and is incomplete"

    def _now(self) -> float:
        return round((monotonic() - self._began) * 1000, 3)

    def _write_queue(self) -> None:
        """Runs in the thread: writes packets until the last one, or until the process has ended."""
        assert self._process.stdin is not None  # it is a pipe, see above
        with self._process.stdin as pipe:
            while (packet := self._queue.get()) is not None:
                try:
                    _write(pipe.fileno(), packet)
                except BrokenPipeError:  # the process has ended; its exit status says why
                    self._stopped = True
                    return
                self._written += len(packet)


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _problem(status: int) -> str | None:
    """What the exit status of the recording process means."""
    if status == 0:
        return None
    if status > UNWRITABLE:
        return f"the recording can't be written and is incomplete: {os.strerror(status - UNWRITABLE)}"
    return "the recording failed and is incomplete"
