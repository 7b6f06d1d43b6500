"""Tasks that work behind the body of a `with` block and end with it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from anyio import create_task_group
from anyio.abc import TaskGroup


@asynccontextmanager
async def background_tasks() -> AsyncGenerator[TaskGroup]:
    """A task group whose tasks are cancelled when the body ends, however it ends.

    A task group wraps whatever leaves it in an exception group. Here a single exception leaves as it is, so that
    `except OperationFailed` around a connection works as written.
    """
    alone: BaseException | None = None
    try:
        async with create_task_group() as tasks:
            try:
                yield tasks
            finally:
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        alone = group.exceptions[0]
    if alone is not None:  # not raised in the handler, which would make the group its context
        raise alone
