"""Finds the end of a JSON text without parsing it: strings, escapes and depth, in constant memory.

Used to skip what must not run: a text that came without a header block, and the rest of a body that was cut short
(docs/protocol.md, section 1.1, rules 5 and 6). It never decodes, never keeps a byte, and never looks at one twice.

    BEFORE --{ [--> OUTSIDE <--"--> STRING <--\\--> ESCAPE
       |              |  ` depth 0 --> ENDED
       `--------------+------ a line end where JSON has none --> BROKEN

It is lenient within a line, strict at line ends. `{not json}` ends at its brace, `[}` is a balanced pair. But no JSON
text (RFC 8259) has a raw line end inside a string, nor a letter such as the `C` of `Content-Length` outside one, so a
line end behind either tells that the text is none. Every header block holds such a line, therefore no frame that the
lexer was led over can bring its depth to zero by accident: it is BROKEN first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, TypeAlias, cast, final

Phase: TypeAlias = Literal["before", "outside", "string", "escape", "ended", "broken"]

BEFORE: Final = "before"
OUTSIDE: Final = "outside"
STRING: Final = "string"
ESCAPE: Final = "escape"
ENDED: Final = "ended"
BROKEN: Final = "broken"

_Run: TypeAlias = Callable[[bytes, int], "re.Match[bytes]"]


def _run_of(pattern: bytes) -> _Run:
    """The matcher of a pattern that also matches nothing, so that there always is a match."""
    return cast("_Run", re.compile(pattern).match)


# The quantifiers of groups are capped because `re` keeps a record of each turn; behind a cap the loops just go on.
_IN_STRING = rb'[^"\\\r\n]*(?:\\[^\r\n][^"\\\r\n]*){0,256}'
_BETWEEN = rb"[\t\n\r 0-9+\-.eE,:truefalsn]*"  # what JSON has outside strings, but for brackets

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
    """Reads one object or array, in any chunks. `phase` is the state of the diagram above."""

    __slots__ = ("_depth", "_odd", "phase")

    def __init__(self) -> None:
        self.phase: Phase = BEFORE
        self._depth = 0
        self._odd = False  # outside strings, this line holds a byte that no JSON text has there

    @property
    def unfinished(self) -> bool:
        """True while the text has neither ended nor broken."""
        return self.phase != ENDED and self.phase != BROKEN

    def feed(self, data: bytes, start: int = 0) -> int:
        """Read `data` from `start`; returns the position behind the last byte that belongs to the text.

        That is the end of `data` unless the text ended or broke. Afterwards nothing more is read.
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
            self.phase = OUTSIDE if data[pos] in b"{[" else BROKEN
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
                self.phase = ENDED
                return pos
        return pos

    def _unusual(self, byte: int, pos: int) -> int:
        """A quote whose string does not end in this chunk, a line end behind an odd byte, or an odd byte."""
        if byte == _QUOTE:
            self.phase = STRING
        elif byte in _LINE_ENDS:
            self.phase = BROKEN
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
            self.phase = BROKEN
            return pos
        self.phase = ESCAPE if byte == _BACKSLASH else OUTSIDE
        return pos + 1

    def _escape(self, data: bytes, pos: int) -> int:
        if data[pos] in _LINE_ENDS:
            self.phase = BROKEN
            return pos
        self.phase = STRING
        return pos + 1
