"""A session over `discreet record`, and the file that it leaves."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from discreet.recording.format import MessageEntry, Recording, read_recording
from support.programs import environment
from support.waits import DEADLINE_SECONDS

INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'


def python(code: str, *words: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code, *words]


class Session:
    """A server behind a recorder, and this test as its client."""

    def __init__(self, tmp_path: Path, server: Sequence[str], *flags: str, **env: str) -> None:
        self.file = tmp_path / "session.jsonl"
        words = ["record", "-o", str(self.file), *flags, "--", *server]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "discreet", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment(**env),
        )
        self.stdin, self.stdout, self.stderr = (
            _there(stream) for stream in (self.process.stdin, self.process.stdout, self.process.stderr)
        )

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self.stdin.write(rest) or 0 :]

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (chunk := self.stdout.read(size - len(data))):
            data += chunk
        return data

    def end(self) -> int:
        return self.process.wait(DEADLINE_SECONDS)

    @property
    def recording(self) -> Recording:
        return read_recording(self.file)

    def said(self) -> list[tuple[str, bytes]]:
        return [(line.sender, bytes(line.message)) for line in self.recording.entries if isinstance(line, MessageEntry)]


def _there(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


@contextmanager
def recorded(tmp_path: Path, server: Sequence[str], *flags: str, **env: str) -> Iterator[Session]:
    session = Session(tmp_path, server, *flags, **env)
    alarm = threading.Timer(DEADLINE_SECONDS, session.process.kill)
    alarm.start()
    try:
        yield session
    finally:
        alarm.cancel()
        session.process.kill()
        session.process.wait()
        for stream in (session.stdin, session.stdout, session.stderr):
            stream.close()


def record(tmp_path: Path, server: Sequence[str], *flags: str, data: bytes = b"") -> tuple[Session, bytes, bytes]:
    """A whole session: all input at once; what came out, and what was said on stderr."""
    with recorded(tmp_path, server, *flags) as session:
        out, err = session.process.communicate(data, DEADLINE_SECONDS)
        return session, out, err


ECHO = "import os\nwhile data := os.read(0, 65536):\n while data: data = data[os.write(1, data):]"
