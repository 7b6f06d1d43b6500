"""The PostgreSQL store: which databases open and which are refused, and what persists and expires."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from discreet.a2a.types import StatusChanged, TaskCreated, TaskQuery, TaskState
from discreet.agents.stores.checks import Retention
from discreet.agents.stores.interface import MESSAGE, QUEUED, OwnerRequest, StoreError
from discreet.agents.stores.sql import conditions_of
from discreet.errors.redaction import scrub
from support.postgres import PASSWORD, WITH_PASSWORD, Server
from support.sqlite_files import opened, refusal
from support.task_changes import a_task, change, change_to
from support.waits import until

pytestmark = pytest.mark.anyio

COMPLETED = TaskState.COMPLETED
NewStore = Callable[..., Any]  # Any: the module of the store may not be importable


@pytest.fixture
def url(postgres: Server) -> str:
    """That of a database of the test's own."""
    return postgres.new_database()


@pytest.fixture
def new_store(url: str) -> NewStore:
    """Another daemon's store on the same database."""
    from discreet.agents.stores.postgres.store import PostgresStore

    return lambda address=url, **options: PostgresStore(address, **options)


# -- opening ---------------------------------------------------------------------------------------------------


async def test_a_database_that_is_not_there_is_refused(new_store: NewStore, url: str) -> None:
    assert "does not exist" in await refusal(new_store(f"{url}nowhere"))


async def test_a_server_that_is_not_there_is_refused_and_the_password_is_not_shown(new_store: NewStore) -> None:
    line = await refusal(new_store("postgresql://me:s3cret-of-mine@127.0.0.1:1/tasks"))
    assert "127.0.0.1" in line and "s3cret" not in line


async def test_a_password_comes_by_any_way_of_libpq_and_a_wrong_one_is_refused(
    postgres: Server, new_store: NewStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres.url(url.rpartition("/")[2], WITH_PASSWORD)
    monkeypatch.delenv("PGPASSWORD", raising=False)
    assert "password" in await refusal(new_store(address))
    line = await refusal(new_store(address.replace("@", ":wr0ng-one@")))
    assert "authentication failed" in line and "wr0ng" not in line
    async with opened(new_store(address.replace("@", f":{PASSWORD}@"))) as store:
        assert PASSWORD not in scrub(f"it is {PASSWORD}")
        await store.commit([change(a_task("t"))])
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    async with opened(new_store(address)) as store:
        assert await store.load("t") is not None


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:s3cret%zz@h/d",
        "postgresql://me:s3@cret@h/d",
        "postgresql://h/d?nothing=s3cret",
        "postgres://[s3cret",
    ],
)
async def test_an_address_that_is_wrong_is_refused_and_nothing_of_it_shown(new_store: NewStore, address: str) -> None:
    with pytest.raises(StoreError) as error:
        new_store(address)
    assert "s3cret" not in str(error.value) and "cret" not in str(error.value)


async def test_a_database_with_another_encoding_is_refused(postgres: Server, new_store: NewStore) -> None:
    with postgres.connect() as connection:
        connection.execute("DROP DATABASE IF EXISTS latin")
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    assert "UTF8" in await refusal(new_store(postgres.url("latin")))


async def test_a_store_of_another_version_is_refused(postgres: Server, new_store: NewStore, url: str) -> None:
    with postgres.connect(url.rpartition("/")[2]) as connection:
        connection.execute("UPDATE discreet.store SET version = version + 1")
    assert "is a store of version 2" in await refusal(new_store())


async def test_a_role_without_privileges_is_refused(postgres: Server, new_store: NewStore, url: str) -> None:
    name = url.rpartition("/")[2]
    with postgres.connect(name) as connection:
        connection.execute(f"DROP ROLE IF EXISTS r_{name}")
        connection.execute(f"CREATE ROLE r_{name} LOGIN")
    assert "privilege" in await refusal(new_store(postgres.url(name, f"r_{name}")))


async def test_a_closed_store_leaves_no_session(postgres: Server, new_store: NewStore, url: str) -> None:
    async with opened(new_store()):
        pass
    with postgres.connect() as connection:
        count = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
        await until(lambda: connection.execute(count, (url.rpartition("/")[2],)).fetchone() == (0,))


# -- what stays, and what goes ---------------------------------------------------------------------------------


