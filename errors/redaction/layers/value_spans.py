"""Finds where the value of a sensitive name begins and ends: in quotes, bare, in a list, to the end of a header.

Each function returns the span of the secret, or None if there is no secret. A secret is never read twice, and of other
values only a bounded length is read, so that the work is linear in the text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..limits import ANY_MARK, nothing_to_redact
from .false_positives import PASSWORD_NAMES, is_code, is_placeholder, is_plain_word, is_prose, is_secret
from .sensitivity import SENSITIVE_STEMS, Sensitivity, name_sensitivity

Span = tuple[int, int]

_STEM = re.compile("|".join(map(re.escape, SENSITIVE_STEMS)))

OPENING_QUOTE = re.compile(r"(?:[bBrRuUfF@$&]{1,2}(?=[\"'`\\]))?(\\{0,8}+)([\"'`])")
"""An opening quote with its escapes (group 1) and its kind (group 2)."""

_LITERAL = r"[bBrRuUfF]{0,2}\\{0,8}[\"'`]"
_KEY_SIGN = r"\s{0,8}(?:=>|->|[:=](?!=))\s{0,8}"
NESTED_START = re.compile(
    rf"(?:[\[(]\s{{0,64}}+){{0,8}}+(?:(?<=[\[(\s])(?={_LITERAL})|\{{\s{{0,64}}+(?={_LITERAL}|[\w.$-]{{1,64}}{_KEY_SIGN}))"
)
"""The beginning of a list or a tuple of quoted texts, or of a mapping; also of one in another."""

CONSTRUCTOR = re.compile(
    rf"(?:\w{{1,40}}(?:\.|::)){{0,4}}[A-Z]\w{{0,40}}\((?=\s{{0,4}}(?:\w{{1,40}}\s?=\s?)?{_LITERAL})"
)
"""The beginning of a value that a constructor wraps: `Some("…")`, `Secret(value="…")`."""

_NESTED = re.compile(
    rf"""(?P<open>[\[({{]) | (?P<close>[\])}}]) | (?P<literal>{_LITERAL}) | (?P<bare>[^\s,;:="'`\[\](){{}}\\]+)""",
    re.VERBOSE,
)
_AFTER_KEY = re.compile(_KEY_SIGN)
_BARE_LEAF = re.compile(r"[^\s,;\"'`\[\](){}]+")
_MAX_DEPTH = 32  # brackets within brackets
_MAX_NESTED = 16_384  # characters of a nested value: more may be a bracket that nothing closes
_JOIN = re.compile(
    r"[ \t]{0,8}(?:(?:\+|\.{1,2}|\|\||&|~)[ \t]{0,8}(?:\\?\r?\n[ \t]{0,64})?|\\\r?\n[ \t]{0,64}"
    r"|\r?\n[ \t]{0,64}(?:\+|\.{1,2}|\|\||&|~)[ \t]{0,8})?"
)
"""What joins two literals in a language: an operator, nothing at all, also over the end of a line."""
_QUOTED = {quote: re.compile(rf"(?:[^{quote}\\\n]|\\.|{quote}{quote})*+") for quote in "\"'`"}
_PLAIN = r"[^\s\"'`<>,;&\\)\]}|]"
_PART = rf"""
    (?: {ANY_MARK}
      | <[A-Za-z][\w./-]{{0,60}}> | \$?\{{[^{{}}\s"']{{0,80}}\}} | \[[A-Z_]{{3,40}}\]
      | {_PLAIN}PLAIN
      | [<>"'`)\]}}|](?={_PLAIN})
      | [,;](?!\s|["'`]|$|[\w.\-]{{1,40}}[=:])
      | &(?!(?:amp;)?[\w.\-\[\]%]{{1,60}}=|[\s&]|$)
      | \\(?![\\"'`nrtu\s]|$) | \\u(?!00(?:2[027]|60|0[ad]))[0-9a-fA-F]{{4}}
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
_SCRUBBED = re.compile(rf"(?:{ANY_MARK})++(?:[\"'`\\]|\Z)")
_MAPPING = re.compile(r"\{\s{0,8}(?:\\{0,8}[\"'`]|\}|:\w)")
_SCHEME = re.compile(r"(?:bearer|basic|token|apikey|api-key|jwt|negotiate|ntlm)\s{1,4}", re.IGNORECASE)
_NOT_A_VALUE = re.compile(r"[-(\[{<]|[\w.-]{1,64}=\w")  # after a name and white space: a flag, a remark, another name
_SIGNED_SCHEME = re.compile(r"(?:digest|aws4-hmac-sha256|oauth|hawk|signature)\s", re.IGNORECASE)  # layer 3 finds these
_NAME = re.compile(r"[A-Za-z][A-Za-z_.-]{1,63}")
_YAML_TAG = re.compile(r"(?:!!\w{1,16}|&[A-Za-z]\w{0,31}) {1,4}(?=\S)")
_COMPOUND = re.compile(r"[A-Za-z]\w*[_.-]")
_MIN_SETTING = 8  # characters of a word that is a secret because nothing else is on its line
_TRAILING = ".,;:!?)]}"


def quoted_spans(text: str, opened: re.Match[str], sensitivity: Sensitivity, *, joined: bool) -> list[Span]:
    """A quoted value, and with `joined` the literals that the text joins to it (`'a' + 'b'`)."""
    span = _quoted(text, opened)
    if not _is_redacted(text, span):
        if (first := _quoted_secret(text, span, sensitivity)) is None:
            return []
        spans = [first]
    else:
        spans = []
    while joined and text[span[1] : span[1] + 1] not in ("", "\n"):
        join = _JOIN.match(text, span[1] + len(opened[1] or "") + 1)
        following = OPENING_QUOTE.match(text, join.end()) if join else None
        if following is None:
            break
        opened = following
        span = _quoted(text, opened)
        if not nothing_to_redact(text[slice(*span)]):
            spans.append(span)
    return spans


def _quoted(text: str, opened: re.Match[str]) -> Span:
    """The inside of the quotes: up to the same quote with the same escapes; without one, to the end of the line."""
    start = opened.end()
    if opened[1]:
        closing = _closing(opened[1] + opened[2]).search(text, start)
        return start, closing.start() if closing else _line_end(text, start)
    match = _QUOTED[opened[2]].match(text, start)
    return start, match.end() if match else start


def _is_redacted(text: str, span: Span) -> bool:
    return text[span[0]] == "<" and _SCRUBBED.match(text, *span) is not None if span[0] < span[1] else False


def _quoted_secret(text: str, span: Span, sensitivity: Sensitivity) -> Span | None:
    start, end = span
    value = text[start:end]
    is_closed = end < len(text) and text[end] != "\n"
    if not is_closed and nothing_to_redact(value):
        return None  # the quote closes something else
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


def nested_spans(text: str, at: int, name: str, literals: Sensitivity) -> tuple[list[Span], int]:
    """The secrets in the list or mapping that begins at `at`, under a name that is always redacted, and where it ends.

    `literals` is the sensitivity of quoted texts, except where their own key describes a secret (`"type": "string"`). Such
    texts, and what stands without quotes, must look like a secret.
    """
    spans: list[Span] = []
    names = [name]  # of the containers that are open, the key of the next value last
    end = min(len(text), at + _MAX_NESTED)
    while at < end and (found := _NESTED.search(text, at, end)) is not None:
        at = found.end()
        match found.lastgroup:
            case "open":
                if len(names) > _MAX_DEPTH:  # what is deeper is removed unread
                    return [*spans, (at, end)] if not nothing_to_redact(text[at:end]) else spans, end
                names.append(names[-1])
            case "close":
                names.pop()
                if len(names) == 1:
                    return spans, at
                names[-1] = names[-2]
            case kind:
                is_literal = kind == "literal"
                opened = OPENING_QUOTE.match(text, found.start()) if is_literal else None
                span = _quoted(text, opened) if opened else found.span()
                at = span[1] + (len(opened[1] or "") + 1 if opened else 0)
                if sign := _AFTER_KEY.match(text, at):
                    names[-1] = _joined_name(names[-2], text[slice(*span)])
                    at = sign.end()
                    if (leaf := _BARE_LEAF.match(text, at)) and not OPENING_QUOTE.match(text, at):
                        span, at, is_literal = leaf.span(), leaf.end(), False
                    else:
                        continue
                if _is_leaf_secret(text[slice(*span)], names[-1], literals if is_literal else Sensitivity.LIKELY):
                    spans.append(span)
                names[-1] = names[-2]
    return spans, max(at, end)


def _joined_name(owner: str, key: str) -> str:
    """The name of a value in a mapping: that of the mapping, unless the key is a name that is always redacted."""
    return key if name_sensitivity(key) is Sensitivity.CERTAIN else f"{owner[-64:]}_{key[:64]}"


def _is_leaf_secret(value: str, name: str, sensitivity: Sensitivity) -> bool:
    if name_sensitivity(name) is Sensitivity.NONE or name.lower().endswith("tokens"):
        sensitivity = Sensitivity.LIKELY
    return is_secret(value, sensitivity) or ("=" in value and _STEM.search(value.lower()) is not None)


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
    is_beside = separator[:1].isspace() and not {"=", ":"}.intersection(separator)
    if is_beside and not (name.startswith("-") and not value.startswith(("-", "<"))) and _NOT_A_VALUE.match(value):
        return None
    if not is_secret(value, sensitivity):
        return None
    is_word_of_code = is_code(value, name, text, begin, separator=separator, name_quoted=name_quoted)
    if is_word_of_code and not _is_whole_setting(text, begin, value, name, separator):
        return None
    match = _BARE.match(text, begin)  # the whole value, however long
    return begin, begin + len((match[0] if match else value).rstrip(_TRAILING))


def _is_whole_setting(text: str, begin: int, value: str, name: str, separator: str) -> bool:
    """Whether a line is `api_key = word` and nothing else. `token = word` is more often code."""
    if "=" not in separator or len(value) < _MIN_SETTING or not value.isalpha() or not _COMPOUND.match(name):
        return False
    line_start, line_end = text.rfind("\n", 0, begin) + 1, _line_end(text, begin)
    is_alone = (
        text[line_start:begin].strip() == f"{name}{separator}".strip()
        and not text[begin + len(value) : line_end].strip()
    )
    return is_alone and name_sensitivity(value) is Sensitivity.NONE


def header_span(text: str, at: int, name: str) -> Span | None:
    """A header's value: to the end of the header for `Cookie: a=1; b=2`, one token for `Authorization: Bearer …`."""
    if is_prose(text, at) or _SIGNED_SCHEME.match(text, at):
        return None
    scheme = _SCHEME.match(text, at) if name.lower().endswith("authorization") else None
    begin = scheme.end() if scheme else at
    match = _BARE.match(text, begin) if scheme else _HEADER.match(text, begin)
    value = (match[0] if match else "").rstrip(" \t" + _TRAILING)
    return (begin, begin + len(value)) if is_secret(value, Sensitivity.CERTAIN) else None
