"""What `fs/watch` reports, with and without reports of the system."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.errors import OperationError
from discreet.files import types
from discreet.files.root import Root
from discreet.files.service import file_service
from discreet.files.types import MAX_EVENT_CHANGES, Change, Changes
from discreet.files.watch import FileWatcher
from support.fs import Request
from support.waits import DEADLINE_SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.again]

DOCUMENT = Path(__file__).parents[2] / "docs" / "fs.md"


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """One loop is enough for what is reported: the watcher asks it for threads and for sleep. Over the wire it is the other."""
    return "trio" if "serving" in request.fixturenames else "asyncio"


class Watch:
    """One running watch; what it told, in order."""

    def __init__(self, events: AsyncIterator[Changes]) -> None:
        self._events = events

    async def next(self) -> list[Change]:
        with anyio.fail_after(DEADLINE_SECONDS):
            return list((await anext(self._events)).changes)

    async def until(self, *wanted: tuple[str, str, str]) -> None:
        """Wait until all of these were told, in whatever events; nothing else may be."""
        missing = list(wanted)
        while missing:
            for change in await self.next():
                missing.remove((change.change, change.path, change.kind))


def put(path: Path, text: str) -> None:
    """Make or change a file in one step: a look in the middle of a write would tell of two."""
    beside = path.parents[1].with_name(f"{path.parent.name}-{path.name}")  # outside of what is watched
    beside.write_text(text)
    beside.rename(path)


Open = Callable[..., Any]


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.needs("watchfiles"))])
def watching(tmp_path: Path, request: pytest.FixtureRequest) -> Open:
    """`async with watching(path=…) as watch:` runs a watch that has begun."""

    @asynccontextmanager
    async def run(path: str = ".", **params: Any) -> AsyncIterator[Watch]:
        with closing(Root(str(tmp_path))) as root:
            events = FileWatcher(root, native=request.param).watch(Request(), path, **{"interval": 0.1, **params})
            watch = Watch(events)
            try:
                assert await watch.next() == []
                yield watch
            finally:
                await events.aclose()  # type: ignore[attr-defined]

    return run


async def test_files_are_created_modified_and_deleted(watching: Open, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("old")
    async with watching() as watch:
        put(tmp_path / "new.txt", "new")
        await watch.until(("created", "new.txt", "file"))
        put(tmp_path / "old.txt", "longer")
        await watch.until(("modified", "old.txt", "file"))
        (tmp_path / "old.txt").unlink()
        await watch.until(("deleted", "old.txt", "file"))


async def test_directories_are_followed_as_they_come_and_go(watching: Open, tmp_path: Path) -> None:
    async with watching() as watch:
        (tmp_path / "a" / "b").mkdir(parents=True)
        await watch.until(("created", "a", "directory"), ("created", "a/b", "directory"))
        (tmp_path / "a" / "b" / "deep.txt").touch()
        await watch.until(("created", "a/b/deep.txt", "file"))
        shutil.rmtree(tmp_path / "a")
        await watch.until(
            ("deleted", "a", "directory"), ("deleted", "a/b", "directory"), ("deleted", "a/b/deep.txt", "file")
        )


async def test_without_recursive_only_the_directory_itself_is_watched(watching: Open, tmp_path: Path) -> None:
    (tmp_path / "sub" / "below").mkdir(parents=True)
    async with watching("sub", recursive=False) as watch:
        (tmp_path / "sub" / "below" / "unseen").touch()
        (tmp_path / "beside").touch()
        (tmp_path / "sub" / "seen").touch()
        await watch.until(("created", "sub/seen", "file"))


async def test_a_name_that_becomes_something_else_is_deleted_and_created(watching: Open, tmp_path: Path) -> None:
    (tmp_path / "name").touch()
    (tmp_path / "other").mkdir()
    async with watching() as watch:
        (tmp_path / "name").unlink()
        (tmp_path / "other").rename(tmp_path / "name")
        told: list[Change] = []
        while len(told) < 3:
            told += await watch.next()
        assert [(c.change, c.kind) for c in told if c.path == "name"] == [("deleted", "file"), ("created", "directory")]
        assert Change("deleted", "other", "directory") in told


async def test_links_are_told_of_and_not_followed(watching: Open, tmp_path: Path, tmp_path_factory: Any) -> None:
    outside = tmp_path_factory.mktemp("outside")
    async with watching() as watch:
        os.symlink(outside, tmp_path / "link")
        await watch.until(("created", "link", "symlink"))
        (outside / "secret").touch()
        (tmp_path / "last").touch()
        await watch.until(("created", "last", "file"))


async def test_stores_of_version_control_are_passed_over_unless_named(watching: Open, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    async with watching() as watch, watching(".git") as inside:
        (tmp_path / ".git" / "index").touch()
        await inside.until(("created", ".git/index", "file"))
        (tmp_path / "last").touch()
        await watch.until(("created", "last", "file"))


async def test_many_changes_come_in_events_of_a_bounded_size(watching: Open, tmp_path: Path) -> None:
    count = MAX_EVENT_CHANGES * 2 + 10
    async with watching(interval=0.3) as watch:
        for number in range(count):
            (tmp_path / f"{number:04}").touch()
        told: list[Change] = []
        while len(told) < count:
            event = await watch.next()
            assert 0 < len(event) <= MAX_EVENT_CHANGES
            told += event
        assert sorted(change.path for change in told if change.change == "created") == [f"{n:04}" for n in range(count)]


async def test_a_directory_that_goes_away_ends_the_watch_with_an_error(watching: Open, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    async with watching("sub") as watch:
        (tmp_path / "sub").rmdir()
        with pytest.raises(types.FileNotFound):
            await watch.next()


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("missing", types.FileNotFound),
        ("file", types.NotADirectory),
        ("../up", types.OutsideRoot),
        ("link", types.OutsideRoot),
    ],
)
async def test_what_can_not_be_watched_is_the_declared_error(
    watching: Open, tmp_path: Path, path: str, error: type[OperationError]
) -> None:
    (tmp_path / "file").touch()
    os.symlink(tmp_path, tmp_path / "link")
    with pytest.raises(error):
        async with watching(path):
            raise AssertionError("it was watched")


@pytest.mark.skipif(sys.platform == "win32", reason="names of any bytes are POSIX")
async def test_names_that_are_no_text_are_passed_over(watching: Open, tmp_path: Path) -> None:
    async with watching() as watch:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).touch()
        (tmp_path / "text").touch()
        await watch.until(("created", "text", "file"))


async def test_over_the_wire_a_watch_begins_tells_and_is_cancelled(serving: Any, tmp_path: Path) -> None:
    async with serving(file_service(str(tmp_path), allow_write=True)) as wire:
        watch = wire.request("fs/watch", {"interval": 0.1})
        await wire.send(watch)
        first = await wire.receive()
        assert first["method"] == "stream/event"
        assert first["params"]["value"] == {"changes": []}
        await wire.send(wire.request("fs/write", {"path": "new.txt", "content": "x"}))
        told: list[Any] = []
        while not any(change["path"] == "new.txt" for change in told):
            message = await wire.receive()
            if message.get("method") == "stream/event":
                told += message["params"]["value"]["changes"]
        assert {"change": "created", "path": "new.txt", "kind": "file"} in told
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": watch["id"]}})
        answer = await wire.receive()
        while "id" not in answer:
            answer = await wire.receive()
        assert answer["error"]["code"] == -32800


async def test_the_example_of_the_document_is_what_happens(serving: Any, tmp_path: Path) -> None:
    (block,) = re.findall(r"```jsonl\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    request, *events = map(json.loads, block.splitlines())
    (tmp_path / "src").mkdir()
    put(tmp_path / "src" / "app.py", "")
    async with serving(file_service(str(tmp_path), allow_write=False)) as wire:
        await wire.send(request)
        assert await wire.receive() == events[0]
        put(tmp_path / "src" / "app.py", "pass")
        assert await wire.receive() == events[1]


async def test_more_names_than_can_be_watched_end_the_watch_with_an_error(tmp_path: Path) -> None:
    put(tmp_path / "one", "")
    with closing(Root(str(tmp_path))) as root:
        events = FileWatcher(root, native=False, max_entries=2).watch(Request(), interval=0.1)
        assert (await anext(events)).changes == ()
        put(tmp_path / "two", "")
        assert (await anext(events)).changes == (Change("created", "two", "file"),)
        put(tmp_path / "three", "")
        with pytest.raises(types.TooManyEntries) as refused:
            await anext(events)
        assert (refused.value.path, refused.value.limit) == (".", 2)


def names_remembered(wire: Any) -> int:
    return wire.daemon.host.memory.by_kind()["handlers"]  # type: ignore[no-any-return]


async def test_what_a_watch_remembers_is_counted_until_it_ends(serving: Any, tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number}").touch()
    async with serving(file_service(str(tmp_path), allow_write=True)) as wire:
        watch = wire.request("fs/watch", {"interval": 0.1})
        await wire.send(watch)
        assert (await wire.receive())["method"] == "stream/event"
        counted = names_remembered(wire)
        assert counted > 100 * 2 * 200
        put(tmp_path / "new.txt", "x")
        assert (await wire.receive())["method"] == "stream/event"
        assert names_remembered(wire) > counted
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": watch["id"]}})
        assert (await wire.receive())["error"]["code"] == -32800
        with anyio.fail_after(DEADLINE_SECONDS):
            while names_remembered(wire):
                await anyio.lowlevel.checkpoint()


async def test_a_watch_whose_names_do_not_fit_is_overloaded(serving: Any, tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    async with serving(file_service(str(tmp_path), allow_write=False)) as wire:
        memory = wire.daemon.host.memory
        memory.add("tasks", memory.limit - 300)
        assert (await wire.call("fs/watch"))["error"]["data"]["code"] == "OVERLOADED"
        assert names_remembered(wire) == 0
        memory.add("tasks", -300)
        await wire.send(wire.request("fs/watch", {}))
        assert (await wire.receive())["params"]["value"] == {"changes": []}
