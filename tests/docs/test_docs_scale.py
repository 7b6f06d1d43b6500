"""docs/scale.md tells the truth: its runbook is run, its SQL fits the tables, its sums are right, and what it names is there."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from discreet.a2a.types import new_id
from discreet.agents.cluster import SHARED_POLL_SECONDS
from discreet.client import Peer
from discreet.daemon.settings.table import OPTIONS
from discreet.testing import spawned
from support.pages import ROOT, Page
from support.postgres import Server, free_port, running_server
from support.programs import environment, finished
from support.redis import running_server as running_redis
from support.requirements import missing
from support.waits import until, wait_until

DOCUMENT = Page("docs/scale.md")
PAGE, rows = DOCUMENT.text, DOCUMENT.rows

AGENT = """
import anyio
from discreet.agents import Agent

class Works:
    async def execute(self, context, events):
        await events.working()
        if context.text == "stay":
            await anyio.sleep_forever()
        await events.artifact(context.text)
        await events.complete()

    async def resume(self, context, events):
        await events.artifact("resumed")
        await events.complete()

    async def cancel(self, context, events): ...

agent = Agent(Works(), name="Works", description="Works.")
"""

HASTY = """
from discreet.agents.stores import server_store
from discreet.agents.stores.postgres import store

server_store.EXPIRY_SECONDS = store.GRACE_SECONDS = 0.2
"""
"""Expired tasks, and those of a daemon that is gone, are looked for sooner."""

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="the commands are for a POSIX shell"),
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(AGENT)
    (tmp_path / "hasty.py").write_text(HASTY + AGENT)
    return tmp_path


def opened(store: str, folder: Path, *options: str, app: str = "app") -> AbstractAsyncContextManager[Peer]:
    return spawned(f"./{app}.py:agent", "--store", store, *options, cwd=folder, env=environment())


async def send(peer: Peer, text: str) -> str:
    said = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}]}
    sent = await peer.call("SendMessage", {"message": said, "configuration": {"returnImmediately": True}})
    return str(sent["task"]["id"])


async def until_completed(peer: Peer, task_id: str) -> list[str]:
    """The texts of its artifacts."""
    found: list[Any] = []

    async def completed() -> bool:
        task = await peer.call("GetTask", {"id": task_id})
        found[:] = [part["text"] for artifact in task.get("artifacts", ()) for part in artifact["parts"]]
        return bool(task["status"]["state"] == "TASK_STATE_COMPLETED")

    await until(completed)
    return found


def blocks(language: str, section: str) -> list[str]:
    _, found, rest = PAGE.partition(f"\n### {section}\n")
    assert found, section
    text = re.split(r"\n##+ ", rest)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(script: str, folder: Path, programs: str = "", **variables: str) -> str:
    path = os.pathsep.join(filter(None, (programs, os.environ["PATH"])))
    done = finished(["sh", "-e", "-c", script], folder, PATH=path, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- PostgreSQL ----------------------------------------------------------------------------------------------------


async def test_a_dump_of_postgresql_while_a_daemon_works_can_be_restored(server: Server, folder: Path) -> None:
    (dump,), (restore,) = ([block] for block in blocks("sh", "Back up and restore PostgreSQL"))
    store = server.new_database()
    with server.connect() as connection:
        connection.execute("CREATE DATABASE restored")
    async with opened(store, folder) as peer:
        done = await send(peer, "done")
        await until_completed(peer, done)
        under_way = await send(peer, "stay")
        run(dump, folder, server.programs, DISCREET_STORE=store)
    run(restore, folder, server.programs, RESTORED=server.url("restored"))
    async with opened(server.url("restored"), folder, app="hasty") as peer:
        assert await until_completed(peer, done) == ["done"]
        assert await until_completed(peer, under_way) == ["resumed"]


async def test_the_query_for_a_stuck_task_finds_the_daemon_that_has_it(server: Server, folder: Path) -> None:
    (query,) = blocks("sql", "A task is stuck")
    store = server.new_database()
    with server.connect(store.rpartition("/")[2]) as connection:

        def look(task_id: str) -> Any:
            (row,) = connection.execute(query.replace("'ID'", f"'{task_id}'")).fetchall()
            return row

        async with opened(store, folder, "--role", "front") as front:
            task_id = await send(front, "stay")
            await until(lambda: look(task_id)[0] == "queue")
            assert look(task_id)[4] is None
            async with opened(store, folder, "--role", "worker"):
                await until(lambda: look(task_id)[0] != "queue")
                owner, _, _, _, pid, address, _ = look(task_id)
                assert (pid is not None, str(address)) == (True, "127.0.0.1"), owner
            await until(lambda: look(task_id)[4] is None)


async def test_the_other_statements_of_the_page_fit_the_tables(server: Server) -> None:
    statements = re.findall(r"`(SELECT [^`]*)`", PAGE)
    settings = blocks("sql", "A million tasks a day")
    assert len(statements) == 2
    assert len(settings) == 1
    with server.connect(server.new_database().rpartition("/")[2]) as connection:
        for statement in (*statements, *settings):
            connection.execute(statement)


async def test_snapshots_and_events_may_be_partitioned(server: Server, folder: Path) -> None:
    (partition,) = blocks("sql", "Partitions by month")
    store = server.new_database()
    with server.connect(store.rpartition("/")[2]) as connection:
        connection.execute(partition.replace("(60000000)", "(20)"))
        async with opened(store, folder, "--max-ended-tasks", "4") as peer:
            tasks = [await send(peer, str(number)) for number in range(20)]
            for number, task_id in enumerate(tasks[-4:], 16):
                assert await until_completed(peer, task_id) == [str(number)]
            for part in ("0", "rest"):
                for table in ("snapshots", "events"):
                    assert connection.execute(f"SELECT count(*) FROM discreet.{table}_{part}").fetchone() != (0,)
        async with opened(store, folder, "--max-ended-tasks", "4", app="hasty") as peer:
            await until(lambda: connection.execute("SELECT count(*) FROM discreet.snapshots").fetchone() == (4,))
            assert len((await peer.call("ListTasks"))["tasks"]) == 4


# -- Redis ---------------------------------------------------------------------------------------------------------


async def test_a_copy_of_redis_can_be_restored(folder: Path) -> None:
    if not shutil.which("redis-cli"):
        missing("redis-cli is not installed")
    (restore,) = blocks("sh", "Back up and restore Redis")
    (copy,) = re.findall(r"`(redis-cli --rdb backup\.rdb)`", PAGE)
    with running_redis() as server:
        async with opened(server.url(), folder) as peer:
            done = await send(peer, "done")
            await until_completed(peer, done)
            run(copy.replace("redis-cli", f"redis-cli -p {server.port}"), folder)
    (folder / "restored").mkdir()
    port = str(free_port())
    run(restore, folder, FOLDER=str(folder / "restored"), PORT=port)
    try:
        wait_until(lambda: "aof_rewrite_in_progress:0" in run(f"redis-cli -p {port} INFO persistence", folder))
        assert "aof_last_bgrewrite_status:ok" in run(f"redis-cli -p {port} INFO persistence", folder)
        async with opened(f"redis://127.0.0.1:{port}/0", folder) as peer:
            assert await until_completed(peer, done) == ["done"]
    finally:
        run(f"redis-cli -p {port} SHUTDOWN NOSAVE", folder)


async def test_the_keys_by_which_an_owner_is_found_in_redis_are_there(folder: Path) -> None:
    with running_redis() as server:
        async with opened(server.url(), folder) as peer:
            task_id = await send(peer, "stay")
            with server.client() as client:
                key, lease = re.findall(r"\{discreet\}:(task|lease):[A-Z]+", PAGE)
                await until(lambda: client.hget(f"{{discreet}}:{key}:{task_id}", "owner") not in (None, b"queue"))
                owner = client.hget(f"{{discreet}}:{key}:{task_id}", "owner").decode()
                assert client.exists(f"{{discreet}}:{lease}:{owner}") == 1


# -- what is named and summed --------------------------------------------------------------------------------------


def number(text: str) -> float:
    return float(text.strip("*").replace(",", ""))


def test_flags_events_and_metrics_are_those_of_the_product() -> None:
    flags = {option.flag for option in OPTIONS}
    commands = {
        "--format",
        "--schema",
        "--file",
        "--no-owner",
        "--no-privileges",
        "--exit-on-error",
        "--dbname",
        "--rdb",
    }
    commands |= {"--dir", "--port", "--appendonly", "--daemonize", "--scale", "--sessions", "--conformance", "--every"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE)) <= flags | commands
    logged = (ROOT / "docs" / "logging.md").read_text(encoding="utf-8")
    for event in re.findall(r"`((?:task|store|loop)\.[a-z_]+)`", PAGE):
        assert f"`{event}`" in logged, event
    metrics = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    for name in set(re.findall(r"\bdiscreet_[a-z_]+", PAGE)) - {"discreet_tasks_unfinished"}:
        assert f"| `{name}` |" in metrics, name


def test_the_roles_are_those_of_the_setting() -> None:
    (role,) = (option for option in OPTIONS if option.flag == "--role")
    assert tuple(row[0].strip("`") for row in rows("Roles")) == role.choices
    assert f"every {SHARED_POLL_SECONDS:g} s" in PAGE


@pytest.mark.parametrize("column", [1, 2, 3])
def test_the_bytes_of_a_task_add_up(column: int) -> None:
    table = {row[0]: row[column] for row in rows("Bytes")}
    parts = [name for name in table if name.startswith(("`", "index", "other"))]
    assert len(parts) == 6
    kept = number(table["**kept**"])
    assert sum(number(table[name]) for name in parts) == pytest.approx(kept, rel=0.01)


def test_a_hundred_million_tasks_are_a_hundred_million_times_one() -> None:
    of_one = {row[0]: row for row in rows("Bytes")}
    kept = dict(zip(("small", "medium", "large"), map(number, of_one["**kept**"][1:]), strict=True))
    for name, on_disk, _, _ in rows("A hundred million tasks kept"):
        if "prose" not in name:
            shown, unit = on_disk.split()
            assert float(shown) * {"GB": 1e9, "TB": 1e12}[unit] == pytest.approx(
                kept[name.partition(",")[0]] * 1e8, rel=0.02
            )
