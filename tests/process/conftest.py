"""The real executable, spawned the way clients spawn it, and small apps for it to host."""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.framing.events import NEED_DATA, Fault, Frame, FrameLimits
from discreet.framing.parser import parser_for
from support.waits import DEADLINE_SECONDS
from support.wire import request

APP = """
import os, subprocess, sys, threading, time
print("banner at import")
os.write(1, b"raw banner at import\\n")
import anyio
from discreet import Context, Service

app = Service("app")

@app.query(inline=True)
def echo(**params: object) -> dict[str, object]:
    return params

@app.query(timeout=None)
async def sleep(seconds: float) -> str:
    await anyio.sleep(seconds)
    return "slept"

@app.query(timeout=None)
def block(seconds: float) -> str:
    time.sleep(seconds)
    return "blocked"

@app.query(timeout=None, inline=True)
def hog(seconds: float) -> str:
    open("hogging", "x").close()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return "hogged"

@app.query(timeout=None)
async def hog_in_a_task(seconds: float) -> str:
    return hog(seconds)

@app.query(timeout=None)
async def stubborn() -> str:
    while True:
        try:
            await anyio.sleep(3600)
        except BaseException:
            pass

@app.mutation()
def noise(how: str) -> str:
    match how:
        case "print":
            print("stray from print")
        case "stderr":
            print("stray from stderr", file=sys.stderr)
        case "write":
            os.write(1, b"stray from write\\n")
        case "child":
            subprocess.run([sys.executable, "-c", "print('stray from child')"], check=True)
        case "stdin":
            return repr(sys.stdin.read())
        case "child-stdin":
            return subprocess.run(["cat"], check=True, capture_output=True, text=True).stdout
    return how

@app.mutation()
def spawn() -> int:
    return subprocess.Popen(["sleep", "3600"]).pid

@app.query()
def big(size: int) -> str:
    return "x" * size

@app.mutation()
def flood(lines: int) -> int:
    for number in range(lines):
        print("x" * 200, number)
    return lines

@app.mutation()
def shout() -> None:
    def without_end():
        while True:
            print("x" * 200)
    threading.Thread(target=without_end, daemon=True).start()

@app.query()
def pid() -> int:
    return os.getpid()
"""


class Spawned:
    """A child and its three pipes; every wait has a bound."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._stderr = b""
        self._parser = parser_for("content-length", FrameLimits(max_body=1 << 30))

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def call(self, call_id: Any, method: str, params: Any = None) -> dict[str, Any]:
        self.write(request(call_id, method, params))
        return self.read()

    def read(self) -> dict[str, Any]:
        """The next message on stdout, which must hold nothing but frames."""
        assert self.process.stdout is not None
        while (event := self._parser.next_event()) is NEED_DATA:
            data = self._wait_readable(self.process.stdout.fileno())
            if not data:
                raise EOFError("stdout ended")
            self._parser.receive_data(data)
        assert not isinstance(event, Fault), event
        assert isinstance(event, Frame), event
        message: dict[str, Any] = json.loads(event.body)
        return message

    def read_all(self) -> list[dict[str, Any]]:
        """Every message until the end of stdout."""
        found = []
        try:
            while True:
                found.append(self.read())
        except EOFError:
            return found

    @staticmethod
    def _wait_readable(fd: int) -> bytes:
        with selectors.DefaultSelector() as selector:
            selector.register(fd, selectors.EVENT_READ)
            assert selector.select(DEADLINE_SECONDS), "nothing came"
        return os.read(fd, 1 << 16)

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(DEADLINE_SECONDS)

    def stderr_until(self, text: str) -> str:
        """Reads stderr up to the first line that holds this text; returns all that was read, that line included."""
        assert self.process.stderr is not None
        wanted = re.compile(rb".*?%b.*?\n" % re.escape(text.encode()), re.DOTALL)
        while (found := wanted.match(self._stderr)) is None:
            data = self._wait_readable(self.process.stderr.fileno())
            if not data:
                raise EOFError(text)
            self._stderr += data
        self._stderr = self._stderr[found.end() :]
        return found[0].decode()

    def stderr(self) -> str:
        """The rest of stderr, once the process has ended."""
        assert self.process.stderr is not None
        return (self._stderr + self.process.stderr.read()).decode()

    def end(self) -> int:
        self.close_stdin()
        return self.wait()


Spawn = Callable[..., Spawned]


@pytest.fixture
def app_directory(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "notes.txt").write_text("hello\n")
    return tmp_path


@pytest.fixture
def command() -> list[str]:
    return [sys.executable, "-P", "-m", "discreet"]


@pytest.fixture
def run(app_directory: Path, command: list[str]) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """`run("serve", "./app.py:app", input=…)`: the same to its end, within the deadline."""

    def to_end(*args: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.run([*command, *args], cwd=app_directory, timeout=DEADLINE_SECONDS, check=False, **pipes)

    return to_end


@pytest.fixture
def spawn(app_directory: Path, command: list[str]) -> Iterator[Spawn]:
    """`spawn("serve", "./app.py:app", …)`; whatever still runs at the end of the test is killed.

    The drain window is so long that nothing is cut off on a busy machine. A test of the window itself sets its own.
    """
    running: list[subprocess.Popen[bytes]] = []

    def start(*args: str, env: dict[str, str] | None = None, **options: Any) -> Spawned:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        environment = {**os.environ, "DISCREET_DRAIN_TIMEOUT": str(DEADLINE_SECONDS / 2), **(env or {})}
        process = subprocess.Popen([*command, *args], cwd=app_directory, env=environment, **pipes)
        running.append(process)
        return Spawned(process)

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait(DEADLINE_SECONDS)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass
