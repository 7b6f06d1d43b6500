"""The Redis store: which servers open and which are refused, what persists and expires."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import msgspec
import pytest

from discreet.a2a.types import TaskQuery, TaskState
from discreet.agents.stores.checks import Retention
from discreet.agents.stores.interface import (
    QUEUED,
    LogTruncatedError,
    StoreError,
    StoreUnavailableError,
)
from support.logged_events import logged_events
from support.places import NewStore, store_at
from support.redis import Server, running_server
from support.sqlite_files import opened, refusal
from support.task_changes import a_task, at, change, said
from support.waits import until

pytestmark = pytest.mark.anyio

COMPLETED = TaskState.COMPLETED
KINDS = ["redis"]


def key(url: str, name: str) -> str:
    return f"{{{url.rpartition('=')[2]}}}:{name}"


# -- opening ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "redis://me:s3cret@h:port/0",
        "redis://me:s3cret@h/first",
        "redis://me:s3cret@h/-1",
        "redis://h/0?nothing=s3cret",
        "redis://h/0?s3cret",
        "redis://h/0?prefix=s3cret%7B",
        "redis://h/0?ssl_ca_certs=s3cret",
        "rediss://h/0?ssl_cert_reqs=s3cret",
        "rediss://h/0?ssl_check_hostname=s3cret",
        "redis://[s3cret",
    ],
)
async def test_an_address_that_is_wrong_is_refused_and_nothing_of_it_shown(address: str) -> None:
    with pytest.raises(StoreError) as error:
        store_at(address)
    (line,) = str(error.value).splitlines()
    assert "s3cret" not in line


async def test_a_server_that_is_not_there_is_refused_and_the_password_is_not_shown() -> None:
    store = store_at("redis://me:s3cret-of-mine@127.0.0.1:1/3")
    line = await refusal(store)
    assert "127.0.0.1:1/3" in line and "s3cret" not in line
    assert "s3cret" not in repr(store._address)


async def test_a_socket_that_is_not_there_is_refused() -> None:
    assert "No such file" in await refusal(store_at("unix:///nowhere/at/all"))


async def test_a_database_that_the_server_does_not_have_is_refused(redis_server: Server) -> None:
    assert "out of range" in await refusal(store_at(redis_server.url().replace("/0", "/99999")))


async def test_a_server_that_is_no_redis_is_refused() -> None:
    async def greet(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"SSH-2.0-OpenSSH\r\n")

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, greet)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        assert "not Redis" in await refusal(store_at(f"redis://127.0.0.1:{port}/0"))
        group.cancel_scope.cancel()


async def test_another_database_and_another_prefix_are_other_stores(redis_server: Server) -> None:
    first = redis_server.new_store()
    addresses = [first, redis_server.new_store(), first.replace("/0", "/1")]
    for n, address in enumerate(addresses):
        async with opened(store_at(address)) as store:
            assert await store.commit([change(a_task(f"{n}"))]) == [None]
            assert [task.id for task in (await store.list(TaskQuery(scope="me"))).tasks] == [f"{n}"]


async def test_a_store_of_another_version_is_refused(redis_server: Server, new_store: NewStore, url: str) -> None:
    async with opened(new_store()):
        pass
    redis_server.client().hincrby(key(url, "store"), "version", 1)
    assert "is a store of version 2" in await refusal(new_store())


@pytest.mark.parametrize("name", ["store", "task:x"])
async def test_what_is_no_store_is_refused(redis_server: Server, new_store: NewStore, url: str, name: str) -> None:
    redis_server.client().set(key(url, name), "x")
    line = await refusal(new_store())
    assert "no store" in line or "not a store" in line


async def test_a_closed_store_leaves_no_connection_and_no_lease(
    redis_server: Server, new_store: NewStore, url: str
) -> None:
    client = redis_server.client()
    async with opened(new_store()) as store:
        owner_id = store.owner_id
        assert client.exists(key(url, f"lease:{owner_id}"))
        assert "discreet" in _names_of_clients(client)
    assert not client.exists(key(url, f"lease:{owner_id}"))
    await until(lambda: "discreet" not in _names_of_clients(client))


def _names_of_clients(client: Any) -> list[str]:  # Any: redis-py may not be installed
    return [each["name"] for each in client.client_list()]


async def test_a_store_that_was_opened_early_and_never_used_leaves_no_lease(
    redis_server: Server, new_store: NewStore, url: str
) -> None:
    store = new_store()
    store.open_early()
    owner_id = store.owner_id
    store.close_early()
    assert not redis_server.client().exists(key(url, f"lease:{owner_id}"))


# -- the server's settings -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def other_server() -> Iterator[Server]:
    """One whose settings tests may change."""
    with running_server() as server:
        yield server


@pytest.mark.parametrize(
    ("settings", "loses"),
    [
        ({"appendonly": "yes", "appendfsync": "always"}, None),
        ({"appendonly": "yes", "appendfsync": "everysec"}, "one second"),
        ({"appendonly": "yes", "appendfsync": "no"}, "some seconds"),
        ({"appendonly": "no", "appendfsync": "always"}, "everything"),
    ],
)
async def test_what_a_server_may_lose_is_logged(
    other_server: Server, settings: dict[str, str], loses: str | None
) -> None:
    for name, value in settings.items():
        other_server.client().config_set(name, value)
    with logged_events("info") as logged:
        async with opened(store_at(other_server.url())) as store:
            assert store.durable
        events = [fields["loses"] for name, fields in logged() if name == "store.volatile"]
    assert events == [] if loses is None else events == [loses]


async def test_a_server_that_may_delete_tasks_is_refused(other_server: Server) -> None:
    client = other_server.client()
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        assert "noeviction" in await refusal(store_at(other_server.url()))
    finally:
        client.config_set("maxmemory-policy", "noeviction")


async def test_a_server_without_memory_refuses_what_takes_some_and_recovers(
    other_server: Server, new_store: NewStore
) -> None:
    client = other_server.client()
    async with opened(store_at(other_server.new_store(), retention=Retention(0))) as store:
        owner_id = store.owner_id
        await store.commit([change(a_task("t"), owner=owner_id), change(a_task("ended", COMPLETED))])
        client.config_set("maxmemory", 1)
        try:
            for call in (store.commit([change(a_task("u"))]), store.probe()):
                with pytest.raises(StoreUnavailableError, match="memory"):
                    await call
            assert await store.load("t") is not None and await store.load("u") is None
            # What takes no memory goes on: the daemon stays alive, and what has ended is deleted.
            await store.delete_expired_tasks()
            assert await store.load("ended") is None
        finally:
            client.config_set("maxmemory", 0)
        assert await store.commit([change(a_task("t"), said("x"), expected=1, owner=owner_id)]) == [None]


async def test_a_replica_is_refused(other_server: Server) -> None:
    with running_server("--replicaof", "127.0.0.1", str(other_server.port)) as replica:
        assert "replica" in await refusal(store_at(replica.url()))


# -- what stays, and what goes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [30, 1100])
async def test_tasks_are_found_by_timestamp_also_where_many_match(new_store: NewStore, count: int) -> None:
    """Those with later timestamps were changed first."""
    async with opened(new_store()) as store:
        for start in range(0, count, 500):
            tasks = [a_task(f"{n}", minute=2 * count - n) for n in range(start, min(start + 500, count))]
            assert set(await store.commit([change(task) for task in tasks])) == {None}
        for matching in (count, count - 1, 10):
            found: list[str] = []
            query = TaskQuery(scope="me", status_timestamp_after=at(2 * count - matching + 1), page_size=100)
            page = await store.list(query)
            while True:
                found += [task.id for task in page.tasks]
                assert page.total_size == matching
                if not page.next_page_token:
                    break
                page = await store.list(
                    TaskQuery(
                        scope="me",
                        status_timestamp_after=query.status_timestamp_after,
                        page_size=100,
                        page_token=page.next_page_token,
                    )
                )
            assert found == [str(n) for n in reversed(range(matching))]


async def test_events_that_a_snapshot_covers_are_deleted_but_for_the_last_ones(
    redis_server: Server, new_store: NewStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.agents.stores.checks import COVERED_EVENTS_KEPT

    events = [said(f"{n}") for n in range(COVERED_EVENTS_KEPT)]
    async with opened(new_store()) as store:
        task = a_task("t")
        await store.commit([change(task)])
        for expected in (1, 1 + len(events), 1 + 2 * len(events)):
            assert await store.commit([change(task, *events, expected=expected, snapshot=True)]) == [None]
        last = 1 + 3 * len(events)
        assert redis_server.client().xlen(key(url, "events:t")) <= 2 * COVERED_EVENTS_KEPT
        assert (await store.event_log.read("t", after=last - COVERED_EVENTS_KEPT))[0].generation == last - len(
            events
        ) + 1
        with pytest.raises(LogTruncatedError):
            await store.event_log.read("t", after=1)


async def test_events_of_tasks_that_ended_a_while_ago_are_deleted_where_a_snapshot_covers_them(
    redis_server: Server, new_store: NewStore, url: str
) -> None:
    now = 1e9
    client = redis_server.client()
    async with opened(new_store(clock=lambda: now)) as store:

        async def forget() -> None:
            store._open_store._next_expiry = 0.0
            await until(lambda: store._open_store._next_expiry > 0.0)

        covered = [change(a_task(name, COMPLETED), said("x"), snapshot=True) for name in "ab"]
        await store.commit([*covered, change(a_task("bare", COMPLETED), said("x")), change(a_task("live"), said("x"))])
        await forget()
        assert len(client.keys(key(url, "events:*"))) == 4
        now += 61
        await store.commit([change(a_task("late", COMPLETED), said("x"), snapshot=True)])
        await forget()
        found = {each.decode().rpartition(":")[2] for each in client.keys(key(url, "events:*"))}
        assert found == {"bare", "live", "late"}
        with pytest.raises(LogTruncatedError):
            await store.event_log.read("a", after=1)
        for name in ("a", "bare"):
            assert (await store.load(name)).generation == 2
        now += 61
        await forget()
        assert not client.exists(key(url, "events:late"))


# -- keys that something else has overwritten ------------------------------------------------------------------

OVERWRITTEN = [
    ("SET", "counts"),
    ("SET", "owners"),
    ("SET", "ended"),
    ("SET", "wake"),
    ("HSET", "store", "sequence"),
    ("HSET", "store", "wake"),
    ("HDEL", "store", "sequence"),
]


@pytest.mark.parametrize("change_of_key", OVERWRITTEN, ids=" ".join)
async def test_keys_that_hold_something_else_are_told_before_anything_is_written(
    new_store: NewStore, url: str, redis_server: Server, change_of_key: tuple[str, ...]
) -> None:
    command, name, *field = change_of_key
    client = redis_server.client()
    async with opened(new_store()) as store:
        await store.commit([change(a_task("t"))])
        await store.probe()
        if command == "SET":
            client.delete(key(url, name))
        client.execute_command(command, key(url, name), *field, *(["x"] if command != "HDEL" else []))
        with pytest.raises(StoreError, match="is damaged"):
            await store.probe()
        with pytest.raises(StoreError, match="is damaged"):
            await store.commit([change(a_task("u")), change(a_task("v"))])
        assert client.exists(key(url, "task:u"), key(url, "task:v")) == 0
        assert (await store.load("t")).generation == 1
    with logged_events("info") as logged:
        assert len((await refusal(new_store())).splitlines()) == 1
        assert logged.names() == []


async def test_a_store_that_the_server_has_forgotten_is_begun_anew_and_the_log_says_so(
    new_store: NewStore, url: str, redis_server: Server
) -> None:
    """As after FLUSHALL."""
    client = redis_server.client()
    async with opened(new_store()) as ours, opened(new_store()) as theirs:
        await ours.commit([change(a_task("t"), owner=ours.owner_id)])
        with logged_events("info") as logged:
            client.delete(*client.keys(key(url, "*")))
            for store in (ours, theirs):
                assert await store.commit([change(a_task(store.owner_id), owner=store.owner_id)]) == [None]
                await store.probe()
            events = logged.names()
        assert 1 <= events.count("store.forgotten") <= 2  # each may notice before the other has begun it anew
        assert await ours.load("t") is None
        assert sum((await ours.count()).values()) == 2
        assert [*await theirs.list_owned()] == [theirs.owner_id]


# -- names that look like others, and entries that nothing belongs to ------------------------------------------


async def test_a_name_that_looks_like_another_callers_context_shows_nothing_of_it(new_store: NewStore) -> None:
    async with opened(new_store()) as store:
        assert list(await store.commit([msgspec.structs.replace(change(a_task("t")), scope="bob")])) == [None]
        for scope in ("3:bob:context", ":3:bob:context", "bob:context"):
            assert (await store.list(TaskQuery(scope=scope))).total_size == 0
        assert (await store.list(TaskQuery(scope="bob", context_id="context"))).total_size == 1


async def test_entries_of_the_queue_without_a_task_keep_no_task_waiting(
    new_store: NewStore, url: str, redis_server: Server
) -> None:
    async with opened(new_store()) as store:
        assert list(await store.commit([change(a_task("t"), owner=QUEUED)])) == [None]
        redis_server.ask("ZADD", key(url, f"owned:{QUEUED}"), "-2", "nobody's", "-1", "neither")
        claimed = [list(await store.claim(1)) for _ in range(3)]
        assert claimed == [[], [], ["t"]]
        assert await store.count_queued() == 0
