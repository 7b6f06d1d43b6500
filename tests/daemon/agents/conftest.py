"""An agent without a daemon: its request handler over a store that the test chooses."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.daemon.agents.service.request_handler import RequestHandler
from discreet.daemon.agents.service.runtime import Runtime
from discreet.daemon.agents.stores.interface import TaskStore
from discreet.daemon.agents.stores.memory import MemoryStore
from discreet.daemon.agents.tasks.executor import AgentExecutor

Serving = Callable[..., AbstractAsyncContextManager[RequestHandler]]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TaskStore:
    """Each kind of store."""
    if request.param == "memory":
        return MemoryStore()
    from discreet.daemon.agents.stores.sqlite.store import SqliteStore

    return SqliteStore(str(tmp_path / "tasks.db"))


@pytest.fixture
def serving() -> Serving:
    """`async with serving(executor, store) as handler`: the agent runs until the block ends."""

    @asynccontextmanager
    async def serve(
        executor: AgentExecutor, store: TaskStore | None = None, **options: Any
    ) -> AsyncIterator[RequestHandler]:
        async with anyio.create_task_group() as tasks:
            kept, write = store or MemoryStore(), lambda live, event, version: None
            yield await Runtime(tasks.start_soon, kept, executor, None, write, **options).ready()
            tasks.cancel_scope.cancel()

    return serve


class Killable:
    """An SQLite store whose daemon may be killed: `close` then leaves everything as the death of the process would."""

    def __init__(self, path: Path) -> None:
        from discreet.daemon.agents.stores.sqlite.store import SqliteStore

        self.store = SqliteStore(str(path))
        self.killed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def close(self) -> None:
        opened, self.store._opened = self.store._opened, None
        if opened is None:
            return
        with anyio.CancelScope(shield=True):
            if not self.killed:
                return await opened.close()
            opened.writer_thread.finish = None
            await opened.reader_thread.close()
            await opened.writer_thread.close()
            connections = opened.connections
            for connection in (connections.loop_reader, connections.reader, connections.writer):
                connection.close()
            os.close(connections.owner_lock._fd)  # this releases the lock; the file and the daemon's row stay


@pytest.fixture(scope="session")
def killable() -> Callable[[Path], Killable]:
    """A store on a file, whose `killed` may be set."""
    return Killable


@pytest.fixture
def daemon_on() -> Serving:
    """`async with daemon_on(path, executor, killed=True) as handler`: on an SQLite file; with `killed` the block ends as a killed process."""

    @asynccontextmanager
    async def serve(path: Path, executor: AgentExecutor, *, killed: bool = False) -> AsyncIterator[RequestHandler]:
        store = Killable(path)
        async with anyio.create_task_group() as tasks:
            yield await Runtime(tasks.start_soon, store, executor, None, lambda live, event, version: None).ready()
            store.killed = killed
            tasks.cancel_scope.cancel()

    return serve
