"""The typed clients with servers that others wrote: basedpyright, MCP's server-everything, and agents on the SDKs of ACP.

`DISCREET_INTEROP` names a folder with `node_modules` (`NODE_PATH` will do too), `DISCREET_ACP_SDK` a Python that has
agent-client-protocol. basedpyright is one of the tools of `make check`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet import acp, lsp, mcp
from discreet.acp import wire
from discreet.client import InternalError
from support.requirements import missing
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent


@pytest.fixture
def anyio_backend() -> str:
    """One event loop: the peers are the subject, and each takes a second to start."""
    return "asyncio"


@cache
def node_folder(module: str) -> Path:
    """The folder of node's modules that has this one."""
    folders = [Path(folder) for folder in os.environ.get("NODE_PATH", "").split(os.pathsep) if folder]
    if named := os.environ.get("DISCREET_INTEROP"):
        folders.insert(0, Path(named).absolute() / "node_modules")
    found = next((folder for folder in folders if (folder / module).exists()), None)
    if found is None or shutil.which("node") is None:
        missing(f"{module} is not installed where DISCREET_INTEROP or NODE_PATH says")
    return found


@pytest.mark.needs("basedpyright")
async def test_a_language_server_follows_the_documents_of_a_typed_client(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", "from basedpyright.langserver import main; main()", "--stdio"]
    uri = (tmp_path / "a.py").as_uri()
    told: list[lsp.PublishDiagnosticsParams] = []
    handlers = lsp.Handlers(
        text_document_publish_diagnostics=told.append,
        workspace_configuration=lambda params: [None for _ in params.items],
    )

    def last() -> list[str | None]:
        """The rules that the last diagnostics of the newest version name."""
        newest = [params for params in told if params.version == server.documents[uri].version]
        return [str(each.code) for each in newest[-1].diagnostics] if newest else [None]

    with anyio.fail_after(DEADLINE_SECONDS):
        async with lsp.connect(command, root=tmp_path, handlers=handlers, stderr="collect", timeout=None) as server:
            document = await server.documents.open(uri, "python", "é: int = '🙂'; b = é\n")
            await until(lambda: last() == ["reportAssignmentType"])
            at = document.text.index("'")
            span = lsp.Range(document.position_at(at), document.position_at(at + 3))
            document = await server.documents.edit(uri, [lsp.TextEdit(range=span, new_text="3")])
            where = document.position_at(document.text.index("b"))
            identifier = lsp.TextDocumentIdentifier(uri=uri)
            hover = await server.text_document_hover(lsp.HoverParams(text_document=identifier, position=where))
            assert hover is not None
            assert isinstance(hover.contents, lsp.MarkupContent)
            assert "b: Literal[3]" in hover.contents.value
            symbols = await server.text_document_document_symbol(lsp.DocumentSymbolParams(text_document=identifier))
            assert [symbol.name for symbol in symbols or ()] == ["é", "b"]
            await until(lambda: last() == [])


async def test_the_reference_server_of_mcp_and_a_typed_client_ask_each_other() -> None:
    module = "@modelcontextprotocol/server-everything"
    command = ["node", str(node_folder(module) / module / "dist" / "index.js")]
    logged: list[mcp.LoggingMessageNotificationParams] = []

    def sample(params: mcp.CreateMessageRequestParams) -> mcp.CreateMessageResult:
        return mcp.CreateMessageResult(role="assistant", model="test", content=mcp.TextContent(text="sampled"))

    handlers = mcp.Handlers(
        sampling_create_message=sample,
        roots_list=lambda params: mcp.ListRootsResult(roots=[mcp.Root(uri="file:///here", name="here")]),
        notifications_message=logged.append,
    )
    with anyio.fail_after(DEADLINE_SECONDS):
        async with mcp.connect(command, handlers=handlers, stderr="collect") as server:
            tools = await server.tools_list(mcp.PaginatedRequestParams())
            assert {"echo", "trigger-sampling-request", "get-roots-list"} <= {tool.name for tool in tools.tools}

            async def call(name: str, told: Any = None, **arguments: Any) -> mcp.CallToolResult:
                params = mcp.CallToolRequestParams(name=name, arguments=arguments)
                return await server.tools_call(params, on_progress=told)

            assert (await call("echo", message="é")).content == [mcp.TextContent(text="Echo: é")]
            assert "sampled" in str((await call("trigger-sampling-request", prompt="a")).content)
            assert "file:///here" in str((await call("get-roots-list")).content)
            told: list[Any] = []
            await call("trigger-long-running-operation", told.append, duration=0.1, steps=2)
            assert [each["progress"] for each in told] == [1, 2]
            prompts = await server.prompts_list(mcp.PaginatedRequestParams())
            prompt = await server.prompts_get(mcp.GetPromptRequestParams(name=prompts.prompts[0].name))
            assert isinstance(prompt.messages[0].content, mcp.TextContent)


def permit(params: wire.RequestPermissionRequest) -> wire.RequestPermissionResponse:
    outcome = wire.SelectedPermissionOutcome(option_id=params.options[0].option_id)
    return wire.RequestPermissionResponse(outcome=outcome)


async def test_an_agent_on_the_sdk_for_typescript_prompts_asks_and_is_cancelled() -> None:
    environment = {**os.environ, "NODE_PATH": str(node_folder("@agentclientprotocol/sdk"))}
    updates: list[str] = []

    def show(params: wire.SessionNotification) -> None:
        assert isinstance(params.update, wire.AgentMessageChunk)
        assert isinstance(params.update.content, wire.TextContent)
        updates.append(params.update.content.text)

    handlers = acp.Handlers(
        session_update=show,
        session_request_permission=permit,
        fs_read_text_file=lambda params: wire.ReadTextFileResponse(content=f"text of {params.path}"),
    )
    command = ["node", str(HERE / "agent_acp_sdk.js")]
    with anyio.fail_after(DEADLINE_SECONDS):
        async with acp.connect(command, env=environment, handlers=handlers) as agent:
            session = await agent.session_new(wire.NewSessionRequest(cwd="/", mcp_servers=[]))

            def prompt(text: str) -> wire.PromptRequest:
                return wire.PromptRequest(session_id=session.session_id, prompt=[wire.TextContent(text=text)])

            answer = await agent.session_prompt(prompt("/a.txt"))
            assert (answer.stop_reason, updates) == (wire.StopReason.END_TURN, ["text of /a.txt yes"])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.session_prompt, prompt("wait"))
                await until(lambda: updates[-1] == "waiting")
                tasks.cancel_scope.cancel()
            await until(lambda: updates[-1] == "cancelled")


