"""The PostgreSQL store while its server ends sessions, restarts, fails over or is away, and while daemons are killed, stopped or cut off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from discreet.a2a.types import ExecutionBegun
from discreet.agents.stores.interface import (
    MESSAGE,
    QUEUED,
    CommitConflict,
    OwnerRequest,
    StoreUnavailableError,
)
from support.mounts import LIBRARY
from support.places import store_at
from support.postgres import Server, running_server
from support.postgres_proxy import Fault, PostgresProxy, postgres_proxy
from support.programs import environment
from support.sqlite_files import opened, works
from support.task_changes import a_task, change, said
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

KINDS = ["postgres"]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    """One that tests may stop, crash, and cut off."""
    with running_server() as server:
        yield server


def end_sessions(postgres: Server, store: Any, condition: str = "true") -> None:  # Any: as above
    """End those of one daemon."""
    from discreet.agents.stores.postgres.schema import AnyConnection

    opened = store._open_store
    connections: list[AnyConnection] = [
        session.connection for session in (opened.writing.session, opened.reading.session, opened.listening)
    ]
    pids = [connection.info.backend_pid for connection in connections]
    with postgres.connect() as connection:
        connection.execute(
            f"SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS ended (pid) WHERE {condition}", (pids,)
        )


async def test_an_idle_daemon_notices_that_its_session_was_lost_and_keeps_its_tasks(
    postgres: Server, pair: tuple[Any, Any]
) -> None:
    ours, theirs = pair
    former = ours.owner_id
    await ours.commit([change(a_task("t"), owner=former)])
    end_sessions(postgres, ours)
    await until(lambda: ours.owner_id != former)
    assert (await theirs.load("t")).owner == ours.owner_id


async def test_a_daemon_whose_task_was_taken_over_meanwhile_is_told_so(postgres: Server, pair: tuple[Any, Any]) -> None:
    ours, theirs = pair
    former = ours.owner_id
    await ours.commit([change(a_task("t"), owner=former), change(a_task("u"), owner=former)])
    taken = change(a_task("t"), said("theirs"), expected=1, owner=theirs.owner_id, previous_owner=former)
    assert await theirs.commit([taken]) == [None]
    end_sessions(postgres, ours)
    late = [change(a_task(name), said("ours"), expected=1, owner=former) for name in "tu"]
    refusal, made = await ours.commit(late)
    assert isinstance(refusal, CommitConflict) and refusal.owner == theirs.owner_id
    assert made is None
    assert [logged.event for logged in await ours.event_log.read("t", after=1)] == [said("theirs")]


async def test_after_an_outage_no_daemon_takes_others_for_dead_that_are_not_back_yet(
    postgres: Server, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pair
    former = ours.owner_id
    await ours.commit([change(a_task("t"), owner=former)])
    await ours.close()
    end_sessions(postgres, theirs)
    monkeypatch.setattr("discreet.agents.stores.postgres.store.SETTLE_SECONDS", 1e9)
    await theirs.probe()
    assert list(await theirs.list_orphans()) == []
    monkeypatch.setattr("discreet.agents.stores.postgres.store.SETTLE_SECONDS", 0.0)
    assert list(await theirs.list_orphans()) == ["t"]


async def test_a_server_that_does_not_answer_is_given_up_after_a_while(
    pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = pair
    monkeypatch.setattr("discreet.agents.stores.postgres.session.ANSWER_SECONDS", 0.0)
    sleep = f"SELECT pg_sleep({DEADLINE_SECONDS})"
    for ask in (
        lambda: store._read(lambda connection: connection.execute(sleep).fetchone()),
        lambda: store._write(lambda batch: batch.connection.execute(sleep).fetchone()),
    ):
        with anyio.fail_after(DEADLINE_SECONDS / 2), pytest.raises(StoreUnavailableError):
            await ask()
    monkeypatch.setattr("discreet.agents.stores.postgres.session.ANSWER_SECONDS", DEADLINE_SECONDS)
    assert await store.commit([change(a_task("t"))]) == [None]
    assert await store.load("t") is not None


DETECTED_SECONDS: Final = 4
"""After which a daemon whose machine has died is dead; a second later at the latest others look for its tasks."""

OWNS_A_TASK: Final = """
import sys
import anyio
from support.places import store_at
from support.task_changes import change, said
from discreet.a2a.types import Task, TaskState, TaskStatus

