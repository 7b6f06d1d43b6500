"""The index of the workspace's files: built, kept up to date, bounded."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from discreet import Context, Service, lsp
from discreet.daemon.operations.service import DeclarationError
from discreet.dialects.lsp import index as module
from support.logged_events import LoggedEvents
from support.lsp_messages import note, opened
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

RUN = "workspace/executeCommand"
WATCHED = "workspace/didChangeWatchedFiles"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLE_SECONDS", 0)


def words(document: lsp.TextDocument) -> list[str]:
    if document.text == "crash":
        raise RuntimeError("crash")
    return document.text.split()


def server(build: Callable[[lsp.TextDocument], Any] = words, **options: Any) -> Service:
    service = Service("w", dialect="lsp")
    index = lsp.WorkspaceIndex(service, "**/*.{txt,md}", build, **options)

    @service.command
    async def ready(ctx: Context) -> Mapping[str, Any]:
        return await index.ready(ctx)

    @service.command
    def entries(ctx: Context) -> Mapping[str, Any]:
        return index.entries(ctx)

    return service


async def greet(wire: Any, *folders: Path, **capabilities: Any) -> None:
    named = [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]
    await wire.call("initialize", {"capabilities": capabilities, "workspaceFolders": named})
    await wire.send(note("initialized"))


async def found(wire: Any, command: str = "ready") -> dict[str, Any]:
    result: dict[str, Any] = (await wire.call(RUN, {"command": f"w.{command}"}))["result"]
    return {uri.rpartition("/")[2]: value for uri, value in result.items()}


async def becomes(wire: Any, wanted: dict[str, Any]) -> None:
    async def is_so() -> bool:
        return await found(wire, "entries") == wanted

    await until(is_so)


async def test_the_files_of_the_folders_are_indexed_and_others_are_not(serving: Any, tmp_path: Path) -> None:
    for name in ("a.txt", "b.rst", "deep/er/c.md", ".git/d.txt", "node_modules/e.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"in {name}")
    (tmp_path / "latin.txt").write_bytes(b"\xe9\xff")
    if sys.platform == "linux":
        os.mkfifo(tmp_path / "pipe.txt")  # nothing writes to it
        (tmp_path / "zero.txt").symlink_to("/dev/zero")
        (tmp_path / os.fsdecode(b"\xff.txt")).write_text("a name that is no text")
    async with serving(server()) as wire:
        await greet(wire, tmp_path)
        assert await found(wire) == {"a.txt": ["in", "a.txt"], "c.md": ["in", "deep/er/c.md"]}


async def test_open_documents_take_precedence_over_their_files(serving: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("file")
    async with serving(server()) as wire:
        await greet(wire, tmp_path)
        assert await found(wire) == {"a.txt": ["file"]}
        await wire.send(opened(path.as_uri(), "open"))
        await becomes(wire, {"a.txt": ["open"]})
        path.write_text("new")
        await wire.send(note(WATCHED, {"changes": [{"uri": path.as_uri(), "type": 2}]}))
        (tmp_path / "b.txt").write_text("other")
        await wire.send(note(WATCHED, {"changes": [{"uri": (tmp_path / "b.txt").as_uri(), "type": 1}]}))
        await becomes(wire, {"a.txt": ["open"], "b.txt": ["other"]})
        await wire.send(note("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}}))
        await becomes(wire, {"a.txt": ["new"], "b.txt": ["other"]})


async def test_files_are_watched_by_the_client_where_it_can(serving: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one")
    async with serving(server()) as wire:
        await greet(wire, tmp_path, workspace={"didChangeWatchedFiles": {"dynamicRegistration": True}})
        asked = await wire.receive()
        (registered,) = asked["params"]["registrations"]
        assert (asked["method"], registered["method"]) == ("client/registerCapability", WATCHED)
        assert registered["registerOptions"] == {"watchers": [{"globPattern": "**/*.{txt,md}"}]}
        await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": None})
        assert await found(wire) == {"a.txt": ["one"]}
        path.unlink()
        outside = {"uri": (tmp_path.parent / "x.txt").as_uri(), "type": 1}
        await wire.send(note(WATCHED, {"changes": [{"uri": path.as_uri(), "type": 3}, outside]}), note(WATCHED, {}))
        await becomes(wire, {})


async def test_folders_come_and_go(serving: Any, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        (folder / f"{folder.name}.txt").write_text(folder.name)
    async with serving(server()) as wire:
        await greet(wire, one)
        assert await found(wire) == {"one.txt": ["one"]}
        event = {"added": [{"uri": two.as_uri(), "name": ""}], "removed": [{"uri": one.as_uri(), "name": ""}]}
        await wire.send(note("workspace/didChangeWorkspaceFolders", {"event": event}))
        await becomes(wire, {"two.txt": ["two"]})


async def test_files_and_bytes_have_limits_and_a_crash_is_a_line_of_the_log(
    serving: Any, tmp_path: Path, logged: LoggedEvents
) -> None:
    for name, text in (("a", "aa"), ("b", "crash"), ("c", "crash"), ("d", "dd"), ("e", "eeeeee")):
        (tmp_path / f"{name}.txt").write_text(text)
    async with serving(server(max_bytes=8)) as wire:
        await greet(wire, tmp_path)
        assert await found(wire) == {"a.txt": ["aa"], "d.txt": ["dd"]}
        await found(wire)
        events = logged()
    assert [fields["files"] for event, fields in events if event == "index.failed"] == [2]
    assert [event for event, _ in events].count("index.full") == 1
    async with serving(server(max_files=1)) as wire:
        await greet(wire, tmp_path)
        assert await found(wire) == {"a.txt": ["aa"]}


async def test_the_client_sees_progress(serving: Any, tmp_path: Path) -> None:
    for number in range(module.BATCH + 1):
        (tmp_path / f"{number}.txt").write_text("a")
    async with serving(server(title="Reading")) as wire:
        await greet(wire, tmp_path, window={"workDoneProgress": True})
        asked = await wire.receive()
        assert asked["method"] == "window/workDoneProgress/create"
        await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": None})
        values = [message["params"]["value"] for message in await wire.receive_all(4)]
        assert [value["kind"] for value in values] == ["begin", "report", "report", "end"]
        assert values[0]["title"] == "Reading"
        assert [value.get("percentage") for value in values[1:3]] == [98, 100]


async def test_the_session_ends_while_files_are_read(serving: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    begun, go = threading.Event(), threading.Event()

    def slow(document: lsp.TextDocument) -> None:
        begun.set()
        assert go.wait(DEADLINE_SECONDS)

    async with serving(server(slow)) as wire:
        await greet(wire, tmp_path)
        await until(begun.is_set)
        await wire.call("shutdown")
        await wire.send(note("exit"))
        go.set()
        assert await wire.end() == 0


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("**/*.md", ["a.md", "x/y/a.md"], ["a.txt", "a.md/b"]),
        ("docs/*.txt", ["docs/a.txt"], ["docs/x/a.txt", "a.txt"]),
        ("src/**", ["src/a", "src/b/c"], ["a"]),
        ("[!a-c]?.{py,pyi}", ["dx.py", "dx.pyi"], ["ax.py", "d.py", "dx.pyx"]),
    ],
)
def test_patterns_are_those_of_lsp(pattern: str, matching: list[str], others: list[str]) -> None:
    matches = module._matcher(pattern)
    assert [path for path in [*matching, *others] if matches(path)] == matching


def test_a_wrong_declaration_says_what_to_write() -> None:
    service = Service("w", dialect="lsp")
    for wrong in ((None, "**", words), (service, 5, words), (service, "**", None), (service, "{a", words)):
        with pytest.raises(DeclarationError, match="pattern|write"):
            lsp.WorkspaceIndex(*wrong)  # type: ignore[arg-type]
