"""What the providers of models and hosts refuse in a tool, although MCP allows it. Each rule names who refuses it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from ...daemon.offers import LONGEST_TOOL_NAME

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
