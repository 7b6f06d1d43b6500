"""What documents say for people, as the text of comments: descriptions, limits and defaults, wrapped. Never code."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from ..daemon.schemas.json_schema import JsonSchema

_LONGEST_DEFAULT: Final = 60
"""Characters; a longer default says nothing at a glance."""

_LIMITS: Final = {
    "minimum": ">= {}",
    "exclusiveMinimum": "> {}",
    "maximum": "<= {}",
    "exclusiveMaximum": "< {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} members",
    "maxProperties": "at most {} members",
}


def about(schema: JsonSchema | bool, *, default: bool) -> str:
    """One line on a value: its description, then what limits it, and its default if wanted. Empty where there is none."""
    if isinstance(schema, bool):
        return ""
    facts = "; ".join((*_limits(schema), *(_default(schema) if default else ())))
    described = " ".join(_described(schema).split())
    if not facts:
        return described
    return f"{described.rstrip('.')} ({facts})." if described else f"{facts[:1].upper()}{facts[1:]}."


def _described(schema: JsonSchema) -> str:
    own = schema.get("description", "")
    inner = (_described(branch) for branch in schema.get("anyOf", ()) if isinstance(branch, dict))
    return own or next(filter(None, inner), "")


def _default(schema: JsonSchema) -> Iterator[str]:
    if "default" in schema and schema["default"] is not None:
        text = msgspec.json.encode(schema["default"]).decode()
        if len(text) <= _LONGEST_DEFAULT:
            yield f"default {text}"


def _limits(schema: Any) -> Iterator[str]:  # Any: a schema
    for keyword, phrase in _LIMITS.items():
        if keyword in schema and "prefixItems" not in schema:
            yield phrase.format(schema[keyword])
    for branch in schema.get("anyOf", ()):
        if isinstance(branch, dict):
            yield from _limits(branch)


def paragraphs(*blocks: str | Sequence[str], width: int) -> list[str]:
    """Lines of at most `width`, where words allow it: texts of paragraphs, and lists of items, a blank line between.

    Nothing is in them that could move a cursor or end a line; empty blocks are left out.
    """
    found: list[str] = []
    for block in blocks:
        for part in block.split("\n\n") if isinstance(block, str) else (block,):
            items = (part,) if isinstance(part, str) else part
            wrapped = [line for item in items for line in _wrapped(item, width, hanging=not isinstance(part, str))]
            found += ["", *wrapped] if found and wrapped else wrapped
    return found


def _wrapped(text: str, width: int, *, hanging: bool) -> list[str]:
    words = "".join(char if char.isprintable() else " " for char in text)
    later = "    " if hanging else ""
    return textwrap.wrap(words.strip(), width, subsequent_indent=later, break_long_words=False, break_on_hyphens=False)
