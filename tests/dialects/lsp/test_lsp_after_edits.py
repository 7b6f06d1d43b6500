"""Work after edits, and diagnostics from one function: pushed, pulled, cleared."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from discreet import Context, Service, lsp
from discreet.daemon.operations.service import DeclarationError
from discreet.dialects.lsp import after_edits
from support.logged_events import LoggedEvents
from support.lsp_messages import note, opened, shake_hands
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

URI = "file:///a.txt"
PULLS = {"textDocument": {"diagnostic": {}}}
PUBLISH, PULL = "textDocument/publishDiagnostics", "textDocument/diagnostic"


def changed(text: str, version: int, uri: str = URI) -> dict[str, Any]:
    document = {"uri": uri, "version": version}
    return note("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})


def closed(uri: str = URI) -> dict[str, Any]:
    return note("textDocument/didClose", {"textDocument": {"uri": uri}})


def whole(message: str) -> lsp.Diagnostic:
    return lsp.Diagnostic(range=lsp.Range(lsp.Position(0, 0), lsp.Position(0, 1)), message=message)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend


class Clock:
    """A clock that goes on where a test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self._moved: list[anyio.Event] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self._moved.append(event := anyio.Event())
            await event.wait()

    async def go_on(self, seconds: float) -> None:
        self.now += seconds
        for event in self._moved:
            event.set()
        self._moved.clear()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(after_edits, "monotonic", clock)
    monkeypatch.setattr(after_edits, "sleep", clock.sleep)
    return clock


@pytest.fixture(params=["def", "async def"])
def recorded(request: pytest.FixtureRequest) -> Callable[[Service, list[str]], None]:
    """Declares a function that records the texts that it sees."""

    def declare(service: Service, seen: list[str]) -> None:
        if request.param == "def":

            @lsp.after_edits(service, delay=3)
            def record(document: lsp.TextDocument) -> None:
                seen.append(document.text)
        else:

            @lsp.after_edits(service, delay=3)
            async def record_async(ctx: Context, document: lsp.TextDocument) -> None:
                assert ctx.documents[document.uri] is document
                seen.append(document.text)

    return declare


async def test_a_function_runs_after_the_delay_with_the_last_version_alone(
    serving: Any, clock: Clock, recorded: Callable[[Service, list[str]], None]
) -> None:
    service, seen = Service("w", dialect="lsp"), list[str]()
    recorded(service, seen)
    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send(opened(URI, "a"))
        await wire.nothing_more()
        await clock.go_on(2)
        await wire.send(changed("ab", 2))
        await wire.nothing_more()
        await clock.go_on(2)  # four seconds after the first version, two after the second
        await wire.send(changed("abc", 3))
        await wire.nothing_more()
        await anyio.wait_all_tasks_blocked()
        assert seen == []
        await clock.go_on(3)
        await until(lambda: seen)
        await wire.nothing_more()
        await clock.go_on(100)
        assert seen == ["abc"]


async def test_the_end_of_a_document_cancels_what_waits(
    serving: Any, clock: Clock, recorded: Callable[[Service, list[str]], None]
) -> None:
    service, seen = Service("w", dialect="lsp"), list[str]()
    recorded(service, seen)
    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send(opened(URI, "a"), closed(), opened("file:///b", "b"))
        await wire.nothing_more()
        await clock.go_on(3)
        await until(lambda: seen)
        assert seen == ["b"]
        await wire.send(closed("file:///b"), changed("c", 2, "file:///b"))
        await wire.nothing_more()
        await clock.go_on(3)
        await wire.nothing_more()
        assert seen == ["b"]


async def test_the_next_edit_cancels_a_coroutine(serving: Any) -> None:
    service, ends = Service("w", dialect="lsp"), list[str]()

    @lsp.after_edits(service, delay=0)
    async def check(document: lsp.TextDocument) -> None:
        try:
            if document.text == "endless":
                ends.append("begun")
                await anyio.sleep_forever()
        except BaseException:
            ends.append("cancelled")
            raise
        ends.append(document.text)

    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send(opened(URI, "endless"))
        await until(lambda: ends)
        await wire.send(changed("end", 2))
        await until(lambda: len(ends) == 3)
    assert ends == ["begun", "cancelled", "end"]


