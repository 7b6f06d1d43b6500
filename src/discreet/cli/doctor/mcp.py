"""What a host of MCP sees, in both eras of the protocol: revisions, tools, resources, prompts, and what they lack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from ...daemon.declarations import LONGEST_TOOL_NAME
from ...dialects.mcp.generated.tables import LEGACY_REVISIONS, MODERN_REVISION
from ...errors.decoders import convert
from .conversation import CLIENT, Conversation, Implementation, listed, shown

# What the providers of models and hosts refuse in a tool, although MCP allows it. Each rule names who refuses it.


MAX_TOOLS: Final = 128
"""Tools of all servers together that OpenAI and Copilot take in one request."""
_PARAM: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
"""What Anthropic takes as a name of a param at the top level."""
_COMBINATIONS: Final = ("anyOf", "oneOf", "allOf")


class ListedTool(Struct, frozen=True, rename="camel"):
    """The members of a tool that hosts pass to models."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = {}
    output_schema: dict[str, Any] | None = None


def faults_of(tool: ListedTool, server: str) -> Iterator[str]:
    """Find what hosts and models would refuse of a tool of a server of this name."""
    prefix = len(f"mcp__{server}__")  # Claude Code counts it, too
    if len(tool.name) > LONGEST_TOOL_NAME:
        yield f"the name has {len(tool.name)} characters; OpenAI, Google and Claude Code take {LONGEST_TOOL_NAME}"
    elif len(tool.name) + prefix > LONGEST_TOOL_NAME:
        yield f"mcp__{server}__{tool.name} has {len(tool.name) + prefix} characters; Claude Code takes {LONGEST_TOOL_NAME}"
    if not tool.description:
        yield "no description: a model sees only the name"
    for keyword in _COMBINATIONS:
        if keyword in tool.input_schema:
            yield f"the input schema has {keyword} at the top; Anthropic and OpenAI refuse it"
    for name in _params(tool):
        if not _PARAM.match(name):
            yield f"the param {name} is not of 1 to 64 letters, digits, _, . and -; Anthropic refuses it"


def undescribed(tool: ListedTool) -> list[str]:
    """The params of which a model sees only the name and the type."""
    return [name for name, schema in _params(tool).items() if isinstance(schema, dict) and "description" not in schema]


def _params(tool: ListedTool) -> dict[str, Any]:  # Any: JSON
    params = tool.input_schema.get("properties")
    return params if isinstance(params, dict) else {}


HELLO: Final = {"protocolVersion": LEGACY_REVISIONS[-1], "clientInfo": CLIENT, "capabilities": {}}
"""The params of `initialize`."""

_MODERN: Final = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
        "io.modelcontextprotocol/clientInfo": CLIENT,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
"""The params of a request of the modern revision, which has no handshake."""

_MAX_PAGES: Final = 100


class _Welcome(Struct, frozen=True, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any] = {}
    server_info: Implementation = Implementation()
    instructions: str = ""


class _Discovered(Struct, frozen=True, rename="camel"):
    supported_versions: list[str]


class _Named(Struct, frozen=True, rename="camel"):
    """A resource, a template of resources, or a prompt."""

    name: str
    description: str = ""
    uri: str = ""
    uri_template: str = ""

    @property
    def address(self) -> str:
        return self.uri or self.uri_template or self.name


async def talk(conversation: Conversation) -> None:
    """Both ways to begin, and all lists."""
    welcome: _Welcome = await conversation.ask("initialize", HELLO, type=_Welcome)
    await conversation.peer.notify("notifications/initialized", {})
    conversation.note(f"server: {welcome.server_info}")
    conversation.note(f"initialize agrees on {shown(welcome.protocol_version)}")
    discovered: _Discovered = await conversation.ask("server/discover", _MODERN, type=_Discovered)
    conversation.note(f"server/discover offers {listed(discovered.supported_versions)}")
    if not welcome.instructions:
        conversation.note("no instructions: Service(description=…) tells the model what the server is for", "warn")
    if not welcome.capabilities.keys() & {"tools", "resources", "prompts"}:
        conversation.note("offers neither tools nor resources nor prompts", "warn")
    if "tools" in welcome.capabilities:
        await _tools(conversation, welcome.server_info.name)
    if "resources" in welcome.capabilities:
        await _named(conversation, "resource", "resources/list", "resources")
        await _named(conversation, "resource template", "resources/templates/list", "resourceTemplates")
    if "prompts" in welcome.capabilities:
        await _named(conversation, "prompt", "prompts/list", "prompts")


async def _tools(conversation: Conversation, server: str) -> None:
    texts = await _list(conversation, "tools/list", "tools")
    for text in texts:
        tool: ListedTool = convert(text, ListedTool)
        facts = f"tool {shown(tool.name)}: {_size(tool.input_schema)} bytes of input schema"
        if tool.output_schema is not None:
            facts += f", {_size(tool.output_schema)} of output schema"
        if bare := undescribed(tool):
            facts += f"; without a description: {listed(bare)}"
        faults = list(faults_of(tool, server))
        conversation.note("; ".join([facts, *faults]), "warn" if faults else "ok")
    total = f"{len(texts)} tools, {sum(map(_size, texts))} bytes as a host reads them"
    if len(texts) > MAX_TOOLS:
        conversation.note(f"{total}; OpenAI and Copilot take {MAX_TOOLS} of all servers together", "warn")
    else:
        conversation.note(total)


async def _named(conversation: Conversation, kind: str, method: str, member: str) -> None:
    for text in await _list(conversation, method, member):
        one: _Named = convert(text, _Named)
        if one.description:
            conversation.note(f"{kind} {shown(one.address)}")
        else:
            conversation.note(f"{kind} {shown(one.address)}: no description", "warn")


async def _list(conversation: Conversation, method: str, member: str) -> list[Any]:  # Any: JSON
    """All pages of a list."""
    found: list[Any] = []
    params: dict[str, str] = {}
    for _ in range(_MAX_PAGES):
        page = await conversation.ask(method, params, type=dict[str, Any])
        found += page.get(member, [])
        if not page.get("nextCursor"):
            break
        params = {"cursor": page["nextCursor"]}
    return found


def _size(value: Any) -> int:  # Any: JSON
    return len(msgspec.json.encode(value))
