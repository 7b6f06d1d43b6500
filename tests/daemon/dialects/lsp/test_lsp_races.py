"""Changes, requests, cancellations and the end in any order: no request sees a stale document, and each gets one answer."""

from __future__ import annotations

import json
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Context, Service
from discreet.daemon.daemon import Daemon
from discreet.daemon.host import Host
from discreet.daemon.settings import Settings
from discreet.framing.encoder import encode_frame
from discreet.framing.events import NEED_DATA, Frame, FrameLimits
from discreet.framing.parser import parser_for
from discreet.framing.transports.memory import memory_pair
from support.waits import DEADLINE_SECONDS

URI = "file:///a"

steps = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.just(0)),
        st.tuples(st.sampled_from(["inline", "thread", "coroutine"]), st.just(0)),
        st.tuples(st.just("cancel"), st.integers(0, 8)),
    ),
    max_size=16,
)


def language() -> Service:
    service = Service("race", dialect="lsp")

    @service.notification("textDocument/didChange")
    def changed(params: dict[str, Any], /) -> None:
        if params["textDocument"]["version"] % 3 == 0:
            raise RuntimeError

    @service.query(inline=True)
    def inline(ctx: Context) -> list[Any]:
        return [ctx.documents[URI].version, ctx.documents[URI].text]

    @service.query
    def thread(ctx: Context) -> list[Any]:
        return [ctx.documents[URI].version, ctx.documents[URI].text]

    @service.query
    async def coroutine(ctx: Context) -> list[Any]:
        await anyio.lowlevel.checkpoint()
        return [ctx.documents[URI].version, ctx.documents[URI].text]

    return service


def messages(chosen: list[tuple[str, int]]) -> tuple[list[dict[str, Any]], dict[int, int]]:
    """What the client sends, and the version of the document at each of its requests."""
    sent: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": {"capabilities": {}}},
        {"method": "initialized", "params": {}},
        {
            "method": "textDocument/didOpen",
            "params": {"textDocument": {"uri": URI, "languageId": "x", "version": 1, "text": "1"}},
        },
    ]
    version, versions = 1, {}
    for kind, number in chosen:
        match kind:
            case "change":
                version += 1
                change = {"textDocument": {"uri": URI, "version": version}, "contentChanges": [{"text": str(version)}]}
                sent.append({"method": "textDocument/didChange", "params": change})
            case "cancel":
                sent.append({"method": "$/cancelRequest", "params": {"id": number}})
            case _:
                versions[len(versions) + 1] = version
                sent.append({"id": len(versions), "method": f"race/{kind}"})
    return [*sent, {"id": "end", "method": "shutdown"}, {"method": "exit"}], versions


async def session(sent: list[dict[str, Any]], cuts: list[int]) -> list[dict[str, Any]]:
    ours, theirs = memory_pair()
    daemon = Daemon(Host([language()], Settings(), version="1"), ours)
    data = b"".join(
        encode_frame(json.dumps({"jsonrpc": "2.0", **message}).encode(), "content-length") for message in sent
    )
    parser = parser_for("content-length", FrameLimits())
    received: list[dict[str, Any]] = []

    async def read() -> None:
        while chunk := await theirs.receive():
            parser.receive_data(chunk)
            while (event := parser.next_event()) is not NEED_DATA:
                assert isinstance(event, Frame)
                received.append(json.loads(event.body))

    async def serve() -> None:
        daemon.begin()
        assert await daemon.run() == 0
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
    return received


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(chosen=steps, cuts=st.lists(st.integers(0, 10_000), max_size=4))
@settings(max_examples=40)
def test_no_request_sees_a_stale_document_and_each_gets_one_answer(
    backend: str, chosen: list[tuple[str, int]], cuts: list[int]
) -> None:
    sent, versions = messages(chosen)
    received = anyio.run(session, sent, cuts, backend=backend)
    answers = {message["id"]: message for message in received}
    assert len(answers) == len(received)
    assert answers.keys() == {0, "end", *versions}
    for call_id, version in versions.items():
        answer = answers[call_id]
        if "error" in answer:
            assert answer["error"]["code"] == -32800
        else:
            seen, text = answer["result"]
            assert seen >= version
            assert text == str(seen)
