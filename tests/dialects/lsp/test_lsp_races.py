"""Documents that are opened, edited, saved and closed, requests, cancellations and the end in any order: no request sees an old
document, and each gets one answer.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Context, Service
from discreet.daemon.daemon import Daemon
from discreet.daemon.documents import ENCODINGS, units
from discreet.daemon.host import Host
from discreet.daemon.settings import Settings
from discreet.framing.encoder import encode_frame
from discreet.framing.events import NEED_DATA, Frame, FrameLimits
from discreet.framing.parser import parser_for
from discreet.framing.transports.memory import memory_pair
from support.waits import DEADLINE_SECONDS

URIS = ("file:///a", "file:///b")
ENDINGS = ("shutdown and exit", "exit", "end of input")

numbers = st.integers(0, 1)
texts = st.text(st.sampled_from("ab\r\n é😀"), max_size=8)
edits = st.tuples(st.integers(0, 20), st.integers(0, 20), texts)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("open"), numbers, texts),
        st.tuples(st.just("edit"), numbers, st.lists(edits | texts, min_size=1, max_size=3)),
        st.tuples(st.sampled_from(["close", "save"]), numbers, st.none()),
        st.tuples(st.sampled_from(["inline", "thread", "coroutine", "serial"]), numbers, st.none()),
        st.tuples(st.just("cancel"), st.integers(0, 12), st.none()),
    ),
    max_size=24,
)

State = list[Any] | None
"""Version and text of a document; None where it is not open."""


def language() -> Service:
    service = Service("race", dialect="lsp")

    def seen(ctx: Context, uri: str) -> State:
        document = ctx.documents.get(uri)
        return None if document is None else [document.version, document.text]

    @service.notification("textDocument/didChange")
    def changed(params: dict[str, Any], /) -> None:
        if params["textDocument"]["version"] % 3 == 0:
            raise RuntimeError

    @service.notification("textDocument/willSave")
    async def will_save(params: dict[str, Any], /) -> None:
        await anyio.lowlevel.checkpoint()

    @service.notification("textDocument/didClose")
    def closed(params: dict[str, Any], /) -> None: ...

    @service.query(inline=True)
    def inline(ctx: Context, uri: str) -> State:
        return seen(ctx, uri)

    @service.query
    def thread(ctx: Context, uri: str) -> State:
        return seen(ctx, uri)

    @service.query(serial=True)
    def serial(ctx: Context, uri: str) -> State:
        return seen(ctx, uri)

    @service.query
    async def coroutine(ctx: Context, uri: str) -> State:
        await anyio.lowlevel.checkpoint()
        return seen(ctx, uri)

    return service


@dataclass
class Editor:
    """What the client sends, and what its documents were after each of its messages about them."""

    encoding: str
    sent: list[dict[str, Any]] = field(default_factory=list)
    history: dict[str, list[State]] = field(default_factory=lambda: {uri: [None] for uri in URIS})
    asked: dict[int, tuple[str, int]] = field(default_factory=dict)
    version: int = 0

    def notify(self, method: str, uri: str, **params: Any) -> None:
        identifier = {"uri": uri, **params.pop("item", {})}
        self.sent.append({"method": f"textDocument/{method}", "params": {"textDocument": identifier, **params}})

    def step(self, kind: str, number: int, given: Any) -> None:
        if kind == "cancel":
            self.sent.append({"method": "$/cancelRequest", "params": {"id": number}})
            return
        uri = URIS[number]
        states = self.history[uri]
        match kind:
            case "open":
                self.version += 1
                states.append([self.version, given])
                self.notify("didOpen", uri, item={"languageId": "x", "version": self.version, "text": given})
            case "edit":
                self.version += 1
                changes, text = self.edit("" if states[-1] is None else states[-1][1], given)
                states.append(None if states[-1] is None else [self.version, text])
                self.notify("didChange", uri, item={"version": self.version}, contentChanges=changes)
            case "close":
                states.append(None)
                self.notify("didClose", uri)
            case "save":
                self.notify("willSave", uri, reason=1)
                self.notify("didSave", uri)
            case _:
                self.asked[len(self.asked) + 1] = uri, len(states) - 1
                self.sent.append({"id": len(self.asked), "method": f"race/{kind}", "params": {"uri": uri}})

    def edit(self, text: str, edits: list[Any]) -> tuple[list[dict[str, Any]], str]:
        """These changes one after the other, as messages and as the text that they leave."""
        changes: list[dict[str, Any]] = []
        for edit in edits:
            if isinstance(edit, str):
                text = edit
                changes.append({"text": edit})
                continue
            start, end = sorted(_outside_line_ends(text, place) for place in edit[:2])
            span = {"start": self.position(text, start), "end": self.position(text, end)}
            text = text[:start] + edit[2] + text[end:]
            changes.append({"range": span, "text": edit[2]})
        return changes, text

    def position(self, text: str, index: int) -> dict[str, int]:
        *lines, last = re.split(r"\r\n|\n|\r", text[:index])
        return {"line": len(lines), "character": units(last, self.encoding)}  # type: ignore[arg-type]


def _outside_line_ends(text: str, place: int) -> int:
    place = min(place, len(text))
    return place - 1 if text[place - 1 : place + 1] == "\r\n" else place


async def session(sent: list[dict[str, Any]], cuts: list[int], ending: str) -> tuple[list[dict[str, Any]], int]:
    ours, theirs = memory_pair()
    daemon = Daemon(Host([language()], Settings(), version="1"), ours)
    data = b"".join(
        encode_frame(json.dumps({"jsonrpc": "2.0", **message}).encode(), "content-length") for message in sent
    )
    parser = parser_for("content-length", FrameLimits())
    received: list[dict[str, Any]] = []
    status = -1

    async def read() -> None:
        while chunk := await theirs.receive():
            parser.receive_data(chunk)
            while (event := parser.next_event()) is not NEED_DATA:
                assert isinstance(event, Frame)
                received.append(json.loads(event.body))

    async def serve() -> None:
        nonlocal status
        daemon.begin()
        status = await daemon.run()
        ours.close()

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(serve)
            at = 0
            for cut in (*sorted(cut % len(data) for cut in cuts), len(data)):
                await theirs.send(data[at:cut])
                at = cut
                await anyio.lowlevel.checkpoint()
            if ending == "end of input":
                theirs.send_eof()
    return received, status


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(
    encoding=st.sampled_from(ENCODINGS),
    chosen=steps,
    ending=st.sampled_from(ENDINGS),
    cuts=st.lists(st.integers(0, 20_000), max_size=4),
)
@settings(max_examples=40)
def test_no_request_sees_an_old_document_and_each_gets_one_answer(
    backend: str, encoding: str, chosen: list[tuple[str, int, Any]], ending: str, cuts: list[int]
) -> None:
    editor = Editor(encoding)
    opened = [("open", number, "😀é\r\na😀b") for number in range(len(URIS))]
    last = [("thread", number, None) for number in range(len(URIS))]
    for step in (*opened, *chosen, *last):
        editor.step(*step)
    hello = {"capabilities": {"general": {"positionEncodings": [encoding]}}}
    begin = [{"id": 0, "method": "initialize", "params": hello}, {"method": "initialized", "params": {}}]
    end = {
        "shutdown and exit": [{"id": "end", "method": "shutdown"}, {"method": "exit"}],
        "exit": [{"method": "exit"}],
        "end of input": [],
    }[ending]
    received, status = anyio.run(session, [*begin, *editor.sent, *end], cuts, ending, backend=backend)
    assert status == (1 if ending == "exit" else 0)
    answers = {message["id"]: message for message in received}
    assert len(answers) == len(received)
    assert answers.keys() == {0, *editor.asked, *(["end"] if len(end) == 2 else [])}
    for call_id, (uri, since) in editor.asked.items():
        answer, possible = answers[call_id], editor.history[uri][since:]
        if "error" in answer:
            assert answer["error"]["code"] == -32800
        else:
            assert answer["result"] in possible
