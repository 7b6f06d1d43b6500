"""Child processes as servers, most of them hostile: they always end, and their end is reported."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.client import (
    ConnectionFailed,
    EndBounds,
    ServerProcess,
    attach,
    connect,
    spawn,
)
from discreet.client.process import LINE_BYTES, TAIL_BYTES, StderrLines, StderrTail, wait_in_thread
from support.hostile import hostile
from support.programs import has_ended
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

ECHO = """
while request := read():
    reply(request, request.get("params"))
"""

STUBBORN = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
reply(read(), "ready")
while True:
    time.sleep(60)
"""

QUICK = EndBounds(eof=0.05, terminate=0.05, kill=5.0)


def was_reaped(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_a_child_is_called_and_ends_when_its_stdin_is_closed(deadline: None) -> None:
    async with spawn(hostile(ECHO)) as process:
        async with attach(process) as peer:
            assert await peer.call("echo", {"x": 1}) == {"x": 1}
        assert process.returncode is None
    assert process.returncode == 0
    assert was_reaped(process.pid)


async def test_cwd_and_env_are_the_childs(tmp_path: Path) -> None:
    source = "while request := read(): reply(request, [os.getcwd(), os.environ.get('X'), os.environ.get('HOME')])"
    folder = tmp_path.resolve()
    async with connect(hostile(source), cwd=folder, env={"X": "y"}) as peer:
        assert await peer.call("m") == [str(folder), "y", None]


@pytest.mark.parametrize("command", [["/no/such/program"], [os.devnull], hostile(ECHO)])
async def test_a_command_that_can_not_be_run_is_a_failed_connection_and_leaves_no_descriptor_open(
    command: list[str], tmp_path: Path
) -> None:
    before = os.listdir("/dev/fd")
    with pytest.raises(ConnectionFailed) as raised:
        async with connect(command, stderr="collect", cwd=tmp_path / "gone" if command == hostile(ECHO) else None):
            pass
    assert not raised.value.sent
    assert os.listdir("/dev/fd") == before


async def test_the_death_of_a_child_within_a_frame_is_reported_with_its_status_and_stderr(deadline: None) -> None:
    source = """
read()
sys.stderr.write("out of luck\\n")
sys.stdout.write('Content-Length: 1000\\r\\n\\r\\n{"jsonrpc":"2.0","id":1,')
sys.stdout.flush()
os._exit(3)
"""
    async with connect(hostile(source), stderr="collect") as peer:
        with pytest.raises(ConnectionFailed) as raised:
            await peer.call("m", timeout=None)
    assert (raised.value.loss.status, raised.value.loss.stderr_tail) == (3, "out of luck\n")


async def test_a_killed_child_is_reported_with_its_signal(deadline: None) -> None:
    async with connect(hostile("read(); os.kill(os.getpid(), signal.SIGKILL)")) as peer:
        with pytest.raises(ConnectionFailed) as raised:
            await peer.call("m", timeout=None)
    assert raised.value.loss.status == -signal.SIGKILL


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what it waits for is no matter of the loop
async def test_a_child_that_closes_its_stdout_and_lives_on_is_reported_as_such(deadline: None) -> None:
    source = "read(); os.close(1); time.sleep(60)"
    async with spawn(hostile(source), bounds=QUICK) as process, attach(process, explain=process.explain) as peer:
        with pytest.raises(ConnectionFailed) as raised:
            await peer.call("m", timeout=None)
    assert raised.value.loss.status is None


async def test_a_child_that_reads_no_more_may_still_answer(deadline: None) -> None:
    source = """
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
first, second = read(), read()
os.close(0)
reply(second, "deaf")
signal.sigwait({signal.SIGUSR1})
reply(first, "late")
time.sleep(60)
"""
    answers: list[str] = []
    async with spawn(hostile(source), bounds=QUICK) as process, attach(process) as peer:

        async def ask() -> None:
            answers.append(await peer.call("first", timeout=None))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            assert await peer.call("second") == "deaf"
            with pytest.raises(ConnectionFailed):
                await peer.notify("nobody reads this")
            with pytest.raises(ConnectionFailed) as raised:
                await peer.call("nor this", timeout=None)
            assert not raised.value.sent
            os.kill(process.pid, signal.SIGUSR1)
    assert answers == ["late"]


async def test_a_child_that_ignores_eof_and_sigterm_is_killed(deadline: None) -> None:
    async with spawn(hostile(STUBBORN), bounds=QUICK) as process, attach(process) as peer:
        assert await peer.call("m") == "ready"
    assert process.returncode == -signal.SIGKILL
    assert was_reaped(process.pid)


async def test_a_child_that_ignores_eof_gets_sigterm(deadline: None) -> None:
    source = STUBBORN.replace("signal.SIG_IGN", "lambda *_: os._exit(7)")
    async with spawn(hostile(source), bounds=EndBounds(eof=0.05)) as process, attach(process) as peer:
        assert await peer.call("m") == "ready"
    assert process.returncode == 7


async def test_cancellation_ends_the_child_too(deadline: None) -> None:
    with anyio.CancelScope() as scope:
        async with spawn(hostile(STUBBORN), bounds=QUICK) as process, attach(process) as peer:
            assert await peer.call("m") == "ready"
            scope.cancel()
            await anyio.sleep_forever()
    assert process.returncode == -signal.SIGKILL


async def test_a_child_that_still_writes_may_finish(deadline: None) -> None:
    source = """
reply(read(), "ready")
read()
sys.stdout.write("x" * 1_000_000)
sys.stdout.flush()
os._exit(5)
"""
    async with spawn(hostile(source)) as process, attach(process) as peer:
        assert await peer.call("m") == "ready"
    assert process.returncode == 5


async def test_a_stderr_callback_that_raises_is_seen_and_the_child_ended() -> None:
    def broken(_: str) -> None:
        raise ZeroDivisionError

    started: list[ServerProcess] = []
    with anyio.fail_after(DEADLINE_SECONDS), pytest.raises(ZeroDivisionError):
        async with spawn(
            hostile("print('x', file=sys.stderr, flush=True)" + STUBBORN), stderr=broken, bounds=QUICK
        ) as process:
            started.append(process)
            await anyio.sleep_forever()
    assert started[0].returncode is not None
    assert was_reaped(started[0].pid)


async def test_the_rest_of_the_group_ends_with_the_child(deadline: None) -> None:
    source = """
request = read()
child = os.fork()
if child == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)
reply(request, child)
os._exit(0)
"""
    async with connect(hostile(source)) as peer:
        grandchild = await peer.call("m", type=int)
        with pytest.raises(ConnectionFailed) as raised:
            await peer.call("m", timeout=None)
    assert raised.value.loss.status == 0
    await until(lambda: has_ended(grandchild))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what it waits for is no matter of the loop
async def test_an_escaped_grandchild_that_holds_the_pipes_delays_nothing(deadline: None) -> None:
    source = """
request = read()
child = os.fork()
if child == 0:
    os.setsid()
    time.sleep(60)
reply(request, child)
os._exit(0)
"""
    async with connect(hostile(source), stderr="collect") as peer:
        grandchild = await peer.call("m", type=int)
        try:
            with pytest.raises(ConnectionFailed) as raised:
                await peer.call("m", timeout=None)
        finally:
            os.kill(grandchild, signal.SIGKILL)
    assert raised.value.loss.status == 0


def counting_child(stdin: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*hostile("sys.exit(len(sys.stdin.read()))")], stdin=stdin)