async def test_a_thread_is_told_of_the_next_edit_and_waited_for(serving: Any) -> None:
    service, ends = Service("w", dialect="lsp"), list[str]()
    running, go = threading.Lock(), threading.Event()

    @lsp.after_edits(service, delay=0)
    def check(ctx: Context, document: lsp.TextDocument) -> None:
        assert running.acquire(blocking=False), "two at once"
        with ctx_released(running):
            ends.append(document.text)
            if document.text == "a":
                assert ctx.wait_cancelled(DEADLINE_SECONDS)
                assert go.wait(DEADLINE_SECONDS)

    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send(opened(URI, "a"))
        await until(lambda: ends)
        await wire.send(changed("b", 2), changed("c", 3))
        await wire.nothing_more()
        assert ends == ["a"]
        go.set()
        await until(lambda: len(ends) == 2)
    assert ends == ["a", "c"]


class ctx_released:  # noqa: N801 - reads like a function
    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self._lock.release()


async def test_a_failure_is_a_line_of_the_log_and_the_next_edit_runs_again(serving: Any, logged: LoggedEvents) -> None:
    service, seen = Service("w", dialect="lsp"), list[str]()

    @lsp.after_edits(service, delay=0)
    def check(document: lsp.TextDocument) -> None:
        seen.append(document.text)
        if document.text == "bad":
            raise RuntimeError("bad")

    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send(opened(URI, "bad"))
        await until(lambda: "handler.failed" in dict(logged()))
        await wire.send(changed("good", 2))
        await until(lambda: seen == ["bad", "good"])


async def test_a_deadline_is_a_line_of_the_log(serving: Any, logged: LoggedEvents) -> None:
    service = Service("w", dialect="lsp")

    @lsp.after_edits(service, delay=0, timeout=0.01)
    async def check(document: lsp.TextDocument) -> None:
        await anyio.sleep_forever()

    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send(opened(URI, "a"))
        found: list[Any] = []
        await until(
            lambda: found.extend(fields for event, fields in logged() if event == "after_edits.failed") or found
        )
        assert (found[0]["method"], found[0]["failure"]) == ("w/$after_edits.check", "TimedOut")


async def test_nothing_runs_after_shutdown_and_the_session_ends_with_what_waits(
    serving: Any, clock: Clock, recorded: Callable[[Service, list[str]], None]
) -> None:
    service, seen = Service("w", dialect="lsp"), list[str]()
    recorded(service, seen)
    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send(opened(URI, "a"))
        await wire.call("shutdown")
        await clock.go_on(5)
        await anyio.wait_all_tasks_blocked()
        await wire.send(opened("file:///b", "b"))
        await clock.go_on(5)
        assert await wire.end() == 0
    assert seen == []


async def test_only_so_many_run_at_once_for_a_client(serving: Any) -> None:
    service, running = Service("w", dialect="lsp"), set[str]()
    most, go = [0], anyio.Event()

    @lsp.after_edits(service, delay=0)
    async def check(document: lsp.TextDocument) -> None:
        running.add(document.uri)
        most[0] = max(most[0], len(running))
        await go.wait()
        running.discard(document.uri)
        done.append(document.uri)

    done: list[str] = []
    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send(*(opened(f"file:///{n}", "a") for n in range(10)))
        await until(lambda: len(running) == after_edits.RUNS_AT_ONCE)
        await wire.nothing_more()
        go.set()
        await until(lambda: len(done) == 10)
    assert most == [after_edits.RUNS_AT_ONCE]


# Diagnostics.


def checker(**options: Any) -> tuple[Service, list[str]]:
    service, checked = Service("w", dialect="lsp"), list[str]()

    @lsp.diagnostics(service, delay=0, **options)
    def check(document: lsp.TextDocument) -> list[lsp.Diagnostic]:
        checked.append(document.text)
        return [whole(word) for word in document.text.split()]

    @service.command
    async def refresh(ctx: Context) -> None:
        await lsp.Editor(ctx).refresh("diagnostics")

    return service, checked


