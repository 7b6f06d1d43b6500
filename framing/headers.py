"""Parses one header block in any chunks, and reads past one that is refused. Never looks at a body.

The grammar is RFC 9112, section 5, without its obsolete parts: a field name of token characters, a colon immediately
after it, a value of visible characters, blanks and bytes from 0x80, CR LF. No folded lines, no bare CR or LF. The first
byte that the grammar does not allow ends the parsing (docs/protocol.md, section 1.1, rule 2).

    LINE_START --token--> NAME --:--> VALUE --CR--> VALUE_CR --LF--> LINE_START
         `-------CR--> EMPTY_CR --LF--> DONE
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias, cast, final, get_args

LARGEST_LENGTH: Final = 2**63 - 1
"""The largest signed 64-bit integer. No peer means a length beyond it."""

LengthFault: TypeAlias = Literal["missing-content-length", "invalid-content-length", "oversize"]
TypeFault: TypeAlias = Literal["unsupported-content-type", "bad-charset"]
BlockFault: TypeAlias = Literal["malformed-header", "header-too-large"]

LENGTH_FAULTS: Final[frozenset[str]] = frozenset(get_args(LengthFault))
"""What may be wrong with a well-formed block."""

_MEDIA_TYPE: Final = b"application/vscode-jsonrpc"
_CHARSETS: Final = frozenset({b"utf-8", b"utf8"})

_BLANKS: Final = b" \t"  # optional white space, RFC 9110, section 5.6.3
_TOKEN: Final = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CR, _LF, _COLON = b"\r\n:"

_blank_line: Final = re.compile(rb"\n\r?\n").search
_BLANK_LINE_OVERLAP: Final = 2  # bytes before a chunk with which a blank line may begin

_LONGEST_DECLARATION: Final = 128
"""Bytes of an unfinished line that `RefusedBlock` keeps: more than a squeezed declaration has."""

_declarations: Final = re.compile(rb"content-length ?: ?([0-9]+) ?[\r\n]").finditer  # in squeezed text

# Blanks and zeros may be many, and mean nothing; so do the digits of a number that is far beyond every length.
_squeezings: Final = (
    (re.compile(rb"[ \t]{2,}|\t").sub, rb" "),
    (re.compile(rb"(content-length ?: ?)0+(?=[0-9])").sub, rb"\1"),
    (re.compile(rb"([0-9]{40})[0-9]+").sub, rb"\1"),
)

_Phase: TypeAlias = Literal["line-start", "name", "value", "value-cr", "empty-cr", "done"]
_Run: TypeAlias = Callable[[bytes, int, int], "re.Match[bytes]"]


def _run_of(bytes_in_class: bytes) -> _Run:
    """Matches any number of these bytes, also none, so that there always is a match."""
    return cast("_Run", re.compile(b"[" + bytes_in_class + b"]*").match)


_TO_NAME: Final[Mapping[int, _Phase]] = dict.fromkeys(_TOKEN, "name")

# For each phase: the bytes that stay in it, if any, and the bytes that lead to another. Every other byte is a fault.
_TABLE: Final[Mapping[_Phase, tuple[_Run | None, Mapping[int, _Phase]]]] = {
    "line-start": (None, {_CR: "empty-cr", **_TO_NAME}),
    "name": (_run_of(re.escape(_TOKEN)), {_COLON: "value"}),
    "value": (_run_of(rb"\t\x20-\x7e\x80-\xff"), {_CR: "value-cr"}),
    "value-cr": (None, {_LF: "line-start"}),
    "empty-cr": (None, {_LF: "done"}),
    "done": (None, {}),
}


@final
class HeaderBlock:
    """The parser of one block of at most `limit` bytes.

    `seen` counts the well-formed bytes so far. `type_fault` is the fault of `Content-Type`, if it has one.
    """

    __slots__ = ("_length", "_limit", "_line", "_phase", "seen", "type_fault")

    def __init__(self, limit: int) -> None:
        self.seen = 0
        self._length: int | LengthFault = "missing-content-length"
        self.type_fault: TypeFault | None = None
        self._limit = limit
        self._line = 0
        self._phase: _Phase = "line-start"

    def read(self, data: bytes, start: int) -> int | LengthFault | BlockFault | None:
        """Go on with the block that starts at `data[start]`; the bytes that `seen` counts must still be there.

        Returns None if it needs more data. Otherwise, once: the body's length in bytes; the first reason why a well-formed
        block has no usable length; or a `BlockFault` at the first byte that is not allowed or exceeds the limit.
        """
        pos = start + self.seen
        end = min(len(data), start + self._limit)
        phase = self._phase
        while pos < end and phase != "done":
            run, exits = _TABLE[phase]
            if run is not None and (pos := run(data, pos, end).end()) == end:
                break
            after = exits.get(data[pos])
            if after is None:
                self.seen = pos - start
                return "malformed-header"
            pos += 1
            if after == "line-start":
                self._take_field(data[start + self._line : pos - 2])
                self._line = pos - start
            phase = after
        self._phase = phase
        self.seen = pos - start
        if phase == "done":
            return self._length
        return "header-too-large" if self.seen == self._limit else None

    def _take_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        match name.lower():
            case b"content-length":
                self._take_length(value.strip(_BLANKS))
            case b"content-type":
                self.type_fault = self.type_fault or content_type_fault(value.strip(_BLANKS))
            case _:
                pass

    def _take_length(self, value: bytes) -> None:
        if self._length == "missing-content-length":
            self._length = parse_length(value)
        elif isinstance(self._length, int):
            self._length = "invalid-content-length"  # repeated, even if equal (section 1 of docs/protocol.md)


@final
class RefusedBlock:
    """Reads past a block that is refused, up to its blank line, in constant memory. Finds the length that it declares.

    A declaration is `Content-Length`, a colon and digits, up to the end of the line, wherever in the line it begins: a
    log line without its end may stand before it. `length` is the length that was declared, once or several times; None
    if there is none. `conflicting` is true if several lengths were declared.
    """

    __slots__ = ("_rest", "conflicting", "length")

    def __init__(self) -> None:
        self.length: int | None = None
        self.conflicting = False
        self._rest = b""  # the unfinished line, with the line end before it

    def read(self, data: bytes, start: int) -> int | None:
        """Go on with `data[start:]`; returns the position after the blank line, or None if all of `data` was read."""
        rest = self._rest
        overlap = rest[-_BLANK_LINE_OVERLAP:]
        if found := _blank_line(overlap + data[start : start + _BLANK_LINE_OVERLAP], 0):
            end = start + found.end() - len(overlap)
        else:
            found = _blank_line(data, start)
            end = len(data) if found is None else found.end()
        text = rest + data[start:end].lower()
        if b"content-length" in text:
            for squeeze, by in _squeezings:
                text = squeeze(by, text)
            for declaration in _declarations(text):
                self._take(parse_length(declaration[1]))
        self._rest = text[max(0, text.rfind(b"\n"), len(text) - _LONGEST_DECLARATION) :]
        return None if found is None else end

    @property
    def declares(self) -> bool:
        return self.length is not None

    def _take(self, length: int | LengthFault) -> None:
        if isinstance(length, int):
            self.conflicting = self.conflicting or self.length not in (None, length)
            self.length = length


def parse_length(value: bytes) -> int | Literal["invalid-content-length", "oversize"]:
    """The length in bytes that a trimmed `Content-Length` value declares: ASCII digits only, leading zeros allowed.

    A number beyond `LARGEST_LENGTH` is "oversize", however many digits it has.
    """
    if not value.isdigit():
        return "invalid-content-length"
    significant = value.lstrip(b"0")
    if len(significant) > 19:  # before int(), which is slow for many digits and refuses very many
        return "oversize"
    length = int(significant or b"0")
    return length if length <= LARGEST_LENGTH else "oversize"


def content_type_fault(value: bytes) -> TypeFault | None:
    """The fault of a trimmed `Content-Type` value; None for `application/vscode-jsonrpc` in UTF-8.

    Case does not matter. `charset` may be bare or quoted. Unknown parameters are ignored.
    """
    media_type, *parameters = (each.strip(_BLANKS) for each in _pieces(value.lower()))
    if media_type != _MEDIA_TYPE:
        return "unsupported-content-type"
    for parameter in parameters:
        name, _, charset = parameter.partition(b"=")
        if name == b"charset" and _unquoted(charset) not in _CHARSETS:
            return "bad-charset"
    return None


def _pieces(value: bytes) -> list[bytes]:
    """What stands between the semicolons that are not quoted (RFC 9110, section 5.6.4)."""
    return re.findall(rb'(?:^|;)((?:[^";]|"(?:[^"\\]|\\.)*+"|")*+)', value)


def _unquoted(value: bytes) -> bytes:
    return value[1:-1] if len(value) > 1 and value[:1] == value[-1:] == b'"' else value
