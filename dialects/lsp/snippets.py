"""Reads the grammar of snippets (LSP 3.18, "Snippet syntax"), for editors that have none. Loads late: few servers need it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_ESCAPED: Final = re.compile(r"\\([$}\\])")
_STOP: Final = re.compile(r"\$(?:(\d+|[A-Za-z_]\w*)|\{(\d+|[A-Za-z_]\w*)([:|/}]))")
_CHOICE: Final = re.compile(r"((?:\\.|[^\\,|])*)(?:,(?:\\.|[^\\|])*)?\|\}")
_PLAIN: Final = re.compile(r"[^$\\}]+|.", re.DOTALL)

MAX_DEPTH: Final = 100
"""Placeholders within placeholders. What lies deeper is taken as text."""

_Node = tuple[str, "Sequence[_Node] | None"]
"""A text with None, or the name of a tab stop or variable, behind `$`, with its default."""


def text_of(snippet: str) -> str:
    """Return the text that a snippet inserts when nothing is filled in.

    A tab stop is the default that it has at any place; a choice is its first. A variable is its default, or empty.
    """
    nodes, _ = _parse(snippet, 0, 0)
    defaults: dict[str, str] = {}
    _written(nodes, defaults)
    return _written(nodes, defaults)


def _parse(text: str, at: int, depth: int) -> tuple[list[_Node], int]:
    """Parse up to the end, or up to the brace that closes a placeholder."""
    nodes: list[_Node] = []
    while at < len(text):
        if depth and text[at] == "}":
            return nodes, at + 1
        if found := _ESCAPED.match(text, at):
            nodes.append((found[1], None))
        elif depth < MAX_DEPTH and (found := _STOP.match(text, at)):
            default: Sequence[_Node] | None = []
            end = found.end()
            if found[3] == ":":
                default, end = _parse(text, end, depth + 1)
            elif found[3] == "|" and (choice := _CHOICE.match(text, end)):
                default, end = [(re.sub(r"\\(.)", r"\1", choice[1]), None)], choice.end()
            elif found[3] == "/":  # a transformation of what the user typed
                _, end = _parse(text, end, depth + 1)
            nodes.append((f"${found[1] or found[2]}", default))
            at = end
            continue
        else:
            found = _PLAIN.match(text, at)
            assert found is not None
            nodes.append((found[0], None))
        at = found.end()
    return nodes, at


def _written(nodes: Sequence[_Node], defaults: dict[str, str]) -> str:
    """The text of these nodes. Takes note of the defaults."""
    parts = []
    for text, default in nodes:
        if default is None:
            parts.append(text)
        else:
            own = _written(default, defaults)
            if own:
                defaults.setdefault(text, own)
            parts.append(own or defaults.get(text, ""))
    return "".join(parts)
