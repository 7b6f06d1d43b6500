"""What a request costs, counted and not timed, so that no change makes it dearer unseen.

`COSTS` is the table. A change that needs more than it allows changes the table, where a reviewer sees it. The counts are those of
CPython 3.11, on which the checks run; another version calls other functions for the same.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from support.postgres import free_port
from support.waits import wait_until

HERE: Final = Path(__file__).parent
TOLERANCE: Final = 1.03
ATTEMPTS: Final = 3
"""A busy machine may wake a thread or a timer between; a change that costs more does so each time."""

LIBRARIES: Final = 1.15
"""By how much all calls may differ: libraries change with their versions."""

CHUNKS: Final = 0.5
"""How much it may differ besides: a busy machine delivers many requests in one read or in two."""

WINDOW: Final = 64
REQUESTS: Final = 4 * WINDOW
LINGER_SECONDS: Final = 2.0
"""How long the thread that looks for blocked steps may look on."""
IDLE_SECONDS: Final = 10.0

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11) or sys.platform != "linux", reason="the table is that of CPython 3.11 on Linux"
)


class Cost(msgspec.Struct, frozen=True):
    """Of one request, on the main thread: calls of discreet's own functions, their calls into C, all calls of functions in Python,
    and the system calls that move bytes.
    """

    own: float
    c: float
    all: float
    system: float


COSTS: Final[dict[tuple[str, int], Cost]] = {
    # kind, requests at a time: own, C, all, system calls
    ("inline", 1): Cost(36.2, 40.4, 45.3, 4.02),
    ("inline", WINDOW): Cost(16.5, 24.4, 17.7, 0.08),
    ("coroutine", 1): Cost(52.2, 54.3, 62.2, 4.02),
    ("coroutine", WINDOW): Cost(31.9, 40.8, 33.4, 0.11),
    ("thread", 1): Cost(54.2, 41.4, 70.3, 5.02),
    ("thread", WINDOW): Cost(25.6, 32.4, 25.9, 0.1),
    ("tools/call", 1): Cost(91.3, 80.4, 101.4, 4.02),
    ("tools/call", WINDOW): Cost(71.0, 66.9, 72.5, 0.11),
    ("hover", 1): Cost(58.2, 58.4, 69.2, 4.02),
    ("hover", WINDOW): Cost(38.5, 42.4, 39.7, 0.08),
    ("SendMessage", 1): Cost(247.2, 185.3, 260.2, 4.02),
    ("SendMessage", WINDOW): Cost(227.8, 171.8, 232.4, 0.12),
    ("GetTask", 1): Cost(83.2, 64.3, 92.2, 4.02),
    ("GetTask", WINDOW): Cost(69.7, 56.0, 70.3, 0.11),
    ("HTTP operation", 1): Cost(80.3, 100.4, 96.8, 1.03),
}

LIMITS: Final = {
    ("inline", 1): 60,
    ("inline", WINDOW): 20,
    ("coroutine", 1): 85,
    ("coroutine", WINDOW): 36,
    ("thread", 1): 120,
    ("thread", WINDOW): 42,
}
"""The most calls of functions in Python, whichever library they belong to, that a request of these kinds may ever cost."""


Call = Callable[[int], tuple[str, Any]]


def echo(number: int) -> tuple[str, Any]:
    return "echo", {"seq": number, "uri": "file:///a", "text": "x" * 40}


def look(number: int) -> tuple[str, Any]:
    return "tools/call", {"name": "look", "arguments": {"name": "tea", "number": number}}


def hover(number: int) -> tuple[str, Any]:
    return "textDocument/hover", {"textDocument": {"uri": "file:///a"}, "position": {"line": 0, "character": 1}}


def send(number: int) -> tuple[str, Any]:
    return "SendMessage", {"message": {"messageId": f"m{number}", "role": "ROLE_USER", "parts": [{"text": "tea"}]}}


LSP: Final = [
    {"id": 0, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
    {"method": "initialized", "params": {}},
    {
        "method": "textDocument/didOpen",
        "params": {"textDocument": {"uri": "file:///a", "languageId": "text", "version": 1, "text": "tea for two\n"}},
    },
]
CLIENT: Final = {"name": "costs", "version": "1"}
MCP: Final = [
    {
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT},
    },
    {"method": "notifications/initialized"},
]
KINDS: Final[dict[str, tuple[list[str], list[dict[str, Any]], Call]]] = {
    "inline": (["app:inline"], [], echo),
    "coroutine": (["app:coroutine"], [], echo),
    "thread": (["app:thread"], [], echo),
    "tools/call": (["app:tool"], MCP, look),
    "hover": (["hover:hover"], LSP, hover),
    "SendMessage": (["app:agent", "app:marks"], [], send),
    "GetTask": (["app:agent", "app:marks"], [{"id": 0, "method": "SendMessage", "params": send(0)[1]}], send),
    "HTTP operation": (["app:coroutine"], [], echo),
}
MARKS: Final = {"tools/call": ("tools/call", {"name": "mark", "arguments": {}})}


class CountedDaemon:
    """A daemon that counts what it calls, and its client."""

    def __init__(self, kind: str, counts: Path) -> None:
        apps, preamble, self._call = KINDS[kind]
        self._mark = MARKS.get(kind, ("mark", {}))
        self._lines = kind == "tools/call"
        self._counts = counts
        self._port = free_port() if kind == "HTTP operation" else 0
        flags = ["--http", f"127.0.0.1:{self._port}", "--http-operations"] if self._port else []
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                HERE / "counted_serve.py",
                "serve",
                *(f"./counted_{app.replace(':', '.py:')}" for app in apps),
                *flags,
            ],
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "COUNTS": str(counts)},
        )
        for message in preamble:
            self._write([message])
            if "id" in message:
                answer = self._read()
        if kind == "GetTask":
            task_id = answer["result"]["task"]["id"]
            self._call = lambda _: ("GetTask", {"id": task_id})

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, first: int, count: int, window: int) -> None:
        """Send so many requests, so many at a time."""
        if self._port:
            return self._post(first, count)
        for start in range(first, first + count, window):
            calls = [(number, *self._call(number)) for number in range(start, start + window)]
            self._write([{"id": number, "method": method, "params": params} for number, method, params in calls])
            for _ in range(window):
                assert "error" not in self._read()

    def _post(self, first: int, count: int) -> None:
        """Each request in one packet, so that each is read at once."""
        wait_until(lambda: _answers(self._port))
        with socket.create_connection(("127.0.0.1", self._port)) as client, client.makefile("rb") as answers:
            for number in range(first, first + count):
                method, params = self._call(number)
                body = json.dumps(params).encode()
                head = f"POST /operations/{method} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                client.sendall(head.encode() + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
                status = answers.readline()
                assert status.split()[1] == b"200", status
                headers = iter(answers.readline, b"\r\n")
                size = next(
                    int(line.split(b":")[1]) for line in [*headers] if line.lower().startswith(b"content-length")
                )
                answers.read(size)

    def mark(self) -> None:
        self._write([{"id": "mark", "method": self._mark[0], "params": self._mark[1]}])
        self._read()

    def end(self) -> dict[str, Any]:
        """What was counted."""
        self._process.communicate()
        found: dict[str, Any] = json.loads(self._counts.read_text())
        return found

    def _write(self, messages: list[dict[str, Any]]) -> None:
        bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
        frames = [
            body + b"\n" if self._lines else b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies
        ]
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(frames))
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        """The next response."""
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline()
            assert line, "the daemon has ended"
            if not self._lines:
                size = int(line.split(b":")[1])
                self._process.stdout.readline()
                line = self._process.stdout.read(size)
            message: dict[str, Any] = json.loads(line)
            if "id" in message and "method" not in message:
                return message


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def cost_of(kind: str, window: int, tmp_path: Path) -> Cost:
    daemon = CountedDaemon(kind, tmp_path / "counts.json")
    daemon.call(1, 2 * WINDOW, window)
    daemon.mark()
    daemon.call(1000, REQUESTS, window)
    daemon.mark()
    before, after = daemon.end()["kept"]
    return Cost(**{name: (after[name] - before[name]) / REQUESTS for name in Cost.__struct_fields__})


@pytest.mark.parametrize(("kind", "window"), COSTS)
def test_a_request_costs_what_the_table_says(kind: str, window: int, tmp_path: Path) -> None:
    for _ in range(ATTEMPTS):
        found = cost_of(kind, window, tmp_path)
        wrong = faults_of(found, COSTS[kind, window])
        if not wrong:
            break
    assert not wrong, f"let the table say so: {found}"
    assert found.all <= LIMITS.get((kind, window), inf)


def faults_of(found: Cost, expected: Cost) -> list[str]:
    """Which of the counts are not those of the table: more, or less."""
    return [
        name
        for name in Cost.__struct_fields__
        if not (
            getattr(expected, name) / (LIBRARIES if name == "all" else TOLERANCE) - CHUNKS
            <= getattr(found, name)
            <= getattr(expected, name) * (LIBRARIES if name == "all" else TOLERANCE) + CHUNKS
        )
    ]


LIGHT = {
    "__main__",
    "_distutils_hack",
    "anyio",
    "counted_app",
    "discreet",
    "idna",
    "msgspec",
    "sniffio",
    "typing_extensions",
}
"""Which installed packages the first answers may load. structlog is not among them: it loads rich, and that 180 ms of modules."""


@pytest.mark.parametrize(("kind", "modules"), [("inline", 98), ("coroutine", 98)])
def test_the_first_answer_loads_few_modules(kind: str, modules: int, tmp_path: Path) -> None:
    daemon = CountedDaemon(kind, tmp_path / "counts.json")
    daemon.call(1, 1, 1)
    found = daemon.end()
    assert modules / TOLERANCE <= found["modules"] <= modules * TOLERANCE, found
    assert {"discreet", "msgspec"} <= set(found["installed"]) <= LIGHT, found


def test_an_idle_daemon_sleeps(tmp_path: Path) -> None:
    daemon = CountedDaemon("coroutine", tmp_path / "counts.json")
    daemon.call(1, WINDOW, 1)
    time.sleep(LINGER_SECONDS)
    before = wake_ups(daemon.pid)
    time.sleep(IDLE_SECONDS)
    assert wake_ups(daemon.pid) == before
    daemon.end()


def wake_ups(pid: int) -> int:
    """How often the threads of a process were given a processor."""
    statuses = [(task / "status").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int(line.split()[1]) for text in statuses for line in text.splitlines() if "voluntary_ctxt" in line)
