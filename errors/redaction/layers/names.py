"""Layer 2: redacts the values of sensitive names, in any notation. Never reads the same part of a text twice.

`key=value`, `"key": "value"` (also escaped inside another string, also in Python's, Ruby's and Perl's notation),
YAML, XML elements, headers, command-line flags, URL queries, pairs of `name` and `value`, calls. `sensitivity` rates the
name, `value_spans` finds where the value ends, and `false_positives` tells which values are no secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..limits import REDACTED, WorkBudget, nothing_to_redact
from .false_positives import PASSWORD_NAMES, is_secret
from .rules import trie_pattern
from .sensitivity import SENSITIVE_STEMS, Sensitivity, name_sensitivity
from .value_spans import (
    CONSTRUCTOR,
    NESTED_START,
    OPENING_QUOTE,
    Span,
    bare_list_span,
    bare_span,
    block_span,
    cell_span,
    element_span,
    header_span,
    nested_spans,
    phrase_span,
    phrase_value_span,
    quoted_spans,
)

_NAME_LENGTH = 64  # characters of a name before and after its sensitive stem
_NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789_.-"
_STEM = trie_pattern(SENSITIVE_STEMS)
_ATTRIBUTE = r"""\s{1,4}(?!value|name|key)[\w:.\-]{1,64}\s{0,2}=\s{0,2}(?:"[^"\n<>]{0,128}"|'[^'\n<>]{0,128}')"""
_ATTRIBUTES = rf"(?:{_ATTRIBUTE}){{0,6}}+\s{{0,2}}"
_TYPE_NAMES = r"(?:string|str|&str|bytes|secretstr|text|varchar|char|nsstring|bytestring|optional|any)"

# A sensitive stem, the rest of its name, and what joins the name to a value. Runs over lower-cased text. The name of the
# group that matched tells how they are joined.
_TEMPLATE = rf"""
    (?:{_STEM})(?P<rest>[a-z0-9_.\-]{{0,{_NAME_LENGTH}}}+)
    (?P<close>\\{{0,8}}+["'`]|%22)?+ (?:\]|%5d)?+ (?:\x1b\[[0-9;]{{0,8}}m)?+
    (?:
      (?P<pair>\s{{0,4}}[,;]?\s{{0,4}}\\{{0,8}}["']?value\\{{0,8}}["']?\s{{0,4}}[:=]\s{{0,4}})
    | (?P<assign>(?:\s{{0,2}}:?\s{{0,4}}{_TYPE_NAMES}\b[\w\[\]?]{{0,12}})?\s{{0,8}}
        (?:=>|->|:{{1,3}}=|\?\?=|\|\|=|[?+.|!]=|={{1,3}}|%3d)\s{{0,8}})
    | (?P<colon>(?:\s{{0,4}}(?::|%3a)\s{{0,8}}|\ ::\ )(?:%22)?)
    | (?P<element>{_ATTRIBUTES}(?:>|&gt;)\s{{0,8}})
    | (?P<plist></key>\s{{0,8}}<string>)
    | (?P<comma>\s{{0,2}},\s{{0,4}}(?=[bru]?\\{{0,8}}["'`])|,(?=[\w+/=.:-]{{10}}))
    | (?P<cell>[`"]?[\ \t]{{0,32}}[|│][\ \t]{{0,32}}`?|[;,](?=[^\s,;"'`]))
    | (?P<call>\(\s{{0,2}}(?=[bru]?\\{{0,8}}["'`]))
    | (?P<verb>(?:\ (?:for|of)\ (?:the\ )?(?:user\ |account\ |role\ )?["'`]?[\w.@\-]{{1,40}}["'`]?)?
        (?:\ (?:has\ |have\ |was\ |is\ |been\ ){{0,2}}(?:set|changed|reset|updated|rotated))?
        \ (?:is|was|to|from|ist|-)(?:\ now|\ still)?(?::|\ =)?\ (?=["'`]|\S{{0,32}}?\d))
    | (?P<space>[\ \t]{{1,4}}SPACE)
    )"""
