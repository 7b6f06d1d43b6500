"""Reading a store from outside: by a program that is no daemon, owns nothing and leaves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from discreet.a2a.types import TaskQuery
from discreet.agents.stores.interface import LogTruncatedError, StoreError, TaskStore
from discreet.agents.stores.sqlite.store import SqliteStore
from support.places import NewStore
from support.sqlite_files import opened
from support.task_changes import a_task, commit_all, current, said, to_create


@pytest.mark.anyio
async def test_a_reader_sees_what_a_daemon_stores_and_nothing_hears_of_it(shared: NewStore) -> None:
    reading: Any = shared()
    async with opened(shared()) as daemon:
        await commit_all(daemon, to_create(a_task("t"), said("1"), scope="ada", owner=daemon.owner_id))
        reader = reading.open_reader()
        try:
            page = reader.list(TaskQuery(scope=None))
            assert ([task.id for task in page.tasks], page.scopes, page.owners) == (["t"], ("ada",), (daemon.owner_id,))
            assert [logged.event for logged in reader.read("t", after=1)] == [said("1")]
            await commit_all(daemon, to_create(a_task("u")))
            assert current(reader.load("u")) == a_task("u")
            assert reader.load("v") is None
            with pytest.raises(LogTruncatedError):
                reader.read("v", after=0)
            with pytest.raises(ValueError):
                reader.list(TaskQuery(scope=None, page_token="x"))
            assert not await daemon.list_orphans()
        finally:
            reader.close()


@pytest.mark.anyio
async def test_a_reader_changes_no_byte_of_a_file_and_the_next_daemon_removes_what_sqlite_left_beside_it(
    path: str,
) -> None:
    store: TaskStore = SqliteStore(path)
    async with opened(store):
        await commit_all(store, to_create(a_task("t")))
    before = Path(path).read_bytes()
    reader = SqliteStore(path).open_reader()
    assert len(reader.list(TaskQuery(scope=None)).tasks) == 1
    reader.close()
    assert Path(path).read_bytes() == before
    async with opened(SqliteStore(path)):
        pass
    assert [file.name for file in Path(path).parent.iterdir()] == [Path(path).name]


def test_a_reader_creates_no_file(path: str) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        SqliteStore(path).open_reader()
    assert not Path(path).exists()


@pytest.mark.parametrize(("content", "says"), [(b"", "no store yet"), (b"x" * 5000, "not a SQLite database")])
def test_a_file_that_is_no_store_is_refused_in_one_line_and_left_as_it_is(path: str, content: bytes, says: str) -> None:
    Path(path).write_bytes(content)
    with pytest.raises(StoreError, match=says):
        SqliteStore(path).open_reader()
    assert Path(path).read_bytes() == content
