"""The system refuses what the start needs: one line on stderr and status 2, or a daemon that serves. Nothing between."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from discreet.framing.encoder import encode_frame
from support.backends import BACKENDS
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux enforces them")


REQUEST = encode_frame(b'{"jsonrpc":"2.0","id":1,"method":"version"}', "content-length")

# The limit, and its values: some refuse the first step of the start, some a later one, the last none.
LIMITS = {
    "descriptors": [f"ulimit -n {count}" for count in (5, 8, 10, 12, 13, 14, 16, 18, 64)],
    "memory": [f"ulimit -v {mib * 1024}" for mib in (20, 24, 32, 1024)],
    "threads": ["ulimit -s 34359738368", "true"],  # a thread's stack is as large as this limit, in KiB
}

WITHOUT_NULL_DEVICE = (
    "import os; os.devnull = '/nowhere/null'; from discreet.__main__ import main; raise SystemExit(main())"
)


def start(command: list[str], limit: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", f'{limit} && exec "$@"', "sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
    )


def refused(status: int, stderr: bytes) -> bool:
    return status == 2 and stderr.startswith(b"discreet: ") and stderr.count(b"\n") == 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("limit", LIMITS)
def test_a_start_under_any_limit_is_refused_in_one_line_or_serves(
    command: list[str], tmp_path: Path, limit: str, backend: str
) -> None:
    outcomes = {}
    for value in LIMITS[limit]:
        with start([*command, "--backend", backend, "--log-level", "error"], value, tmp_path) as child:
            try:
                stdout, stderr = child.communicate(REQUEST, DEADLINE_SECONDS)
            finally:
                child.kill()
            outcomes[value] = (
                "refused" if refused(child.returncode, stderr) else (child.returncode, stderr, stdout[:15])
            )
    served = (0, b"", b"Content-Length:")
    assert set(outcomes.values()) == {"refused", served}, outcomes
    assert outcomes[LIMITS[limit][0]] == "refused"
    assert outcomes[LIMITS[limit][-1]] == served


@pytest.mark.parametrize("count", [17, 18, 20])
def test_a_loop_that_can_not_be_had_is_refused_in_one_line_too(command: list[str], tmp_path: Path, count: int) -> None:
    with start(command, f"ulimit -n {count}", tmp_path) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdin.write(REQUEST)
        child.stdin.flush()
        answered = child.stdout.read(1)
        child.stdin.close()
        try:
            status = child.wait(DEADLINE_SECONDS)
        finally:
            child.kill()
        stderr = child.stderr.read()
    assert refused(status, stderr) or (answered, status, stderr) == (b"C", 0, b""), (status, stderr)


def test_a_system_without_a_null_device_is_refused_in_one_line(tmp_path: Path) -> None:
    with start([sys.executable, "-P", "-c", WITHOUT_NULL_DEVICE], "true", tmp_path) as child:
        try:
            stdout, stderr = child.communicate(REQUEST, DEADLINE_SECONDS)
        finally:
            child.kill()
    assert refused(child.returncode, stderr), stderr
    assert b"/nowhere/null" in stderr
    assert stdout == b""


SERVE = "import discreet\nshop = discreet.Service('shop')\n"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import asyncio\nasync def main(): discreet.serve(shop)\nasyncio.run(main())", b"outside of async code"),
        ("import trio\nasync def main(): discreet.serve(shop)\ntrio.run(main)", b"outside of async code"),
        (
            (
                "import threading\nended = []\ndef run():\n    try: discreet.serve(shop)\n    except SystemExit as exc: ended.append(exc)\n"
                "thread = threading.Thread(target=run); thread.start(); thread.join()\nraise ended[0]"
            ),
            b"in the main thread",
        ),
    ],
    ids=["asyncio", "trio", "thread"],
)
def test_a_program_that_serves_where_it_can_not_is_told_so(tmp_path: Path, program: str, said: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", SERVE + program],
        capture_output=True,
        cwd=tmp_path,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b""), done.stderr
    assert refused(done.returncode, done.stderr), done.stderr
    assert said in done.stderr
