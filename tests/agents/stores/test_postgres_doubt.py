"""The PostgreSQL store where a connection ends over a COMMIT: what was asked is done exactly once, whatever came of it."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.agents.stores.interface import (
    MESSAGE,
    QUEUED,
    OwnerRequest,
    StoreUnavailableError,
)
from support.postgres import Server, running_server
from support.postgres_proxy import Fault, PostgresProxy, postgres_proxy
from support.sqlite_files import opened, works
from support.task_changes import a_task, change, said
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that a test may crash."""
    with running_server() as server:
        yield server


@pytest.fixture
def url(server: Server) -> str:
    return server.new_database()


@pytest.fixture
def proxy(server: Server) -> Iterator[PostgresProxy]:
    with postgres_proxy(server.port) as proxy:
        yield proxy


@pytest.fixture
async def store(
    proxy: PostgresProxy, url: str
) -> AsyncIterator[Any]:  # Any: the module of the store may not be importable
    """One behind the proxy, with a task of its own that waits for a change."""
    from discreet.agents.stores.postgres.store import PostgresStore

    name = url.rpartition("/")[2]
    async with opened(PostgresStore(f"postgresql://postgres@127.0.0.1:{proxy.port}/{name}")) as store:
        assert await store.commit([change(a_task("t"), owner=store.owner_id)]) == [None]
        yield store


def transactions(server: Server, url: str) -> int:
    """The number of the last transaction that the store has made."""
    with server.connect(url.rpartition("/")[2]) as connection:
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
    server: Server, proxy: PostgresProxy, store: Any, url: str, made: bool
) -> None:
    before = transactions(server, url)
    proxy.fault = fault = Fault(lose_answer=made)
    fault.go_on.set()
    with anyio.fail_after(DEADLINE_SECONDS):
        await say_x(store)
    assert fault.done.is_set()
    await is_said_once(store)
    assert transactions(server, url) == before + (1 if made else 2)  # each attempt has a number of its own


async def test_after_a_crash_another_transaction_of_the_same_number_is_not_taken_for_the_own_one(
    server: Server, proxy: PostgresProxy, store: Any, url: str
) -> None:
    """A server that crashes before anything of a transaction is on its disk gives that transaction's number again.

    So that nothing gets there, the processes that write in the background are stopped before the transaction begins. Its COMMIT
    is held up until the server has crashed, which it does when they are killed. Then other transactions use up the numbers,
    until the server says that one of this number was made. The daemon comes back only now.
    """
    name = url.rpartition("/")[2]
    with server.connect(name) as connection:
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
                group.start_soon(say_x, store)
                await until(fault.met.is_set)
                ((number,),) = connection.execute(
                    "SELECT backend_xid::text::bigint FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
                ).fetchall()
                proxy.refuses = True
                for (pid,) in background:
                    os.kill(pid, signal.SIGKILL)
                await until(lambda: _is_over(connection))
                await until(lambda: _uses_up(server, name, number))
                proxy.refuses = False
                fault.go_on.set()
        finally:
            proxy.refuses = False
            for (pid,) in background:
                _kill(pid)
    await is_said_once(store)


def _is_over(connection: Any) -> bool:  # Any: psycopg may not be installed
    import psycopg

    try:
        connection.execute("SELECT")
    except psycopg.Error:
        return True
    return False


def _uses_up(server: Server, name: str, number: int) -> bool:
    """Whether the server is back, and a transaction of this number was made."""
    import psycopg

    try:
        with server.connect(name) as connection:
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
    proxy: PostgresProxy, store: Any, url: str, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    from discreet.agents.stores import server_store

    message, other = OwnerRequest("q", MESSAGE, b"1"), OwnerRequest("t", MESSAGE, b"2")
    await store.commit([change(a_task("q"), owner=QUEUED, requests=(message,))])
    assert await store.send_owner_request(other)
    monkeypatch.setattr(server_store, "BRIDGED_SECONDS", 0.0)
    for ask in (lambda: store.claim(1), store.take_owner_requests):
        proxy.fault = fault = Fault(lose_answer=made)
        proxy.refuses = True
        fault.go_on.set()
        with anyio.fail_after(DEADLINE_SECONDS), pytest.raises(StoreUnavailableError):
            await ask()
        assert fault.done.is_set()
        proxy.refuses = False
        await until(lambda: works(store))
    assert await store.count_queued() == 1
    assert list(await store.take_owner_requests()) == [other]
    assert list(await store.list_orphans()) == []
    assert list(await store.claim(1)) == ["q"]
    assert list(await store.take_owner_requests()) == [message]
