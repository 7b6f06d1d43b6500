"""Translates Python's regular expressions to ECMA 262, the syntax of JSON Schema's `pattern`. Never runs a pattern.

For strings of printable ASCII, the translation matches the same. For others the two differ: `\\d`, `\\w` and `\\b` include
all of Unicode only in Python, and Python's `$` also matches before a final line end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_FLAGS: Final = re.compile(r"\A\(\?[au]\)")
"""Flags that change nothing for ASCII."""
_TOKEN: Final = re.compile(
    r"(?P<escape>\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[1-9]\d?|.))"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<group>\((?:\?(?:P?<[A-Za-z_]\w*>|P=\w+\)|<?[=!]|:|.?))?)"
    r"|(?P<count>(?:[*+?]|\{(?:\d+(?:,\d*)?|,\d*)\})[?+]?)"
    r"|(?P<plain>.)",
    re.DOTALL,
)
_SET_ITEM: Final = re.compile(
    r"(?P<low>\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)|.)(?:-(?P<high>\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)|.))?",
    re.DOTALL,
)
_SYNTAX: Final = frozenset("^$\\.*+?()[]{}|/")
_SHARED_ESCAPES: Final = frozenset("dDwWsSbfnrtvxu")
_ANCHORS: Final = {"\\A": "^", "\\Z": "$"}
_GROUPS: Final = frozenset({"(", "(?:", "(?=", "(?!", "(?<=", "(?<!"})


class _Untranslatable(Exception):
    """ECMA 262 has no equivalent."""


def to_ecma(pattern: str) -> str | None:
    """The pattern for ECMA 262 with its `u` flag; None where that has no equivalent.

    Translated are anchors, escapes, counts, and named groups, which become numbered ones. The result is a valid Python
    pattern too. Raises `re.error` for an invalid pattern.
    """
    numbers = re.compile(pattern).groupindex
    try:
        return "".join(_token(match, numbers) for match in _TOKEN.finditer(_FLAGS.sub("", pattern)))
    except _Untranslatable:
        return None


def _token(match: re.Match[str], numbers: Mapping[str, int]) -> str:
    text = match[0]
    match match.lastgroup:
        case "escape":
            return _ANCHORS.get(text) or _escape(text, "B123456789")
        case "set":
            opening = "[^" if text.startswith("[^") else "["
            members = (_set_item(member) for member in _SET_ITEM.finditer(text[len(opening) : -1]))
            return f"{opening}{''.join(members)}]"
        case "group":
            return _group(text, numbers)
        case "count":
            if text == "{,}" or (len(text) > 1 and text.endswith("+")):  # possessive
                raise _Untranslatable
            return text.replace("{,", "{0,")
        case _:
            return f"\\{text}" if text in "{}]" else text


def _escape(text: str, more: str) -> str:
    """Return the escape if ECMA 262 has it; the character itself if it needs none."""
    letter = text[1]
    if letter in _SYNTAX or letter in _SHARED_ESCAPES or letter in more:
        return text
    if letter.isalnum():
        raise _Untranslatable
    return letter


def _group(text: str, numbers: Mapping[str, int]) -> str:
    if text in _GROUPS:
        return text
    if text.startswith("(?P<"):
        return "("
    if text.startswith("(?P="):
        return f"(?:\\{numbers[text[4:-1]]})"
    raise _Untranslatable


def _set_item(member: re.Match[str]) -> str:
    ends = [_set_character(end) for end in member.group("low", "high") if end is not None]
    return "-".join(ends)


def _set_character(text: str) -> str:
    if len(text) == 1:
        return f"\\{text}" if text in "[]-" else text
    return _escape(text, "-")