async def test_diagnostics_are_published_for_clients_that_do_not_pull_and_cleared_at_the_end(serving: Any) -> None:
    service, _ = checker()
    async with serving(service) as wire:
        result = await shake_hands(wire, textDocument={"publishDiagnostics": {"versionSupport": True}})
        announced = result["capabilities"]["diagnosticProvider"]
        assert announced == {"interFileDependencies": False, "workspaceDiagnostics": False}
        await wire.send(opened(URI, "one two", 7))
        told = await wire.receive()
        assert (told["method"], told["params"]["version"]) == (PUBLISH, 7)
        assert [one["message"] for one in told["params"]["diagnostics"]] == ["one", "two"]
        await wire.send(changed("three", 8))
        assert (await wire.receive())["params"]["version"] == 8
        await wire.send(closed())
        assert (await wire.receive())["params"] == {"uri": URI, "diagnostics": []}
        await wire.nothing_more()


async def test_the_version_is_left_out_for_clients_that_know_none(serving: Any) -> None:
    service, _ = checker()
    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send(opened(URI, ""))
        assert (await wire.receive())["params"] == {"uri": URI, "diagnostics": []}


async def test_a_function_may_run_when_documents_are_saved_alone_and_edits_do_not_cancel_it(serving: Any) -> None:
    service, seen, go = Service("w", dialect="lsp"), list[str](), threading.Event()

    @lsp.diagnostics(service, delay=0, on=["save"])
    def check(ctx: Context, document: lsp.TextDocument) -> list[lsp.Diagnostic]:
        seen.append(document.text)
        assert go.wait(DEADLINE_SECONDS)
        return [whole("cancelled" if ctx.cancelled else document.text)]

    saved = note("textDocument/didSave", {"textDocument": {"uri": URI}})
    async with serving(service) as wire:
        result = await shake_hands(wire, textDocument={"publishDiagnostics": {"versionSupport": True}})
        assert result["capabilities"]["textDocumentSync"] == {"openClose": True, "change": 2, "save": True}
        await wire.send(saved, opened(URI, "a"), changed("b", 2), saved)
        await until(lambda: seen)
        await wire.send(changed("c", 3))
        await wire.nothing_more()
        go.set()
        told = (await wire.receive())["params"]
        assert (told["version"], [one["message"] for one in told["diagnostics"]], seen) == (2, ["b"], ["b"])
        await wire.nothing_more()


async def test_a_cell_that_comes_with_a_change_of_its_notebook_is_a_change_and_is_saved_with_it(serving: Any) -> None:
    service, seen = Service("w", dialect="lsp"), list[tuple[str, str]]()

    @lsp.after_edits(service, delay=0, on=["change"])
    async def changes(document: lsp.TextDocument) -> None:
        seen.append(("change", document.uri))

    @lsp.after_edits(service, delay=0, on=["save"])
    async def saves(document: lsp.TextDocument) -> None:
        seen.append(("save", document.uri))

    cell = {"uri": "cell", "languageId": "python", "version": 1, "text": "a"}
    book = {"uri": "book", "notebookType": "jupyter", "version": 1}
    array = {"start": 0, "deleteCount": 0, "cells": [{"kind": 2, "document": "cell"}]}
    change = {"cells": {"structure": {"array": array, "didOpen": [cell]}}}
    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send(
            note("notebookDocument/didOpen", {"notebookDocument": {**book, "cells": []}, "cellTextDocuments": []}),
            note("notebookDocument/didChange", {"notebookDocument": {"uri": "book", "version": 2}, "change": change}),
        )
        await until(lambda: seen)
        await wire.send(note("notebookDocument/didSave", {"notebookDocument": {"uri": "book"}}))
        await until(lambda: len(seen) == 2)
    assert seen == [("change", "cell"), ("save", "cell")]


async def test_clients_that_pull_are_sent_nothing_and_an_unchanged_version_is_not_checked_again(serving: Any) -> None:
    service, checked = checker()
    async with serving(service) as wire:
        await shake_hands(wire, **PULLS)

        async def pull(before: str | None = None, uri: str = URI) -> dict[str, Any]:
            result = await wire.call(PULL, {"textDocument": {"uri": uri}, "previousResultId": before})
            report: dict[str, Any] = result["result"]
            return report

        await wire.send(opened(URI, "one two"))
        first = await pull()
        assert (first["kind"], [one["message"] for one in first["items"]]) == ("full", ["one", "two"])
        assert await pull(first["resultId"]) == {"kind": "unchanged", "resultId": first["resultId"]}
        assert checked == ["one two"]
        await wire.send(changed("one", 2))
        second = await pull(first["resultId"])
        assert [one["message"] for one in second["items"]] == ["one"]
        await wire.send(closed(), opened(URI, "new", 2))  # the same version of another text
        assert (await pull(second["resultId"]))["kind"] == "full"
        assert await pull(uri="file:///closed") == {"kind": "full", "items": []}


