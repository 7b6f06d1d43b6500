"""A trial run of the daemon: one request, then the end of input. Reads all that it writes, and leaves no process behind."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import IO, Final, final

import msgspec
from msgspec import Struct

from ...client.messages import outgoing_request
from ...daemon.settings.table import FramingSetting
from ...errors.decoders import decoder_for
from ...errors.printable import cut, printable
from .checks import Finding
from .conversation import MAX_QUOTE_CHARS, LogLine, error_line, log_lines

REPLY_SECONDS: Final = 10.0
"""How long to wait for the reply, with the imports of apps in it."""
SLOW_SECONDS: Final = 3.0
"""A start that takes longer is noticed: Emacs, for one, blocks for so long when it connects to a language server."""
END_SECONDS: Final = 5.0
"""How long to wait for the end. Nothing runs in the trial, so the daemon should end at once, whatever the drain window is."""
_EXIT_SECONDS: Final = 0.5
"""How long the interpreter may take to end, in addition to the drain window."""
_KILL_SECONDS: Final = 1.0
_HEADER: Final = b"Content-Length: "
_MAX_LENGTH_DIGITS: Final = 18
"""Digits of a Content-Length."""
MAX_OUTPUT_BYTES: Final = 16 * 1024 * 1024
"""How much of the beginning of each of the daemon's streams is kept: more than one reply and the log of a start."""


_MAX_STRAY_CHARS: Final = 80

_LIFESPAN_ENDS: Final = {
    "lifespan.failed": "raised on its way out",
    "lifespan.not_left": "did not end within drain-timeout",
}


class TrialResult(Struct, frozen=True):
    """What the daemon did. Times are in seconds; None for what did not happen in time."""

    replied: float | None
    ended: float | None
    """Since the end of input."""
    status: int | None
    output: bytes
    log: bytes
    output_bytes: int
    """What was written to stdout. Of more than `MAX_OUTPUT_BYTES` only the beginning is in `output`, as in `log`."""
    output_held: bool
    """A process outlived the daemon and kept its stdout or stderr open."""


class _Error(Struct, frozen=True):
    code: int
    message: str


class _Reply(Struct, frozen=True):
    id: int
    result: msgspec.Raw = msgspec.Raw(b"")
    error: _Error | None = None


