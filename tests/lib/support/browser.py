"""A headless Chromium that tests drive over a pipe, as its DevTools protocol allows. It has no network."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from .waits import DEADLINE_SECONDS

CHROMIUM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

_FLAGS: Final = (
    "--headless",
    "--no-sandbox",  # root has none, and the pages are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
)


_PLACE_PIPES: Final = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads commands from descriptor 3 and writes answers to 4."""


class Page:
    """One page. `events` are those of the protocol that have come: its faults, its console, its requests."""

    def __init__(self, to: IO[bytes], back: IO[bytes]) -> None:
        self._to, self._back = to, back
        self._number = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        self._to.flush()
        while True:
            came = self._receive()
            if came.get("id") == self._number:
                assert "error" not in came, came
                result: dict[str, Any] = came["result"]
                return result

    def open(self, path: Path) -> None:
        """Load a file, and wait until it is there."""
        before = self._loads()
        self.send("Page.navigate", url=path.as_uri())
        while self._loads() == before:
            self._receive()

    def _loads(self) -> int:
        return sum(event["method"] == "Page.loadEventFired" for event in self.events)

    def run(self, script: str) -> Any:
        """The value of an expression in the page. A promise is waited for."""
        done = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true in the page."""
        self.run(
            f"new Promise((done) => {{ const look = () => ({condition}) ? done() : setTimeout(look, 5); look(); }})"
        )

    def press(self, key: str) -> None:
        """Press and release a key, as a user does."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def _receive(self) -> dict[str, Any]:
        data = bytearray()
        while (byte := self._back.read(1)) not in (b"\0", b""):
            data += byte
        assert data, "the browser has ended"
        message: dict[str, Any] = json.loads(data)
        if "id" not in message:
            self.events.append(message)
        return message


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """Start Chromium with a new profile in `folder`. It is killed at the end, or when the deadline is over."""
    assert CHROMIUM is not None and sys.platform != "win32"
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()
    words = [CHROMIUM, *_FLAGS, f"--user-data-dir={folder}"]
    with open(command_write, "wb") as to, open(answer_read, "rb") as back:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PLACE_PIPES, str(command_read), str(answer_write), *words],
            pass_fds=(command_read, answer_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(command_read)
        os.close(answer_write)
        alarm = threading.Timer(DEADLINE_SECONDS, process.kill)
        alarm.start()
        try:
            yield Page(to, back)
        finally:
            alarm.cancel()
            os.killpg(process.pid, signal.SIGKILL)  # its helpers too
            process.wait()
