"""`fs/search` and `fs/list` under load: however many come, everything else is answered, and a cancelled one stops."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.files.service import MAX_LISTINGS, MAX_SEARCHES, file_service

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]

SEARCHES = 64

SLOW = {"query": "ab", "words": True}
"""It stands everywhere and is a word nowhere: the most work that a text can make."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text("ab" * (1 << 20))
    return tmp_path


async def test_many_searches_hold_up_nothing_else(serving: Serving, tree: Path) -> None:
    async with serving(file_service(str(tree), allow_write=False)) as wire:
        await wire.send(*(wire.request("fs/search", SLOW, id=number) for number in range(SEARCHES)))
        version = await wire.call("version", id="version")
        assert version["id"] == "version"  # before the first search has ended
        assert wire.daemon.host.scheduler.counts()["threads_busy"] <= MAX_SEARCHES
        assert (await wire.call("fs/stat", {"path": "0.txt"}, id="stat"))["id"] == "stat"
        for number in range(SEARCHES):
            await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
        replies = await wire.receive_all(SEARCHES)
        assert {reply["id"] for reply in replies} == set(range(SEARCHES))
        assert all(reply["error"]["code"] == -32800 for reply in replies)


async def test_the_threads_of_cancelled_searches_are_free_again(serving: Serving, tree: Path) -> None:
    async with serving(file_service(str(tree), allow_write=False)) as wire:
        await wire.send(*(wire.request("fs/search", SLOW, id=number) for number in range(MAX_SEARCHES)))
        await wire.call("version", id="version")
        for number in range(MAX_SEARCHES):
            await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
        await wire.receive_all(MAX_SEARCHES)
        reply = await wire.call("fs/search", {"query": "ab", "limit": 1}, id="next")  # it needs one of their places
        assert reply["result"]["next"] == {"path": "0.txt", "offset": 2}
        with anyio.fail_after(5):
            while wire.daemon.host.scheduler.counts()["threads_busy"]:
                await anyio.lowlevel.checkpoint()


async def test_many_listings_hold_up_nothing_else(serving: Serving, tmp_path: Path) -> None:
    for number in range(1_000):
        (tmp_path / str(number)).touch()
    async with serving(file_service(str(tmp_path), allow_write=False)) as wire:
        await wire.send(*(wire.request("fs/list", {}, id=number) for number in range(SEARCHES)))
        await wire.send(wire.request("version", id="version"))
        replies = [await wire.receive()]
        assert wire.daemon.host.scheduler.counts()["threads_busy"] <= MAX_LISTINGS
        replies += await wire.receive_all(SEARCHES)
        assert "version" in [reply["id"] for reply in replies[: MAX_LISTINGS + 1]]
        assert [reply["id"] for reply in replies if "error" in reply] == []
