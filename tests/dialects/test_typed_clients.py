"""Typed clients of LSP, MCP and ACP: with this project's own servers in memory, and with one that the test controls."""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
import msgspec
import pytest

from discreet import Context, Service, acp, lsp, mcp
from discreet.acp import wire
from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.client import ConnectionFailed, InternalError, InvalidReply, MethodNotFound, RequestTimeout
from discreet.client.task_group import background_tasks
from discreet.framing.transports.interface import ByteTransport
from discreet.framing.transports.memory import memory_pair
from discreet.testing.memory import memory_daemon, settings_of
from support.acp_client import agent_of
from support.backends import both_loops
from support.waits import DEADLINE_SECONDS, until

from ..client.conftest import FakeServer

pytestmark = pytest.mark.anyio

URI = "file:///a.txt"
AT = lsp.TextDocumentIdentifier(uri=URI)


@asynccontextmanager
async def daemon(*hosted: Service | Agent, dialect: str) -> AsyncIterator[ByteTransport]:
    settings = settings_of({"dialect": dialect})
    with anyio.fail_after(DEADLINE_SECONDS):
        async with memory_daemon(hosted, settings, provider=None, credentials=None) as transport:
            yield transport


@asynccontextmanager
async def server_that(
    serve: Callable[[FakeServer], Awaitable[None]], framing: str = "newline"
) -> AsyncIterator[ByteTransport]:
    """A transport to a server that does this; it has done so when the block ends."""
    ours, theirs = memory_pair(65536)
    ended = anyio.Event()

    async def run() -> None:
        await serve(FakeServer(theirs, framing))
        ended.set()

    with anyio.fail_after(DEADLINE_SECONDS):
        async with background_tasks() as tasks:
            tasks.start_soon(run)
            yield ours
            await ended.wait()


def language() -> Service:
    service = Service("toy", dialect="lsp")

    @service.query("textDocument/hover")
    def hover(ctx: Context, params: lsp.HoverParams, /) -> lsp.Hover | None:
        document = ctx.documents.get(params.text_document.uri)
        return document and lsp.Hover(contents=f"{document.version}:{document.text}")

    @service.query("textDocument/documentSymbol")
    def symbols(params: lsp.DocumentSymbolParams, /) -> list[lsp.DocumentSymbol]:
        span = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 1))
        return [lsp.DocumentSymbol(name="a", kind=lsp.SymbolKind.KEY, range=span, selection_range=span)]

    @service.command("run")
    async def run(ctx: Context) -> list[Any]:
        editor = lsp.Editor(ctx)
        await editor.publish_diagnostics(URI, [])
        found = await editor.configuration("one", "two")
        edited = await editor.apply_edit(lsp.WorkspaceEdit(changes={}), "mend")
        return [*found, edited.applied, editor.can("workspace.configuration"), editor.can("window.showDocument")]

    return service


@both_loops
async def test_methods_of_a_language_server_take_and_return_structs() -> None:
    async with daemon(language(), dialect="lsp") as transport, lsp.connect(transport) as server:
        await server.documents.open(URI, "plaintext", "text")
        where = lsp.HoverParams(text_document=AT, position=lsp.Position(0, 0))
        assert await server.text_document_hover(where) == lsp.Hover(contents="1:text")
        found = await server.text_document_document_symbol(lsp.DocumentSymbolParams(text_document=AT))
        assert found is not None
        assert [type(one) for one in found] == [lsp.DocumentSymbol]
        with pytest.raises(MethodNotFound):
            await server.text_document_rename(
                lsp.RenameParams(text_document=AT, position=lsp.Position(0, 0), new_name="b")
            )


@both_loops
async def test_what_a_language_server_asks_and_tells_goes_to_handlers_whose_capabilities_are_announced() -> None:
    told: list[lsp.PublishDiagnosticsParams] = []

    async def configure(params: lsp.ConfigurationParams) -> list[Any]:
        return [item.section for item in params.items]

    handlers = lsp.Handlers(
        text_document_publish_diagnostics=told.append,
        workspace_configuration=configure,
        workspace_apply_edit=lambda params: lsp.ApplyWorkspaceEditResult(applied=params.label == "mend"),
    )
    async with daemon(language(), dialect="lsp") as transport, lsp.connect(transport, handlers=handlers) as server:
        answer = await server.workspace_execute_command(lsp.ExecuteCommandParams(command="run"))
        assert answer == ["one", "two", True, True, False]
    assert told == [lsp.PublishDiagnosticsParams(uri=URI, diagnostics=[])]


