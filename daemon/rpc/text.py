"""What the JSON decoder does not check, or can't reach: text encoding, and the id behind 100,000 brackets.

RFC 8259 section 8.1 asks for UTF-8, section 8.2 warns of unpaired surrogates; the decoder validates neither where it
skips a value unread. Everything here is linear and recurses nowhere.
"""

from __future__ import annotations

import re

import msgspec

from ...errors.failures import ParseFailure

_INVALID_UTF8 = ParseFailure("invalid-utf8")
_INVALID_JSON = ParseFailure("invalid-json")

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]").search
"""Where half a character may be escaped; one pass of this costs less than a look for each spelling."""

_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F])|.)", re.DOTALL)
"""One escape of a JSON string, a surrogate pair taken as one; group 1 is a half without its other half."""

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]++|[\]}]++|[:,]|[^\s"\[\]{}:,]+', re.DOTALL)
"""The lexical units of JSON, loosely: strings, brackets, separators, and runs of anything else."""


def fault_of_text(body: bytes) -> ParseFailure | None:
    """`invalid-utf8` for bytes that are no UTF-8 and for escapes of half a character; None when neither is there."""
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError:
            return _INVALID_UTF8
    if _SURROGATE(body) and any(m[1] for m in _ESCAPE.finditer(body)):
        return _INVALID_UTF8
    return None


def why_no_json(body: bytes) -> ParseFailure:
    """The reason for a text that the decoder refused: its encoding if that is broken, else its grammar."""
    return fault_of_text(body) or _INVALID_JSON


class Scan(msgspec.Struct):
    """What can be told of a text too deep to decode: whether its brackets close, and the members of its top object."""

    complete: bool
    is_array: bool
    id: bytes | None
    has_method: bool


def scan_members(body: bytes) -> Scan:
    """Walk the tokens with a depth counter. The last `id` wins, as with every decoder here."""
    depth = 0
    key = previous = b""
    found: bytes | None = None
    method = False
    first = body.lstrip()[:1]
    for match in _TOKEN.finditer(body):
        token = match[0]
        if depth == 1 and previous == b":" and first == b"{":
            if key == b'"id"':
                found = token
            method = method or (key == b'"method"' and token[:1] == b'"')
        mark = token[:1]
        if mark in b"[{":
            depth += len(token)
        elif mark in b"]}":
            depth -= len(token)
        elif depth == 1 and mark == b'"' and previous[-1:] in (b"{", b","):
            key = token
        previous = token
    return Scan(depth == 0 and previous[-1:] in (b"]", b"}"), first == b"[", found, method)
