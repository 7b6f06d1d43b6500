"""Finds the end of a JSON text without parsing it: strings, escapes and depth, in constant memory.

Used to skip what must not run: a text without a header block, and the rest of a body that was cut short
(docs/protocol.md, section 1.1, rules 5 and 6). It never decodes, never keeps a byte, and never reads one twice.

    BEFORE --{ [--> OUTSIDE <--"--> STRING <--\\--> ESCAPE
       |              |  ` depth 0 --> ENDED
       `--------------+------ a line end where JSON has none --> BROKEN

It is lenient within a line and strict at line ends. `{not json}` ends at its brace, `[}` is a balanced pair. But no JSON
text (RFC 8259) has a raw line end inside a string, or a letter such as the `C` of `Content-Length` outside one. So a line
end after either proves that the text is no JSON. Every header block contains such a line: if a frame lies in the text,
the lexer is BROKEN before its depth can become zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, TypeAlias, cast, final

Phase: TypeAlias = Literal["before", "outside", "string", "escape", "ended", "broken"]

_Run: TypeAlias = Callable[[bytes, int], "re.Match[bytes]"]


def _run_of(pattern: bytes) -> _Run:
    """The `match` of a pattern that also matches the empty text, so that there always is a match."""
    return cast("_Run", re.compile(pattern).match)


# Repetitions of groups are capped, because `re` keeps a record of each; past a cap the loops below go on.
_IN_STRING = rb'[^"\\\r\n]*(?:\\[^\r\n][^"\\\r\n]*){0,256}'
_STRING = b'"' + _IN_STRING + b'"'
# Capped too, so that a region in which the text ends is short.
_BETWEEN = rb"[\t\n\r 0-9+\-.eE,:truefalsn{}\[\]]{0,512}"  # what JSON has outside strings
_ANYTHING = rb'[^"\r\n]{0,512}'

_white_space: Final = _run_of(rb"[\t\n\r ]*")
_string_rest: Final = _run_of(_IN_STRING)
_region: Final = _run_of(_BETWEEN + b"(?:" + _STRING + _BETWEEN + b"){0,256}")
_region_of_odd_line: Final = _run_of(_ANYTHING + b"(?:" + _STRING + _ANYTHING + b"){0,256}")

_strings: Final = re.compile(_STRING)
_bracket_runs: Final = re.compile(rb"\[+|\]+")
_bracket_or_string: Final = re.compile(rb"[\[\]{}]|" + _STRING)
_BRACES_AS_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))

_DEPTH: Final = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
_OPENING: Final = ord("[")
_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")
_LINE_ENDS: Final = frozenset(b"\r\n")


@final
class JsonLexer:
    """Reads one object or array, in any chunks. `phase` is a state of the diagram above."""

    __slots__ = ("_depth", "_odd", "phase")

    def __init__(self) -> None:
        self.phase: Phase = "before"
        self._depth = 0
        self._odd = False  # this line has a byte outside strings that no JSON text has there

    @property
    def in_string(self) -> bool:
        return self.phase == "string" or self.phase == "escape"

    def copy(self) -> JsonLexer:
        """A lexer in the same state."""
        other = JsonLexer()
        other.phase, other._depth, other._odd = self.phase, self._depth, self._odd
        return other

    @property
    def unfinished(self) -> bool:
        """True while the text has neither ended nor proved to be no JSON."""
        return self.phase != "ended" and self.phase != "broken"

    def feed(self, data: bytes, start: int = 0) -> int:
        """Read `data` from `start`; returns the position after the last byte of the text.

        That is the end of `data` unless the phase became "ended" or "broken". Then nothing more is read.
        """
        pos = start
        while pos < len(data):
            match self.phase:
                case "before":
                    pos = self._before(data, pos)
                case "outside":
                    pos = self._outside(data, pos)
                case "string":
                    pos = self._string(data, pos)
                case "escape":
                    pos = self._escape(data, pos)
                case "ended" | "broken":
                    break
        return pos

    def _before(self, data: bytes, pos: int) -> int:
        pos = _white_space(data, pos).end()
        if pos == len(data):
            return pos
        if data[pos] not in b"{[":
            self.phase = "broken"
            return pos
        self.phase = "outside"
        self._depth = 1
        return pos + 1

    def _outside(self, data: bytes, pos: int) -> int:
        """Read one region of brackets, whole strings and what may stand between, without looking at each bracket."""
        end = (_region_of_odd_line if self._odd else _region)(data, pos).end()
        if end == pos:
            return self._unusual(data[pos], pos)
        region = data[pos:end]
        brackets = _brackets_of(region)
        if _largest_fall(brackets) >= self._depth:
            self.phase = "ended"
            return pos + self._end_in(region)
        self._depth += 2 * brackets.count(b"[") - len(brackets)
        return end

    def _end_in(self, region: bytes) -> int:
        """The position in the region after the bracket at which the depth becomes zero."""
        for found in _bracket_or_string.finditer(region):
            self._depth += _DEPTH.get(found[0], 0)
            if self._depth == 0:
                return found.end()
        raise AssertionError("the depth does not become zero in this region")

    def _unusual(self, byte: int, pos: int) -> int:
        """Handle a quote whose string does not end in this chunk, a line end after an odd byte, or an odd byte."""
        if byte == _QUOTE:
            self.phase = "string"
        elif byte in _LINE_ENDS:
            self.phase = "broken"
            return pos
        else:
            self._odd = True
        return pos + 1

    def _string(self, data: bytes, pos: int) -> int:
        pos = _string_rest(data, pos).end()
        if pos == len(data):
            return pos
        byte = data[pos]
        if byte in _LINE_ENDS:
            self.phase = "broken"
            return pos
        self.phase = "escape" if byte == _BACKSLASH else "outside"
        return pos + 1

    def _escape(self, data: bytes, pos: int) -> int:
        if data[pos] in _LINE_ENDS:
            self.phase = "broken"
            return pos
        self.phase = "string"
        return pos + 1


def _brackets_of(region: bytes) -> bytes:
    """The brackets and braces outside the strings of a region, all as brackets."""
    brackets = region.translate(_BRACES_AS_BRACKETS, _NO_BRACKETS)
    if not brackets or b'"' not in region:
        return brackets
    if b"\\" in region:
        outside = _strings.sub(b"", region)
    else:
        outside = b"".join(region.split(b'"')[::2])  # ten times as fast
    return outside.translate(_BRACES_AS_BRACKETS, _NO_BRACKETS)


def _largest_fall(brackets: bytes) -> int:
    """How far the depth falls below its start at the deepest point of a row of `[` and `]`. Linear in its length.

    Pairs change nothing and are removed while there are many of them; then the runs are long and few.
    """
    while brackets.count(b"[]") * 64 > len(brackets):
        brackets = brackets.replace(b"[]", b"")
    fall = depth = 0
    for run in _bracket_runs.finditer(brackets):
        size = run.end() - run.start()
        depth += size if run[0][0] == _OPENING else -size
        fall = max(fall, -depth)
    return fall
