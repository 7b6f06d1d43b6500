"""Checks JSON text where the decoder can't: its encoding, and envelopes that are nested too deeply. Decodes no values.

RFC 8259 section 8.1 requires UTF-8, and section 8.2 warns of unpaired surrogates. The decoder validates neither in values
that it skips. Everything here takes linear time and does not recurse.
"""

from __future__ import annotations

import re

import msgspec

from ...errors.failures import InvalidRequest, ParseFailure

_INVALID_UTF8 = ParseFailure("invalid-utf8")
_INVALID_JSON = ParseFailure("invalid-json")
_EMPTY = ParseFailure("invalid-json", "the body is empty")

_skip = msgspec.json.Decoder(msgspec.Raw).decode

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]").search
"""The escape of a surrogate. One search with this costs less than one for each notation."""

_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F])|.)", re.DOTALL)
"""One escape of a JSON string; a surrogate pair counts as one. Group 1 is an unpaired surrogate."""

_UNPAIRED = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)
"""The same, where group 1 is all of the escape of an unpaired surrogate."""

_FLAT_LEVELS = 2
"""Levels of brackets that one match skips. With more, each bracket costs more; with fewer, more of them are left to Python."""


def _skipped(levels: int) -> str:
    """The pattern of what leaves the depth as it is: strings, anything else but brackets, and containers of so few levels."""
    containers = rf"|[\[{{]{_skipped(levels - 1)}[\]}}]" if levels else ""
    return rf'(?:[^"\[\]{{}}]++|"(?:[^"\\]++|\\.)*+"{containers})*+'


_NEXT_BRACKETS = rf"{_skipped(_FLAT_LEVELS)}([\[{{]++|[\]}}]++)".encode()
"""The next brackets that stand side by side and all open or all close. Not compiled before it is needed, for a quick start."""

_OPENING = b"[{"

_SHALLOW = 64
"""Levels that the decoder is given at a time: far fewer than it takes, however deep the call stack is."""


def encoding_failure(body: bytes) -> ParseFailure | None:
    """`invalid-utf8` for bytes that are not UTF-8 and for escapes of unpaired surrogates; None if there are none."""
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError:
            return _INVALID_UTF8
    if _SURROGATE(body) and any(m[1] for m in _ESCAPE.finditer(body)):
        return _INVALID_UTF8
    return None


def without_unpaired(body: bytes) -> bytes | None:
    """The text with the escape of U+FFFD for that of each unpaired surrogate; None if there are none."""
    if not _SURROGATE(body):
        return None
    mended = _UNPAIRED.sub(lambda m: rb"\ufffd" if m[1] else m[0], body)
    return None if mended == body else mended


def parse_failure(body: bytes) -> ParseFailure:
    """Why the decoder refused a text: its encoding if that is invalid, else its grammar."""
    return encoding_failure(body) or (_INVALID_JSON if body.strip() else _EMPTY)


def json_failure(body: bytes) -> ParseFailure | InvalidRequest | None:
    """What is wrong with a text that is to be one JSON value; None if nothing is. One that is nested too deeply is refused."""
    failure = encoding_failure(body)
    if failure is None:
        try:
            _skip(body)
        except RecursionError:
            return _INVALID_JSON if flattened(body) is None else InvalidRequest("malformed-envelope")
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _INVALID_JSON if body.strip() else _EMPTY
    return failure


def flattened(body: bytes) -> bytes | None:
    """A text that the decoder takes, with `[]` in place of what is nested too deeply for it; None if `body` is no JSON.

    The decoder judges every byte: some levels at a time, the innermost first. A container that it takes is replaced by
    an empty one, which changes neither the grammar of what is around it nor the members of the top object. The result is
    left to the caller to decode, and may still be no JSON.
    """
    outer: list[bytearray] = []  # the texts around the present one, each up to where the next one begins
    text = bytearray()
    depth = at = copied = 0
    next_brackets = re.compile(
        _NEXT_BRACKETS, re.DOTALL
    ).match  # no `search`: one that finds nothing takes quadratic time
    while found := next_brackets(body, at):
        at, end = found.span(1)
        opening = body[at] in _OPENING
        while at < end:
            level = depth % _SHALLOW
            if not opening:
                step = -min(end - at, level or _SHALLOW)
            elif level or not depth:
                step = min(end - at, _SHALLOW - level)
            else:
                text += body[copied:at]
                outer.append(text)
                text, copied = bytearray(), at
                step = min(end - at, _SHALLOW)
            at += abs(step)
            depth += step
            if outer and depth == _SHALLOW * len(outer):
                text += body[copied:at]
                if not _is_json(text):
                    return None
                text, copied = outer.pop(), at
                text += b"[]"
            elif depth < 0:
                return None
    text += body[copied:]
    return None if depth else bytes(text)


def _is_json(text: bytearray) -> bool:
    try:
        _skip(text)
    except msgspec.DecodeError:
        return False
    return True