def a_task(task_id):
    return Task(task_id, "c", TaskStatus(TaskState.WORKING, timestamp="2026-01-01T00:00:00.000Z"))

async def main():
    store = store_at(sys.argv[1])
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
    store: Any, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with another_daemon(url) as process:
        (former,) = await anyio.to_thread.run_sync(_line, process)
        assert list(await store.list_orphans()) == []
        process.send_signal(signal.SIGSTOP)
        monkeypatch.setattr("discreet.agents.stores.postgres.session.STOPPED_SECONDS", 1.5)
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
    postgres: Server, store: Any, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the proxy, which keeps the connection and passes nothing on, as a pooler does whose clients' machine has died.

    The server's keepalive probes can't be tried like this, as the proxy answers them.
    """

    monkeypatch.setattr("discreet.agents.stores.postgres.session.STOPPED_SECONDS", 1.5)
    monkeypatch.setattr("discreet.agents.stores.postgres.session.ANSWER_SECONDS", 1.0)
    with postgres_proxy(postgres.port) as proxy:
        async with opened(store_at(url.replace(f":{postgres.port}/", f":{proxy.port}/"))) as cut_off:
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


async def test_the_server_gives_up_a_silent_machine_in_time(store: Any, url: str) -> None:
    """What its sockets say: probes when nothing comes, and how long what it sent may stay without an acknowledgement."""
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
    store: Any, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread stands still in the midst of a pipeline, of which the server's own time-outs take no notice."""
    begun, go_on = threading.Event(), threading.Event()

    def stand_still(batch: Any) -> None:  # Any: as above
        batch.connection.execute("SELECT 1 FROM discreet.tasks WHERE id = 't' FOR UPDATE").fetchone()
        begun.set()
        assert go_on.wait(DEADLINE_SECONDS)

    async with opened(store_at(url)) as stopped:
        former = stopped.owner_id
        assert await stopped.commit([change(a_task("t"), owner=former)]) == [None]
        async with anyio.create_task_group() as group:
            group.start_soon(stopped._write, stand_still)
            await until(begun.is_set)
            assert list(await store.list_orphans()) == []
            monkeypatch.setattr("discreet.agents.stores.postgres.session.STOPPED_SECONDS", 0.2)
            await until(lambda: _lists(store, ["t"]))
            taken = change(a_task("t"), said("theirs"), expected=1, owner=store.owner_id, previous_owner=former)
            assert await store.commit([taken]) == [None]
            go_on.set()
        (refusal,) = await stopped.commit([change(a_task("t"), said("late"), expected=1, owner=former)])
        assert refusal == CommitConflict(2, store.owner_id)


# -- fail-over -------------------------------------------------------------------------------------------------


async def test_after_a_fail_over_everything_acknowledged_is_there_and_the_daemons_go_on() -> None:
    with running_server() as primary:
        name = primary.new_database().rpartition("/")[2]
        with running_server(primary) as standby:
            url = f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/{name}"
            async with opened(store_at(url)) as ours, opened(store_at(url)) as theirs:
                await _fail_over(primary, standby, ours, theirs)


