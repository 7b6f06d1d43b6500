"""Daemons that are mounted as commands: real processes, how they are started, and how they end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from discreet.client import Peer, connect
from discreet.client.errors import InternalError, InvalidParams, OperationFailed, Unavailable
from discreet.imports.daemon.calls import level_of
from discreet.imports.daemon.reading import read_daemon
from discreet.imports.from_daemon import upstream_of
from discreet.imports.model import ImportFailed
from discreet.imports.targets import MAX_DEPTH, TOO_DEEP, VARIABLE, Command
from discreet.testing import in_memory
from support.backends import both_loops
from support.logged_events import logged_events
from support.mounts import FAR_APP, assembled, by_command, serve_command
from support.programs import DISCREET, environment, finished
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

FOREIGN = """
import json, sys
read, write = sys.stdin.buffer, sys.stdout.buffer
DOCUMENT = {"openrpc": "1.3.2", "info": {"title": "t", "version": "1"}, "methods": [
    {"name": "add", "params": [{"name": "a", "schema": {"type": "integer"}, "required": True},
     {"name": "b", "schema": {"type": "integer"}}], "paramStructure": "by-position",
     "result": {"name": "sum", "schema": {"type": "integer"}}, "errors": [{"code": 100, "message": "too large"}]}]}
while line := read.readline():
    size = int(line.split(b":")[1])
    read.readline()
    request = json.loads(read.read(size))
    if "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    match request["method"]:
        case "rpc.discover":
            answer["result"] = DOCUMENT
        case "add" if sum(request["params"]) > 100:
            answer["error"] = {"code": 100, "message": "too large", "data": {"most": 100}}
        case "add":
            answer["result"] = sum(request["params"])
        case _:
            answer["error"] = {"code": -32601, "message": "no"}
    text = json.dumps(answer).encode()
    write.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(text), text))
    write.flush()
