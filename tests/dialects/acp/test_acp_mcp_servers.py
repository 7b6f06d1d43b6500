"""`context.editor.mcp`: an executor calls the MCP servers that its client has passed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from discreet.acp import Editor
from discreet.agents import TaskEvents
from discreet.client import OperationFailed
from discreet.client.errors import ConnectionFailed, InvalidReply
from discreet.daemon.operations.service import DeclarationError
from support.acp_client import acp_client, agent_of, outcome_of
from support.backends import both_loops
from support.executors import echo
from support.gateways import http_daemon

pytestmark = pytest.mark.anyio

ODD = Path(__file__).parents[2] / "lib" / "support" / "odd_mcp_server.py"


def odd(*modes: str, **others: Any) -> dict[str, Any]:
    """The entry of the odd server, as an editor passes it."""
    return {"name": "odd", "command": sys.executable, "args": ["-I", "-S", str(ODD), *modes], "env": [], **others}


SHOP = """
from discreet import Context, Service

shop = Service("shop")


@shop.query
def price(ctx: Context, item: str) -> str:
    return f"{item} for {ctx.service_params.get('authorization')}"
"""


class Said(msgspec.Struct):
    content: list[dict[str, Any]]


@both_loops
async def test_tools_resources_and_prompts_of_a_command_are_called_by_their_names(tmp_path: Path) -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        async with editor.mcp("odd") as tools:
            shown = tools.operations
            said = await tools.call("act", {"do": "error?"}, type=Said)
            read = await tools.call("resources/read", {"uri": "odd://a"})
            greeting = await tools.call("prompts/greet", {"who": "Ada"}, timeout=5)
            return shown, said, read, greeting

    outcome, _ = await outcome_of(work, mcpServers=[odd("offers")], cwd=str(tmp_path))
    shown, said, read, greeting = outcome
    assert shown["act"]["input"] == {"type": "object"}
    assert "prompts/greet" in shown
    assert type(said) is Said
    assert read["contents"][0]["text"] == "read odd://a"
    assert greeting["messages"][0]["role"] == "user"


async def test_the_schemas_of_tools_stand_alone() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        async with editor.mcp("odd") as tools:
            return tools.operations["typed_tool"]["input"]

    schema, _ = await outcome_of(work, mcpServers=[odd("typed")], cwd="/")
    assert schema["properties"]["tree"]["$ref"].removeprefix("#/$defs/") in schema["$defs"]


async def test_a_command_runs_in_the_sessions_directory_with_the_variables_that_the_editor_gives(
    tmp_path: Path,
) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text(
        "import os, runpy, sys\n"
        "open('seen.txt', 'w').write(os.environ['PROBE'])\n"
        f"sys.argv = [{str(ODD)!r}]\n"
        f"runpy.run_path({str(ODD)!r}, run_name='__main__')\n"
    )

    async def work(editor: Editor, events: TaskEvents) -> Any:
        async with editor.mcp("odd") as tools:
            return [*tools.operations]

    server = odd(args=["-I", "-S", str(probe)], env=[{"name": "PROBE", "value": "here"}])
    assert "act" in (await outcome_of(work, mcpServers=[server], cwd=str(tmp_path)))[0]
    assert (tmp_path / "seen.txt").read_text() == "here"


@pytest.mark.needs("h11")
async def test_a_server_behind_a_url_is_called_with_the_headers_that_the_editor_gives(
    tmp_path: Path,
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)

    async def work(editor: Editor, events: TaskEvents) -> Any:
        async with editor.mcp("web") as tools:
            return await tools.call("shop_price", {"item": "tea"})

    async with acp_client(agent_of(echo)) as client:
        assert (await client.hello())["agentCapabilities"]["mcpCapabilities"] == {"http": True, "sse": False}
    with http_daemon(tmp_path, "./shop.py:shop", "--http-mcp") as url:
        headers = [{"name": "authorization", "value": "Bearer k"}]
        server = {"type": "http", "name": "web", "url": f"{url}mcp", "headers": headers}
        outcome, _ = await outcome_of(work, mcpServers=[server])
    assert outcome == {"result": "tea for Bearer k"}


ERRORS: dict[str, tuple[str, dict[str, Any], type[Exception], str]] = {
    "the tool's": ("act", {"do": "error"}, OperationFailed, "MCP_TOOL_ERROR"),
    "the server's": ("act", {"do": "refuse"}, OperationFailed, "MCP_ERROR"),
    "a name that it has not": ("acts", {}, LookupError, "nearest: act"),
    "an answer of another type": ("act", {"do": "no-result"}, InvalidReply, "."),
    "no answer in time": ("act", {"do": "never"}, TimeoutError, ""),
    "an end in the middle": ("act", {"do": "die"}, ConnectionFailed, "."),
}


@both_loops
async def test_what_goes_wrong_with_a_call_is_raised_where_it_is_called() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        async with editor.mcp("odd") as tools:
            for name, arguments, kind, words in ERRORS.values():
                with pytest.raises(kind, match=words or None):
                    await tools.call(name, arguments, timeout=None if words else 0.05)
        return "raised"

    assert (await outcome_of(work, mcpServers=[odd()], cwd="/"))[0] == "raised"


@pytest.mark.parametrize(
    ("server", "name", "kind", "words"),
    [
        (odd(), "other", LookupError, "no MCP server 'other'"),
        (odd(command="/no/such/program"), "odd", ConnectionFailed, "."),
        (odd("no-list"), "odd", ConnectionFailed, "did not list"),
        ({"type": "sse", "name": "odd", "url": "http://127.0.0.1:1/", "headers": []}, "odd", DeclarationError, "sse"),
        ({"type": "http", "name": "odd", "url": "file:///etc", "headers": []}, "odd", DeclarationError, "odd"),
    ],
)
async def test_a_server_that_can_not_be_used_is_told_with_its_name(
    server: Any, name: str, kind: type[Exception], words: str
) -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        with pytest.raises(kind, match=words):
            async with editor.mcp(name):
                pass
        return "raised"

    assert (await outcome_of(work, mcpServers=[server], cwd="/"))[0] == "raised"
