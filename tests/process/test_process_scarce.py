"""The real process where the system gives it little: address space, threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.backends import BACKENDS

from .conftest import Spawned, request

resource = pytest.importorskip("resource", reason="limits are POSIX")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce these limits")

Spawn = Callable[..., Spawned]

MIB = 1 << 20
ADDRESS_SPACE = 256 * MIB
THREADS = 20
NOBODY = 65534

ANSWERS = {-32603, -32000, -32602}
"""INTERNAL, OVERLOADED, and what is wrong with the params."""


PARSING = """
import resource, sys
from discreet.framing.events import NEED_DATA, FrameLimits
from discreet.framing.parser import parser_for

opening, end, good = (sys.argv[2].encode(), b"\\n", b"1\\n")
if sys.argv[1] == "content-length":
    end, good = b"", b"Content-Length: 1\\r\\n\\r\\n1"
parser = parser_for(sys.argv[1], FrameLimits(max_body=1 << 30, max_header=128))
chunk = b"x" * (1 << 20)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (32 << 20), used + (32 << 20)))
for data in (opening, *[chunk] * 48, end, good):
    if data:
        parser.receive_data(data)
    while (event := parser.next_event()) is not NEED_DATA:
        print(event.failure.reason if hasattr(event, "failure") else event.body.decode())
"""


def little_address_space() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


def few_threads() -> None:
    """The limit counts all threads of a user, and is not for root."""
    resource.setrlimit(resource.RLIMIT_NPROC, (THREADS, THREADS))
    os.chdir("/")  # the test's own directory is its user's
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def nobody_can_run_python() -> bool:
    if os.getuid() != 0:
        return False
    command = [sys.executable, "-P", "-c", "import discreet, anyio, msgspec"]
    try:
        return subprocess.run(command, user=NOBODY, group=NOBODY, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def replies_to(child: Spawned, requests: list[bytes]) -> list[dict[str, Any]]:
    writer = threading.Thread(target=lambda: [child.write(each) for each in requests], daemon=True)
    writer.start()
    replies = [child.read() for _ in requests]
    writer.join()
    return replies


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("fs/read", {"path": "large.txt", "limit": MIB, "encoding": "base64"}),
        ("fs/write", {"path": "written.txt", "content": "x" * (5 * MIB)}),
        ("fs/stat", {"path": "large.txt", "surplus": [1] * 300_000}),
        ("fs/search", {"query": "y", "path": "large.txt"}),
    ],
)
def test_with_little_address_space_every_request_is_answered(
    spawn: Spawn, app_directory: Path, method: str, params: dict[str, Any]
) -> None:
    (app_directory / "large.txt").write_text("x" * (4 * MIB))
    child = spawn("serve", "--root", str(app_directory), "--allow-write", preexec_fn=little_address_space, stderr=None)
    requests = [request(number, method, params) for number in range(24)]
    replies = replies_to(child, [*requests, request("last", "version")])
    assert {reply["id"] for reply in replies} == {*range(24), "last"}
    assert all("result" in reply or reply["error"]["code"] in ANSWERS for reply in replies)
    assert child.end() == 0


def test_a_result_without_room_for_its_text_is_an_error_and_no_crash(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app", preexec_fn=little_address_space, stderr=None)
    assert "result" in child.call("first", "app/big", {"size": 1})  # the event loop and a thread are there
    replies = replies_to(child, [request(number, "app/big", {"size": 30_000_000}) for number in range(8)])
    assert {reply["id"] for reply in replies} == {*range(8)}
    assert all("result" in reply or reply["error"]["code"] in ANSWERS for reply in replies)
    assert child.end() == 0


@pytest.mark.parametrize(
    ("framing", "opening"),
    [("content-length", f"Content-Length: {48 * MIB}\r\n\r\n"), ("newline", "x"), ("auto", "{")],
)
def test_a_message_without_memory_is_one_error_and_the_next_is_read(framing: str, opening: str) -> None:
    command = [sys.executable, "-P", "-c", PARSING, framing, opening]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (sorted(done.stdout.split()), done.stderr) == (["1", "oversize"], "")


@pytest.mark.skipif(not nobody_can_run_python(), reason="needs root, and an interpreter that nobody else may run")
def test_without_threads_watches_and_calls_are_refused_and_the_daemon_lives_on(spawn: Spawn) -> None:
    root = str(Path(os.__file__).parent)
    child = spawn("serve", "--root", root, preexec_fn=few_threads, stderr=None)
    for number in range(10):
        child.write(request(number, "fs/watch", {"recursive": False}))
    stats = [request(f"stat {number}", "fs/stat", {"path": "os.py"}) for number in range(30)]
    child.write(b"".join(stats) + request("last", "version"))
    answered = set()
    while len(answered) < 31:
        message = child.read()
        if message.get("id") is None:
            continue
        if isinstance(message["id"], str):
            answered.add(message["id"])
        assert "result" in message or message["error"]["data"]["code"] == "OVERLOADED"
    assert child.end() == 0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("limit", [8, 16, 20, 23, 24])
def test_with_few_descriptors_all_requests_are_answered_or_none(spawn: Spawn, backend: str, limit: int) -> None:
    def few_descriptors() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    child = spawn("serve", "./app.py:app", "--backend", backend, preexec_fn=few_descriptors)
    methods = ["version", "app/pid", "no/such", "app/pid", "version"]
    with suppress(BrokenPipeError):  # it has ended at once
        child.write(b"".join(request(number, method) for number, method in enumerate(methods)))
    with suppress(BrokenPipeError):
        child.close_stdin()
    replies = child.read_all()
    status = child.wait()
    if replies:
        assert (sorted(reply["id"] for reply in replies), status) == (list(range(5)), 0)
    else:
        own = [line for line in child.stderr().splitlines() if line.startswith("discreet: ")]
        assert (status, len(own)) == (2, 1)