async def test_an_agent_on_the_sdk_for_python_edits_files_of_the_client(tmp_path: Path) -> None:
    found = os.environ.get("DISCREET_ACP_SDK") or (importlib.util.find_spec("acp") and sys.executable)
    python = found or missing("agent-client-protocol is not installed")
    files = {str(tmp_path / "a.txt"): "a  \n"}
    seen: list[type[Any]] = []

    def write(params: wire.WriteTextFileRequest) -> wire.WriteTextFileResponse:
        files[params.path] = params.content
        return wire.WriteTextFileResponse()

    handlers = acp.Handlers(
        session_update=lambda params: seen.append(type(params.update)),
        session_request_permission=permit,
        fs_read_text_file=lambda params: wire.ReadTextFileResponse(content=files[params.path]),
        fs_write_text_file=write,
    )
    with anyio.fail_after(DEADLINE_SECONDS):
        async with acp.connect([python, "-P", str(HERE / "acp_sdk_twin.py")], handlers=handlers) as agent:
            assert agent.welcome["agentInfo"]["name"] == "Tidier"
            session = await agent.session_new(wire.NewSessionRequest(cwd=str(tmp_path), mcp_servers=[]))
            text = [wire.TextContent(text="a.txt")]
            answer = await agent.session_prompt(wire.PromptRequest(session_id=session.session_id, prompt=text))
            assert answer.stop_reason is wire.StopReason.END_TURN
            with pytest.raises(InternalError) as refused:
                await agent.session_prompt(wire.PromptRequest(session_id="other", prompt=text))
            assert refused.value.number == -32002
    assert files == {str(tmp_path / "a.txt"): "a\n"}
    assert seen == [
        wire.ToolCall,
        wire.SessionUpdateToolCallUpdate,
        wire.SessionUpdateToolCallUpdate,
        wire.AgentMessageChunk,
    ]
