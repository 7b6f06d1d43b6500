"""Finds where the value of a sensitive name begins and ends: in quotes, bare, in a list, to the end of a header.

Each function returns the span of the secret, or None if there is no secret. A secret is never read twice, and of other
values only a bounded length is read, so that the work is linear in the text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..marks import ANY_MARK, nothing_to_redact
from .false_positives import is_code, is_placeholder, is_plain_word, is_prose, is_secret
from .sensitivity import Sensitivity

Span = tuple[int, int]

OPENING_QUOTE = re.compile(r"(?:[bBrRuUfF@$&]{1,2}(?=[\"'`\\]))?(\\{0,8}+)([\"'`])")
"""An opening quote with its escapes (group 1) and its kind (group 2)."""

LIST_START = re.compile(r"[\[(](?=\s{0,4}[bru]?\\{0,8}[\"'`])")
"""The beginning of a list or tuple of quoted texts."""

_ITEMS = re.compile(r"[^\])\n]{0,4096}+")
_QUOTED = {quote: re.compile(rf"(?:[^{quote}\\\n]|\\.|{quote}{quote})*+") for quote in "\"'`"}
_PLAIN = r"[^\s\"'`<>,;&\\)\]}|]"
_PART = rf"""
    (?: {ANY_MARK}
      | <[A-Za-z][\w./-]{{0,60}}> | \$?\{{[^{{}}\s"']{{0,80}}\}} | \[[A-Z_]{{3,40}}\]
      | {_PLAIN}PLAIN
      | [<>"'`)\]}}|](?={_PLAIN})
      | [,;](?!\s|["'`]|$|[\w.\-]{{1,40}}[=:])
      | &(?!(?:amp;)?[\w.\-\[\]%]{{1,60}}=|[\s&]|$)
      | \\(?![\\"'`nrtu\s]|$)
    )"""
_BEGIN = re.compile(_PART.replace("PLAIN", "{1,64}+") + "{0,3}+", re.VERBOSE)
_BARE = re.compile(_PART.replace("PLAIN", "++") + "*+", re.VERBOSE)
_SCHEME_BEGINS = frozenset("bBtTaAjJnN")
_HEADER = re.compile(r"(?:[^\"'`\r\n\\]|[\"'`](?=[\w=;%]))*+")
_SCRUBBED = re.compile(rf"(?:{ANY_MARK})++[\"'`\\]")
_MAPPING = re.compile(r"\{\s{0,8}(?:\\{0,8}[\"'`]|\}|:\w)")
_SCHEME = re.compile(r"(?:bearer|basic|token|apikey|api-key|jwt|negotiate|ntlm)\s{1,4}", re.IGNORECASE)
_NOT_A_VALUE = re.compile(r"[-(\[{<]|[\w.-]{1,64}=\w")  # after a name and white space: a flag, a remark, another name
_SIGNED_SCHEME = re.compile(r"(?:digest|aws4-hmac-sha256|oauth|hawk|signature)\s", re.IGNORECASE)  # layer 3 finds these
_TRAILING = ".,;:!?)]}"


def quoted_span(text: str, opened: re.Match[str], sensitivity: Sensitivity) -> Span | None:
    """A quoted value: up to the same quote with the same escapes; without one, to the end of the line."""
    start = opened.end()
    if opened[1]:
        closing = _closing(opened[1] + opened[2]).search(text, start)
        end = closing.start() if closing else _line_end(text, start)
    else:
        match = _QUOTED[opened[2]].match(text, start)
        end = match.end() if match else start
    value = text[start:end]
    is_closed = end < len(text) and text[end] != "\n"
    if _SCRUBBED.match(value) or (not is_closed and nothing_to_redact(value)):
        return None  # already redacted, or the quote closes something else
    scheme = _SCHEME.match(value)
    if scheme and scheme.end() < len(value):
        start, value = start + scheme.end(), value[scheme.end() :]
    return (start, end) if is_secret(value, sensitivity) else None


def phrase_span(text: str, at: int) -> Span | None:
    """The words of a mnemonic phrase: to the end of the line."""
    match = _HEADER.match(text, at)
    return match.span() if match and is_secret(match[0], Sensitivity.CERTAIN) else None


@lru_cache(maxsize=32)
def _closing(delimiter: str) -> re.Pattern[str]:
    return re.compile(r"(?<!\\)" + re.escape(delimiter))


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def list_span(text: str, at: int) -> Span | None:
    """The items of a list or tuple, without its brackets."""
    match = _ITEMS.match(text, at + 1)
    return None if match is None or nothing_to_redact(match[0]) else match.span()


def bare_span(
    text: str, at: int, name: str, sensitivity: Sensitivity, *, separator: str, name_quoted: bool
) -> Span | None:
    """An unquoted value: up to white space, a closing quote or bracket, or the next name."""
    first = text[at : at + 1]
    if first == "{" and _MAPPING.match(text, at):  # a mapping: its own names decide
        return None
    scheme = _SCHEME.match(text, at) if first in _SCHEME_BEGINS else None
    begin = scheme.end() if scheme else at
    match = _BEGIN.match(text, begin)
    whole = match[0] if match else ""
    value = whole.rstrip(_TRAILING)
    if is_plain_word(value) or is_placeholder(whole):
        return None
    if separator[:1].isspace() and not {"=", ":"}.intersection(separator) and _NOT_A_VALUE.match(value):
        return None
    if not is_secret(value, sensitivity) or is_code(
        value, name, text, begin, separator=separator, name_quoted=name_quoted
    ):
        return None
    match = _BARE.match(text, begin)  # the whole value, however long
    return begin, begin + len((match[0] if match else value).rstrip(_TRAILING))


def header_span(text: str, at: int, name: str) -> Span | None:
    """A header's value: to the end of the header for `Cookie: a=1; b=2`, one token for `Authorization: Bearer …`."""
    if is_prose(text, at) or _SIGNED_SCHEME.match(text, at):
        return None
    scheme = _SCHEME.match(text, at) if name.lower().endswith("authorization") else None
    begin = scheme.end() if scheme else at
    match = _BARE.match(text, begin) if scheme else _HEADER.match(text, begin)
    value = (match[0] if match else "").rstrip(" \t" + _TRAILING)
    return (begin, begin + len(value)) if is_secret(value, Sensitivity.CERTAIN) else None