"""


def python(code: str) -> Command:
    return Command((sys.executable, "-c", code))


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (Command(("/no/such/program", "serve")), "can't run /no/such/program: No such file or directory"),
        (python("raise SystemExit('it is broken')"), "status 1; its stderr ends: it is broken"),
        (python("print('hello'); input()"), "it wrote no message: hello"),
        (python(""), "the server exited with status 0"),
        (python(FOREIGN.replace('"openrpc"', '"other"')), "not an OpenRPC document"),
        (python(FOREIGN.replace('"rpc.discover"', '"none"')), "answers neither services/list nor rpc.discover"),
        (python(FOREIGN.replace('"add"', '"rpc.add"')), "it offers no operation"),
    ],
)
def test_a_command_that_is_no_daemon_is_refused_in_one_line(command: Command, reason: str) -> None:
    with pytest.raises(ImportFailed) as caught:
        read_daemon(command)
    message = str(caught.value)
    assert reason in message
    assert command.words[0] in message
    assert "\n" not in message


def test_one_that_says_nothing_has_bounded_time() -> None:
    with pytest.raises(ImportFailed, match=r"did not tell its operations within 0\.2 s"):
        read_daemon(python("input(); input(); input()"), seconds=0.2)


async def test_a_process_starts_with_the_first_call_and_serves_all() -> None:
    mount = by_command(serve_command())
    with logged_events("info") as logged:
        async with in_memory(mount) as peer:
            assert "import.started" not in logged.names()
            pids = {await peer.call("far/pid") for _ in range(3)}
            assert len(pids) == 1
            assert logged.names().count("import.started") == 1
        await until(lambda: not alive(*pids))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@both_loops
async def test_a_process_that_dies_is_replaced_and_its_call_repeated_where_it_is_a_query(
    tmp_path: Path,
) -> None:
    async with in_memory(by_command(serve_command())) as peer:
        first = await peer.call("far/pid")
        with pytest.raises(InternalError):
            await peer.call("far/crash", {"unless": str(tmp_path / "crashed")})
        pids: set[int] = set()

        async def ask() -> None:
            pids.add(await peer.call("far/pid"))

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(ask)
        assert len(pids) == 1
        assert first not in pids
        assert await peer.call("far/count", {"what": "crash"}) == 0  # what was counted, was by the first
        assert await peer.call("far/fragile", {"unless": str(tmp_path / "again")}) not in (None, *pids)


async def test_a_stream_that_is_cut_off_fails_behind_its_events() -> None:
    async with in_memory(by_command(serve_command())) as peer, peer.subscribe("far/flood", {"name": "cut"}) as events:
        await anext(events)
        with pytest.raises(InternalError):
            await peer.call("far/crash")
        with pytest.raises(Unavailable), anyio.fail_after(DEADLINE_SECONDS):
            async for event in events:
                assert event == "x" * 10


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("timestamp=2026-01-01T00:00:00Z level=error event=x", "error"),
        ('{"timestamp": "2026", "level": "debug", "event": "x"}', "debug"),
        ("Traceback (most recent call last):", "warn"),
        ("level=huge", "warn"),
    ],
)
def test_a_line_of_its_log_keeps_its_level(line: str, level: str) -> None:
    assert level_of(line) == level


async def test_what_it_writes_to_stderr_is_in_our_log() -> None:
    with logged_events("error") as logged:
        async with in_memory(by_command(serve_command())) as peer:
            with pytest.raises(InternalError):
                await peer.call("far/item", {"name": "broken"})
            lines: list[str] = []

            def told() -> bool:
                lines.extend(fields["text"] for name, fields in logged() if name == "import.stderr")
                return any("handler.failed" in line and "far/item" in line for line in lines)

            await until(told)


async def test_a_foreign_server_is_called_as_its_document_says() -> None:
    command = python(FOREIGN)
    mount = assembled(read_daemon(command), upstream_of("foreign", command), "math", check_input=True, validate="on")
    async with in_memory(mount) as peer:
        assert await peer.call("math/add", {"a": 1, "b": 2}) == 3
        assert await peer.call("math/add", {"a": 1}) == 1
        with pytest.raises(OperationFailed) as failed:
            await peer.call("math/add", {"a": 100, "b": 2})
        assert (failed.value.code, failed.value.details) == ("RPC_100", None)  # no data of it are declared
        with pytest.raises(InvalidParams):
            await peer.call("math/add", {"a": "x"})


OUTER = """
from support.mounts import by_command, serve_command

outer = by_command(serve_command({app}), "outer")
"""


@asynccontextmanager
async def outer(folder: Path) -> AsyncGenerator[tuple[Peer, int]]:
    """A daemon of its own process that mounts the service, and the process of the latter."""
    app = folder / "outer_app.py"
    app.write_text(OUTER.format(app=""), encoding="utf-8")
    command = [*DISCREET, "serve", f"{app}:outer"]
    async with connect(command, env=environment(FAR_APP.parents[1]), stderr="collect") as peer:
        yield peer, await peer.call("outer/far/pid")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_no_process_outlives_the_daemon_that_has_mounted_it(tmp_path: Path, number: int) -> None:
    async with outer(tmp_path) as (peer, pid):
        parent = int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])
        os.kill(parent, number)
        await until(lambda: not alive(pid))
        assert peer is not None


async def test_no_process_outlives_the_input_of_the_daemon_that_has_mounted_it(tmp_path: Path) -> None:
    async with outer(tmp_path) as (_, pid):
        assert alive(pid)
    await until(lambda: not alive(pid))


def test_a_daemon_that_mounts_itself_ends_in_one_line(tmp_path: Path) -> None:
    app = tmp_path / "loop_app.py"
    app.write_text(OUTER.format(app="f'{__file__}:outer'"), encoding="utf-8")
    variables = environment(FAR_APP.parents[1], **{VARIABLE: str(MAX_DEPTH - 2)})
    ended = finished([*DISCREET, "serve", f"{app}:outer"], tmp_path, **variables)
    assert ended.returncode == 2
    assert TOO_DEEP in ended.stderr
    assert ended.stderr.count("\n") == 1
