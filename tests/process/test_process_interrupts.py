"""Signals to programs that have started a server: it is ended with them, however it takes its end."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.programs import environment, has_ended
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals; looks into /proc")

POLITE = "import os, sys\nos.read(0, 1)\nos.write(2, b'%d\\n' % os.getpid())\nsys.stdin.read()"
STUBBORN = (
    "import os, signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "os.read(0, 1)\n"
    "os.write(2, b'%d\\n' % os.getpid())\n"
    "while True: time.sleep(60)"
)
"""They tell their number on stderr once a request has come. The second ignores the end of its input, and SIGTERM."""

RECORDING = """\
{"type":"start","ms":0,"version":1,"framing":"content-length","command":[]}
{"type":"message","ms":1,"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"m"}}
{"type":"message","ms":2,"from":"server","message":{"jsonrpc":"2.0","id":1,"result":1}}
{"type":"end","ms":3,"status":0}
"""

LIBRARY = """
import sys
import anyio
from discreet.client import EndBounds, connect

async def main():
    async with connect(sys.argv[2:], bounds=EndBounds(eof=1, terminate=0.2)) as peer:
        await peer.call("m", timeout=None)

anyio.run(main, backend=sys.argv[1])
"""

BLOCKING = """
import sys
from discreet.client import EndBounds
from discreet.client.blocking import connect

with connect(sys.argv[2:], backend=sys.argv[1], bounds=EndBounds(eof=1, terminate=0.2)) as peer:
    peer.call("m", timeout=None)
"""

BOUNDED_VERB = """
import sys
from discreet.client import EndBounds, connect
connect.__wrapped__.__kwdefaults__["bounds"] = EndBounds(eof=float(sys.argv[1]), terminate=0.2)
from discreet.cli.main import main

sys.exit(main(sys.argv[2:]))
"""
"""A verb that waits so many seconds for its server to end by itself."""

INTERRUPTED_START = """
import os, signal, subprocess, sys
import anyio
from discreet.client import EndBounds, spawn

start = subprocess._fork_exec

def interrupted(*args):
    pid = start(*args)
    os.write(2, b"%d\\n" % pid)
    signal.raise_signal(signal.SIGINT)
    return pid

async def main():
    subprocess._fork_exec = interrupted  # by now the event loop has been imported, which starts a process too
    async with spawn(sys.argv[2:], bounds=EndBounds(eof=0.2)) as process:
        await process.wait()

anyio.run(main, backend=sys.argv[1])
"""
"""It gets its Ctrl-C in the moment in which its server has begun."""

AS_INTERRUPT = f"""
import signal
signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
{LIBRARY}"""


def server(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


@contextmanager
def started(
    command: Sequence[str], cwd: Path, *, before: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A program and the number of its server, once that runs."""
    process = subprocess.Popen(
        [*before, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=environment(),
    )
    pid = 0
    try:
        assert process.stderr is not None
        pid = int(process.stderr.readline())
        yield process, pid
    finally:
        process.kill()
        if pid and not has_ended(pid):
            os.kill(pid, signal.SIGKILL)
        process.communicate()


def verbs(code: str) -> dict[str, list[str]]:
    words = shlex.join(server(code))
    call = ["call", "m", f"--server={words}", "--timeout=none"]
    generate = ["generate", "python", f"--server={words}", "--timeout=none"]
    replay = ["replay", "s.jsonl", "--timeout=1000", "--", *server(code)]
    discreetly = [sys.executable, "-P", "-m", "discreet"]
    return {words[0]: [*discreetly, *words] for words in (call, generate, replay)}


@pytest.mark.parametrize(
    ("verb", "number"),
    [
        *(("call", number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)),
        ("generate", signal.SIGTERM),
        ("replay", signal.SIGINT),
    ],
)
def test_a_signal_ends_a_verb_and_its_server(verb: str, number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(RECORDING)
    with started(verbs(POLITE)[verb], tmp_path) as (process, pid):
        process.send_signal(number)
        _, said = process.communicate(timeout=DEADLINE_SECONDS)
        assert (process.returncode, said) == (128 + number, "")
        assert has_ended(pid)


def stubborn_call(seconds: float) -> list[str]:
    return [sys.executable, "-P", "-c", BOUNDED_VERB, str(seconds), *verbs(STUBBORN)["call"][4:]]


def test_a_signal_ends_a_server_that_ignores_its_end(tmp_path: Path) -> None:
    with started(stubborn_call(0.2), tmp_path) as (process, pid):
        process.terminate()
        assert process.wait(DEADLINE_SECONDS) == 128 + signal.SIGTERM
        assert has_ended(pid)


def test_a_further_signal_ends_it_at_once(tmp_path: Path) -> None:
    with started(stubborn_call(3600), tmp_path) as (process, pid):
        process.terminate()
        until_its_input_is_closed(pid)
        process.terminate()
        assert process.wait(DEADLINE_SECONDS) == 128 + signal.SIGTERM
        assert has_ended(pid)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_interrupt_while_the_server_is_started_leaves_none(backend: str, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", INTERRUPTED_START, backend, "sleep", "3600"]
    with started(command, tmp_path) as (process, pid):
        _, said = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode != 0
        assert said.splitlines()[-1] == "KeyboardInterrupt"
        assert has_ended(pid)


def until_its_input_is_closed(pid: int) -> None:
    """Wait until nobody else holds the pipe that a process reads."""
    pipe = os.readlink(f"/proc/{pid}/fd/0")
    while any(holds(other, pipe) for other in os.listdir("/proc") if other.isdigit() and int(other) != pid):
        os.sched_yield()


def holds(pid: str, pipe: str) -> bool:
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{fd}") == pipe for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


def test_a_signal_ends_it_though_interrupts_are_ignored_as_in_the_background_of_a_script(tmp_path: Path) -> None:
    ignoring = ["sh", "-c", 'trap "" INT; exec "$0" "$@"']
    with started(verbs(POLITE)["call"], tmp_path, before=ignoring) as (process, pid):
        process.send_signal(signal.SIGINT)
        process.terminate()
        assert process.wait(DEADLINE_SECONDS) == 128 + signal.SIGTERM
        assert has_ended(pid)


def test_what_was_ignored_stays_ignored(tmp_path: Path) -> None:
    ignoring = ["sh", "-c", 'trap "" HUP; exec "$0" "$@"']
    with started(verbs(POLITE)["call"], tmp_path, before=ignoring) as (process, _):
        process.send_signal(signal.SIGHUP)
        process.terminate()
        assert process.wait(DEADLINE_SECONDS) == 128 + signal.SIGTERM


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("program", [LIBRARY, BLOCKING], ids=["async", "blocking"])
def test_two_interrupts_leave_no_server_of_a_program(program: str, backend: str, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", program, backend, *server(STUBBORN)]
    with started(command, tmp_path) as (process, pid):
        process.send_signal(signal.SIGINT)
        until_its_input_is_closed(pid)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode != 0
        assert has_ended(pid)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_program_may_take_sigterm_as_an_interrupt(backend: str, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", AS_INTERRUPT, backend, *server(STUBBORN)]
    with started(command, tmp_path) as (process, pid):
        process.terminate()
        process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode != 0
        assert has_ended(pid)