async def test_a_client_without_handlers_announces_nothing_of_theirs() -> None:
    async with daemon(language(), dialect="lsp") as transport, lsp.connect(transport) as server:
        answer = await server.workspace_execute_command(lsp.ExecuteCommandParams(command="run"))
        assert answer == [None, None, False, False, False]


def greeting(heard: list[Any], capabilities: Any) -> Callable[[FakeServer], Awaitable[None]]:
    """A language server that answers its handshake and its shutdown, and keeps everything that it hears."""

    async def serve(server: FakeServer) -> None:
        while not heard or heard[-1]["method"] != "exit":
            heard.append(await server.read())
            if "id" in heard[-1]:
                await server.reply(heard[-1], {"capabilities": capabilities} if len(heard) == 1 else None)

    return serve


@pytest.mark.parametrize("capabilities", [{}, {"textDocument": {"hover": {"contentFormat": ["plaintext"]}}}])
async def test_the_handshake_of_an_editor_comes_first_and_shutdown_and_exit_last(
    tmp_path: Any, capabilities: Any
) -> None:
    heard: list[Any] = []
    handlers = lsp.Handlers(client_register_capability=lambda params: None)
    options: Any = {"root": tmp_path, "capabilities": capabilities, "initialization_options": {"a": 1}}
    async with (
        server_that(greeting(heard, {}), "content-length") as transport,
        lsp.connect(transport, handlers=handlers, **options),
    ):
        pass
    assert [message["method"] for message in heard] == ["initialize", "initialized", "shutdown", "exit"]
    hello = heard[0]["params"]
    assert (hello["rootUri"], hello["initializationOptions"]) == (tmp_path.as_uri(), {"a": 1})
    assert hello["workspaceFolders"] == [{"uri": tmp_path.as_uri(), "name": tmp_path.name}]
    told = hello["capabilities"]
    assert told["general"] == {"positionEncodings": ["utf-8", "utf-16", "utf-32"]}
    hover = {"dynamicRegistration": True, **capabilities.get("textDocument", {}).get("hover", {})}
    assert told["textDocument"]["hover"] == hover
    assert "synchronization" not in told["textDocument"]


@pytest.mark.parametrize(
    ("sync", "sent"),
    [
        (2, [("didOpen", "é🙂 a\n"), ("didChange", [("b", 4), ("x", 0)]), ("didChange", "c"), "didSave", "didClose"]),
        (
            {"openClose": True, "change": 1},
            [("didOpen", "é🙂 a\n"), ("didChange", "x🙂 b\n"), ("didChange", "c"), "didClose"],
        ),
        ({"change": 0, "save": {"includeText": True}}, [("didSave", "c")]),
        (None, []),
    ],
)
async def test_documents_are_sent_as_the_server_wants_them(sync: Any, sent: list[Any]) -> None:
    heard: list[Any] = []
    async with (
        server_that(greeting(heard, {"textDocumentSync": sync}), "content-length") as transport,
        lsp.connect(transport) as server,
    ):
        documents = server.documents
        await documents.open(URI, "plaintext", "é🙂 a\n")
        edits = [
            lsp.TextEdit(range=lsp.Range(lsp.Position(0, one), lsp.Position(0, two)), new_text=text)
            for one, two, text in ((0, 1, "x"), (4, 5, "b"))
        ]
        assert (await documents.edit(URI, edits)).text == "x🙂 b\n"
        assert (await documents.replace(URI, "c")).version == 3
        await documents.save(URI)
        assert (documents[URI].text, [*documents]) == ("c", [URI])
        await documents.close(URI)
        assert len(documents) == 0
    assert [_shown(message) for message in heard if message["method"].startswith("textDocument/")] == sent


def _shown(message: Any) -> Any:
    name, params = message["method"].removeprefix("textDocument/"), message["params"]
    if name == "didChange":
        changes = params["contentChanges"]
        whole = "range" not in changes[0]
        return name, changes[0]["text"] if whole else [
            (one["text"], one["range"]["start"]["character"]) for one in changes
        ]
    text = params["textDocument"].get("text") or params.get("text")
    return (name, text) if text else name


async def test_the_encoding_of_positions_is_the_one_that_the_server_has_chosen() -> None:
    async with daemon(language(), dialect="lsp") as transport, lsp.connect(transport) as server:
        opened = await server.documents.open(URI, "plaintext", "é🙂a")
        assert (opened.encoding, opened.position_at(2)) == ("utf-8", lsp.Position(0, 6))