def run_trial(
    command: Sequence[str],
    framing: FramingSetting,
    hello: Mapping[str, object] = {},
    *,
    reply_seconds: float = REPLY_SECONDS,
    end_seconds: float = END_SECONDS,
) -> TrialResult:
    """Start the command, send `initialize` with the params `hello`, close its stdin, and wait for its end.

    Takes at most the two times, and three seconds for killing what does not end.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stdin  # requested above, as the others
    assert process.stdout
    assert process.stderr
    output, log = _PipeReader(process.stdout), _PipeReader(process.stderr)
    ended = None
    try:
        began = monotonic()
        request = outgoing_request(1, "initialize", hello).encode()
        _send(process.stdin, request + b"\n" if framing == "newline" else _framed(request))
        replied = monotonic() - began if output.wait_for_data(reply_seconds) else None
        ending = monotonic()
        _close(process.stdin)
        if _wait(process, end_seconds):
            ended = monotonic() - ending
        status = process.poll()
        output_held = ended is not None and not (output.wait_for_end(_KILL_SECONDS) and log.wait_for_end(_KILL_SECONDS))
    finally:
        _end(process)
    output.wait_for_end(_KILL_SECONDS)
    log.wait_for_end(_KILL_SECONDS)
    return TrialResult(replied, ended, status, output.content, log.content, output.size, output_held)


def trial_findings(trial: TrialResult, framing: FramingSetting, drain_timeout: float) -> Iterator[Finding]:
    """Yield what the trial shows about a daemon with these settings."""
    yield _reply_finding(trial, framing)
    bad = first_stray_byte(trial.output, framing)
    if trial.output_bytes > MAX_OUTPUT_BYTES:
        yield Finding("stdout", "fail", f"{trial.output_bytes} bytes on stdout for one request")
    elif bad is None:
        yield Finding("stdout", "ok", f"all {len(trial.output)} bytes on stdout belong to frames")
    else:
        yield Finding("stdout", "fail", f"byte {bad} of {len(trial.output)} on stdout belongs to no frame")
    yield _end_finding(trial, drain_timeout)
    if trial.output_held:
        yield Finding("end", "warn", "a process outlived the daemon and kept its output open")
    events = list(log_lines(trial.log))
    for line in events:
        if what := _LIFESPAN_ENDS.get(line.event):
            yield Finding("end", "warn", f"the lifespan of a service {what} ({line.event})")
        if line.event == "dialect.undeclared":
            yield Finding("dialect", "warn", line.hint)
    if stray := [line.text for line in events if line.event.endswith(".stray")]:
        began = printable(cut(stray[0].strip(), _MAX_STRAY_CHARS))
        yield Finding("stdout", "warn", f"the apps wrote to stdout or stderr, which went to the log: {began}")


def first_stray_byte(output: bytes, framing: FramingSetting) -> int | None:
    """Return the position of the first byte that belongs to no frame; None if all do."""
    at = 0
    while at < len(output):
        body, end = _line_at(output, at) if framing == "newline" else _body_at(output, at)
        if not _is_message(body):
            return at
        at = end
    return None


def _body_at(output: bytes, at: int) -> tuple[bytes, int]:
    """Return the body of the frame at this position, and where it ends; an empty body if there is no frame."""
    digits, found, _ = output[at:].partition(b"\r\n\r\n")
    length = digits.removeprefix(_HEADER)
    if not found or length == digits or not length.isdigit() or len(length) > _MAX_LENGTH_DIGITS:
        return b"", at
    start = at + len(digits) + 4
    end = start + int(length)
    return (output[start:end], end) if end <= len(output) else (b"", at)


def _line_at(output: bytes, at: int) -> tuple[bytes, int]:
    end = output.find(b"\n", at)
    return (output[at:end], end + 1) if end >= 0 else (b"", at)


def _is_message(body: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(body), dict)
    except msgspec.DecodeError:
        return False


def _reply_finding(trial: TrialResult, framing: FramingSetting) -> Finding:
    body, _ = _line_at(trial.output, 0) if framing == "newline" else _body_at(trial.output, 0)
    line = error_line(trial.log)
    because = f"; stderr: {line}" if line else ""
    try:
        reply = decoder_for(_Reply)(body)
    except msgspec.DecodeError:
        reply = _Reply(0)
    if trial.replied is None and reply.id:
        return Finding("reply", "fail", f"initialize was answered only at the end of input{because}")
    if reply.error is not None:
        said = f"{reply.error.code} {reply.error.message[:MAX_QUOTE_CHARS]}"
        return Finding("reply", "fail", f"initialize was refused with {said}{because}")
    if trial.replied is None or not bytes(reply.result):
        late = (
            ""
            if line or trial.ended is not None
            else f" within {REPLY_SECONDS:g} s; is something at import that waits?"
        )
        return Finding("reply", "fail", f"initialize was not answered{late}{because}")
    message = f"initialize was answered {trial.replied * 1000:.0f} ms after the start"
    if trial.replied > SLOW_SECONDS:
        return Finding("reply", "warn", f"{message}; some editors and hosts give up after {REPLY_SECONDS:g} s")
    return Finding("reply", "ok", message)


def _end_finding(trial: TrialResult, drain_timeout: float) -> Finding:
    if trial.ended is None:
        return Finding("end", "fail", "the daemon did not end at the end of input and was killed")
    message = f"ended {trial.ended * 1000:.0f} ms after the end of input with status {trial.status}"
    if trial.status != 0:
        return Finding("end", "fail", message)
    late = trial.ended > drain_timeout + _EXIT_SECONDS
    return Finding(
        "end", "warn" if late else "ok", f"{message}; drain-timeout is {drain_timeout:g} s" if late else message
    )


def declared_dialect(command: Sequence[str], seconds: float = REPLY_SECONDS) -> str:
    """Start the command without input, and return the dialect that it says it speaks; plain if it does not start."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stderr  # requested above
    log = _PipeReader(process.stderr)
    try:
        _wait(process, seconds)
    finally:
        _end(process)
    log.wait_for_end(_KILL_SECONDS)
    started = (line for line in log_lines(log.content) if line.event == "daemon.started")
    return next(started, LogLine("")).dialect


def _framed(body: bytes) -> bytes:
    return _HEADER + b"%d\r\n\r\n%b" % (len(body), body)


def _send(stdin: IO[bytes], data: bytes) -> None:
    try:
        stdin.write(data)
        stdin.flush()
    except BrokenPipeError:
        return  # it has ended already; its status and its log say why


def _close(stdin: IO[bytes]) -> None:
    try:
        stdin.close()
    except BrokenPipeError:
        return


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the daemon and what is left of its process group: SIGTERM, then SIGKILL."""
    if process.poll() is None:
        process.terminate()
        _wait(process, _KILL_SECONDS)
    if sys.platform == "win32":
        process.kill()
    else:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # macOS raises the latter for a group of zombies
            pass
    process.wait()


@final
class _PipeReader:
    """Reads a pipe to its end, on a thread of its own."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._has_data = threading.Event()
        self._content = bytearray()
        self.size = 0
        self._thread = threading.Thread(target=self._read_all, daemon=True)
        self._thread.start()

    @property
    def content(self) -> bytes:
        return bytes(self._content)

    def wait_for_data(self, timeout: float) -> bool:
        """Wait for the first bytes. Returns False if the pipe ended without any, or time ran out."""
        return self._has_data.wait(timeout) and bool(self.size)

    def wait_for_end(self, timeout: float) -> bool:
        """Wait until every writer has closed the pipe. Returns False if time ran out."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _read_all(self) -> None:
        with self._pipe:
            while chunk := os.read(self._pipe.fileno(), 65_536):
                self.size += len(chunk)
                self._content += chunk[: MAX_OUTPUT_BYTES - len(self._content)]
                self._has_data.set()
        self._has_data.set()
