"""An agent without a daemon around it: its handler over a store of the test's choice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from discreet.daemon.agents.executor import AgentExecutor
from discreet.daemon.agents.handler import Handler
from discreet.daemon.agents.runtime import Runtime
from discreet.daemon.agents.store import TaskStore
from discreet.daemon.agents.stores.memory import MemoryStore

Serving = Callable[..., AbstractAsyncContextManager[Handler]]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TaskStore:
    """Every kind of store, one after the other."""
    if request.param == "memory":
        return MemoryStore()
    from discreet.daemon.agents.stores.sqlite import SqliteStore

    return SqliteStore(str(tmp_path / "tasks.db"))


@pytest.fixture
def serving() -> Serving:
    """`async with serving(executor, store) as handler`: the agent runs until the block ends."""

    @asynccontextmanager
    async def serve(executor: AgentExecutor, store: TaskStore | None = None) -> AsyncIterator[Handler]:
        runtime = Runtime(store or MemoryStore(), executor, None, lambda live, event, dialect: None)
        async with anyio.create_task_group() as tasks:
            yield await runtime.ready(tasks.start_soon)
            tasks.cancel_scope.cancel()

    return serve
