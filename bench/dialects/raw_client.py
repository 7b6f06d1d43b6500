"""A client of raw frames that drives any server the same way, and what Linux says of the server's process.

Knows frames and `/proc`; knows no dialect and no server. Answers are counted while time runs, and decoded afterwards.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TERMINATOR = b"\r\n\r\n"


class Server:
    """One process. `content_length` says how messages are framed, else one stands in each line."""

    def __init__(self, command: str, *, content_length: bool) -> None:
        self.content_length = content_length
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._unread = bytearray()

    def frame(self, **message: Any) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body) if self.content_length else body + b"\n"

    def send(self, frame: bytes) -> None:
        view = memoryview(frame)
        while view:
            view = view[os.write(self._in, view) :]

    def call(self, method: str, params: Any, number: int = 0) -> tuple[dict[str, Any], int]:
        """The answer, and how many messages came before it."""
        self.send(self.frame(id=number, method=method, params=params))
        return self.answer_to(number)

    def notify(self, method: str, params: Any) -> None:
        self.send(self.frame(method=method, params=params))

    def answer_to(self, number: int) -> tuple[dict[str, Any], int]:
        before = 0
        while True:
            message = json.loads(self.receive())
            if message.get("id") == number and "method" not in message:
                return message, before
            before += 1

    def receive(self) -> bytes:
        """The body of the next message."""
        while True:
            if (body := self._body()) is not None:
                return body
            self._read()

    def _body(self) -> bytes | None:
        mark = TERMINATOR if self.content_length else b"\n"
        end = self._unread.find(mark)
        if end < 0:
            return None
        start, stop, following = 0, end, end + 1
        if self.content_length:
            fields = (line.split(b":") for line in bytes(self._unread[:end]).lower().split(b"\r\n"))
            start = end + len(mark)
            stop = following = start + next(int(value) for name, value in fields if name == b"content-length")
            if len(self._unread) < stop:
                return None
        body = bytes(self._unread[start:stop])
        del self._unread[:following]
        return body

    def _read(self) -> None:
        if not (chunk := os.read(self._out, 1 << 16)):
            raise SystemExit("the server ended")
        self._unread += chunk

    def pipelined(self, frames: list[bytes], messages: int) -> list[dict[str, Any]]:
        """Send all the frames without waiting, and read this many messages."""
        writer = threading.Thread(target=self.send, args=(b"".join(frames),))
        writer.start()
        mark, chunks, seen = b"Content-Length: " if self.content_length else b"\n", [], 0
        while seen < messages - self.content_length:  # the last header alone is not yet its body
            chunk = os.read(self._out, 1 << 16)
            if not chunk:
                raise SystemExit("the server ended")
            chunks.append(chunk)
            seen += chunk.count(mark)
        self._unread += b"".join(chunks)
        writer.join()
        return [json.loads(self.receive()) for _ in range(messages)]

    # -- the process -------------------------------------------------------------------------------------------

    def cpu(self) -> float:
        """Seconds that its threads have run. Those that have ended are not counted."""
        return sum(self._ran(task) for task in Path(f"/proc/{self.process.pid}/task").iterdir())

    @staticmethod
    def _ran(task: Path) -> float:
        try:
            return int((task / "schedstat").read_text(encoding="ascii").split()[0]) / 1e9
        except OSError:
            return 0.0  # has ended meanwhile

    def rss(self) -> float:
        """MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        while self.process.stdout.read(1 << 16):
            pass
        self.process.stdout.close()
        self.process.wait(20)


def results(answers: Iterable[dict[str, Any]]) -> list[Any]:
    """What every answer's result is; messages that are no answers are left out."""
    return [answer["result"] for answer in answers if "id" in answer and "method" not in answer]
