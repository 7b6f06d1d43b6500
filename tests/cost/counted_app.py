"""What the costs are measured with: the same echo in each way to run a handler, a tool and an agent.

Imported by `counted_serve`, whose counters `mark` takes a copy of.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from discreet import Service

inline, coroutine, thread = Service(""), Service(""), Service("")
tool = Service("", version="1", dialect="mcp")


def mark() -> None:
    """Keep what was counted up to here."""
    sys.modules["__main__"].keep()  # type: ignore[attr-defined]


for service in (inline, coroutine, thread, tool):
    service.query(inline=True)(mark)


@inline.query(inline=True, name="echo")
def echo_inline(**params: Any) -> dict[str, Any]:
    return params


@coroutine.query(name="echo")
async def echo_coroutine(**params: Any) -> dict[str, Any]:
    return params


@thread.query(name="echo")
def echo_thread(**params: Any) -> dict[str, Any]:
    return params


class Item(msgspec.Struct):
    name: str
    number: int


@tool.query
async def look(name: str, number: int) -> Item:
    """Tell of an item."""
    return Item(name, number)


class Echo:
    """An executor that gives back what it was told."""

    async def execute(self, context: Any, events: Any) -> None:
        await events.complete(context.text)

    async def cancel(self, context: Any, events: Any) -> None: ...


marks = Service("")
marks.query(inline=True)(mark)


def __getattr__(name: str) -> Any:
    if name != "agent":  # loads what the others do without
        raise AttributeError(name)
    from discreet.agents import Agent, Skill

    skills = [Skill(id="echo", name="Echo", description="Gives back what it is told.", tags=("echo",))]
    return Agent(Echo(), name="echo", description="Gives back what it is told.", version="1", skills=skills)
