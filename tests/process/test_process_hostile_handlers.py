"""Handlers that fork, patch modules, end tasks and callbacks, or raise what can't be looked at: each request gets one answer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.backends import BACKENDS
from support.programs import DISCREET, environment, finished
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")

APP = """
import asyncio, os, sys, threading
import anyio
from discreet import Service

app = Service("")
kept = []

async def limited():
    with anyio.move_on_after(3600):
        await anyio.lowlevel.checkpoint()
        yield 1

async def grouped():
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.sleep_forever)
        await anyio.lowlevel.checkpoint()
        yield 1

@app.query
async def breaks(how: str) -> str:
    async for _ in {"limited": limited, "grouped": grouped}[how]():
        break
    return "broke"

@app.query
async def all_tasks() -> str:
    for task in asyncio.all_tasks():
        task.cancel()
    return "cancelled"

@app.query
async def callback(how: str) -> str:
    loop = asyncio.get_running_loop()
    async def interrupt():
        raise KeyboardInterrupt
    if how == "exit":
        loop.call_soon(sys.exit, 3)
    elif how == "interrupt":
        kept.append(asyncio.create_task(interrupt()))
    else:
        loop.stop()
    return how

@app.query
async def trio_callback(how: str) -> str:
    import trio
    async def interrupt():
        raise KeyboardInterrupt
    if how == "callback":
        trio.lowlevel.current_trio_token().run_sync_soon(sys.exit, 3)
    elif how == "task":
        trio.lowlevel.spawn_system_task(interrupt)
    else:
        async for _ in grouped():
            break
        del _
    await anyio.sleep(0)
    return how

@app.query
async def waits() -> None:
    await anyio.sleep_forever()

@app.subscription
async def floods():
    while True:
        yield "x" * 1000

@app.query
async def ends_the_loop() -> None:
    import trio
    with trio.move_on_after(0):
        await trio.lowlevel.wait_task_rescheduled(lambda _: 1 / 0)

def fork(how):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if how == "exit":
        sys.exit(3)
    if how == "raise":
        raise ValueError
    return -1

@app.query(inline=True)
def fork_inline(how: str) -> int:
    return fork(how)

@app.query
def fork_in_thread(how: str) -> int:
    return fork(how)

@app.query
async def fork_async(how: str) -> int:
    await anyio.lowlevel.checkpoint()
    return fork(how)

@app.query
def patch(what: str) -> str:
    match what:
        case "hooks":
            threading.excepthook = sys.excepthook = sys.unraisablehook = None
        case "start":
            threading.Thread.start = None
        case "streams":
            sys.stdout = sys.stderr = None
        case _:
            setattr(threading, what, None)
    return what

def _fail(cls):
    raise ZeroDivisionError

Meta = type("Meta", (type,), {"__name__": property(_fail), "__module__": property(_fail)})

class Named(Exception, metaclass=Meta):
    pass

class Numbered(Exception):
    __module__ = 5
    __qualname__ = "\\udc00"

class Disguised(Exception):
    __class__ = property(_fail)

class Silent(Exception):
    def __getattribute__(self, name):
        raise ZeroDivisionError

class Grouped(ExceptionGroup):
    exceptions = property(_fail)

RAISED = {"named": Named(), "numbered": Numbered(), "disguised": Disguised(), "silent": Silent(),
          "grouped": Grouped("g", [ValueError()])}

@app.query
async def raises(what: str) -> None:
    raise RAISED[what]

@app.query
def raises_in_thread(what: str) -> None:
    raise RAISED[what]

@app.query(inline=True)
def raises_inline(what: str) -> None:
    raise RAISED[what]

@app.query
async def fine(number: int) -> int:
    await anyio.lowlevel.checkpoint()
    return number

@app.query
def fine_in_thread(number: int) -> int:
    return number
