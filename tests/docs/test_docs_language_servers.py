"""The page on language servers: its programs work, and its tables name what there is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from discreet import lsp
from discreet.daemon.documents import Documents
from discreet.dialects.lsp.capabilities import ANNOUNCED, FILTER_PATTERNS, WATCHER_PATTERNS
from discreet.dialects.lsp.guards import ITEM_DEFAULTS_SUPPORT, RULES
from discreet.testing import in_memory
from support.pages import Page
from support.waits import DEADLINE_SECONDS

DOCUMENT = Page("docs/language-servers.md")
PAGE = DOCUMENT.text
PROGRAMS = [text for language, text in DOCUMENT.blocks if language == "python"]
URI = "file:///notes.txt"


def names(heading: str) -> set[str]:
    """The identifiers in the first cells of a section's table."""
    cells = "\n".join(row[0] for row in DOCUMENT.rows(heading))
    return set(re.findall(r"`(?:await |async with )?(\w+)", cells))


def public(owner: type) -> set[str]:
    return {name for name in dir(owner) if not name.startswith("_")}


@pytest.mark.anyio
async def test_the_programs_make_one_server_that_does_what_the_page_says() -> None:
    def found_in_parts() -> list[list[Any]]:
        return [[], []]

    def diagnose(document: lsp.TextDocument) -> list[lsp.Diagnostic]:
        at = lsp.Position(0, 0)
        return [lsp.Diagnostic(range=lsp.Range(at, at), message=document.text)]

    published: list[Any] = []

    page: dict[str, Any] = {"__name__": "words", "found_in_parts": found_in_parts, "AsyncIterator": AsyncIterator}
    for program in PROGRAMS:
        exec(program, page)
    page["diagnose"] = diagnose
    async with in_memory(page["words"]) as peer:
        hello = {"processId": None, "rootUri": None, "capabilities": {}}
        announced = (await peer.call("initialize", hello))["capabilities"]
        assert announced["completionProvider"] == {"triggerCharacters": ["#"]}
        assert announced["executeCommandProvider"] == {"commands": ["words.outline", "words.count"]}
        item = {"uri": URI, "languageId": "plaintext", "version": 1, "text": "rose and rose TODO"}
        at = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 1}}
        assert await peer.call("textDocument/hover", at) is None  # not open yet
        await peer.notify("textDocument/didOpen", {"textDocument": item})
        assert (await peer.call("textDocument/hover", at))["contents"] == "2 times"
        assert [word["label"] for word in await peer.call("textDocument/completion", at)] == ["TODO"]
        run = {"command": "words.count", "arguments": [URI]}
        assert await peer.call("workspace/executeCommand", run) == 1
        assert await peer.call("workspace/executeCommand", {"command": "words.outline"}) == []
        assert await peer.call("workspace/symbol", {"query": ""}) == []
        renamed = await peer.call("textDocument/rename", {**at, "newName": "tulip"})
        assert renamed["documentChanges"][0]["edits"][0]["newText"] == "# renamed to tulip\n"
    shown = anyio.Event()
    async with in_memory(page["saver"]) as peer:
        peer.on_notification("textDocument/publishDiagnostics", lambda params: (published.append(params), shown.set()))
        await peer.call("initialize", hello)
        await peer.notify("textDocument/didOpen", {"textDocument": item})
        await peer.notify("textDocument/didSave", {"textDocument": {"uri": URI}})
        with anyio.fail_after(DEADLINE_SECONDS):
            await shown.wait()
    assert [(params["uri"], params["diagnostics"][0]["message"]) for params in published] == [
        (URI, "rose and rose TODO")
    ]
    async with in_memory(page["checker"]) as peer:
        await peer.call("initialize", hello)
        await peer.notify("textDocument/didOpen", {"textDocument": item})
        report = await peer.call("textDocument/diagnostic", {"textDocument": {"uri": URI}})
        assert [one["range"]["start"]["character"] for one in report["items"]] == [14]


def test_what_the_editor_and_a_document_have_is_there_and_nothing_else() -> None:
    assert names("The editor") - {"method"} == public(lsp.Editor) - {"can"}
    found = names("Documents") - {"ctx"}
    assert found | {"offset_at", "position_at", "word_at"} <= public(lsp.TextDocument) | {*dir(Documents())}
    assert found >= {"read", "of_text", "folders"}


def test_the_capabilities_of_3_18_are_those_that_are_asked_for() -> None:
    cells = " ".join(row[1] for row in DOCUMENT.rows("Editors of 3.17 and of 3.18"))
    shown = {path.rpartition(".")[2] for path in re.findall(r"`([\w.]+)`", cells)}
    rules = {rule.capability for rule in RULES.values()}
    asked = {*rules, *ANNOUNCED.values(), FILTER_PATTERNS, WATCHER_PATTERNS, ITEM_DEFAULTS_SUPPORT}
    assert shown == {path.rpartition(".")[2] for path in asked}


def test_the_settings_of_helix_are_toml() -> None:
    [text] = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    settings = tomllib.loads(text)
    [language] = settings["language"]
    assert language["language-servers"] == list(settings["language-server"])
