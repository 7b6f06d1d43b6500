"""Translates Python's regular expressions to ECMA 262, the syntax of JSON Schema's `pattern`. Never runs a pattern.

For strings of printable ASCII, the translation matches the same. For others the two differ: `\\d`, `\\w` and `\\b` include
all of Unicode only in Python, and Python's `$` also matches before a final line end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_FLAGS: Final = re.compile(r"\(\?([aiLmsux]+)\)")
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
_SHARED_ESCAPES: Final = frozenset("dDwWsSbBfnrtv")
_ANCHORS: Final = {"\\A": "^", "\\Z": "$"}
_GROUPS: Final = frozenset({"(", "(?:", "(?=", "(?!", "(?<=", "(?<!"})


class _Untranslatable(Exception):
    """ECMA 262 has no equivalent."""


def to_ecma(pattern: str) -> str | None:
    """The pattern for ECMA 262 with its `u` flag; None where that has no equivalent.

    Translated are anchors, escapes, counts, `(?i)` at the beginning (for ASCII), and named groups, which become numbered
    ones. The result is a valid Python pattern too. Raises `re.error` for an invalid pattern.
    """
    numbers = re.compile(pattern).groupindex
    flags = _FLAGS.match(pattern)
    letters = set(flags[1]) if flags else set()
    body = pattern[flags.end() :] if flags else pattern
    try:
        if not letters <= set("aiu"):
            raise _Untranslatable
        return "".join(_token(match, numbers, any_case="i" in letters) for match in _TOKEN.finditer(body))
    except _Untranslatable:
        return None


def _token(match: re.Match[str], numbers: Mapping[str, int], *, any_case: bool) -> str:
    text = match[0]
    match match.lastgroup:
        case "escape":
            return _escape(text, any_case=any_case)
        case "set":
            return _set(text, any_case=any_case)
        case "group":
            return _group(text, numbers, any_case=any_case)
        case "count":
            if text == "{,}" or (len(text) > 1 and text.endswith("+")):  # possessive
                raise _Untranslatable
            return text.replace("{,", "{0,")
        case _ if any_case and text.isascii() and text.isalpha():
            return f"[{text}{text.swapcase()}]"
        case _:
            return f"\\{text}" if text in "{}]" else text


def _escape(text: str, *, any_case: bool) -> str:
    if text in _ANCHORS:
        return _ANCHORS[text]
    letter = text[1]
    if letter in _SYNTAX or letter in _SHARED_ESCAPES:
        return text
    if letter in "xu123456789" and not any_case:
        return text
    if letter.isalnum():
        raise _Untranslatable
    return letter


def _group(text: str, numbers: Mapping[str, int], *, any_case: bool) -> str:
    if text in _GROUPS:
        return text
    if text.startswith("(?P<"):
        return "("
    if text.startswith("(?P=") and not any_case:
        return f"(?:\\{numbers[text[4:-1]]})"
    raise _Untranslatable


def _set(text: str, *, any_case: bool) -> str:
    opening = "[^" if text.startswith("[^") else "["
    members = (_set_item(member, any_case=any_case) for member in _SET_ITEM.finditer(text[len(opening) : -1]))
    return f"{opening}{''.join(members)}]"


def _set_item(member: re.Match[str], *, any_case: bool) -> str:
    low, high = member["low"], member["high"]
    if high is None:
        both = low + low.swapcase() if any_case and low.isascii() and low.isalpha() else low
        return "".join(map(_set_character, both)) if both != low else _set_character(low)
    ends = f"{_set_character(low)}-{_set_character(high)}"
    if not any_case:
        return ends
    if low.isdigit() and high.isdigit():
        return ends
    if (low + high).isascii() and (low + high).isalpha() and low.islower() == high.islower():
        return f"{ends}{low.swapcase()}-{high.swapcase()}"
    raise _Untranslatable


def _set_character(text: str) -> str:
    if len(text) == 1:
        return f"\\{text}" if text in "[]-" else text
    letter = text[1]
    if letter in _SYNTAX or letter == "-" or letter in _SHARED_ESCAPES - {"B"}:
        return text
    if letter in "xu":
        return text
    if letter.isalnum():
        raise _Untranslatable
    return letter
