"""A reload hands the session on: the client sends neither its handshake nor its documents again."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from discreet import Context, Service, lsp
from discreet.daemon.daemon import Daemon
from discreet.daemon.host import Host
from discreet.daemon.settings import Settings
from discreet.framing.transports.memory import memory_pair
from support.lsp_messages import note

pytestmark = pytest.mark.anyio


def language() -> Service:
    service = Service("texts", dialect="lsp")

    @service.query
    async def seen(ctx: Context) -> None: ...

    @service.query("textDocument/rename")
    async def rename(params: lsp.RenameParams, /) -> lsp.WorkspaceEdit | None: ...

    return service


async def test_the_handshake_and_the_documents_outlive_a_reload(serving: Any) -> None:
    async with serving(language()) as wire:
        general = {"positionEncodings": ["utf-8"]}
        hello = {"clientInfo": {"name": "vim", "version": "9"}, "capabilities": {"general": general}}
        await wire.call("initialize", hello)
        item = {"uri": "a", "languageId": "x", "version": 7, "text": "one"}
        await wire.send(note("textDocument/didOpen", {"textDocument": item}))
        await wire.call("texts/seen")
        left = wire.daemon.connection.state()
    ours, _ = memory_pair()
    following = Daemon(Host([language()], Settings(), version="2"), ours, state=left)
    context = following.connection.context_backend
    assert (context.client.name, context.documents.encoding) == ("vim", "utf-8")
    assert {uri: (one.version, one.text) for uri, one in context.documents.items()} == {"a": (7, "one")}
    dialect: Any = following.connection.session.dialect  # type: ignore[attr-defined]
    assert (dialect.state, {*dialect.plain_results}) == ("initialized", {"textDocument/rename"})  # no snippets for it


def watching(pattern: str | None) -> Service:
    service = Service("texts", dialect="lsp")
    if pattern is not None:

        @service.notification("workspace/didChangeWatchedFiles", options={"watchers": [{"globPattern": pattern}]})
        def watched(params: dict[str, Any], /) -> None: ...

    return service


async def answer(wire: Any) -> tuple[str, Any]:
    asked = await wire.receive()
    await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": None})
    return asked["method"], asked["params"]


@pytest.mark.parametrize(
    ("before", "after", "taken_back", "registered"),
    [("*.a", "*.a", False, None), ("*.a", "*.b", True, "*.b"), ("*.a", None, True, None), (None, "*.b", False, "*.b")],
)
async def test_after_a_reload_the_client_has_what_is_declared_now_registered_once(
    serving: Any, wire_class: Any, before: str | None, after: str | None, taken_back: bool, registered: str | None
) -> None:
    method = "workspace/didChangeWatchedFiles"
    async with serving(watching(before)) as wire:
        await wire.call("initialize", {"capabilities": {"workspace": {method[10:]: {"dynamicRegistration": True}}}})
        await wire.send(note("initialized", {}))
        if before is not None:
            assert (await answer(wire))[0] == "client/registerCapability"
        await wire.call("$/unknown")
        left = wire.daemon.connection.state()
    ours, theirs = memory_pair()
    daemon = Daemon(Host([watching(after)], Settings(), version="2"), ours, state=left)
    following = wire_class(theirs, daemon)

    async def run() -> None:
        daemon.begin()
        following.status = await daemon.run()
        following.ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        if taken_back:
            unregistered = {"unregisterations": [{"id": method, "method": method}]}
            assert await answer(following) == ("client/unregisterCapability", unregistered)
        if registered is not None:
            options = {"watchers": [{"globPattern": registered}]}
            registrations = {"registrations": [{"id": method, "method": method, "registerOptions": options}]}
            assert await answer(following) == ("client/registerCapability", registrations)
        assert (await following.call("shutdown", id="end"))["id"] == "end"
        await following.send(note("exit", {}))
        await following.ended.wait()
        assert following.status == 0


async def test_a_reload_after_shutdown_waits_for_exit_still(serving: Any) -> None:
    async with serving(language()) as wire:
        await wire.call("initialize", {"capabilities": {}})
        await wire.call("shutdown")
        left = wire.daemon.connection.state()
    ours, _ = memory_pair()
    following = Daemon(Host([language()], Settings(), version="2"), ours, state=left)
    assert following.connection.session.dialect.state == "shutdown"  # type: ignore[attr-defined]
