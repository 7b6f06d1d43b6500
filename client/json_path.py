"""Paths into a JSON value, written as `result.entries[0].name`. Knows nothing of messages.

A key that is no plain word is written in brackets and quotes, as in `params["a.b"]`, so that every path has one spelling.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, TypeAlias

import msgspec

from ..errors.decoders import decoder_for

Path: TypeAlias = tuple[str | int, ...]


class Wildcard(Enum):
    """A part of a pattern that matches any keys and indexes."""

    ONE = "*"
    """Matches exactly one step."""
    ANY = "**"
    """Matches any number of steps, or none."""


Pattern: TypeAlias = tuple[str | int | Wildcard, ...]

_WORD: Final = re.compile(r"[^\s.\[\]\"*]+")
_STEP: Final = re.compile(
    r"""(?:\A|\.)(?:(?P<word>[^\s.\[\]"*]+) | (?P<wild>\*{1,2})) | \[(?P<any>\*)\] | \[(?P<index>[0-9]{1,18})\]
      | \[(?P<quoted>"(?:[^"\\]|\\.)*")\]""",
    re.VERBOSE,
)


def format_path(path: Path) -> str:
    """The text of a path; empty for the whole value."""
    return "".join(map(_format_step, path)).removeprefix(".")


def parse_path(text: str) -> Path:
    """The path that `format_path` wrote. Raises `ValueError` for any other text."""
    path = tuple(step for step in parse_pattern(text) if not isinstance(step, Wildcard))
    if format_path(path) != text:
        raise ValueError(f"{text}: not a path in a message")
    return path


def parse_pattern(text: str) -> Pattern:
    """A path in which `*` matches any one step and `**` any number of steps. Raises `ValueError`.

    Indexes may also be written as words: `entries.0.name`.
    """
    steps: list[str | int | Wildcard] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (at == 0 and text[0] == "."):
            raise ValueError(f"{text}: not a path in a message, such as result.entries[0].name or params.*.time")
        steps.append(_parse_step(match))
        at = match.end()
    return tuple(steps)


def matches(pattern: Pattern, path: Path) -> bool:
    """Whether the pattern matches the whole path."""
    if not pattern:
        return not path
    head, rest = pattern[0], pattern[1:]
    if head is Wildcard.ANY:
        return matches(rest, path) or (bool(path) and matches(pattern, path[1:]))
    return bool(path) and (head is Wildcard.ONE or str(head) == str(path[0])) and matches(rest, path[1:])


def value_at(value: object, path: Path) -> object:
    """The value at a path. Raises `LookupError` if there is none."""
    for step in path:
        match value, step:
            case dict(), str():
                value = value[step]
            case list(), int():
                value = value[step]
            case _:
                raise LookupError(step)
    return value


def replace_at(value: object, path: Path, new: object) -> None:
    """Replace the value at a path, in place. Raises `LookupError` if there is none."""
    value_at(value, path)
    match value_at(value, path[:-1]), path[-1]:
        case dict() as members, str() as key:
            members[key] = new
        case list() as items, int() as index:
            items[index] = new
        case _:  # not reached: `value_at` raises first
            raise LookupError(path[-1])


def _format_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _WORD.fullmatch(step) else f"[{msgspec.json.encode(step).decode()}]"


def _unquoted(text: str) -> str:
    try:
        return decoder_for(str)(text)
    except (msgspec.DecodeError, UnicodeError) as exc:
        raise ValueError(f"{text}: not a JSON string") from exc


def _parse_step(match: re.Match[str]) -> str | int | Wildcard:
    match match.lastgroup:
        case "wild" | "any":
            return Wildcard(match[match.lastgroup])
        case "index":
            return int(match["index"])
        case "quoted":
            return _unquoted(match["quoted"])
        case _:
            return match["word"]