async def test_wrong_uses_of_documents_change_and_send_nothing() -> None:
    async with daemon(language(), dialect="lsp") as transport, lsp.connect(transport) as server:
        documents = server.documents
        for use in (documents.close, documents.save, lambda uri: documents.edit(uri, [])):
            with pytest.raises(ValueError, match="is not open"):
                await use(URI)
        await documents.open(URI, "plaintext", "text")
        with pytest.raises(ValueError, match="is open already"):
            await documents.open(URI, "plaintext", "text")
        edit = lsp.TextEdit(range=lsp.Range(lsp.Position(0, 0), lsp.Position(0, 2)), new_text="")
        with pytest.raises(ValueError, match="overlap"):
            await documents.edit(URI, [edit, edit])
        with pytest.raises(ValueError, match="surrogate"):
            await documents.replace(URI, "\ud800")
        assert (documents[URI].text, documents[URI].version) == ("text", 1)


class Weather(msgspec.Struct):
    sky: str


def weather() -> Service:
    service = Service("weather")

    @service.query
    async def look(ctx: Context, place: Annotated[str, mcp.Ask("Where?")]) -> Weather:
        """Look at the sky."""
        await ctx.log("warning", "looking")
        await ctx.progress((1, 2))
        return Weather(f"{place}: blue")

    @service.query
    async def wait() -> None:
        """Wait for ever."""
        await anyio.sleep_forever()

    return service


@both_loops
async def test_methods_and_handlers_of_mcp_have_structs() -> None:
    logged: list[mcp.LoggingMessageNotificationParams] = []
    asked: list[object] = []

    def answer(params: mcp.ElicitRequestParams) -> mcp.ElicitResult:
        asked.append(params)
        assert isinstance(params, mcp.ElicitRequestFormParams)
        return mcp.ElicitResult(action="accept", content=dict.fromkeys(params.requested_schema.properties, "Bern"))

    handlers = mcp.Handlers(notifications_message=logged.append, elicitation_create=answer)
    async with daemon(weather(), dialect="mcp") as transport, mcp.connect(transport, handlers=handlers) as server:
        assert server.welcome["protocolVersion"] == "2025-11-25"
        assert "tools" in server.capabilities
        listed = await server.tools_list(mcp.PaginatedRequestParams())
        assert [tool.name for tool in listed.tools] == ["weather_look", "weather_wait"]
        told: list[Any] = []
        result = await server.tools_call(
            mcp.CallToolRequestParams(name="weather_look", arguments={}), on_progress=told.append
        )
        assert result.structured_content == {"sky": "Bern: blue"}
        assert [each["progress"] for each in told] == [1]
        with pytest.raises(RequestTimeout):
            await server.tools_call(mcp.CallToolRequestParams(name="weather_wait"), timeout=0.05)
    assert [type(params) for params in asked] == [mcp.ElicitRequestFormParams]
    assert [params.level for params in logged] == ["warning"]


async def test_an_mcp_client_announces_what_its_handlers_answer_and_answers_pings() -> None:
    heard: list[Any] = []

    async def serve(server: FakeServer) -> None:
        heard.append(await server.read())
        await server.reply(heard[-1], {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}})
        heard.append(await server.read())
        for number, (method, params) in enumerate([("ping", None), ("roots/list", None), ("elicitation/create", 3)]):
            await server.write(
                {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})}
            )
            heard.append(await server.read())

    handlers = mcp.Handlers(
        roots_list=lambda params: mcp.ListRootsResult(roots=[mcp.Root(uri="file:///a")]),
        elicitation_create=lambda params: mcp.ElicitResult(action="decline"),
    )
    async with server_that(serve) as transport, mcp.connect(transport, handlers=handlers, capabilities={"tasks": {}}):
        await until(lambda: len(heard) == 5)
    told = heard[0]["params"]["capabilities"]
    assert told == {"tasks": {}, "roots": {"listChanged": True}, "elicitation": {"form": {}}}
    assert [message.get("result") for message in heard[2:]] == [{}, {"roots": [{"uri": "file:///a"}]}, None]
    assert heard[4]["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("connect", "welcome", "reason"),
    [
        (mcp.connect, {"protocolVersion": "2026-07-28"}, "none of the revisions"),
        (acp.connect, {"protocolVersion": 9}, "does not speak version 1"),
    ],
)
async def test_a_server_of_another_version_is_a_failed_connection(connect: Any, welcome: Any, reason: str) -> None:
    async def serve(server: FakeServer) -> None:
        await server.reply(await server.read(), welcome)

    with pytest.raises(ConnectionFailed, match=reason):
        async with server_that(serve) as transport, connect(transport):
            pytest.fail("there is no server")