async def _fail_over(primary: Server, standby: Server, ours: Any, theirs: Any) -> None:  # Any: as above
    former = ours.owner_id
    assert await ours.commit([change(a_task("t"), owner=former)]) == [None]
    said_so_far: list[str] = []
    over = anyio.Event()

    async def say_more() -> None:
        number = len(said_so_far)
        made = await ours.commit([change(a_task("t"), said(f"{number}"), expected=number + 1, owner=former)])
        assert made == [None]
        said_so_far.append(f"{number}")

    async def fail_over() -> None:
        await anyio.to_thread.run_sync(primary.stop)
        await anyio.to_thread.run_sync(standby.promote)
        over.set()

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(fail_over)
            while not over.is_set():
                await say_more()
        await say_more()
        assert ours.owner_id != former
        read = await theirs.event_log.read("t", after=1, limit=len(said_so_far) + 1)
        assert [logged.event for logged in read] == [said(text) for text in said_so_far]
        while not (await ours.wait_for_changes(0.0)).may_concern("another"):  # it listens again
            pass
        assert await theirs.commit([change(a_task("u"))]) == [None]
        while not (await ours.wait_for_changes(0.0)).may_concern("u"):
            pass


@pytest.fixture
def proxy(postgres: Server) -> Iterator[PostgresProxy]:
    with postgres_proxy(postgres.port) as proxy:
        yield proxy


@pytest.fixture
async def proxied(
    proxy: PostgresProxy, url: str
) -> AsyncIterator[Any]:  # Any: the module of the store may not be importable
    """One behind the proxy, with a task of its own that waits for a change."""

    name = url.rpartition("/")[2]
    async with opened(store_at(f"postgresql://postgres@127.0.0.1:{proxy.port}/{name}")) as store:
        assert await store.commit([change(a_task("t"), owner=store.owner_id)]) == [None]
        yield store


def transactions(postgres: Server, url: str) -> int:
    """The number of the last transaction that the store has made."""
    with postgres.connect(url.rpartition("/")[2]) as connection:
        ((number,),) = connection.execute("SELECT max(transaction) FROM discreet.writers").fetchall()
    return int(number)


async def say_x(store: Any) -> None:  # Any: as above
    assert await store.commit([change(a_task("t"), said("x"), expected=1, owner=store.owner_id)]) == [None]


async def is_said_once(store: Any) -> None:  # Any: as above
    assert [logged.event for logged in await store.event_log.read("t", after=1)] == [said("x")]
    stored = await store.load("t")
    assert (stored.generation, stored.owner) == (2, store.owner_id)


@pytest.mark.parametrize("made", [True, False])
async def test_a_commit_whose_answer_is_lost_is_found_and_one_that_never_came_is_written_again(
    postgres: Server, proxy: PostgresProxy, proxied: Any, url: str, made: bool
) -> None:
    before = transactions(postgres, url)
    proxy.fault = fault = Fault(lose_answer=made)
    fault.go_on.set()
    with anyio.fail_after(DEADLINE_SECONDS):
        await say_x(proxied)
    assert fault.done.is_set()
    await is_said_once(proxied)
    assert transactions(postgres, url) == before + (1 if made else 2)  # each attempt has a number of its own


async def test_after_a_crash_another_transaction_of_the_same_number_is_not_taken_for_the_own_one(
    postgres: Server, proxy: PostgresProxy, proxied: Any, url: str
) -> None:
    """A server that crashes before anything of a transaction is on its disk gives that transaction's number again.

    So that nothing gets there, the processes that write in the background are stopped before the transaction begins. Its COMMIT
    is held up until the server has crashed, which it does when they are killed. Then other transactions use up the numbers,
    until the server says that one of this number was made. The daemon comes back only now.
    """
    name = url.rpartition("/")[2]
    with postgres.connect(name) as connection:
        connection.execute("CHECKPOINT")
        background = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type IN ('walwriter', 'background writer', 'checkpointer')"
        ).fetchall()
        assert len(background) == 3
        for (pid,) in background:
            os.kill(pid, signal.SIGSTOP)
        try:
            proxy.fault = fault = Fault(lose_answer=False)
            async with anyio.create_task_group() as group:
                group.start_soon(say_x, proxied)
                await until(fault.met.is_set)
                ((number,),) = connection.execute(
                    "SELECT backend_xid::text::bigint FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
                ).fetchall()
                proxy.refuses = True
                for (pid,) in background:
                    os.kill(pid, signal.SIGKILL)
                await until(lambda: _is_over(connection))
                await until(lambda: _uses_up(postgres, name, number))
                proxy.refuses = False
                fault.go_on.set()
        finally:
            proxy.refuses = False
            for (pid,) in background:
                _kill(pid)
    await is_said_once(proxied)


