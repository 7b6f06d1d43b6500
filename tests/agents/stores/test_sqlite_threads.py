"""How the SQLite store opens and closes: its threads, with and without an event loop, and while others lock the file."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from time import monotonic

import anyio
import anyio.lowlevel
import pytest

from discreet.a2a.types import PushConfig
from discreet.agents.stores.interface import PushTarget, StoreError
from discreet.agents.stores.sqlite.schema import BUSY_SECONDS
from discreet.agents.stores.sqlite.store import CLOSE_SECONDS, SqliteStore

pytestmark = pytest.mark.anyio

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