# Two words side by side are seldom a name and its value: the second needs a quote or a digit, except after a flag.
_NAME = re.compile(_TEMPLATE.replace("SPACE", r"(?=[\"'`]|\S{0,32}?\d)"), re.VERBOSE)
_NAME_OR_FLAG = re.compile(_TEMPLATE.replace("SPACE", r"(?=[^\s-])"), re.VERBOSE)
# The same for a value on the next line: YAML block scalars, XML, wrapped assignments.
_NAME_ABOVE = re.compile(
    rf"""
    (?:{_STEM})(?P<rest>[a-z0-9_.\-]{{0,{_NAME_LENGTH}}}+) (?P<close>["'])?+
    (?: (?P<assign>[ \t]{{0,4}}(?::|[:?+]?=|=>)[ \t]{{0,4}}\\?\r?\n[ \t]{{1,32}}(?=["'`]))
      | (?P<colon>[ \t]{{0,4}}:[ \t]{{0,4}}[|>][-+]?[0-9]?[ \t]{{0,4}}\r?\n[ \t]{{1,32}})
      | (?P<pair>[ \t]{{0,4}},?\r?\n[ \t]{{1,32}}["']?value["']?[ \t]{{0,4}}[:=][ \t]{{0,8}})
      | (?P<element>{_ATTRIBUTES}>[ \t]{{0,4}}\r?\n[ \t]{{0,32}})
      | (?P<plist></key>[ \t]{{0,4}}\r?\n[ \t]{{0,32}}<string>)
      | (?P<nested>[ \t]{{0,4}}(?::|=>|[:+?]?=)[ \t]{{0,4}}(?=[\[({{][ \t\[({{]{{0,32}}\r?\n))
      | (?P<concatenation>[ \t]{{0,4}}(?::|=>|[:+?]?=)[ \t]{{0,4}}(?=[bruf]{{0,2}}(?:"[^"\n]{{0,256}}+"|'[^'\n]{{0,256}}+')
          [ \t]{{0,4}}(?:[+.&~|\\]|\r?\n[ \t]{{1,32}}[+.&~|])))
      | (?P<block>[ \t]{{0,4}}[:=][ \t]{{0,4}}(?:\"\"\"|\'\'\')\r?\n)
      | (?P<folded>[ \t]{{0,4}}:[ \t]{{0,4}}(?:(?:bearer|basic|token)[ \t]{{0,4}})?\r?\n[ \t]{{1,32}}
          (?:(?:bearer|basic|token|bot)[ \t]{{1,4}})?(?=[^\s:"'{{\[]{{6,512}}(?:[;,][^\n]{{0,256}})?\r?(?:\n|\Z)))
      )
    """,
    re.VERBOSE,
)
_LINE_END = re.compile(r"\n(?:(?=[ \t])|(?<=[\"'>]\n)|(?<=[\"'>]\r\n))")
_OPEN_ENDS = (*":=>|\\+-\"'0123456789[({.&~", "bearer", "basic", "token")
_VALUE_BELOW = re.compile(r"[ \t]{1,32}[\"']?value")
_FLAG = re.compile(r"-(?<![\w.]-)[a-z\-]")
_HEADER_NAME = re.compile(r"(?:[a-z]+[-_])*(?:authorization|cookie2?)")
_TUPLE = re.compile(r"(?<!\w)[(\[]\s?[bru]?[\"'`]$")
_FLAGS = frozenset({"--pass", "--pw", "--userpass", "--auth"})
"""Flags whose value is a secret, although their name is that of other values elsewhere."""
_PHRASES = ("mnemonic", "seedphrase", "seed_phrase", "seed-phrase", "recovery_phrase", "secret_phrase")
_TAG = re.compile(r"<(?:[\w.-]{1,32}:)?$|&lt;(?:[\w.-]{1,32}:)?$|<[\w.:-]{1,32} {1,4}(?:name|key|id)\s?=\s?[\"']$")
_MOVE = re.compile(r" (?:to|from)(?: now| still)?(?::| =)? $")
_QUOTED_FLAG = re.compile(r"[\"'`]-")
_CHANGE = re.compile(r"(?i)\b(?:set|chang|reset|updat|rotat)")
_COUNT = re.compile(r"\d $")
_KEY_OWNERS = frozenset(
    "api access secret private encryption decryption signing master account license licence ssh security session"
    " shared deploy webhook app service storage consumer client recovery auth ssl seed".split()
)
"""Words that belong to a following `key` although white space parts them: `API key: …`."""

_FOLDED_COOKIE = re.compile(r"(?i)(cookie2?:[^\r\n]{0,4096}+\r?\n[ \t]{1,32})([^\s<][^\r\n]{0,4096}+)")
_CRUMB = re.compile(r"[\w.-]{1,64}=[^\s;]")

_USER_KEY = re.compile(r"(?i)[\"'](?:user(?:[-_]?name)?|login|account|e?mail)\\{0,8}[\"']\s{0,4}(?::|=>)")
_COMPOUND = re.compile(r"[a-z][A-Z_.-]|[A-Z][_.-]")
_ASSIGNMENTS = frozenset({"assign", "colon", "concatenation"})
_OPENING_BRACKETS = frozenset("[({")
_OPENING_BEGINS = frozenset("\"'`\\bBrRuUfF@$&")


