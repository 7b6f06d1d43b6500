"""Stores: opened for a while, refused, or away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from discreet.agents.stores.interface import StoreError, StoreUnavailableError, TaskStore
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


async def refusal(store: TaskStore) -> str:
    """The error of opening it, which is one line."""
    with pytest.raises(StoreError) as error:
        await store.open()
    (line,) = str(error.value).splitlines()
    return line


async def refused(path: str) -> str:
    """The error of opening a store on this file."""
    line = await refusal(SqliteStore(path))
    assert path in line
    return line


async def works(store: TaskStore) -> bool:
    """Whether its server is there."""
    try:
        await store.probe()
        await store.load("t")
    except StoreUnavailableError:
        return False
    return True
