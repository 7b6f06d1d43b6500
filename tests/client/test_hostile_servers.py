"""The client with hostile servers: calls fail, nothing else does, and nothing is left behind."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

import anyio
import pytest

from discreet.client import ClientError, EndBounds, RestartPolicy, RetryPolicy, blocking, connect, spawn
from support.hostile import hostile
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


def test_a_logger_takes_the_lines_of_stderr(anyio_backend: Any, caplog: pytest.LogCaptureFixture) -> None:
    source = "sys.stderr.write('100 %s\\n' * 3); sys.stderr.flush(); read()"
    with (
        caplog.at_level(logging.INFO, "server"),
        blocking.connect(hostile(source), backend=anyio_backend, stderr=logging.getLogger("server").info),
    ):
        pass
    assert [record.getMessage() for record in caplog.records if record.name == "server"] == ["100 %s"] * 3


HOSTILE = {
    "ends at once": "sys.exit(0)",
    "dies of a signal": "read(); os.kill(os.getpid(), signal.SIGSEGV)",
    "ends within a frame": "read(); write(b'Content-Length: 9\\r\\n\\r\\n{')",
    "writes no frame": "while read(): write(b'Traceback (most recent call last):\\n')",
    "writes no JSON": "while read(): write(frame(b'{]'))",
    "writes no UTF-8": "while read(): write(frame(b'\\xff\\xfe'))",
    "writes no message": "while read(): write(frame(b'42'))",
    "writes neither result nor error": 'while r := read(): write(frame(b\'{"jsonrpc":"2.0","id":%d}\' % r[\'id\']))',
    "announces what never comes": "while read(): write(b'Content-Length: 99999999999999999999\\r\\n\\r\\n')",
    "never ends its header": "read()\nwhile True: write(b'x' * 65536)",
    "answers other questions": 'while read(): write(frame(b\'{"jsonrpc":"2.0","id":999,"result":1}\'))',
    "says nothing": "while read(): pass",
    "reads nothing": "time.sleep(60)",
    "closes its stdout": "read(); os.close(1); time.sleep(60)",
    "closes its stdin": "read(); os.close(0); time.sleep(60)",
    "nests too deep": "read(); write(frame(b'[' * 10**6)); time.sleep(60)",
    "asks without end": 'read()\nfor n in range(5000): write(frame(b\'{"jsonrpc":"2.0","id":%d,"method":"x"}\' % n))',
    "fills stderr": "read()\nfor _ in range(20000): sys.stderr.write('x' * 99 + '\\n')",
    "does not want to die": "signal.signal(signal.SIGTERM, signal.SIG_IGN); read(); write(b'junk\\n'); time.sleep(60)",
}


OF_ONE_LOOP = {
    "writes no frame",
    "writes no JSON",
    "writes no UTF-8",
    "writes no message",
    "writes neither result nor error",
    "announces what never comes",
    "answers other questions",
    "nests too deep",
    "asks without end",
}
"""What these write is read without an event loop."""

QUICK = EndBounds(eof=0.02, terminate=0.02, kill=10.0)


async def test_a_hostile_server_fails_the_calls_and_nothing_else(anyio_backend: str) -> None:
    names = HOSTILE.keys() if anyio_backend == "asyncio" else HOSTILE.keys() - OF_ONE_LOOP
    failed: dict[str, int] = {}

    async def try_out(name: str) -> None:
        async with connect(
            hostile(HOSTILE[name]),
            timeout=0.5,
            bounds=QUICK,
            retry=RetryPolicy(attempts=2, initial=0.0),
            restart=RestartPolicy(limit=1, initial=0.0),
            stderr=lambda _: None,
        ) as peer:
            for use in (
                lambda: peer.call("m", ["x" * 100_000]),
                lambda: peer.call("m", idempotent=True),
                lambda: anext(peer.subscribe("s", timeout=0.5)),
            ):
                try:
                    await use()
                except ClientError:
                    failed[name] = failed.get(name, 0) + 1

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(try_out, name)
    assert failed == dict.fromkeys(names, 3)


# -- what is left behind ----------------------------------------------------------------------------------------------

ROUNDS = 30
"""On each of two event loops."""


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not reaped there")
async def test_many_servers_leave_no_zombie_and_no_descriptor() -> None:
    async with spawn(["cat"]):
        pass
    before = os.listdir("/dev/fd")
    pids: list[int] = []
    for _ in range(ROUNDS):
        async with spawn(["cat"]) as process:
            pids.append(process.pid)
    assert os.listdir("/dev/fd") == before
    assert [pid for pid in pids if is_there(pid)] == []


def is_there(pid: int) -> bool:
    """Whether the process with this id is a child of this one, dead or alive."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return False
    return True