def scrub_named_values(text: str, low: str, work: WorkBudget) -> str:
    """Run layer 2 over one line. `low` is the line in lower case, of the same length."""
    pattern = _NAME_OR_FLAG if "-" in text and _FLAG.search(low) else _NAME
    return _scrub(pattern.finditer(low), text, low, work)


def scrub_values_below(text: str, low: str, work: WorkBudget) -> str:
    """The same over many lines, for values on the line below their name."""
    return _scrub(_names_above(low), text, low, work)


def _names_above(low: str) -> Iterator[re.Match[str]]:
    """The names from which the value goes on in the line below: only lines with an open end are read."""
    done = 0
    for line_end in _LINE_END.finditer(low):
        at = line_end.start()
        if not low[max(0, at - 12) : at].rstrip().endswith(_OPEN_ENDS) and not _VALUE_BELOW.match(low, at + 1):
            continue
        below = low.find("\n", at + 1) + 1 or len(low)
        end = low.find("\n", below) + 1 or len(low)
        for found in _NAME_ABOVE.finditer(low, max(done, low.rfind("\n", 0, at) + 1), end):
            done = found.end()
            yield found


def scrub_folded_cookies(text: str, work: WorkBudget) -> str:
    """The text without the cookies of a header that goes on below (RFC 9112, section 5.2)."""
    if "ookie" not in text and "OOKIE" not in text:
        return text
    return _FOLDED_COOKIE.sub(
        lambda match: match[1] + work.replace(match[2]) if _CRUMB.search(match[2]) else match[0], text
    )


def redact_by_name(name: str, value: str) -> str | None:
    """The mark if `value` is a secret under the key `name` of a mapping, else None."""
    match name_sensitivity(name):
        case Sensitivity.CERTAIN:
            return None if nothing_to_redact(value) else REDACTED
        case sensitivity:
            return REDACTED if is_secret(value, sensitivity) else None


def _scrub(matches: Iterable[re.Match[str]], text: str, low: str, work: WorkBudget) -> str:
    pieces: list[str] = []
    done = read = 0
    for match in matches:
        if match.start() < max(done, read):
            continue
        start = _name_start(low, match.start())
        name = _name(text, start, match)
        sensitivity = Sensitivity.CERTAIN if name.lower() in _FLAGS else name_sensitivity(name)
        if sensitivity is Sensitivity.NONE:
            continue
        work.step()
        spans, read = _values(text, start, match, name, sensitivity)
        for span in spans:
            if span[0] >= done:
                pieces += text[done : span[0]], work.replace(text[span[0] : span[1]], name)
                done = span[1]
    return "".join((*pieces, text[done:])) if pieces else text


def _name_start(low: str, stem: int) -> int:
    head = low[max(0, stem - _NAME_LENGTH) : stem]
    return stem - len(head) + len(head.rstrip(_NAME_CHARACTERS))


def _name(text: str, start: int, match: re.Match[str]) -> str:
    """The name to rate, with the word before it if it is only `key` or `phrase`."""
    name = text[start : match.end("rest")]
    if name.lower() in ("key", "keys", "phrase") and start and text[start - 1] == " ":
        before = text[max(0, start - 24) : start - 1].rpartition(" ")[2]
        if before.lower() in _KEY_OWNERS:
            return f"{before}_{name}"
    return name


def _values(text: str, start: int, match: re.Match[str], name: str, sensitivity: Sensitivity) -> tuple[list[Span], int]:
    """The spans of the secrets that belong to a name, and up to where the text was read."""
    at = match.end()
    first = text[at : at + 1]
    opened = OPENING_QUOTE.match(text, at) if first in _OPENING_BEGINS else None
    limit = _sensitivity_limit(text, start, match, name, value_quoted=opened is not None)
    if name.lower() == "pass" and _USER_KEY.search(text, max(0, start - 96), at + 160):
        sensitivity = Sensitivity.CERTAIN
    sensitivity = min(sensitivity, limit)
    if sensitivity is Sensitivity.NONE:
        return [], 0
    if opened is not None and match.lastgroup != "block":
        return quoted_spans(text, opened, sensitivity, joined=match.lastgroup in _ASSIGNMENTS), 0
    if first in _OPENING_BRACKETS and sensitivity is Sensitivity.CERTAIN and NESTED_START.match(text, at):
        return nested_spans(text, at, name, Sensitivity.CERTAIN)
    if sensitivity is Sensitivity.CERTAIN and (call := CONSTRUCTOR.match(text, at)):
        return nested_spans(text, call.end() - 1, name, Sensitivity.LIKELY)
    span = _value(text, start, match, name, sensitivity)
    return [] if span is None else [span], 0


