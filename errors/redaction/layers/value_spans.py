"""Finds where the value of a sensitive name begins and ends: in quotes, bare, in a list, to the end of a header.

Each function returns the span of the secret, or None if there is no secret. A secret is never read twice, and of other
values only a bounded length is read, so that the work is linear in the text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..marks import ANY_MARK, nothing_to_redact
from .false_positives import PASSWORD_NAMES, is_code, is_placeholder, is_plain_word, is_prose, is_secret
from .sensitivity import Sensitivity, name_sensitivity

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
_CDATA = re.compile(r"<!\[CDATA\[(?P<s>[^\]\n]{1,4096}+)")
_ELEMENT = re.compile(r"(?P<s>[^<\n]{1,4096}+)(?=</)")
_BLOCK = re.compile(r"(?P<s>(?:(?!\"{3}|'{3}).){1,4096}+)", re.DOTALL)
_BEFORE_NAME = re.compile(r"[ \t]*(?:[-*] |export |set )?")
_TO_LINE_END = re.compile(r"(?:[^\r\n#;]|[#;](?![ \t])|(?<![ \t])[#;])+")
_PART_OF_CONNECTION = re.compile(r"[^;\r\n\"'`]{1,256}")
_SENTENCE = re.compile(
    r"(?i)(?<![\w-])(?:the|an?|is|was|are|were|be|been|for|from|of|to|in|on|at|by|as|with|not|no|and|or|if|else|has|have"
    r"|had|must|should|will|can|may|than|too|it|this|that|you|your|user|field|characters?|length|reset|changed|required"
    r"|optional|invalid|missing|failed|accepted|rejected|expired|sent|link|minimum|maximum|least|most|string|default"
    r"|null|none|true|false|after|before|when|while|error|warning|hash|hashed|policy|prompt|attempts?|login|update[ds]?)"
    r"(?![\w-])"
)
_CODE = re.compile(
    r"[\w.\]]\(|[,;&]\s?[\w.-]{1,40}\s?[=:]|\s[\w.-]{1,40}[=:](?:\s|[\w\"'])|=>|->|[{}]| [+|?:] |\\n|\""
    rf"|{ANY_MARK}"
)
_UNUSUAL = re.compile(r"[0-9!#$%&*@^~]")
_BRACED = re.compile(r"\{(?P<s>[^{}\n<]{1,256}(?:\}\}[^{}\n]{0,128}){0,4})\}(?=[;\"']|$)")  # ODBC
_FORMAT_FIELD = re.compile(r"[A-Za-z_][\w.]{0,80}(?:![rsa])?(?::[\w.<>^]{0,8})?")  # of a Python format string
_BARE_LIST = re.compile(r"\[(?P<s>[^\[\]\n\"'`<]{1,1024})\]")
_CELL = re.compile(r"[^\s|│<](?:(?! -)[^|│\n<`()]){0,256}[^\s|│<`()](?=\s{0,64}(?:[|│]|$))")
_SCRUBBED = re.compile(rf"(?:{ANY_MARK})++[\"'`\\]")
_MAPPING = re.compile(r"\{\s{0,8}(?:\\{0,8}[\"'`]|\}|:\w)")
_SCHEME = re.compile(r"(?:bearer|basic|token|apikey|api-key|jwt|negotiate|ntlm)\s{1,4}", re.IGNORECASE)
_NOT_A_VALUE = re.compile(r"[-(\[{<]|[\w.-]{1,64}=\w")  # after a name and white space: a flag, a remark, another name
_SIGNED_SCHEME = re.compile(r"(?:digest|aws4-hmac-sha256|oauth|hawk|signature)\s", re.IGNORECASE)  # layer 3 finds these
_NAME = re.compile(r"[A-Za-z][A-Za-z_.-]{1,63}")
_YAML_TAG = re.compile(r"(?:!!\w{1,16}|&[A-Za-z]\w{0,31}) {1,4}(?=\S)")
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
    if (
        sensitivity is Sensitivity.POSSIBLE
        and _NAME.fullmatch(value)
        and name_sensitivity(value) is not Sensitivity.NONE
    ):
        return None  # `key="dbPassword"`: the name of another value
    return (start, end) if is_secret(value, sensitivity) else None


def element_span(text: str, at: int) -> Span | None:
    """The text of an XML element, or of its CDATA, up to its closing tag; None without one nearby or without text."""
    match = _CDATA.match(text, at) or _ELEMENT.match(text, at)
    return match.span("s") if match else None


def block_span(text: str, at: int, sensitivity: Sensitivity) -> Span | None:
    """A text in three quotes, which have been opened before `at`; without an end, all of the next characters."""
    match = _BLOCK.match(text, at)
    return match.span("s") if match and is_secret(match["s"].strip(), sensitivity) else None


def is_passphrase(value: str, name: str) -> bool:
    """Whether a value of two to eight words has a digit or a rare sign, and none of the words that make up sentences.

    Under the name of a password four plain words suffice.
    """
    words = value.split()
    if not 2 <= len(words) <= 8 or _SENTENCE.search(value):
        return False
    return _UNUSUAL.search(value) is not None or (len(words) >= 4 and name.lower().endswith(PASSWORD_NAMES))


def phrase_value_span(text: str, start: int, at: int, separator: str) -> Span | None:
    """A password of several words, to the end of its line or of its part of a connection string; None for other values.

    Its name, from `start` on, must be the first on the line. A sentence or code after the name is no password.
    """
    line_start = text.rfind("\n", 0, start) + 1
    if "=" in separator and (braced := _BRACED.match(text, at)) and text[start - 1 : start] in (";", '"', "'"):
        is_field = _FORMAT_FIELD.fullmatch(braced["s"]) and not is_secret(braced["s"], Sensitivity.PROBABLE)
        return None if is_field else braced.span("s")
    if text[start - 1 : start] == ";" and "=" in separator:
        match = _PART_OF_CONNECTION.match(text, at)
    elif _BEFORE_NAME.fullmatch(text, line_start, start):
        match = _TO_LINE_END.match(text, at)
    else:
        return None
    value = match[0].rstrip() if match else ""
    words = value.split()
    if len(words) < 2 or value[0] in "\"'`<[{(" or _SENTENCE.search(value) or _CODE.search(value):
        return None
    is_phrase = _UNUSUAL.search(value) is not None or ("=" in separator or len(words) > 2)
    return (at, at + len(value)) if is_phrase and is_secret(value, Sensitivity.CERTAIN) else None


def bare_list_span(text: str, at: int) -> Span | None:
    """The items of a list without quotes, if one of them looks like a secret."""
    match = _BARE_LIST.match(text, at)
    if match is None or not any(is_secret(item.strip(), Sensitivity.LIKELY) for item in match["s"].split(",")):
        return None
    return match.span("s")


def cell_span(text: str, at: int, name: str, separator: str) -> Span | None:
    """The rest of a table's cell of several words."""
    match = _CELL.match(text, at) if "|" in separator or "│" in separator else None
    return match.span() if match and is_passphrase(match[0], name) else None


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
    if (first == "{" and _MAPPING.match(text, at)) or text.startswith("</", at):  # a mapping: its own names decide
        return None
    if first in ("!", "&") and (tag := _YAML_TAG.match(text, at)):
        at = tag.end()
        first = text[at : at + 1]
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