async def test_a_child_can_be_waited_for_without_process_descriptors(deadline: None) -> None:
    ours, theirs = os.pipe()
    popen = counting_child(ours)
    os.close(ours)
    with anyio.move_on_after(0.01) as scope:
        await wait_in_thread(popen)
    assert scope.cancelled_caught
    assert popen.returncode is None
    os.write(theirs, b"xxx")
    os.close(theirs)
    await wait_in_thread(popen)
    assert popen.returncode == 3


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_lines_are_split_however_the_bytes_arrive(size: int) -> None:
    text = "one\r\ntwo\n\nträge\n".encode() + b"x" * (LINE_BYTES + 10) + b"\n\xff last"
    heard: list[Any] = []
    lines = StderrLines(heard.append)
    for start in range(0, len(text), size):
        lines.feed(text[start : start + size])
    lines.finish()
    joined = "".join(heard[4:-1])
    assert heard[:4] == ["one", "two", "", "träge"]
    assert joined == "x" * (LINE_BYTES + 10)
    assert heard[-1] == "\ufffd last"


def test_the_tail_is_the_end_of_stderr() -> None:
    tail = StderrTail()
    for number in range(100_000):
        tail.feed(b"%d\n" % number)
    assert len(str(tail)) == TAIL_BYTES
    assert str(tail).endswith("99998\n99999\n")