async def test_answers_and_notifications_that_the_protocol_does_not_know_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def serve(server: FakeServer) -> None:
        for answer in (
            {"protocolVersion": "2025-11-25", "capabilities": {}},
            {"contents": [{"uri": "a"}]},
            {"tools": 3},
        ):
            while "id" not in (message := await server.read()):
                await server.notify("notifications/message", {"level": 3})
            await server.reply(message, answer)

    heard: list[object] = []
    handlers = mcp.Handlers(notifications_message=heard.append)
    async with server_that(serve) as transport, mcp.connect(transport, handlers=handlers) as server:
        with pytest.raises(InvalidReply, match="ReadResourceResult"):
            await server.resources_read(mcp.ReadResourceRequestParams(uri="a"))
        with pytest.raises(InvalidReply, match="ListToolsResult"):
            await server.tools_list(mcp.PaginatedRequestParams())
    assert heard == []
    assert [record.getMessage() for record in caplog.records] == ["the handler of notifications/message failed"]


async def with_editor(context: RequestContext, events: TaskEvents) -> None:
    editor = context.editor
    assert editor is not None
    text = await editor.read_text_file("/a.txt")
    allowed = await editor.permit("Delete it?")
    await events.artifact(f"{text} {bool(allowed)}")
    await events.complete()


@both_loops
async def test_a_prompt_asks_the_client_and_its_updates_come_before_its_answer() -> None:
    updates: list[wire.SessionNotification] = []

    def permit(params: wire.RequestPermissionRequest) -> wire.RequestPermissionResponse:
        allow = next(option for option in params.options if option.kind is wire.PermissionOptionKind.ALLOW_ONCE)
        return wire.RequestPermissionResponse(outcome=wire.SelectedPermissionOutcome(option_id=allow.option_id))

    async def read(params: wire.ReadTextFileRequest) -> wire.ReadTextFileResponse:
        return wire.ReadTextFileResponse(content=f"text of {params.path}")

    handlers = acp.Handlers(session_update=updates.append, session_request_permission=permit, fs_read_text_file=read)
    async with (
        daemon(agent_of(with_editor), dialect="acp") as transport,
        acp.connect(transport, handlers=handlers) as agent,
    ):
        assert agent.capabilities["loadSession"] in (True, False)
        session = await agent.session_new(wire.NewSessionRequest(cwd="/", mcp_servers=[]))
        prompt = wire.PromptRequest(session_id=session.session_id, prompt=[wire.TextContent(text="go")])
        answer = await agent.session_prompt(prompt)
        assert answer.stop_reason is wire.StopReason.END_TURN
    said = [one.update.content for one in updates if isinstance(one.update, wire.AgentMessageChunk)]
    assert said == [wire.TextContent(text="text of /a.txt True")]


@both_loops
@pytest.mark.parametrize("timeout", [None, 0.05])
async def test_a_prompt_that_is_cancelled_or_late_ends_its_turn(timeout: float | None) -> None:
    began, ended = anyio.Event(), anyio.Event()

    async def busy(context: RequestContext, events: TaskEvents) -> None:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with daemon(agent_of(busy), dialect="acp") as transport, acp.connect(transport) as agent:
        session = await agent.session_new(wire.NewSessionRequest(cwd="/", mcp_servers=[]))
        prompt = wire.PromptRequest(session_id=session.session_id, prompt=[wire.TextContent(text="go")])
        if timeout is not None:
            with pytest.raises(RequestTimeout):
                await agent.session_prompt(prompt, timeout=timeout)
        else:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.session_prompt, prompt)
                await began.wait()
                tasks.cancel_scope.cancel()
        await ended.wait()


TERMINALS = tuple(name for name in acp.Handlers.__struct_fields__ if name.startswith("terminal_"))


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ((), {}),
        (("fs_write_text_file",), {"fs": {"writeTextFile": True}}),
        (TERMINALS, {"terminal": True}),
        (TERMINALS[1:], {}),
    ],
)
async def test_an_acp_client_announces_what_its_handlers_answer(names: Sequence[str], told: Any) -> None:
    heard: list[Any] = []

    async def serve(server: FakeServer) -> None:
        heard.append(await server.read())
        await server.reply(heard[-1], {"protocolVersion": 1})

    handlers = acp.Handlers(**dict.fromkeys(names, lambda params: None))
    async with server_that(serve) as transport, acp.connect(transport, handlers=handlers):
        pass
    assert heard[0]["params"]["clientCapabilities"] == told


