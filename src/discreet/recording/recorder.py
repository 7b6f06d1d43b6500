"""Records a session in a process of its own, so that the session never waits for the recording.

The search for secrets in a large text keeps an interpreter busy. So the bytes go as packets to a child, which runs this same
module. What it has not taken yet is queued in memory, up to a bound. When the bound is reached, or the file can't be
written, the recording ends and the session goes on.

The child reports nothing but its exit status, because an error text might hold a secret. Where the session is to be watched, it
prints the scrubbed entries to stderr, and nothing else does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from queue import SimpleQueue
from time import monotonic, sleep
from typing import IO, Final, TypeAlias, assert_never, final

import msgspec

from ..framing.parser import FramingChoice
from ..module_path import for_children
from .format import Entry, RecordingWriter, Sender, StreamName

QUEUE_BYTES: Final = 256 * 1024 * 1024
"""How much may be queued: as much as one message of a server may hold."""

FINISH_SECONDS: Final = 30.0
"""How long `finish` waits for the rest of the recording: about 100 MB at the scrubber's speed."""

UNWRITABLE: Final = 100
"""The exit status for a recording that can't be written is this plus the system's error number."""

GRACE_SECONDS: Final = 1.0
"""How long the server may go on after the session's process died, which ended its input, before it is killed."""

NICENESS: Final = 10
"""On a busy machine the session has priority."""

_STDOUT, _STDERR = 1, 2
_LENGTH_BYTES: Final = 8


class TailStyle(msgspec.Struct, frozen=True):
    """How the session is printed while it goes on. Characters that the encoding lacks are escaped."""

    colour: bool
    encoding: str


class RecordingOptions(msgspec.Struct, frozen=True, tag=True):
    """The first packet: what is recorded, and how.

    With `tail` the session is printed to stderr. If the session's process dies, the process group `group` is killed.
    """

    command: tuple[str, ...]
    framing: FramingChoice
    hide_paths: bool = False
    tail: TailStyle | None = None
    group: int | None = None


class BytesPacket(msgspec.Struct, frozen=True, tag=True):
    """Some bytes of one stream, `ms` after the start; none at its end. `rested`: the stream was silent for 250 ms before."""

    stream: StreamName
    ms: float
    data: bytes
    rested: bool = False


class SkippedPacket(msgspec.Struct, frozen=True, tag=True):
    """Bytes that were not recorded."""

    sender: Sender
    ms: float
    size: int


class EndPacket(msgspec.Struct, frozen=True, tag=True):
    """The end of the session, with the server's exit status."""

    ms: float
    status: int | None


Packet: TypeAlias = RecordingOptions | BytesPacket | SkippedPacket | EndPacket


def encode_packet(packet: Packet) -> bytes:
    """A packet as `read_packet` reads it."""
    body = msgspec.msgpack.encode(packet)
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


def read_packet(stream: IO[bytes]) -> Packet | None:
    """The next packet; None at the end of the stream, also within a packet."""
    size = int.from_bytes(stream.read(_LENGTH_BYTES), "big")
    body = stream.read(size)
    return _decoder.decode(body) if body and len(body) == size else None


_decoder: Final[msgspec.msgpack.Decoder[Packet]] = msgspec.msgpack.Decoder(Packet)


