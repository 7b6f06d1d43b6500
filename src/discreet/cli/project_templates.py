"""The files of a new project, by its kind. Each project runs and passes its tests as it is. Reads and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct


class Template(Struct, frozen=True):
    """The module and the test of a kind of project; `NAME` stands for its name. `about` says what it is, `trial` how to try
    it in a shell, and `page` which page of the docs says more.
    """

    about: str
    trial: str
    page: str
    module: str
    test: str


PYPROJECT: Final = """\
[project]
name = "NAME"
version = "0.1.0"
description = "ABOUT"
requires-python = ">=3.11"
dependencies = ["discreet"]

[project.optional-dependencies]
test = ["anyio", "pytest"]

[build-system]
requires = ["setuptools>=69"]
build-backend = "setuptools.build_meta"

[tool.setuptools]
py-modules = ["NAME"]
"""

README: Final = """\
# NAME

ABOUT

    pip install -e '.[test]'
    python -m pytest
    discreet doctor ./NAME.py:appFLAGS
    TRIAL

Programs, editors and hosts start it as `discreet serve /path/to/NAME.py:appFLAGS` or `python -P /path/to/NAME.py`, with the
`discreet` or the `python` of the environment in which it is installed. What to write into their settings, and what the
module can do beside this: `docs/PAGE` of discreet.
"""

_SERVICE: Final = Template(
    "A service that programs call over stdin and stdout.",
    "discreet call NAME/price item=lamp --app ./NAME.py:app",
    "tutorial.md",
    '''\
"""ABOUT"""

from discreet import OperationError, Service, serve

app = Service("NAME", version="0.1.0")

PRICES = {"lamp": 40}


class NoSuchItem(OperationError, code="NO_SUCH_ITEM", http_status=404):
    """There is no such item."""

    item: str


@app.query(errors=[NoSuchItem])
async def price(item: str, count: int = 1) -> int:
    """Tell what so many of an item cost."""
    if item not in PRICES:
        raise NoSuchItem(item=item)
    return PRICES[item] * count


if __name__ == "__main__":
    serve(app)
''',
    """\
import pytest
from NAME import NoSuchItem, app

from discreet.testing import Example, check_contract, in_memory


@pytest.mark.anyio
async def test_a_price_is_told() -> None:
    async with in_memory(app) as peer:
        assert await peer.call("NAME/price", {"item": "lamp", "count": 2}, type=int) == 80


def test_the_contract_holds() -> None:
    check_contract(app, examples=[Example("NAME/price", {"item": "sofa"}, error=NoSuchItem)])
""",
)

_LSP: Final = Template(
    "A language server.",
    "discreet call version --dialect lsp --app ./NAME.py:app",
    "language-servers.md",
    '''\
"""ABOUT"""

from discreet import Context, Service, lsp, serve

app = Service("NAME", version="0.1.0", dialect="lsp")


@app.query("textDocument/hover")
def hover(ctx: Context, params: lsp.HoverParams, /) -> lsp.Hover | None:
    """Count the word under the cursor."""
    document = ctx.documents[params.text_document.uri]
    word = document.word_at(params.position)
    return lsp.Hover(contents=f"{document.text.count(word)} times") if word else None


if __name__ == "__main__":
    serve(app)
''',
    """\
import pytest
from NAME import app

from discreet.testing import in_memory

URI = "file:///notes.txt"


@pytest.mark.anyio
async def test_a_word_is_counted() -> None:
    async with in_memory(app) as peer:
        server = await peer.call("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        assert server["capabilities"]["hoverProvider"] is True
        await peer.notify("initialized", {})
        item = {"uri": URI, "languageId": "plaintext", "version": 1, "text": "one two one"}
        await peer.notify("textDocument/didOpen", {"textDocument": item})
        place = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 1}}
        assert (await peer.call("textDocument/hover", place))["contents"] == "2 times"
