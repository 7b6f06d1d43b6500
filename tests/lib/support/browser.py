"""A headless Chromium that tests drive over a pipe, as its DevTools protocol allows. It has no network but this machine's."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

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
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)


_FAULTS: Final = {
    "Runtime.exceptionThrown",
    "Runtime.consoleAPICalled",
    "Log.entryAdded",
    "Page.javascriptDialogOpening",
}

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

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._unread = b""
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
        unsent = json.dumps(message).encode() + b"\0"
        while unsent:
            assert select.select([], [self._to], [], DEADLINE_SECONDS)[1], "the browser reads nothing"
            unsent = unsent[os.write(self._to, unsent) :]
        end = time.monotonic() + DEADLINE_SECONDS  # a page that asks for something again and again is never silent
        while True:
            assert time.monotonic() < end, f"{method} has no answer"
            came = self._receive()
            if came.get("id") == self._number:
                assert "error" not in came, came
                result: dict[str, Any] = came["result"]
                return result

    def open(self, where: Path | str) -> None:
        """Load a file or an address, and wait until it is there. `events` are then those since."""
        self._load("Page.navigate", url=where.as_uri() if isinstance(where, Path) else where)

    def reload(self) -> None:
        """Load the page anew, as `open` does."""
        self._load("Page.reload")

    def _load(self, command: str, **params: Any) -> None:
        self.events.clear()
        self.send(command, **params)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._receive()

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

    def click(self, selector: str, text: str = "") -> None:
        """Click the first element that is there and has this text."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})].find((it) => it.textContent.includes({json.dumps(text)}))"
        self.until(found)
        self.run(f"{found}.click()")

    def fill(self, selector: str, text: str) -> None:
        """Write into the first such control, once there is one, in place of what stands there."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.until(found)
        self.run(f"{found}.focus(); {found}.select()")
        self.type(text)

    def text(self, selector: str) -> str:
        """The text of the first such element, once there is one."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.until(found)
        text: str = self.run(f"{found}.textContent")
        return text

    def until_text(self, selector: str, text: str) -> None:
        """Wait until the first such element has exactly this text."""
        self.until(f"document.querySelector({json.dumps(selector)})?.textContent === {json.dumps(text)}")

    def faults(self) -> list[dict[str, Any]]:
        """What the page threw, wrote to the console, or did against its policy. An answer that is an error is none of these."""
        return [
            event
            for event in self.events
            if event["method"] in _FAULTS and event["params"].get("entry", {}).get("source") != "network"
        ]

    def press(self, key: str) -> None:
        """Press and release a key, as a user does."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        number = {"windowsVirtualKeyCode": 9} if key == "Tab" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **number)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, **number)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            assert select.select([self._back], [], [], DEADLINE_SECONDS)[0], "the browser says nothing"
            data = os.read(self._back, 1 << 16)
            assert data, "the browser has ended"
            self._unread += data
        text, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "id" not in message:
            self.events.append(message)
        return message


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """Start Chromium with a new profile in `folder`. It is killed at the end. Each command and each wait has a deadline."""
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
        os.set_blocking(to.fileno(), False)
        try:
            yield Page(to.fileno(), back.fileno())
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # its helpers too
            process.wait()
