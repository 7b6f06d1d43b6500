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
_BETWEEN = rb"[\t\n\r 0-9+\-.eE,:truefalsn]*"  # what JSON has outside strings, except brackets

_white_space: Final = _run_of(rb"[\t\n\r ]*")
_string_rest: Final = _run_of(_IN_STRING)
_strings_and_such: Final = _run_of(_BETWEEN + rb'(?:"' + _IN_STRING + rb'"' + _BETWEEN + rb"){0,256}")
_rest_of_odd_line: Final = _run_of(rb'[^"{}\[\]\r\n]*')

_DEPTH: Final = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}
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
        if pos < len(data):
            self.phase = "outside" if data[pos] in b"{[" else "broken"
        return pos

    def _outside(self, data: bytes, pos: int) -> int:
        run = _rest_of_odd_line if self._odd else _strings_and_such
        size = len(data)
        while pos < size:
            step = _DEPTH.get(data[pos])
            if step is None:
                end = run(data, pos).end()
                if end == pos:
                    return self._unusual(data[pos], pos)
                pos = end
                continue
            pos += 1
            self._depth += step
            if self._depth == 0:
                self.phase = "ended"
                return pos
        return pos

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
