"""The real process where the system gives it little: address space, threads, descriptors; or refuses what the start needs."""

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
from support.programs import finished

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


# -- the start --------------------------------------------------------------------------------------------------------

# The limit, and its values: some refuse the first step of the start, some a later one, the last none.
LIMITS = {
    "descriptors": [f"ulimit -n {count}" for count in (5, 10, 13, 16, 18, 20, 23, 64)],
    "memory": [f"ulimit -v {mib * 1024}" for mib in (20, 24, 32, 1024)],
    "threads": ["ulimit -s 34359738368", "true"],  # a thread's stack is as large as this limit, in KiB
}
METHODS = ["version", "app/pid", "no/such", "app/pid", "version"]


@pytest.mark.parametrize(
    ("limit", "backend"),
    [*(("descriptors", backend) for backend in BACKENDS), ("memory", "asyncio"), ("threads", "asyncio")],
)
def test_a_start_under_any_limit_is_refused_in_one_line_or_answers_all(
    spawn: Spawn, command: list[str], limit: str, backend: str
) -> None:
    outcomes = {}
    usual = [*command]
    for value in LIMITS[limit]:
        command[:] = ["/bin/sh", "-c", f'{value} && exec "$@"', "sh", *usual]
        child = spawn("serve", "./app.py:app", "--backend", backend)
        with suppress(BrokenPipeError):  # it has ended at once
            child.write(b"".join(request(number, method) for number, method in enumerate(METHODS)))
        with suppress(BrokenPipeError):
            child.close_stdin()
        ids = sorted(reply["id"] for reply in child.read_all())
        status = child.wait()
        own = [line for line in child.stderr().splitlines() if line.startswith("discreet: ")]
        assert (ids, status, len(own)) in (([], 2, 1), ([*range(len(METHODS))], 0, 0)), value
        outcomes[value] = status
    assert set(outcomes.values()) == {0, 2}, outcomes
    assert (outcomes[LIMITS[limit][0]], outcomes[LIMITS[limit][-1]]) == (2, 0)


WITHOUT_NULL_DEVICE = (
    "import os; os.devnull = '/nowhere/null'; from discreet.__main__ import main; raise SystemExit(main())"
)
SERVE = "import discreet\nshop = discreet.Service('shop')\n"
IN_A_THREAD = """
import threading
ended = []

def run():
    try:
        discreet.serve(shop)
    except SystemExit as exc:
        ended.append(exc)

thread = threading.Thread(target=run)
thread.start()
thread.join()
raise ended[0]
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (WITHOUT_NULL_DEVICE, "/nowhere/null"),
        (f"{SERVE}import asyncio\nasync def main(): discreet.serve(shop)\nasyncio.run(main())", "outside of async code"),
        (f"{SERVE}import trio\nasync def main(): discreet.serve(shop)\ntrio.run(main)", "outside of async code"),
        (SERVE + IN_A_THREAD, "in the main thread"),
    ],
    ids=["no null device", "asyncio", "trio", "thread"],
)  # fmt: skip
def test_where_nothing_can_be_served_one_line_says_so(tmp_path: Path, program: str, said: str) -> None:
    done = finished([sys.executable, "-P", "-c", program], tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith("discreet: ")
    assert said in done.stderr