""",
)

_MCP: Final = Template(
    "Tools for hosts of MCP.",
    """discreet call tools/call name=NAME_price arguments='{"item": "lamp"}' --dialect mcp --app ./NAME.py:app""",
    "mcp.md",
    '''\
"""ABOUT"""

from discreet import OperationError, Service, serve

app = Service("NAME", version="0.1.0", dialect="mcp", description="Tells what things cost.")

PRICES = {"lamp": 40}


class NoSuchItem(OperationError, code="NO_SUCH_ITEM", http_status=404):
    """There is no such item."""

    known: list[str]


@app.query(errors=[NoSuchItem])
async def price(item: str, count: int = 1) -> int:
    """Tell what so many of an item cost."""
    if item not in PRICES:
        raise NoSuchItem(known=sorted(PRICES))
    return PRICES[item] * count


if __name__ == "__main__":
    serve(app)
''',
    """\
import pytest
from NAME import app

from discreet.testing import in_memory

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.mark.anyio
async def test_a_host_calls_the_tool() -> None:
    async with in_memory(app) as peer:
        await peer.call("initialize", HELLO)
        await peer.notify("notifications/initialized")
        assert [tool["name"] for tool in (await peer.call("tools/list"))["tools"]] == ["NAME_price"]
        done = await peer.call("tools/call", {"name": "NAME_price", "arguments": {"item": "lamp", "count": 2}})
        assert done["structuredContent"] == {"result": 80}
        failed = await peer.call("tools/call", {"name": "NAME_price", "arguments": {"item": "sofa"}})
        assert failed["isError"] is True
""",
)

_ACP: Final = Template(
    "An agent for editors that speak ACP, and for callers of A2A.",
    "discreet call session/new cwd=/ mcpServers=[] --dialect acp --app ./NAME.py:app",
    "acp.md",
    '''\
"""ABOUT"""

from discreet import serve
from discreet.agents import Agent, RequestContext, TaskEvents


class Executor:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await events.artifact(f"You said: {context.text}")
        await events.complete()

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to clean up."""


app = Agent(Executor(), name="NAME", description="Says what it is told.", version="0.1.0")

if __name__ == "__main__":
    serve(app, dialect="acp")
''',
    """\
from typing import Any

import pytest
from NAME import app

from discreet.testing import in_memory


@pytest.mark.anyio
async def test_an_editor_prompts_the_agent() -> None:
    told: list[dict[str, Any]] = []
    async with in_memory(app, dialect="acp") as peer:
        peer.on_notification("session/update", lambda params: told.append(params["update"]))
        assert (await peer.call("initialize", {"protocolVersion": 1}))["protocolVersion"] == 1
        session = (await peer.call("session/new", {"cwd": "/", "mcpServers": []}))["sessionId"]
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]}
        assert (await peer.call("session/prompt", prompt))["stopReason"] == "end_turn"
    assert [update["content"]["text"] for update in told if "content" in update] == ["You said: hello"]
""",
)

TEMPLATES: Final[Mapping[str, Template]] = {"service": _SERVICE, "lsp": _LSP, "mcp": _MCP, "acp": _ACP}


def project(kind: str, name: str) -> dict[str, str]:
    """The texts of the files of a project, by their names."""
    template = TEMPLATES[kind]
    words = {
        "ABOUT": template.about,
        "TRIAL": template.trial,
        "PAGE": template.page,
        "FLAGS": flags(kind),
        "NAME": name,
    }
    texts = {
        "pyproject.toml": PYPROJECT,
        "README.md": README,
        f"{name}.py": template.module,
        f"test_{name}.py": template.test,
        "conftest.py": CONFTEST,
    }
    return {file: _filled(text, words) for file, text in texts.items()}


def flags(kind: str) -> str:
    """What `discreet serve` and `discreet doctor` need behind the app: an agent does not say what its clients speak."""
    return " --dialect acp" if kind == "acp" else ""


def _filled(text: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text


CONFTEST: Final = """\
import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
"""
