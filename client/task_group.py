"""A task group for background tasks that end with the body of a `with` block."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from anyio import create_task_group
from anyio.abc import TaskGroup


@asynccontextmanager
async def background_tasks() -> AsyncGenerator[TaskGroup]:
    """A task group whose tasks are cancelled when the body ends, however it ends.

    A plain task group wraps every exception in an exception group. This one raises a single exception unwrapped, so that
    `except OperationFailed` around a connection works as written.
    """
    single: BaseException | None = None
    try:
        async with create_task_group() as tasks:
            try:
                yield tasks
            finally:
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        single = group.exceptions[0]
    if single is not None:  # raised here, because in the handler the group would become its context
        raise single