def _is_over(connection: Any) -> bool:  # Any: psycopg may not be installed
    import psycopg

    try:
        connection.execute("SELECT")
    except psycopg.Error:
        return True
    return False


def _uses_up(postgres: Server, name: str, number: int) -> bool:
    """Whether the server is back, and a transaction of this number was made."""
    import psycopg

    try:
        with postgres.connect(name) as connection:
            first = used = 0
            while used < number:
                ((used,),) = connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchall()
                first = first or used
            assert first <= number, "the number was not given again"
            status = connection.execute("SELECT pg_xact_status(%s::text::xid8)", (str(number),)).fetchone()
            assert status == ("committed",)
    except psycopg.OperationalError:  # it starts
        return False
    return True


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@pytest.mark.parametrize("made", [True, False])
async def test_what_was_claimed_or_taken_for_a_caller_who_was_told_that_it_failed_is_there_after_the_outage(
    proxy: PostgresProxy, proxied: Any, url: str, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    message, other = OwnerRequest("q", MESSAGE, b"1"), OwnerRequest("t", MESSAGE, b"2")
    await proxied.commit([change(a_task("q"), owner=QUEUED, requests=(message,))])
    assert await proxied.send_owner_request(other)
    monkeypatch.setattr("discreet.agents.stores.server_store.BRIDGED_SECONDS", 0.0)
    for ask in (lambda: proxied.claim(1), proxied.take_owner_requests):
        proxy.fault = fault = Fault(lose_answer=made)
        proxy.refuses = True
        fault.go_on.set()
        with anyio.fail_after(DEADLINE_SECONDS), pytest.raises(StoreUnavailableError):
            await ask()
        assert fault.done.is_set()
        proxy.refuses = False
        await until(lambda: works(proxied))
    assert await proxied.count_queued() == 1
    assert list(await proxied.take_owner_requests()) == [other]
    assert list(await proxied.list_orphans()) == []
    assert list(await proxied.claim(1)) == ["q"]
    assert list(await proxied.take_owner_requests()) == [message]


@pytest.mark.parametrize("made", [True, False])
async def test_what_began_with_a_claim_that_was_not_heard_of_comes_with_the_next_claim_and_began_once(
    proxy: PostgresProxy, proxied: Any, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    await proxied.commit([change(a_task("q"), owner=QUEUED)])
    monkeypatch.setattr("discreet.agents.stores.server_store.BRIDGED_SECONDS", 0.0)
    proxy.fault = fault = Fault(lose_answer=made)
    proxy.refuses = True
    fault.go_on.set()
    with anyio.fail_after(DEADLINE_SECONDS), pytest.raises(StoreUnavailableError):
        await proxied.claim_begun(1, lambda _: ExecutionBegun(0), told=True)
    assert fault.done.is_set()
    proxy.refuses = False
    await until(lambda: works(proxied))
    assert await proxied.count_queued() == (0 if made else 1)
    assert list(await proxied.list_orphans()) == []
    (claimed,) = await proxied.claim_begun(1, lambda _: ExecutionBegun(0), told=False)
    assert (claimed.task_id, claimed.begun) == ("q", 2)
    assert [each.event for each in await proxied.read("q", after=1)] == [ExecutionBegun(0)]
    assert "q" in await proxied.list_owned()
    assert await proxied.claim_begun(1, lambda _: ExecutionBegun(0), told=True) == []
