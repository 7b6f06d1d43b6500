"""The PostgreSQL store while its server ends sessions, restarts, or is away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.agents.stores.interface import CommitConflict, StoreUnavailableError
from support.postgres import Server, running_server
from support.sqlite_files import opened
from support.task_changes import a_task, change, said
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that tests may restart."""
    with running_server() as server:
        yield server


@pytest.fixture
async def pair(server: Server) -> AsyncIterator[tuple[Any, Any]]:  # Any: the module of the store may not be importable
    """Two daemons on one database."""
    from discreet.agents.stores.postgres.store import PostgresStore

    url = server.new_database()
    async with opened(PostgresStore(url)) as one, opened(PostgresStore(url)) as other:
        yield one, other


def end_sessions(server: Server, store: Any, condition: str = "true") -> None:  # Any: as above
    """End those of one daemon."""
    from discreet.agents.stores.postgres.schema import AnyConnection

    opened = store._open_store
    connections: list[AnyConnection] = [
        session.connection for session in (opened.writing.session, opened.reading.session, opened.listening)
    ]
    pids = [connection.info.backend_pid for connection in connections]
    with server.connect() as connection:
        connection.execute(
            f"SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS ended (pid) WHERE {condition}", (pids,)
        )


async def test_an_idle_daemon_notices_that_its_session_was_lost_and_keeps_its_tasks(
    server: Server, pair: tuple[Any, Any]
) -> None:
    ours, theirs = pair
    former = ours.owner_id
    await ours.commit([change(a_task("t"), owner=former)])
    end_sessions(server, ours)
    await until(lambda: ours.owner_id != former)
    assert (await theirs.load("t")).owner == ours.owner_id


async def test_a_daemon_whose_task_was_taken_over_meanwhile_is_told_so(server: Server, pair: tuple[Any, Any]) -> None:
    ours, theirs = pair
    former = ours.owner_id
    await ours.commit([change(a_task("t"), owner=former), change(a_task("u"), owner=former)])
    taken = change(a_task("t"), said("theirs"), expected=1, owner=theirs.owner_id, previous_owner=former)
    assert await theirs.commit([taken]) == [None]
    end_sessions(server, ours)
    late = [change(a_task(name), said("ours"), expected=1, owner=former) for name in "tu"]
    refusal, made = await ours.commit(late)
    assert isinstance(refusal, CommitConflict) and refusal.owner == theirs.owner_id
    assert made is None
    assert [logged.event for logged in await ours.event_log.read("t", after=1)] == [said("theirs")]


async def test_after_an_outage_no_daemon_takes_others_for_dead_that_are_not_back_yet(
    server: Server, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.agents.stores.postgres import store as postgres_store

    ours, theirs = pair
    former = ours.owner_id
    await ours.commit([change(a_task("t"), owner=former)])
    await ours.close()
    end_sessions(server, theirs)
    monkeypatch.setattr(postgres_store, "SETTLE_SECONDS", 1e9)
    await theirs.probe()
    assert list(await theirs.list_orphans()) == []
    monkeypatch.setattr(postgres_store, "SETTLE_SECONDS", 0.0)
    assert list(await theirs.list_orphans()) == ["t"]


async def test_a_server_that_does_not_answer_is_given_up_after_a_while(
    pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.agents.stores.postgres import session as link

    store, _ = pair
    monkeypatch.setattr(link, "ANSWER_SECONDS", 0.0)
    sleep = f"SELECT pg_sleep({DEADLINE_SECONDS})"
    for ask in (
        lambda: store._read(lambda connection: connection.execute(sleep).fetchone()),
        lambda: store._write(lambda batch: batch.connection.execute(sleep).fetchone()),
    ):
        with anyio.fail_after(DEADLINE_SECONDS / 2), pytest.raises(StoreUnavailableError):
            await ask()
    monkeypatch.setattr(link, "ANSWER_SECONDS", DEADLINE_SECONDS)
    assert await store.commit([change(a_task("t"))]) == [None]
    assert await store.load("t") is not None
