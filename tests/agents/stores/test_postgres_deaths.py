"""Daemons that are killed, stopped or cut off: the PostgreSQL server ends their sessions, and others get their tasks."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import anyio
import pytest

from discreet.agents.stores.interface import CommitConflict
from support.mounts import LIBRARY
from support.postgres import Server
from support.postgres_proxy import postgres_proxy
from support.programs import environment
from support.sqlite_files import opened
from support.task_changes import a_task, change, said
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

DETECTED_SECONDS: Final = 4
"""After which a daemon whose machine has died is dead; a second later at the latest others look for its tasks."""

OWNS_A_TASK: Final = """
import sys
import anyio
from discreet.agents.stores.postgres.store import PostgresStore
from support.task_changes import change, said
from discreet.a2a.types import Task, TaskState, TaskStatus

def a_task(task_id):
    return Task(task_id, "c", TaskStatus(TaskState.WORKING, timestamp="2026-01-01T00:00:00.000Z"))

async def main():
    store = PostgresStore(sys.argv[1])
    await store.open()
    owner = store.owner_id
    assert await store.commit([change(a_task(name), owner=owner) for name in "tu"]) == [None, None]
    print(owner, flush=True)
    await anyio.to_thread.run_sync(sys.stdin.readline)
    late = [change(a_task(name), said("late"), expected=1, owner=owner) for name in "tu"]
    refusal, made = await store.commit(late)
    print(refusal.owner, made, store.owner_id, flush=True)
    await store.close()

anyio.run(main)
"""


@pytest.fixture
async def heir(
    postgres: Server,
) -> AsyncIterator[tuple[Any, str]]:  # Any: the module of the store may not be importable
    """A daemon, and the address of its database."""
    from discreet.agents.stores.postgres.store import PostgresStore

    url = postgres.new_database()
    async with opened(PostgresStore(url)) as store:
        yield store, url


@contextmanager
def another_daemon(url: str) -> Iterator[subprocess.Popen[str]]:
    """A process that owns the tasks `t` and `u`; told to, it commits late."""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", OWNS_A_TASK, url],
        env=environment(LIBRARY),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _line(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


async def test_a_daemon_that_was_stopped_loses_its_tasks_and_is_told_so_when_it_goes_on(
    heir: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.agents.stores.postgres import session

    store, url = heir
    with another_daemon(url) as process:
        (former,) = await anyio.to_thread.run_sync(_line, process)
        assert list(await store.list_orphans()) == []
        process.send_signal(signal.SIGSTOP)
        monkeypatch.setattr(session, "STOPPED_SECONDS", 1.5)
        await until(lambda: _lists(store, ["t", "u"]))
        taken = change(a_task("t"), said("theirs"), expected=1, owner=store.owner_id, previous_owner=former)
        assert await store.commit([taken]) == [None]
        process.send_signal(signal.SIGCONT)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        owner, made, new_name = await anyio.to_thread.run_sync(_line, process)
        assert (owner, made) == (store.owner_id, "None")
        assert new_name != former
    assert [logged.event for logged in await store.event_log.read("t", after=1)] == [said("theirs")]
    assert [logged.event for logged in await store.event_log.read("u", after=1)] == [said("late")]


async def test_a_daemon_that_a_network_swallows_loses_its_tasks_and_gets_a_new_name_when_it_is_back(
    postgres: Server, heir: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the proxy, which keeps the connection and passes nothing on, as a pooler does whose clients' machine has died.

    The server's keepalive probes can't be tried like this, as the proxy answers them.
    """
    from discreet.agents.stores.postgres import session
    from discreet.agents.stores.postgres.store import PostgresStore

    monkeypatch.setattr(session, "STOPPED_SECONDS", 1.5)
    monkeypatch.setattr(session, "ANSWER_SECONDS", 1.0)
    store, url = heir
    with postgres_proxy(postgres.port) as proxy:
        async with opened(PostgresStore(url.replace(f":{postgres.port}/", f":{proxy.port}/"))) as cut_off:
            former = cut_off.owner_id
            assert await cut_off.commit([change(a_task(name), owner=former) for name in "tu"]) == [None, None]
            proxy.frozen = proxy.refuses = True
            await until(lambda: _lists(store, ["t", "u"]))
            taken = change(a_task("t"), expected=1, owner=store.owner_id, previous_owner=former)
            assert await store.commit([taken]) == [None]
            proxy.frozen = proxy.refuses = False
            await until(lambda: cut_off.owner_id != former)
            late = [change(a_task(name), said("late"), expected=1, owner=former) for name in "tu"]
            assert await cut_off.commit(late) == [CommitConflict(1, store.owner_id), None]


async def _lists(store: Any, task_ids: list[str]) -> bool:  # Any: as above
    return list(await store.list_orphans()) == task_ids


async def test_the_server_gives_up_a_silent_machine_in_time(heir: tuple[Any, str]) -> None:
    """What its sockets say: probes when nothing comes, and how long what it sent may stay without an acknowledgement."""
    store, _ = heir
    names = ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout")

    def settings(batch: Any) -> list[int]:  # Any: as above
        return [
            int(batch.connection.execute(f"SELECT setting FROM pg_settings WHERE name = '{name}'").fetchone()[0])
            for name in names
        ]

    idle, interval, count, user_timeout = await store._write(settings)
    assert 0 < idle + interval * count <= DETECTED_SECONDS
    assert 0 < user_timeout <= DETECTED_SECONDS * 1000


async def test_a_daemon_that_was_stopped_within_a_transaction_keeps_no_rows_locked(
    heir: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread stands still in the midst of a pipeline, of which the server's own time-outs take no notice."""
    from discreet.agents.stores.postgres import session
    from discreet.agents.stores.postgres.store import PostgresStore

    store, url = heir
    begun, go_on = threading.Event(), threading.Event()

    def stand_still(batch: Any) -> None:  # Any: as above
        batch.connection.execute("SELECT 1 FROM discreet.tasks WHERE id = 't' FOR UPDATE").fetchone()
        begun.set()
        assert go_on.wait(DEADLINE_SECONDS)

    async with opened(PostgresStore(url)) as stopped:
        former = stopped.owner_id
        assert await stopped.commit([change(a_task("t"), owner=former)]) == [None]
        async with anyio.create_task_group() as group:
            group.start_soon(stopped._write, stand_still)
            await until(begun.is_set)
            assert list(await store.list_orphans()) == []
            monkeypatch.setattr(session, "STOPPED_SECONDS", 0.2)
            await until(lambda: _lists(store, ["t"]))
            taken = change(a_task("t"), said("theirs"), expected=1, owner=store.owner_id, previous_owner=former)
            assert await store.commit([taken]) == [None]
            go_on.set()
        (refusal,) = await stopped.commit([change(a_task("t"), said("late"), expected=1, owner=former)])
        assert refusal == CommitConflict(2, store.owner_id)
