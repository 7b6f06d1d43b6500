"""A daemon that serves HTTP, as a program, and clients that say what they like on their sockets."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from discreet.a2a.types import new_id

from .programs import DISCREET, environment
from .waits import DEADLINE_SECONDS, wait_until

AGENT: Final = """
import anyio
from discreet.agents import Agent

class Worker:
    async def execute(self, context, events):
        word, _, rest = context.text.partition(" ")
        await events.working()
        match word:
            case "big":
                await events.complete("x" * int(rest))
            case "flood":
                while True:
                    await events.artifact("x" * 10_000, artifact_id="a", append=True)
                    await anyio.sleep(0.001)  # others have a turn
            case "ticks":
                for number in range(int(rest)):
                    await events.artifact(str(number), artifact_id="a", append=True)
                await events.complete()
            case "wait":
                await anyio.sleep_forever()
            case "who":
                await events.complete(context.identity.subject if context.identity else "nobody")
            case "fail":
                raise RuntimeError(context.text)
            case _:
                await events.complete(context.text)

    async def cancel(self, context, events):
        pass  # the task becomes canceled

agent = Agent(Worker(), name="Worker", description="Works.")
"""


class Response(msgspec.Struct):
    """A whole response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """One connection. Every wait has a bound."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._file = sock.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def response(self, *, head: bool = False) -> Response:
        """The next one. Raises `EOFError` where the connection ends instead."""
        line = self._line()
        status = int(line.split(b" ")[1])
        headers: dict[str, str] = {}
        while line := self._line():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        if head or status in (204, 304) or status < 200:
            return Response(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            return Response(status, headers, b"".join(iter(self.chunk, b"")))
        if "content-length" not in headers:
            return Response(status, headers, self._file.read())
        return Response(status, headers, self._exactly(int(headers["content-length"])))

    def head(self) -> Response:
        """The head of a response whose body is read by `chunk`."""
        return self.response(head=True)

    def chunk(self) -> bytes:
        size = int(self._line(), 16)
        data = self._exactly(size)
        self._line()
        return data

    def _line(self) -> bytes:
        line = self._file.readline()
        if not line:
            raise EOFError
        return line.rstrip(b"\r\n")

    def _exactly(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def rest(self) -> bytes:
        """What comes until the connection ends; a connection that is reset has ended, too."""
        found = b""
        with contextlib.suppress(ConnectionError):
            while data := self._file.read1():
                found += data
        return found

    def close(self) -> None:
        self._file.close()
        self.socket.close()


class HttpDaemon:
    """The process, its log as it comes, and where it listens."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = ""

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.decode(errors="replace").rstrip("\n"))

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, text: str) -> str:
        """The log line with this text, which may have come before. Raises `EOFError` where the process ends without."""
        found: list[str] = []

        def is_there() -> bool:
            found[:] = [line for line in self.lines if text in line]
            return bool(found) or (self.process.poll() is not None and not self._reader.is_alive())

        wait_until(is_there)
        if not found:
            raise EOFError(self.log)
        return found[0]

    def listening(self) -> HttpDaemon:
        line = self.wait_for("http.listening")
        match = re.search(r"url=\"?([^\s\"]+)", line)
        assert match is not None, line
        self.url = match[1]
        return self

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2].rstrip("/"))

    @contextmanager
    def connected(self, seconds: float = DEADLINE_SECONDS) -> Iterator[Client]:
        if self.url.startswith("unix:"):
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(seconds)
            sock.connect(self.url.removeprefix("unix:"))
        else:
            sock = socket.create_connection(("127.0.0.1", self.port), timeout=seconds)
        client = Client(sock)
        try:
            yield client
        finally:
            client.close()

    def call(self, text: str = "hello", **headers: str) -> Response:
        """The response to a message, on a connection of its own."""
        with self.connected() as client:
            client.send(message(text, **headers))
            return client.response()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Its exit status, after this signal."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        status = self.process.wait(DEADLINE_SECONDS)
        self._reader.join(DEADLINE_SECONDS)
        return status


def post(body: bytes, head: bytes = b"", path: bytes = b"/") -> bytes:
    """A request with this body; `head` are more header lines, each with its line end."""
    return (
        b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\na2a-version: 1.0\r\n%bcontent-length: %d\r\n\r\n%b"
        % (path, head, len(body), body)
    )


def rpc(method: str, params: object, call_id: object = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}).encode()


def sent(text: str = "hello", method: str = "SendMessage", call_id: object = 1) -> bytes:
    """The body of a call that sends a message."""
    return rpc(method, {"message": {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}]}}, call_id)


def message(text: str = "hello", method: str = "SendMessage", call_id: object = 1, **headers: str) -> bytes:
    """A request that sends a message. `headers` have `_` for `-`."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return post(sent(text, method, call_id), more.encode())


@contextmanager
def http_daemon(
    folder: Path, *flags: str, command: tuple[str, ...] = DISCREET, source: str = AGENT, stdin: Any = subprocess.DEVNULL
) -> Iterator[HttpDaemon]:
    """A daemon with this agent. With `--http` among the flags, it listens. Killed at the end, if it still runs."""
    (folder / "worker.py").write_text(source)
    with subprocess.Popen(
        [*command, "serve", "./worker.py:agent", *flags],
        cwd=folder,
        env=environment(),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            daemon = HttpDaemon(process)
            yield daemon
        finally:
            process.kill()
            daemon.wait()