"""


SERVE = [*DISCREET, "serve", "./app.py:app", "--framing", "newline"]


def answers(
    tmp_path: Path, method: str, params: list[dict[str, Any]], backend: str = "asyncio"
) -> list[dict[str, Any]]:
    """The answers to these calls, with good ones around each. The daemon has read each when it has answered the one before."""
    (tmp_path / "app.py").write_text(APP)
    good = [(f"fine{kind}", {"number": 1}) for kind in ("", "_in_thread")]
    calls = [*good, *(call for given in params for call in ((method, given), *good * 4))]
    found = []
    with subprocess.Popen(
        SERVE,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(DISCREET_BACKEND=backend),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, (name, given) in enumerate(calls):
            request = {"jsonrpc": "2.0", "id": number, "method": name, "params": given}
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            reply = json.loads(process.stdout.readline())
            assert reply["id"] == number, (name, given)
            if name == method:
                found.append(reply)
            else:
                assert reply["result"] == 1, calls[:number]
        rest, _ = process.communicate(timeout=DEADLINE_SECONDS)
    assert (rest, process.returncode) == (b"", 0)
    return found


def results(tmp_path: Path, method: str, name: str, values: list[str], backend: str = "asyncio") -> list[Any]:
    return [reply["result"] for reply in answers(tmp_path, method, [{name: value} for value in values], backend)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_generator_that_a_handler_has_broken_out_of_is_nobodys(tmp_path: Path, backend: str) -> None:
    assert results(tmp_path, "breaks", "how", ["limited", "grouped"], backend) == ["broke", "broke"]


def test_no_task_or_callback_of_an_app_ends_the_loop(tmp_path: Path) -> None:
    hows = ["exit", "interrupt", "stop"]
    assert results(tmp_path, "callback", "how", hows) == hows
    assert "result" in answers(tmp_path, "all_tasks", [{}])[0]


def test_no_system_task_or_callback_of_an_app_ends_trio(tmp_path: Path) -> None:
    hows = ["callback", "task", "generator"]
    assert results(tmp_path, "trio_callback", "how", hows, "trio") == hows


def test_a_daemon_whose_event_loop_fails_answers_what_it_has_received(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    names = ["waits", "floods", "waits", "ends_the_loop", *["waits"] * 200]
    requests = [{"jsonrpc": "2.0", "id": number, "method": name} for number, name in enumerate(names)]
    stdin = "".join(json.dumps(request) + "\n" for request in requests)
    ended = finished(SERVE, tmp_path, stdin=stdin, DISCREET_BACKEND="trio")
    replies = [reply for line in ended.stdout.splitlines() if "id" in (reply := json.loads(line))]
    assert sorted(reply["id"] for reply in replies) == [*range(len(names))]
    assert all("error" in reply for reply in replies)
    assert (ended.returncode, ended.stderr.count("daemon.failed"), "python.uncaught" in ended.stderr) == (1, 1, False)


@pytest.mark.parametrize("method", ["fork_inline", "fork_in_thread", "fork_async"])
def test_a_fork_answers_nothing_and_ends_with_its_handler(tmp_path: Path, method: str) -> None:
    assert results(tmp_path, method, "how", ["return", "exit", "raise"]) == [0, 3, 1]


@pytest.mark.parametrize("what", ["Thread", "Event", "start", "hooks", "current_thread", "Lock", "streams"])
def test_what_a_handler_patches_leaves_no_call_without_an_answer(tmp_path: Path, what: str) -> None:
    assert results(tmp_path, "patch", "what", [what]) == [what]


@pytest.mark.parametrize("method", ["raises", "raises_in_thread", "raises_inline"])
def test_an_exception_that_cant_be_looked_at_is_an_internal_error(tmp_path: Path, method: str) -> None:
    whats = ["named", "numbered", "disguised", "silent", "grouped"]
    found = answers(tmp_path, method, [{"what": what} for what in whats])
    assert [reply["error"]["code"] for reply in found] == [-32603] * len(whats)