def _value(text: str, start: int, match: re.Match[str], name: str, sensitivity: Sensitivity) -> Span | None:
    """The span of a value that is neither quoted nor nested."""
    at = match.end()
    first = text[at : at + 1]
    if match.lastgroup == "block":
        return block_span(text, at, sensitivity)
    if match.lastgroup == "element" and (span := element_span(text, at)):
        return span if is_secret(text[slice(*span)], sensitivity) else None
    if match.lastgroup == "colon" and _HEADER_NAME.fullmatch(name.lower()):
        return header_span(text, at, name)
    if name.lower().endswith(_PHRASES) and sensitivity is Sensitivity.CERTAIN:
        return phrase_span(text, at)
    separator = match[match.lastgroup or 0]
    if match.lastgroup in ("assign", "colon") and sensitivity is Sensitivity.CERTAIN:
        if first == "[" and (span := bare_list_span(text, at)):
            return span
        is_setting = "=" in separator and _COMPOUND.search(name) is not None
        if (is_setting or name.lower().endswith(PASSWORD_NAMES)) and (
            span := phrase_value_span(text, start, at, separator)
        ):
            return span
    if match.lastgroup == "cell" and (span := cell_span(text, at, name, separator)):
        return span
    return bare_span(text, at, name, sensitivity, separator=separator, name_quoted=match["close"] is not None)


def _sensitivity_limit(text: str, start: int, match: re.Match[str], name: str, *, value_quoted: bool) -> Sensitivity:
    """The most that a value's sensitivity can be, given what joins it to its name."""
    side_by_side = Sensitivity.LIKELY if name_sensitivity(name) is Sensitivity.CERTAIN else Sensitivity.NONE
    match match.lastgroup:
        case "assign":
            is_comparison = "==" in match["assign"] or "!=" in match["assign"]
            return Sensitivity.LIKELY if is_comparison else Sensitivity.CERTAIN
        case "colon":
            return _limit_after_colon(text, start)
        case "pair" | "plist" | "block" | "nested" | "concatenation":
            return Sensitivity.CERTAIN
        case "folded":
            return Sensitivity.LIKELY
        case "element":
            return Sensitivity.CERTAIN if _TAG.search(text, max(0, start - 40), start) else Sensitivity.NONE
        case "comma":
            is_flag = (
                name.startswith("-") and match["close"] in ("'", '"') and not _QUOTED_FLAG.match(text, match.end())
            )
            is_pair = value_quoted and match["close"] and _TUPLE.search(text, max(0, start - 4), start)
            return Sensitivity.CERTAIN if is_flag or is_pair else side_by_side
        case "space":
            return _limit_after_space(text, start, match, name, value_quoted=value_quoted)
        case "verb":
            is_given = True
            if _MOVE.search(match["verb"]):  # `sent the password to bob` is no assignment
                is_given = _CHANGE.search(text[max(0, start - 24) : match.end()]) is not None
            elif "-" in match["verb"]:  # `token - 1` is a difference
                is_given = name.lower().endswith(PASSWORD_NAMES)
            return min(side_by_side, Sensitivity.PROBABLE) if is_given else Sensitivity.NONE
        case _:
            return side_by_side


def _limit_after_colon(text: str, start: int) -> Sensitivity:
    """`/etc/passwd:12` is a line of a file, `12 tokens: …` a count, `/password:x` a switch, as on Windows."""
    if text[start - 1 : start] == "/":
        return Sensitivity.LIKELY if text[max(0, start - 2) : start - 1].isspace() else Sensitivity.POSSIBLE
    return Sensitivity.POSSIBLE if _COUNT.search(text, max(0, start - 4), start) else Sensitivity.CERTAIN


def _limit_after_space(text: str, start: int, match: re.Match[str], name: str, *, value_quoted: bool) -> Sensitivity:
    if name.startswith("-") and (start == 0 or text[start - 1] in " \t\"'`,[=("):
        return Sensitivity.CERTAIN
    if match["close"] is not None or name_sensitivity(name) is not Sensitivity.CERTAIN:
        return Sensitivity.NONE  # the quoted text before this is more than a name
    is_password = value_quoted and name.lower().endswith(("password", "passwd", "passphrase"))
    return Sensitivity.CERTAIN if is_password else Sensitivity.PROBABLE
