"""Places in a JSON value, as people write them: `result.entries[0].name`. Knows no messages.

A key that is no plain word stands in brackets and quotes, as in `params["a.b"]`, so that every place has one spelling.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, TypeAlias

import msgspec

Path: TypeAlias = tuple[str | int, ...]


class Wild(Enum):
    """What stands for steps of any name in a pattern."""

    ONE = "*"
    """Exactly one step."""
    ANY = "**"
    """Any number of steps, none included."""


Pattern: TypeAlias = tuple[str | int | Wild, ...]

_WORD: Final = re.compile(r"[^\s.\[\]\"*]+")
_STEP: Final = re.compile(
    r"""(?:\A|\.)(?:(?P<word>[^\s.\[\]"*]+) | (?P<wild>\*{1,2})) | \[(?P<any>\*)\] | \[(?P<index>[0-9]{1,18})\]
      | \[(?P<quoted>"(?:[^"\\]|\\.)*")\]""",
    re.VERBOSE,
)


def show(path: Path) -> str:
    """The spelling of a place; empty for the value as a whole."""
    shown = "".join(map(_shown, path))
    return shown.removeprefix(".")


def read(text: str) -> Path:
    """The place that `show` spelt. Raises `ValueError` for anything else."""
    path = tuple(step for step in read_pattern(text) if not isinstance(step, Wild))
    if show(path) != text:
        raise ValueError(f"{text}: no place in a message")
    return path


def read_pattern(text: str) -> Pattern:
    """A place in which `*` stands for any one step and `**` for any number. Raises `ValueError`.

    Indexes may also stand as words: `entries.0.name`.
    """
    steps: list[str | int | Wild] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (at == 0 and text[0] == "."):
            raise ValueError(f"{text}: no place in a message, such as result.entries[0].name or params.*.time")
        steps.append(_step(match))
        at = match.end()
    return tuple(steps)


def matches(pattern: Pattern, path: Path) -> bool:
    """Whether the pattern names exactly this place."""
    if not pattern:
        return not path
    head, rest = pattern[0], pattern[1:]
    if head is Wild.ANY:
        return matches(rest, path) or (bool(path) and matches(pattern, path[1:]))
    return bool(path) and (head is Wild.ONE or str(head) == str(path[0])) and matches(rest, path[1:])


def value_at(value: object, path: Path) -> object:
    """What stands there. Raises `LookupError` where nothing does."""
    for step in path:
        match value, step:
            case dict(), str():
                value = value[step]
            case list(), int():
                value = value[step]
            case _:
                raise LookupError(step)
    return value


def put_at(value: object, path: Path, new: object) -> None:
    """Replace what stands there. Raises `LookupError` where nothing does."""
    value_at(value, path)
    match value_at(value, path[:-1]), path[-1]:
        case dict() as members, str() as key:
            members[key] = new
        case list() as items, int() as index:
            items[index] = new
        case _:  # `value_at` would have found nothing
            raise LookupError(path[-1])


def _shown(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _WORD.fullmatch(step) else f"[{msgspec.json.encode(step).decode()}]"


def _step(match: re.Match[str]) -> str | int | Wild:
    match match.lastgroup:
        case "wild" | "any":
            return Wild(match[match.lastgroup])
        case "index":
            return int(match["index"])
        case "quoted":
            return msgspec.json.decode(match["quoted"], type=str)
        case _:
            return match["word"]