@pytest.mark.parametrize("inter_file", [False, True])
async def test_an_edit_of_another_document_counts_where_diagnostics_depend_on_it(
    serving: Any, inter_file: bool
) -> None:
    service, _ = checker(inter_file=inter_file)
    async with serving(service) as wire:
        result = await shake_hands(wire, **PULLS)
        assert result["capabilities"]["diagnosticProvider"]["interFileDependencies"] is inter_file
        await wire.send(opened(URI, "one"), opened("file:///b", "two"))
        params = {"textDocument": {"uri": URI}}
        first = (await wire.call(PULL, params))["result"]
        await wire.send(changed("three", 2, "file:///b"))
        again = (await wire.call(PULL, {**params, "previousResultId": first["resultId"]}))["result"]
        assert again["kind"] == ("full" if inter_file else "unchanged")


async def test_all_open_documents_are_checked_again_where_they_depend_on_each_other(serving: Any) -> None:
    service, _ = checker(inter_file=True)
    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send(opened(URI, "one"))
        assert (await wire.receive())["params"]["uri"] == URI
        await wire.send(opened("file:///b", "two"))
        both = {message["params"]["uri"] for message in await wire.receive_all(2)}
        assert both == {URI, "file:///b"}


async def test_a_refresh_has_the_open_documents_checked_again_pushed_or_pulled(serving: Any) -> None:
    service, _ = checker()
    run = {"command": "w.refresh"}
    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send(opened(URI, "one"))
        await wire.receive()
        await wire.send(wire.request("workspace/executeCommand", run))
        assert {message.get("method") for message in await wire.receive_all(2)} == {PUBLISH, None}
    service, _ = checker()
    async with serving(service) as wire:
        await shake_hands(wire, **PULLS, workspace={"diagnostics": {"refreshSupport": True}})
        await wire.send(opened(URI, "one"))
        params = {"textDocument": {"uri": URI}}
        first = (await wire.call(PULL, params))["result"]
        await wire.send(wire.request("workspace/executeCommand", run))
        asked = await wire.receive()
        assert asked["method"] == "workspace/diagnostic/refresh"
        await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": None})
        assert (await wire.receive())["result"] is None
        again = (await wire.call(PULL, {**params, "previousResultId": first["resultId"]}))["result"]
        assert again["kind"] == "full"


async def test_a_crash_of_the_function_is_an_error_of_the_pull(serving: Any) -> None:
    service = Service("w", dialect="lsp")

    @lsp.diagnostics(service)
    async def check(document: lsp.TextDocument) -> list[lsp.Diagnostic]:
        raise RuntimeError("secret")

    async with serving(service) as wire:
        await shake_hands(wire, **PULLS)
        await wire.send(opened(URI, "one"))
        error = (await wire.call(PULL, {"textDocument": {"uri": URI}}))["error"]
        assert error["code"] == -32603
        assert "secret" not in str(error)


def test_a_wrong_declaration_says_what_to_write() -> None:
    service = Service("w", dialect="lsp")

    def none() -> None: ...
    def many(a: Any, b: Any, c: Any) -> None: ...
    def text(document: lsp.TextDocument) -> str: ...  # type: ignore[empty-body]
    def fine(document: lsp.TextDocument) -> list[lsp.Diagnostic]: ...  # type: ignore[empty-body]

    for wrong, declare, named in (
        (none, lsp.after_edits(service), "ctx, document"),
        (many, lsp.after_edits(service), "ctx, document"),
        (text, lsp.diagnostics(service), "list"),
        (fine, lsp.diagnostics(service, delay=-1), "delay"),
        (fine, lsp.after_edits(service, on=["close"]), "save"),
        (fine, lsp.after_edits(service, on="open"), "save"),  # type: ignore[arg-type]
        (fine, lsp.after_edits(fine), "service"),  # type: ignore[arg-type]
    ):
        with pytest.raises(DeclarationError, match=named):
            declare(wrong)
