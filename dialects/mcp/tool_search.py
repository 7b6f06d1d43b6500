"""Offers two tools in place of many: `search_tools` finds tools by words, `call_tool` calls one of them. Calls nothing itself.

A model reads the list of tools with each conversation. Where there are hundreds, that costs more than the conversation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from math import log
from typing import Annotated, Any, Final, Protocol, final

import msgspec
from msgspec import Raw

from ...daemon.operations.context import Context
from ...daemon.operations.service import Service
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from .generated import structs
from .tools import CALL_TOOL, SEARCH_METHOD, SEARCH_TOOLS, Tool, without_string

MOST_FOUND: Final = 20
FOUND: Final = 5
"""Tools that are found where the caller does not say how many."""
MAX_QUERY: Final = 1000
SHORT: Final = 3
"""Letters of words that have no plural, such as `bus`. Shorter ones are the beginning of no other."""

_IN_NAME: Final = 3.0
"""How much more a word weighs in the name of a tool than in its description."""
_BEGINS: Final = 0.5
"""How much a word weighs that only begins with the one that was asked for, such as `repositories` for `repo`."""

_words: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+").findall


class FoundTool(msgspec.Struct, rename="camel", omit_defaults=True):
    """A tool as `tools/list` would list it."""

    name: str
    input_schema: dict[str, Any]  # Any: JSON
    description: str = ""
    annotations: structs.ToolAnnotations | None = None


class FoundTools(msgspec.Struct):
    """The tools that fit best, the best first. `more` is how many others fit."""

    tools: list[FoundTool]
    more: int


class CallArguments(msgspec.Struct):
    """The arguments of `call_tool`."""

    name: str
    arguments: Raw = Raw(b"{}")


class SearchedTools(Protocol):
    """The tools of a session: its `McpState`, which this module must not import."""

    @property
    def tools(self) -> Mapping[str, Tool]: ...
    @property
    def tool_index(self) -> ToolIndex: ...
    def visible_tools(self, ctx: Context) -> list[Tool]: ...


@final
class ToolIndex:
    """Finds tools by the words of their names and descriptions. A word that few tools have counts for more (idf)."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self.tools: Final = tools
        self._weights = {name: _weights(tool) for name, tool in tools.items()}
        known = Counter(word for weights in self._weights.values() for word in weights)
        self._rarity = {word: log(1 + len(tools) / count) for word, count in known.items()}

    def search(self, query: str, visible: Collection[str]) -> list[str]:
        """The names of the visible tools that fit, the best first."""
        asked = set(_stems(query))
        words = {
            word: (1.0 if word in asked else _BEGINS) * rarity
            for word, rarity in self._rarity.items()
            if word in asked or any(len(each) >= SHORT and word.startswith(each) for each in asked)
        }
        scores = {
            name: sum(words[word] * weight for word, weight in self._weights[name].items() if word in words)
            for name in visible
        }
        return sorted((name for name, score in scores.items() if score > 0), key=lambda name: -scores[name])


def _weights(tool: Tool) -> dict[str, float]:
    found = dict.fromkeys(_stems(tool.spec.description), 1.0)
    return found | dict.fromkeys(_stems(tool.spec.name), _IN_NAME)


def _stems(text: str) -> Iterable[str]:
    """The words in lower case, and in the singular."""
    for word in _words(text):
        low = word.lower()
        if len(low) > SHORT and low.endswith("ies"):
            yield f"{low[:-3]}y"
        else:
            yield low[:-1] if len(low) > SHORT and low.endswith("s") and not low.endswith("ss") else low


@final
class ToolSearch:
    """The two tools of a session. Adds to the service the method that finds tools."""

    def __init__(self, service: Service, state: SearchedTools) -> None:
        self._state = state
        service.query(SEARCH_METHOD, inline=True)(self._search)
        self.search_tool: Final = Tool(service.operations[-1], SEARCH_TOOLS)

    def _search(
        self,
        ctx: Context,
        query: Annotated[str, msgspec.Meta(max_length=MAX_QUERY, description="Words for what is to be done.")],
        limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_FOUND)] = FOUND,
    ) -> FoundTools:
        """Find tools by what they do. Tells their names, descriptions and input schemas, the best first."""
        tools = self._state.tools
        visible = self._state.visible_tools(ctx)
        names = self._state.tool_index.search(query, [tool.name for tool in visible if tool.is_for_models])
        return FoundTools([_found(tools[name]) for name in names[:limit]], max(0, len(names) - limit))

    def meant(self, name: str, arguments: Raw) -> tuple[Tool | None, str, Raw, str]:
        """Return the tool that is called, the name by which it is meant, its arguments, and where in the params they stand.

        Raises `FailureError` for arguments of `call_tool` that name no tool.
        """
        if name == SEARCH_TOOLS:
            return self.search_tool, name, arguments, "arguments"
        if name != CALL_TOOL:
            return self._state.tools.get(name), name, arguments, "arguments"
        try:
            call = decoder_for(CallArguments)(without_string(arguments))
        except DECODE_ERRORS:
            wrong = InvalidParams("arguments", "object with a name and arguments", "another value")
            raise FailureError(wrong) from None
        return self._state.tools.get(call.name), call.name, call.arguments, "arguments.arguments"

    def listed(self, count: int) -> list[structs.Tool]:
        """Return the two tools that are listed in place of so many."""
        found = self.search_tool.described
        return [
            msgspec.structs.replace(
                found, description=f"{found.description} There are {count} tools.", output_schema=None
            ),
            structs.Tool(name=CALL_TOOL, description=_CALL_DESCRIPTION, input_schema=_CALL_SCHEMA),
        ]


_CALL_DESCRIPTION: Final = f"Call a tool that {SEARCH_TOOLS} has found, with arguments that fit its input schema."
_CALL_SCHEMA: Final = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
    "required": ["name"],
}


def _found(tool: Tool) -> FoundTool:
    listed = tool.described
    return FoundTool(listed.name, listed.input_schema, listed.description or "", listed.annotations)