async def test_wrong_arguments_are_told_before_anything_is_started() -> None:
    async def listen(params: object) -> None: ...

    wrong: list[tuple[dict[str, Any], str]] = [
        ({"handlers": mcp.Handlers()}, "handlers must be an instance of Handlers"),
        (
            {"handlers": lsp.Handlers(window_log_message=listen)},
            "the handler of window/logMessage must be a plain function",
        ),
        ({"handlers": lsp.Handlers(workspace_apply_edit=3)}, "the handler of workspace/applyEdit must be a function"),  # type: ignore[arg-type]
        ({"dialect": 3}, "dialect"),
    ]
    for options, message in wrong:
        with pytest.raises(TypeError, match=message):
            async with lsp.connect(["/does/not/exist"], **options):
                pytest.fail("there is no server")
    with pytest.raises(TypeError, match="server must be a command"):
        async with lsp.connect("clangd"):
            pytest.fail("there is no server")
    ours, _ = memory_pair(1)
    with pytest.raises(TypeError, match="cwd is for a command"):
        async with lsp.connect(ours, cwd="/"):
            pytest.fail("there is no server")


async def test_an_error_of_the_server_is_raised_as_the_client_raises_it() -> None:
    async def serve(server: FakeServer) -> None:
        await server.reply(await server.read(), {"capabilities": {}})
        await server.read()
        await server.fail(await server.read(), {"code": lsp.LSPErrorCodes.CONTENT_MODIFIED, "message": "changed"})
        await server.reply(await server.read(), None)

    async with server_that(serve, "content-length") as transport, lsp.connect(transport) as server:
        with pytest.raises(InternalError) as raised:
            await server.text_document_hover(lsp.HoverParams(text_document=AT, position=lsp.Position(0, 0)))
        assert raised.value.number == lsp.LSPErrorCodes.CONTENT_MODIFIED


BLOCKING = """
from discreet import Context, Service, lsp

words = Service("words")


@words.query("textDocument/hover")
async def hover(ctx: Context, params: lsp.HoverParams, /) -> lsp.Hover:
    found = await lsp.Editor(ctx).configuration("words")
    return lsp.Hover(contents=f"{ctx.documents[params.text_document.uri].text}: {found[0]}")
"""


def test_without_async_the_methods_and_documents_are_the_same_and_handlers_may_use_other_threads(tmp_path: Any) -> None:
    (tmp_path / "words.py").write_text(BLOCKING, encoding="utf-8")
    threads: list[int] = []

    def configure(params: lsp.ConfigurationParams) -> list[Any]:
        threads.append(threading.get_ident())
        return [server.documents.encoding]

    command = [sys.executable, "-P", "-m", "discreet", "serve", "./words.py:words", "--dialect", "lsp"]
    handlers = lsp.Handlers(workspace_configuration=configure)
    with lsp.connect_blocking(command, cwd=tmp_path, handlers=handlers) as server:
        server.documents.open(URI, "plaintext", "ab")
        server.documents.edit(URI, [lsp.TextEdit(range=lsp.Range(lsp.Position(0, 0), lsp.Position(0, 1)), new_text="")])
        server.documents.save(URI)
        found = server.text_document_hover(lsp.HoverParams(text_document=AT, position=lsp.Position(0, 0)))
        assert found == lsp.Hover(contents="b: utf-8")
        assert [*server.documents] == [URI]
        server.documents.replace(URI, "c")
        server.text_document_did_close(lsp.DidCloseTextDocumentParams(text_document=AT))
        server.documents.close(URI)
        assert not server.documents
        assert server.capabilities["hoverProvider"]
    assert threads
    assert threading.get_ident() not in threads
    with pytest.raises(ConnectionFailed):
        server.text_document_hover(lsp.HoverParams(text_document=AT, position=lsp.Position(0, 0)))


@pytest.mark.parametrize("connect", [mcp.connect_blocking, acp.connect_blocking])
def test_each_protocol_has_a_client_without_async(tmp_path: Any, connect: Any) -> None:
    with pytest.raises(ConnectionFailed), connect([sys.executable, "-I", "-c", ""], cwd=tmp_path, stderr="collect"):
        pytest.fail("there is no server")
