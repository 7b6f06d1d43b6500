"""The SQLite store's file in other hands: removed, replaced, changed, damaged. Nothing wrong is served or acknowledged."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.a2a.types import (
    MessageAdded,
    PushConfig,
    Task,
    TaskQuery,
    TaskState,
    TaskStatus,
)
from discreet.agents.stores.interface import (
    MESSAGE,
    QUEUED,
    OwnerRequest,
    PushTarget,
    StoredTask,
    StoreError,
    TaskChange,
)
from discreet.agents.stores.sqlite.schema import VERSION, check_pages, connect
from discreet.agents.stores.sqlite.store import SqliteStore
from support import task_changes
from support.logged_events import LoggedEvents
from support.sqlite_files import opened, refused
from support.task_changes import at, said

pytestmark = pytest.mark.anyio


TARGET = PushTarget(PushConfig("https://example.org", "p", "t"), "1.0")


def change(task_id: str, *events: MessageAdded, **options: Any) -> TaskChange:
    task = Task(task_id, "c", TaskStatus(TaskState.INPUT_REQUIRED, timestamp=at(0)))
    return task_changes.change(task, *events, **options)


def run_sql(path: str, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.create_function("row_checksum", -1, lambda *values: 0)
        for statement in statements:
            connection.execute(statement)


# -- files that are taken away -----------------------------------------------------------------------------------


def remove(file: str) -> None:
    os.unlink(file)


def replace(file: str) -> None:
    shutil.copyfile(file, f"{file}.other")
    os.replace(f"{file}.other", file)


def empty(file: str) -> None:
    os.truncate(file, 0)


TAKEN_AWAY = [(suffix, how) for suffix in ("", "-wal", "-shm") for how in (remove, replace)]


@pytest.mark.skipif(sys.platform == "win32", reason="an open file can't be removed")
@pytest.mark.parametrize(("suffix", "how"), TAKEN_AWAY, ids=lambda value: getattr(value, "__name__", value or "main"))
async def test_no_commit_is_acknowledged_after_a_file_was_removed_or_replaced(
    path: str, suffix: str, how: Callable[[str], None]
) -> None:
    async with opened(SqliteStore(path)) as store:
        assert await store.commit([change("a", snapshot=True)]) == [None]
        how(path + suffix)
        repeated: list[bool] = []
        for _ in range(3):
            with pytest.raises(StoreError, match="removed or replaced") as error:
                await store.commit([change("b", snapshot=True)])
            repeated.append(error.value.repeated)
            with pytest.raises(StoreError):
                await store.put_push_target("a", TARGET)
            with pytest.raises(StoreError):
                await store.probe()
        assert repeated == [False, True, True]


@pytest.mark.skipif(sys.platform == "win32", reason="an open file can't be truncated")
async def test_no_commit_is_acknowledged_after_the_log_was_overwritten(path: str) -> None:
    async with opened(SqliteStore(path)) as store:
        assert await store.commit([change("a", snapshot=True)]) == [None]
        empty(f"{path}-wal")
        with pytest.raises(StoreError):
            await store.commit([change("b", snapshot=True)])
        with pytest.raises(StoreError):
            await store.commit([change("c", snapshot=True)])


@pytest.mark.skipif(sys.platform == "win32", reason="an open file can't be removed")
async def test_what_was_acknowledged_before_the_log_was_removed_is_saved(path: str) -> None:
    async with opened(SqliteStore(path)) as store:
        assert await store.commit([change("a", said("x"), snapshot=True)]) == [None]
        os.unlink(f"{path}-wal")
        os.unlink(f"{path}-shm")
        with pytest.raises(StoreError):
            await store.commit([change("b", snapshot=True)])
        shutil.copyfile(path, f"{path}.copy")  # as a killed daemon leaves it
    async with opened(SqliteStore(f"{path}.copy")) as store:
        stored = await store.load("a")
        assert stored is not None and stored.snapshot.history == (said("x").message,)


async def test_a_checkpoint_by_another_program_is_no_loss(path: str) -> None:
    async with opened(SqliteStore(path)) as store:
        await store.commit([change("a", snapshot=True)])
        run_sql(path, "PRAGMA wal_checkpoint(TRUNCATE)")
        assert await store.commit([change("b", snapshot=True)]) == [None]


# -- rows that are changed behind our back -----------------------------------------------------------------------


async def make(path: str) -> None:
    """A store with one task: a snapshot, three events after it, and a push target."""
    async with opened(SqliteStore(path)) as store:
        await store.commit([change("t", snapshot=True)])
        for n in range(1, 4):
            await store.commit([change("t", said("hello"), expected=n)])
        await store.put_push_target("t", TARGET)


async def test_a_file_without_its_daemons_gives_no_number_twice(path: str) -> None:
    await make(path)
    async with opened(SqliteStore(path)) as store:
        before = await store.load("t")
        run_sql(path, "DELETE FROM daemons")
        assert await store.commit([change("u"), change("v")]) == [None, None]
        assert await store.load("t") == before
        assert [task.id for task in (await store.list(TaskQuery(scope="me"))).tasks] == ["v", "u", "t"]
        with anyio.move_on_after(0.1):
            await store.wait_for_changes(0.01)


async def test_a_changed_push_target_is_a_failure(path: str) -> None:
    await make(path)
    async with opened(SqliteStore(path)) as store:
        run_sql(path, "UPDATE push_targets SET body = CAST(replace(body, 'example.org', 'example.com') AS BLOB)")
        with pytest.raises(StoreError, match="of task t "):
            await store.load_push_targets("t")


async def test_a_changed_request_to_an_owner_is_told_and_keeps_no_other_waiting(
    path: str, logged: LoggedEvents
) -> None:
    async with opened(SqliteStore(path)) as store:
        await store.commit([change(name, owner=store.owner_id) for name in "tu"])
        for name in "tu":
            assert await store.send_owner_request(OwnerRequest(name, MESSAGE, b"body"))
        run_sql(path, "UPDATE owner_requests SET body = x'00' WHERE row = 1")
        assert list(await store.take_owner_requests()) == [OwnerRequest("u", MESSAGE, b"body")]
        assert list(await store.take_owner_requests()) == []
    assert logged.names() == ["store.failed"]


async def test_a_changed_row_of_a_queued_task_keeps_no_other_waiting(path: str) -> None:
    async with opened(SqliteStore(path)) as store:
        await store.commit([change(name, owner=QUEUED) for name in "tu"])
        run_sql(path, "UPDATE tasks SET scope = 'you' WHERE id = 't'")
        assert list(await store.claim(1)) == ["u"]
        assert list(await store.claim(1)) == []
        with pytest.raises(StoreError, match="of task t "):
            await store.load("t")


# -- pages that are damaged --------------------------------------------------------------------------------------


async def everything(path: str) -> dict[str, StoredTask | None]:
    async with opened(SqliteStore(path)) as store:
        return {f"{n}": await store.load(f"{n}") for n in range(40)}


async def test_a_damaged_byte_is_an_error_and_never_another_answer(tmp_path: Path) -> None:
    path, copy = str(tmp_path / "tasks.db"), str(tmp_path / "copy.db")
    async with opened(SqliteStore(path)) as store:
        for n in range(40):
            await store.commit([change(f"{n}", said("x" * 100), snapshot=True)])
            await store.commit([change(f"{n}", said("y" * 100), expected=2)])
    intact = await everything(path)
    content, seed, refused = Path(path).read_bytes(), random.Random(20260101), 0
    for _ in range(80):
        damaged, position = bytearray(content), seed.randrange(100, len(content))
        damaged[position : position + 8] = seed.randbytes(8)
        Path(copy).write_bytes(damaged)
        try:
            assert await everything(copy) == intact, position
        except StoreError:
            refused += 1
        for leftover in tmp_path.glob("copy.db?*"):
            leftover.unlink()
    assert refused > 12


async def test_a_damaged_index_is_found_when_the_file_is_opened(path: str) -> None:
    await make(path)
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_tasks_1'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(Path(path).read_bytes())
    start = (page - 1) * size
    content[start : start + size] = content[start : start + size].replace(b"t", b"u")
    Path(path).write_bytes(content)
    assert "damaged" in await refused(path)


async def test_a_file_that_takes_too_long_to_check_is_opened(path: str, logged: LoggedEvents) -> None:
    await make(path)
    with closing(connect(path)) as connection:
        check_pages(connection, path, 0.0)
        assert logged.names() == ["store.unchecked"]
    async with opened(SqliteStore(path)) as store:
        assert await store.load("t") is not None


@pytest.mark.parametrize("version", [-5, -1, VERSION + 1, 2**31 - 1])
async def test_a_file_of_a_version_that_is_not_ours_is_refused_and_left_unchanged(path: str, version: int) -> None:
    await make(path)
    run_sql(path, f"PRAGMA user_version = {version}")
    before = Path(path).read_bytes()
    assert "version" in await refused(path)
    assert Path(path).read_bytes() == before


async def test_a_file_with_tables_and_no_version_is_refused(path: str) -> None:
    await make(path)
    run_sql(path, "PRAGMA user_version = 0")
    assert "is not a store of this version" in await refused(path)


SHAPES = ["DROP TABLE snapshots", "DROP TABLE daemons", "ALTER TABLE snapshots DROP COLUMN checksum"]


@pytest.mark.parametrize("statement", SHAPES)
async def test_a_file_without_one_of_the_tables_or_columns_is_refused(path: str, statement: str) -> None:
    await make(path)
    run_sql(path, statement)
    assert "is not a store of this version" in await refused(path)


@pytest.mark.parametrize("statement", [SHAPES[0], SHAPES[2]])
async def test_a_daemon_is_not_ready_when_its_file_has_lost_a_table_or_a_column(path: str, statement: str) -> None:
    await make(path)
    async with opened(SqliteStore(path)) as store:
        await store.probe()
        run_sql(path, statement)
        with pytest.raises(StoreError, match="is not a store of this version"):
            await store.probe()


# -- who may read the files --------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
async def test_files_that_others_may_read_become_private_with_a_warning(
    path: str, tmp_path: Path, logged: LoggedEvents
) -> None:
    async with opened(SqliteStore(path)) as store:
        await store.commit([change("t")])
        for file in (path, f"{path}-wal", f"{path}-shm"):
            os.chmod(file, 0o644)
        async with opened(SqliteStore(path)):
            assert {entry.stat().st_mode & 0o777 for entry in tmp_path.iterdir()} == {0o600}
    assert logged.names() == ["store.permissions"] * 3


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can give files away")
async def test_files_of_another_user_that_others_may_read_are_refused(path: str) -> None:
    await make(path)
    os.chmod(path, 0o644)
    os.chown(path, 12345, 12345)
    assert "another user" in await refused(path)
    assert os.stat(path).st_mode & 0o777 == 0o644


# -- what is no store's file -------------------------------------------------------------------------------------


def link_to_a_file(path: str) -> None:
    Path(f"{path}.other").write_bytes(b"")
    os.chmod(f"{path}.other", 0o644)
    os.symlink(f"{path}.other", path)


KINDS: dict[str, Callable[[str], None]] = {
    "a pipe": lambda path: os.mkfifo(path, 0o666),
    "a folder": os.mkdir,
    "a device": lambda path: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3)),
}


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", [*KINDS, "a link"])
async def test_what_is_no_regular_file_is_refused_and_left_as_it_was(
    path: str, tmp_path: Path, kind: str, suffix: str, logged: LoggedEvents
) -> None:
    make = KINDS.get(kind, link_to_a_file)
    if (kind, suffix) == ("a link", ""):
        pytest.skip("the path of a store may be a link")
    if kind == "a device" and os.geteuid() != 0:
        pytest.skip("only root makes devices")
    make(path + suffix)
    if kind != "a link":
        os.chmod(path + suffix, 0o666)
    before = {entry.name: entry.lstat() for entry in tmp_path.iterdir()}
    assert "is no regular file" in await refused(path)
    assert {entry.name: entry.lstat() for entry in tmp_path.iterdir()} == before
    assert logged.names() == []


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
async def test_a_file_that_is_refused_keeps_its_mode_and_says_one_line(path: str, logged: LoggedEvents) -> None:
    await make(path)
    run_sql(path, "DROP TABLE snapshots")
    os.chmod(path, 0o644)
    assert "is not a store of this version" in await refused(path)
    assert os.stat(path).st_mode & 0o777 == 0o644
    assert logged.names() == []
