"""The SQLite store's file: which files open and which are refused, what persists, how queries run; and the daemons that share it."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.a2a.types import (
    PushConfig,
    TaskQuery,
    TaskState,
)
from discreet.agents.stores.checks import Retention, page_bound
from discreet.agents.stores.interface import CommitConflict, PushTarget, StoreError, StoreUnavailableError
from discreet.agents.stores.sqlite import reader
from discreet.agents.stores.sqlite import store as retention
from discreet.agents.stores.sqlite.owner_locks import FENCE_SECONDS, TIMEOUT_SECONDS
from discreet.agents.stores.sqlite.schema import BUSY_SECONDS
from discreet.agents.stores.sqlite.store import CLOSE_SECONDS, ChangeWatch, SqliteStore
from support.logged_events import LoggedEvents
from support.sqlite_files import opened, refused
from support.task_changes import a_task, change, commit_all, ids, said
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

SUBMITTED = TaskState.SUBMITTED


# -- opening ---------------------------------------------------------------------------------------------------


async def test_a_file_that_is_not_a_store_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to have a header of a hundred bytes" * 3)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = text.read_bytes(), other.read_bytes()
    assert "not a SQLite database" in await refused(str(text))
    assert "another program" in await refused(str(other))
    assert (text.read_bytes(), other.read_bytes()) == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["notes.txt", "other.db"]


async def test_a_path_at_which_no_file_can_be_is_refused(tmp_path: Path) -> None:
    assert "No such file" in await refused(str(tmp_path / "missing" / "tasks.db"))
    assert "is no regular file" in await refused(str(tmp_path))


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="nothing is read-only for this user")
async def test_a_file_that_can_only_be_read_is_refused(path: str) -> None:
    async with opened(SqliteStore(path)):
        pass
    os.chmod(path, 0o400)
    assert "can't be" in await refused(path)


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
async def test_other_users_may_not_read_the_files(path: str, tmp_path: Path) -> None:
    async with opened(SqliteStore(path)) as store:
        await store.commit([change(a_task("t"))])
        assert {entry.stat().st_mode & 0o777 for entry in tmp_path.iterdir()} == {0o600}


async def test_a_closed_store_leaves_only_its_file(path: str, tmp_path: Path) -> None:
    async with opened(SqliteStore(path)):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["tasks.db"]


# -- what stays, and what goes ---------------------------------------------------------------------------------


@pytest.fixture
def limit_file(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`limit_file(pages)`: SQLite lets no file of this test grow by more than so many pages."""
    connections: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def connect_noted(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connections.append(connect(*args, **kwargs))
        return connections[-1]

    def limit(pages: int) -> None:
        for connection in connections:
            (now,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {now + pages}")

    monkeypatch.setattr(sqlite3, "connect", connect_noted)
    return limit


async def test_a_commit_that_does_not_fit_fails_completely(path: str, limit_file: Callable[[int], None]) -> None:
    async with opened(SqliteStore(path)) as store:
        await store.commit([change(a_task("t"))])
        limit_file(2)
        large = change(a_task("t"), said("x" * 100_000), expected=1)
        with pytest.raises(StoreUnavailableError):  # callers may try again
            await store.commit([change(a_task("small")), large])
        assert await store.load("small") is None
        limit_file(1_000_000)
        assert await store.commit([change(a_task("small")), large]) == [None, None]


async def test_commits_progress_while_the_event_loop_is_never_idle(path: str) -> None:
    async with opened(SqliteStore(path)) as store:
        done: list[object] = []

        async def commit() -> None:
            for n in range(20):
                done.extend(await store.commit([change(a_task(f"{n}"))]))

        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(commit)
                while len(done) < 20:
                    end = perf_counter() + 0.0005
                    while perf_counter() < end:
                        pass
                    await anyio.lowlevel.checkpoint()
        assert done == [None] * 20


@pytest.mark.parametrize("token", ["", "30"])
@pytest.mark.parametrize(
    "query",
    [
        TaskQuery(scope="me"),
        TaskQuery(scope="me", context_id="context"),
        TaskQuery(scope="me", state=SUBMITTED),
        TaskQuery(scope="me", context_id="context", state=SUBMITTED),
    ],
)
async def test_a_page_is_read_without_a_table_scan_or_a_sort(path: str, query: TaskQuery, token: str) -> None:
    async with opened(SqliteStore(path)) as store:
        await store.commit([change(a_task(f"{n}")) for n in range(50)])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        query = TaskQuery(
            scope=query.scope, context_id=query.context_id, state=query.state, page_token=token, page_size=5
        )
        assert len(reader.list_tasks(connection, query, page_bound(query)).page.tasks) == 5
        connection.set_trace_callback(None)
        reads = [statement for statement in statements if statement.startswith("SELECT")]
        assert len(reads) == 2
        for read in reads:
            plan = [detail for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {read}")]
            assert all(step.startswith("SEARCH") for step in plan), plan


# -- several daemons -------------------------------------------------------------------------------------------


async def is_told(store: SqliteStore) -> bool:
    """Whether there are changes to tell now. The store looks before it waits."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        await store.wait_for_changes(0)
        return True
    return False


async def test_the_writes_of_others_are_told_once_and_own_ones_never(path: str) -> None:
    async with opened(SqliteStore(path)) as ours, opened(SqliteStore(path)) as theirs:
        while await is_told(ours):  # the other daemon's start
            pass
        await ours.commit([change(a_task("t"))])
        await ours.load("t")
        assert not await is_told(ours)
        await theirs.commit([change(a_task("u"))])
        await theirs.put_push_target("u", PushTarget(PushConfig("https://example.org", "p"), "1.0"))
        await ours.commit([change(a_task("v"))])
        assert [await is_told(ours), await is_told(ours)] == [True, False]
        await theirs.claim(1)
        await theirs.take_owner_requests()
        assert not await is_told(ours)
        await theirs.close()
        await ours.list_orphans()
        assert not await is_told(ours)


async def test_lock_files_and_rows_of_dead_daemons_are_removed(path: str, tmp_path: Path) -> None:
    async with opened(SqliteStore(path)) as store:
        leftover = Path(f"{path}-daemon-0123456789abcdef")
        leftover.touch()
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("INSERT INTO daemons VALUES ('0123456789abcdef', 5, 0)")
        assert await is_told(store)
        with anyio.fail_after(10), closing(sqlite3.connect(path)) as connection:
            # A look at the lock holds it for a moment: the store's own look at the clocks may come first.
            while connection.execute("SELECT count(*) FROM daemons").fetchone() != (2,):
                assert list(await store.list_orphans()) == []
        assert not leftover.exists()
        assert not await is_told(store)


TARGET = PushTarget(PushConfig("https://example.org", "p", "t"), "1.0")


@pytest.mark.parametrize("allowed", [0, 1, 2])
async def test_a_store_without_threads_is_refused_in_one_line_and_leaves_nothing(
    path: str, tmp_path: Path, allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, started = threading.Thread.start, 0

    def start_some(thread: threading.Thread) -> None:
        nonlocal started
        if started == allowed:
            raise RuntimeError("can't start new thread")
        started += 1
        start(thread)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start_some)
        with pytest.raises(StoreError, match="thread"):
            SqliteStore(path).open_early()
    assert [entry.name for entry in tmp_path.iterdir()] == ["tasks.db"]


async def test_closing_does_not_wait_for_a_program_that_locks_the_file(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        failed: list[StoreError] = []

        async def write() -> None:
            try:
                await store.put_push_target("t", TARGET)
            except StoreError as exc:
                failed.append(exc)

        began = monotonic()
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await anyio.lowlevel.checkpoint()
            with pytest.raises(StoreError, match="locked"):
                await store.close()
        assert len(failed) == 1
        assert monotonic() - began < (CLOSE_SECONDS + BUSY_SECONDS) / 2
        other.execute("ROLLBACK")
    again = SqliteStore(path)
    await again.open()
    assert list(await again.list_orphans()) == []
    await again.close()


DAY = 24 * 3600.0


class Steady:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def steady() -> Iterator[Steady]:
    return Steady()


def stop(store: SqliteStore) -> None:
    """Let a daemon keep its lock and beat no more, as SIGSTOP does."""
    store._open_store.heartbeat.stop()


# -- stopped daemons -------------------------------------------------------------------------------------------


async def test_the_tasks_of_a_stopped_daemon_are_taken_over_and_it_can_not_write_to_them(
    path: str, steady: Steady
) -> None:
    async with opened(SqliteStore(path)) as ours, opened(SqliteStore(path, monotonic=steady)) as theirs:
        await commit_all(ours, change(a_task("t"), owner=ours.owner_id), change(a_task("u"), owner=ours.owner_id))
        stop(ours)
        waited = 0.0
        while waited <= TIMEOUT_SECONDS:
            assert list(await theirs.list_orphans()) == []
            steady.now += 1
            waited += 1
        assert list(await theirs.list_orphans()) == ["t", "u"]
        taken = change(a_task("t"), expected=1, owner=theirs.owner_id, previous_owner=ours.owner_id)
        await commit_all(theirs, taken)
        late = change(a_task("t"), said("x"), expected=1, owner=ours.owner_id)
        assert await ours.commit([late]) == [CommitConflict(1, theirs.owner_id)]
        await commit_all(ours, change(a_task("u"), said("x"), expected=1, owner=ours.owner_id))  # nobody has taken it


async def test_a_daemon_that_beats_is_alive_and_one_that_was_stopped_itself_takes_no_others_for_dead(
    path: str, steady: Steady
) -> None:
    async with opened(SqliteStore(path)) as ours, opened(SqliteStore(path, monotonic=steady)) as theirs:
        await commit_all(ours, change(a_task("t"), owner=ours.owner_id))
        for _ in range(20):
            ours._open_store.heartbeat._lock.beat(time.time())
            assert list(await theirs.list_orphans()) == []
            steady.now += 1
        stop(ours)
        assert list(await theirs.list_orphans()) == []
        steady.now += 10 * TIMEOUT_SECONDS
        assert list(await theirs.list_orphans()) == []


async def test_a_daemon_that_was_stopped_takes_no_call_before_it_has_looked(path: str, steady: Steady) -> None:
    async with opened(SqliteStore(path, monotonic=steady)) as store:
        stop(store)
        store.check_reachable()
        steady.now += FENCE_SECONDS + 1
        with pytest.raises(StoreUnavailableError):
            store.check_reachable()
        with pytest.raises(StoreUnavailableError):
            await store.probe()
        with anyio.fail_after(DEADLINE_SECONDS):
            changes = await store.wait_for_changes(0.01)
        assert changes.may_concern("anything")
        store.check_reachable()


def test_the_fence_is_shorter_than_the_patience_of_the_others() -> None:
    assert FENCE_SECONDS + 1 < TIMEOUT_SECONDS


# -- hearing of changes ----------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of writes")
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])  # each has its own way to wait for a descriptor
async def test_an_idle_daemon_hears_of_a_write_without_looking(path: str) -> None:
    async with opened(SqliteStore(path)) as ours, opened(SqliteStore(path)):
        watch = ChangeWatch(path)
        heard = anyio.Event()

        async def listen() -> None:
            await watch.wait(10 * DEADLINE_SECONDS, 10 * DEADLINE_SECONDS)
            heard.set()

        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(listen)
                await commit_all(ours, change(a_task("t")))
                await heard.wait()
        watch.close()


# -- clocks ----------------------------------------------------------------------------------------------------


async def left_of(store: SqliteStore) -> list[str]:
    while await store.delete_expired_tasks():
        pass
    return sorted(await ids(store))


async def test_a_clock_that_is_ahead_of_another_daemons_deletes_nothing_however_long_it_runs(
    path: str, logged: LoggedEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "HOLD_SECONDS", 0.0)
    limits = Retention(100, 3600.0)
    ended = [change(a_task(name, state=TaskState.COMPLETED)) for name in "ab"]
    async with opened(SqliteStore(path)) as ours:
        await commit_all(ours, *ended)
        async with opened(SqliteStore(path, limits, clock=lambda: time.time() + 2 * DAY)) as ahead:
            held = ahead._open_store.time
            for _ in range(3):
                assert held._seconds_ahead(time.time() + 2 * DAY, time.monotonic(), limits) > DAY
    assert "store.clock_ahead" in logged.names()


async def test_a_clock_is_believed_when_nothing_has_spoken_against_it_for_a_while(
    path: str, logged: LoggedEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Retention(100, 3600.0)
    async with opened(SqliteStore(path)) as ours:
        await commit_all(ours, *(change(a_task(name, state=TaskState.COMPLETED)) for name in "ab"))
    later = time.time() + 2 * DAY
    async with opened(SqliteStore(path, limits, clock=lambda: later)) as store:
        assert await left_of(store) == ["a", "b"]
        assert logged.names() == ["store.clock_ahead"]
        store._open_store.time._held_until = 0.0
        assert await left_of(store) == []