@final
class Recorder:
    """Records a session in another process. Only `finish` ever waits.

    `max_queue` is in bytes. `problem` says why the recording is incomplete, once that is known.
    """

    def __init__(self, fd: int, options: RecordingOptions, *, max_queue: int = QUEUE_BYTES) -> None:
        """Start recording to the descriptor `fd`, which is closed here. Raises `OSError`."""
        self.problem: str | None = None
        self._began = monotonic()
        self._max_queue = max_queue
        self._queued = 0  # bytes ever, counted by the session's thread
        self._written = 0  # bytes ever, counted by the recorder's thread
        self._skipped: dict[Sender, int] = {}
        self._stopped = False
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=fd,
                stderr=subprocess.DEVNULL if options.tail is None else None,
                bufsize=0,
                env={**os.environ, "PYTHONPATH": for_children()},
                start_new_session=True,  # a Ctrl-C is for the session; the recording must outlast it
            )
        finally:
            os.close(fd)
        self._queue.put(encode_packet(options))
        self._thread = threading.Thread(target=self._write_queue, name="discreet-recorder", daemon=True)
        self._thread.start()

    def observe(self, stream: StreamName, data: bytes, *, rested: bool = False) -> None:
        """Record some bytes of one stream; none at its end. `rested`: the stream was silent for 250 ms before them."""
        packet = encode_packet(BytesPacket(stream, self._now(), data, rested))
        if self._queued + len(packet) - self._written > self._max_queue:
            self._stopped = True
        if not self._stopped:
            self._queued += len(packet)
            self._queue.put(packet)
        elif stream != "stderr":
            self._skipped[stream] = self._skipped.get(stream, 0) + len(data)

    def finish(self, status: int | None) -> None:
        """End the session with the server's exit status. Waits until all is written, at most `FINISH_SECONDS`."""
        for sender, size in self._skipped.items():
            self._queue.put(encode_packet(SkippedPacket(sender, self._now(), size)))
        self._queue.put(encode_packet(EndPacket(self._now(), status)))
        self._queue.put(None)
        try:
            self.problem = _problem(self._process.wait(FINISH_SECONDS))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            self.problem = "the recording was not finished in time and is incomplete"
        self._thread.join()
        if self.problem is None and self._stopped:
            self.problem = "the recording could not keep up and is incomplete"

    def _now(self) -> float:
        return round((monotonic() - self._began) * 1000, 3)

    def _write_queue(self) -> None:
        """Runs in the thread: writes packets until the last one, or until the process has ended."""
        assert self._process.stdin is not None  # it is a pipe, see above
        with self._process.stdin as pipe:
            while (packet := self._queue.get()) is not None:
                rest = memoryview(packet)
                try:
                    while rest:
                        rest = rest[os.write(pipe.fileno(), rest) :]
                except BrokenPipeError:  # the process has ended; its exit status says why
                    self._stopped = True
                    return
                self._written += len(packet)


def _problem(status: int) -> str | None:
    """What the exit status of the recording process means."""
    if status == 0:
        return None
    if status > UNWRITABLE:
        return f"the recording can't be written and is incomplete: {os.strerror(status - UNWRITABLE)}"
    return "the recording failed and is incomplete"


def record(stream: IO[bytes], writer: RecordingWriter, tail_fd: int = _STDERR) -> None:
    """Write a recording of all packets. Without an `EndPacket` the recording has no end entry. Raises `OSError`.

    If the first packet asks for it, each entry is printed to `tail_fd` as well, once it is written.
    """
    from .builder import RecordingBuilder  # late, as below: only the child needs them
    from .view.lines import Tail

    begin = read_packet(stream)
    if not isinstance(begin, RecordingOptions):
        return
    tail = None if begin.tail is None else Tail(tail_fd, colour=begin.tail.colour, encoding=begin.tail.encoding)

    def write(entry: Entry) -> None:
        writer.write(entry)
        if tail is not None:
            tail.show(entry)

    ended = False
    builder = RecordingBuilder(write, command=begin.command, framing=begin.framing, hide_paths=begin.hide_paths)
    while (packet := read_packet(stream)) is not None:
        match packet:
            case BytesPacket():
                builder.feed(packet.stream, packet.ms, packet.data, rested=packet.rested)
            case SkippedPacket(sender, ms, size):
                builder.skip(sender, ms, size)
            case EndPacket(ms, status):
                builder.end(ms, status)
                ended = True
            case RecordingOptions():
                break
            case _:
                assert_never(packet)
    if tail is not None:
        tail.close()
    if not ended and begin.group is not None:
        _kill(begin.group)


def _kill(group: int) -> None:
    """Kill the server of a session whose process has died."""
    sleep(GRACE_SECONDS)
    if sys.platform != "win32":
        with suppress(OSError):  # it has ended
            os.killpg(group, signal.SIGKILL)


def main() -> int:
    """Record from stdin to stdout and return the exit status."""
    from ..errors.redaction import load_environment  # late, as above

    if sys.platform != "win32":
        os.nice(NICENESS)
    load_environment(os.environ)
    try:
        record(sys.stdin.buffer, RecordingWriter(_STDOUT), _private_stderr())
    except OSError as exc:
        return UNWRITABLE + (exc.errno or 0)
    return 0


def _private_stderr() -> int:
    """Move stderr to another descriptor, where no traceback and no warning goes."""
    fd = os.dup(_STDERR)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, _STDERR)
    os.close(null)
    return fd


if __name__ == "__main__":
    sys.exit(main())
