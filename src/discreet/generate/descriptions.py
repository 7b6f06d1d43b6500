"""The text of comments in generated code: descriptions, limits and defaults, wrapped into lines. Never code."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from .schema import Schema, SubSchema

_MAX_DEFAULT_CHARS: Final = 60
"""A longer default is left out of a description."""

_LIMITS: Final = {
    "minimum": ">= {}",
    "exclusive_minimum": "> {}",
    "maximum": "<= {}",
    "exclusive_maximum": "< {}",
    "multiple_of": "a multiple of {}",
    "min_length": "at least {} characters",
    "max_length": "at most {} characters",
    "min_items": "at least {} items",
    "max_items": "at most {} items",
    "min_properties": "at least {} members",
    "max_properties": "at most {} members",
}


def describe(schema: SubSchema, *, with_default: bool) -> str:
    """Return one line about a value: its description, its limits, and its default if wanted. Empty if there is nothing."""
    if isinstance(schema, bool):
        return ""
    facts = "; ".join((*_limits(schema), *(_default(schema) if with_default else ())))
    description = " ".join(_description(schema).split())
    if not facts:
        return description
    return f"{description.rstrip('.')} ({facts})." if description else f"{facts[:1].upper()}{facts[1:]}."


def _description(schema: Schema) -> str:
    branches = (_description(branch) for branch in schema.any_of if isinstance(branch, Schema))
    return schema.description or next(filter(None, branches), "")


def _default(schema: Schema) -> Iterator[str]:
    if schema.default is not UNSET and schema.default is not None:
        text = msgspec.json.encode(schema.default).decode()
        if len(text) <= _MAX_DEFAULT_CHARS:
            yield f"default {text}"


def _limits(schema: Schema) -> Iterator[str]:
    for keyword, phrase in _LIMITS.items():
        limit = getattr(schema, keyword)
        if limit is not UNSET and not schema.prefix_items:
            yield phrase.format(limit)
    for branch in schema.any_of:
        if isinstance(branch, Schema):
            yield from _limits(branch)


def wrapped(*blocks: str | Sequence[str], width: int) -> list[str]:
    """Wrap blocks into lines of at most `width` characters, where words allow it, with a blank line between blocks.

    A block is a text, whose paragraphs are wrapped, or a list, whose items have hanging indents. Characters that could
    move a cursor or end a line become blanks. Empty blocks are left out.
    """
    found: list[str] = []
    for block in blocks:
        for part in block.split("\n\n") if isinstance(block, str) else (block,):
            items = (part,) if isinstance(part, str) else part
            lines = [line for item in items for line in _wrapped(item, width, hanging=not isinstance(part, str))]
            found += ["", *lines] if found and lines else lines
    return found


def _wrapped(text: str, width: int, *, hanging: bool) -> list[str]:
    words = "".join(char if char.isprintable() else " " for char in text)
    later = "    " if hanging else ""
    return textwrap.wrap(words.strip(), width, subsequent_indent=later, break_long_words=False, break_on_hyphens=False)
