"""An agent without a daemon: its request handler over a store that the test chooses."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.agents.executor import AgentExecutor
from discreet.agents.request_handler import RequestHandler
from discreet.agents.runtime import Runtime
from discreet.agents.stores.interface import TaskStore
from discreet.agents.stores.memory import MemoryStore
from support import redis
from support.daemon_wire import logged as logged  # noqa: PLC0414 - a fixture
from support.postgres import Server, running_server
from support.waits import DEADLINE_SECONDS

Serving = Callable[..., AbstractAsyncContextManager[RequestHandler]]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TaskStore:
    """Each kind of store."""
    if request.param == "memory":
        return MemoryStore()
    from discreet.agents.stores.sqlite.store import SqliteStore

    return SqliteStore(str(tmp_path / "tasks.db"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server of PostgreSQL for all tests of a process."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[redis.Server]:
    """A server of Redis for all tests of a process."""
    with redis.running_server() as server:
        yield server


@pytest.fixture
def serving() -> Serving:
    """`async with serving(executor, store) as handler`: the agent runs until the block ends."""

    @asynccontextmanager
    async def serve(
        executor: AgentExecutor, store: TaskStore | None = None, **options: Any
    ) -> AsyncIterator[RequestHandler]:
        async with anyio.create_task_group() as tasks:
            yield await Runtime(tasks.start_soon, store or MemoryStore(), executor, None, **options).handler.ready()
            tasks.cancel_scope.cancel()

    return serve


class Killable:
    """An SQLite store whose daemon may be killed: `close` then leaves behind what the death of the process would."""

    def __init__(self, path: Path) -> None:
        from discreet.agents.stores.sqlite.store import SqliteStore

        self.store = SqliteStore(str(path))
        self.killed = False
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def close(self) -> None:
        if not self.killed:
            return await self.store.close()
        with anyio.CancelScope(shield=True):  # as `SqliteStore.close`
            await self._close_as_killed()

    async def _close_as_killed(self) -> None:
        """Close, and restore the daemon's row and its lock file, which nobody locks any more."""
        owner_id = self.store.owner_id
        await self.store.delete_push_target("", "")  # after it nothing waits to be written
        with closing(sqlite3.connect(self._path, timeout=DEADLINE_SECONDS)) as file:
            (row,) = file.execute("SELECT writes, last_sequence FROM daemons WHERE owner_id = ?", (owner_id,))
            await self.store.close()
            with file:
                file.execute("INSERT INTO daemons VALUES (?, ?, ?)", (owner_id, *row))
                file.execute("UPDATE daemons SET writes = writes - ? WHERE owner_id = ''", row[:1])
        Path(f"{self._path}-daemon-{owner_id}").touch()


@pytest.fixture(scope="session")
def killable() -> Callable[[Path], Killable]:
    """A store on a file, whose `killed` may be set."""
    return Killable


@pytest.fixture
def daemon_on() -> Serving:
    """`async with daemon_on(path, executor, killed=True) as handler`: on an SQLite file; with `killed` the block ends as a killed process."""

    @asynccontextmanager
    async def serve(
        path: Path, executor: AgentExecutor, *, killed: bool = False, **options: Any
    ) -> AsyncIterator[RequestHandler]:
        store = Killable(path)
        async with anyio.create_task_group() as tasks:
            yield await Runtime(tasks.start_soon, store, executor, None, **options).handler.ready()
            store.killed = killed
            tasks.cancel_scope.cancel()

    return serve