async def test_of_a_caller_whose_tasks_are_all_deleted_no_count_stays(
    postgres: Server, new_store: NewStore, url: str
) -> None:
    async with opened(new_store()) as ours, opened(new_store(retention=Retention(max_tasks=1))) as theirs:
        new, ended = a_task("gone"), a_task("gone", COMPLETED)
        await ours.commit([change_to(new, 0, [TaskCreated(new)], scope="gone")])
        await theirs.commit([change_to(ended, 1, [StatusChanged(ended.status)], scope="gone")])
        await theirs.commit([change(a_task("t", COMPLETED))])
        await theirs.delete_expired_tasks()
        assert (await theirs.count())[COMPLETED] == 1
    with postgres.connect(url.rpartition("/")[2]) as connection:
        scopes = connection.execute(
            "SELECT DISTINCT scope FROM discreet.task_counts WHERE tasks <> 0 OR scope = 'gone'"
        )
        assert sorted(scope for (scope,) in scopes) == ["\x1a", "me"]


@pytest.mark.parametrize("token", ["", "30"])
@pytest.mark.parametrize(
    "query",
    [
        {},
        {"context_id": "context"},
        {"state": TaskState.SUBMITTED},
        {"context_id": "context", "state": TaskState.SUBMITTED},
    ],
    ids=str,
)
async def test_a_page_is_read_without_a_table_scan_or_a_sort(
    new_store: NewStore, url: str, query: dict[str, Any], token: str
) -> None:
    from discreet.agents.stores.postgres.session import connect, read_address

    async with opened(new_store()) as store:
        await store.commit([change(a_task(f"{n}")) for n in range(50)])
        page = await store.list(TaskQuery(scope="me", page_size=5, page_token=token, **query))
        assert len(page.tasks) == 5
    conditions, values = conditions_of(TaskQuery(scope="me", **query))
    with connect(read_address(url)) as connection:
        connection.execute("ANALYZE discreet.tasks")
        rows = connection.execute(
            f"EXPLAIN SELECT key FROM discreet.tasks WHERE {conditions} AND sequence < 100 ORDER BY sequence DESC LIMIT 6",
            values,
        ).fetchall()
    plan = "\n".join(line for (line,) in rows)
    assert "Index" in plan and "Sort" not in plan and "Seq Scan" not in plan


async def test_the_requests_to_a_daemon_are_found_from_its_tasks_however_many_tasks_are_queued(
    new_store: NewStore, url: str
) -> None:
    from discreet.agents.stores.postgres.reader import HAS_REQUESTS
    from discreet.agents.stores.postgres.session import connect, read_address
    from discreet.agents.stores.postgres.writer import TAKE_REQUESTS

    async with opened(new_store()) as store:
        await store.commit(
            [
                change(a_task(f"{n}"), owner=QUEUED, requests=(OwnerRequest(f"{n}", MESSAGE, b"hello"),))
                for n in range(500)
            ]
        )
        assert await store.claim(2) == ["0", "1"]
        with connect(read_address(url)) as connection:
            connection.execute("ANALYZE discreet.tasks, discreet.owner_requests")
            for statement in (HAS_REQUESTS, TAKE_REQUESTS):
                plan = connection.execute(f"EXPLAIN {statement}", (store.owner_id,)).fetchall()
                assert any("Index Cond: (task_key = own.key)" in line for (line,) in plan), plan
        assert [each.task_id for each in await store.take_owner_requests()] == ["0", "1"]


async def test_a_pooler_that_shares_sessions_is_found_out(url: str) -> None:
    """Two sessions of which the server's process is the same."""
    from discreet.agents.stores.postgres.session import check_own_sessions, connect, read_address

    with connect(read_address(url)) as one, connect(read_address(url)) as other:
        check_own_sessions((one, other), "it")
        with pytest.raises(StoreError, match="session"):
            check_own_sessions((one, other, one), "it")


# -- what is missing in the database ---------------------------------------------------------------------------

MISSING = [
    *(f"DROP TABLE discreet.{table}" for table in ("tasks", "snapshots", "events", "push_targets", "owner_requests")),
    *(f"DROP TABLE discreet.{table}" for table in ("writers", "task_counts")),
    "DROP SEQUENCE discreet.changes",
    "ALTER TABLE discreet.tasks DROP COLUMN ended_ms",
    "ALTER TABLE discreet.events RENAME COLUMN bodies TO body",
]


@pytest.mark.parametrize("statement", MISSING)
async def test_a_store_that_lacks_something_is_refused_and_makes_a_running_daemon_unready(
    new_store: NewStore, url: str, statement: str
) -> None:
    import psycopg

    async with opened(new_store()) as store:
        await store.probe()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement)
        with pytest.raises(StoreError, match="is not a store of this version"):
            await store.probe()
        assert "is not a store of this version" in await refusal(new_store())
