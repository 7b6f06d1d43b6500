"""Stores on files: opened for a while, or refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from discreet.agents.stores.interface import StoreError, TaskStore
from discreet.agents.stores.sqlite.store import SqliteStore

S = TypeVar("S", bound=TaskStore)


@asynccontextmanager
async def opened(store: S) -> AsyncIterator[S]:
    """Any store, open during the block."""
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def refused(path: str) -> str:
    """The error of opening a store there, which is one line."""
    with pytest.raises(StoreError) as error:
        await SqliteStore(path).open()
    (line,) = str(error.value).splitlines()
    assert path in line
    return line
