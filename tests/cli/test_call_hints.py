"""What `discreet call` adds to a server's refusal: what was probably meant, or what there is."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import pytest

from discreet.cli.exit_status import EXIT_DOMAIN
from support.in_process import in_process
from support.programs import DISCREET

APP: Final = """
import anyio
from discreet import Service, lsp
from discreet.agents import Agent, RequestContext, TaskEvents

shop = Service("shop")
empty = Service("empty")


@shop.query(timeout=0.2)
async def price(article: str) -> int:
    "Tell the price."
    await anyio.sleep_forever()
    return 1


class Echo:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await events.complete(context.text)

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        pass


todo = Service("todo", dialect="lsp")


@todo.query("textDocument/hover")
def hover(params: lsp.HoverParams, /) -> lsp.Hover | None:
    "Say nothing."
    return None


agent = Agent(Echo(), name="Echo", description="Echoes.")
"""

HINTS: Final = {
    "a method of an agent": ("sendMessage", "agent", "; nearest: SendMessage"),
    "a method of the daemon": ("versoin", "shop", "; nearest: version"),
    "another name in the same service": ("shop/withdraw", "shop", "; there is shop/price"),
    "an app without operations": (
        "shop/buy",
        "empty",
        "; the server lists no operations; an agent is called with SendMessage, and listMethods names the rest",
    ),
    "an operation by the method of a language server": ("shop/prise --dialect lsp", "shop", "; nearest: shop/price"),
    "no app": ("shop/price", "", ": the file service; --app names another app"),
    "a method of MCP without the dialect": (
        "tools/call name=shop_price",
        "shop",
        "; a method of another protocol: --dialect mcp",
    ),
    "a tool by the name of its operation": (
        "tools/call name=shop/price --dialect mcp",
        "shop",
        "; nearest: shop_price",
    ),
    "a tool that is not there": ("tools/call name=withdraw --dialect mcp", "shop", "; there is shop_price"),
    "a prompt where there are none": ("prompts/get name=x --dialect mcp", "shop", "; there are no prompts"),
    "a deadline of the operation": ("shop/price article=pen", "shop", "; the operation's own deadline is 0.2 s"),
}
"""The words of a call, the app, and how the line ends."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hints")
    (folder / "app.py").write_text(APP)
    return folder


@pytest.mark.parametrize("name", HINTS)
def test_a_refusal_says_what_was_probably_meant(name: str, folder: Path) -> None:
    words, app, end = HINTS[name]
    source = ["--app", f"./app.py:{app}"] if app else []
    done = in_process("call", *words.split(), *source, folder=folder)
    assert done.stderr.endswith(f"{end}\n"), done.stderr
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)


def test_a_server_that_waits_for_a_handshake_is_told_by_its_own_code_and_with_the_dialect(folder: Path) -> None:
    server = shlex.join([*DISCREET, "serve", "./app.py:todo", "--log-level", "error"])
    done = in_process("call", "textDocument/hover", "--server", server, folder=folder)
    assert done.stderr.startswith("discreet: textDocument/hover: SERVER_NOT_INITIALIZED: "), done.stderr
    assert done.stderr.endswith("--dialect lsp\n"), done.stderr


def test_an_error_that_acp_declares_has_its_code_and_its_status(folder: Path) -> None:
    prompt = '{"sessionId":"none","prompt":[{"type":"text","text":"x"}]}'
    source = ["--app", "./app.py:agent", "--dialect", "acp"]
    done = in_process("call", "session/prompt", prompt, *source, folder=folder)
    assert done.stderr.startswith("discreet: session/prompt: SESSION_NOT_FOUND: "), done.stderr
    assert done.returncode == EXIT_DOMAIN


def test_a_number_is_a_text_for_a_method_without_a_schema_that_takes_a_text(folder: Path) -> None:
    done = in_process("call", "GetTask", "id=1", "--app", "./app.py:agent", folder=folder)
    assert "TASK_NOT_FOUND" in done.stderr


def test_a_request_that_is_too_large_is_refused_with_the_setting(tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_text("x" * 11_000_000)
    done = in_process("call", "fs/read", "path=@large.txt", folder=tmp_path)
    assert done.stderr.endswith("; DISCREET_MAX_MESSAGE_BYTES sets the limit (default: 10485760)\n"), done.stderr
