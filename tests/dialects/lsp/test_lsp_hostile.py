"""Notifications about documents of any shape: nothing fails, what is held is counted, and the session can be handed on."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from discreet import Service
from discreet.daemon.connection.connection import Connection
from discreet.daemon.documents import ENCODINGS
from discreet.daemon.host import Host
from discreet.daemon.settings import Settings
from discreet.framing.encoder import encode_frame
from discreet.framing.transports.memory import memory_pair
from support.logged_events import logged_events
from support.owners import Alone

START = {"line": 0, "character": 0}
ODD: list[Any] = [
    *(None, True, 0, -1, 2**31, 2**64, 10**30, 1.5, "", "x", "😀\ud83d", "\ude00", "a\nb\r\n", [], {}, [None]),
    {"line": -1, "character": -5},
    {"start": START, "end": {"line": 2**40, "character": 2**40}},
    {"start": {"line": 5, "character": 0}, "end": START},
]

TEXT = {"uri": "a", "languageId": "x", "version": 1, "text": "a😀b\r\nc"}
EDIT = {"range": {"start": START, "end": {"line": 0, "character": 2}}, "text": "\ude01"}
CELL = {"kind": 2, "document": "c", "metadata": {"a": "\ud800"}}
STRUCTURE = {
    "array": {"start": 0, "deleteCount": 1, "cells": [CELL]},
    "didOpen": [{**TEXT, "uri": "d"}],
    "didClose": [{"uri": "c"}],
}
CHANGE = {
    "metadata": {"z": 1},
    "cells": {
        "structure": STRUCTURE,
        "data": [CELL],
        "textContent": [{"document": {"uri": "d", "version": 3}, "changes": [EDIT]}],
    },
}
BOOK = {"uri": "n", "notebookType": "j", "version": 1, "metadata": {"k": 1}, "cells": [CELL]}

NOTIFICATIONS: dict[str, Any] = {
    "textDocument/didOpen": {"textDocument": TEXT},
    "textDocument/didChange": {"textDocument": {"uri": "a", "version": 2}, "contentChanges": [EDIT, {"text": "q😀"}]},
    "textDocument/didClose": {"textDocument": {"uri": "a"}},
    "notebookDocument/didOpen": {"notebookDocument": BOOK, "cellTextDocuments": [{**TEXT, "uri": "c"}]},
    "notebookDocument/didChange": {"notebookDocument": {"uri": "n", "version": 2}, "change": CHANGE},
    "notebookDocument/didClose": {"notebookDocument": {"uri": "n"}, "cellTextDocuments": [{"uri": "c"}]},
}


def mutated(value: Any, random: Random) -> Any:
    """The same with some parts replaced by odd ones, left out or doubled."""
    if random.random() < 0.1:
        return random.choice(ODD)
    if isinstance(value, dict):
        return {name: mutated(item, random) for name, item in value.items() if random.random() > 0.03}
    if isinstance(value, list):
        return [mutated(item, random) for item in value for _ in range(random.choice((1, 1, 1, 2)))]
    return value


@given(st.randoms(use_true_random=False), st.sampled_from(ENCODINGS))
def test_any_notification_about_documents_leaves_a_session_that_is_whole(random: Random, encoding: str) -> None:
    host = Host([Service("texts", dialect="lsp")], Settings(), version="1")
    ours, theirs = memory_pair()
    connection = Connection(host, ours, Alone())
    hello = {"capabilities": {"general": {"positionEncodings": [encoding]}, "experimental": 10**30}}
    messages: list[dict[str, Any]] = [{"id": 1, "method": "initialize", "params": hello}]
    for _ in range(20):
        method = random.choice(list(NOTIFICATIONS))
        messages.append({"method": method, "params": mutated(NOTIFICATIONS[method], random)})
    with logged_events("info") as logged:
        for message in messages:
            body = json.dumps({"jsonrpc": "2.0", **message}).encode()
            theirs.send_nowait(memoryview(encode_frame(body, "content-length")))
            connection.begin()
        assert set(logged.names()) <= {"document.unreadable_change", "message.malformed"}
    documents = connection.context_backend.documents
    books = documents.notebooks
    held = sum(one.size for one in documents.values()) + sum(one.size for one in books.values())
    assert held == documents.size == host.memory.by_kind()["documents"]
    versions = {uri: (one.version, one.exact) for uri, one in documents.items()}
    state = connection.state()
    connection.session.dialect.close()
    assert host.memory.by_kind()["documents"] == 0
    following = Connection(host, memory_pair()[0], Alone(), state).context_backend.documents
    assert {uri: (one.version, one.exact) for uri, one in following.items()} == versions
    assert {uri: one.cells for uri, one in following.notebooks.items()} == {u: one.cells for u, one in books.items()}
