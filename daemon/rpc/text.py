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

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]++|[\]}]++|[:,]|[^\s"\[\]{}:,]+', re.DOTALL)
"""The tokens of JSON, roughly: strings, brackets, separators, and runs of anything else."""


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
            return InvalidRequest("malformed-envelope")
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _INVALID_JSON if body.strip() else _EMPTY
    return failure


class ScannedEnvelope(msgspec.Struct):
    """What is known of a text that is nested too deeply to decode. `complete`: all its brackets are closed. `has_outcome`: it
    has a member `result` or `error`.
    """

    complete: bool
    is_array: bool
    id: bytes | None
    has_method: bool
    has_outcome: bool


def scan_envelope(body: bytes) -> ScannedEnvelope:
    """Read the members of the top object by a depth counter over the tokens. Of a repeated `id` the last one counts."""
    depth = 0
    key = previous = b""
    found: bytes | None = None
    method = outcome = False
    first = body.lstrip()[:1]
    for match in _TOKEN.finditer(body):
        token = match[0]
        if depth == 1 and previous == b":" and first == b"{":
            if key == b'"id"':
                found = token
            method = method or (key == b'"method"' and token[:1] == b'"')
            outcome = outcome or key in (b'"result"', b'"error"')
        mark = token[:1]
        if mark in b"[{":
            depth += len(token)
        elif mark in b"]}":
            depth -= len(token)
        elif depth == 1 and mark == b'"' and previous[-1:] in (b"{", b","):
            key = token
        previous = token
    complete = depth == 0 and previous[-1:] in (b"]", b"}")
    return ScannedEnvelope(complete, first == b"[", found, method, outcome)
