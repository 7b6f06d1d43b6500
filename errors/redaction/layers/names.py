"""Layer 2: scrubs the values that telling names give away, in whatever notation the name and the value stand.

`key=value`, `"key": "value"` (also escaped inside another string, also in Python's, Ruby's and Perl's notation),
YAML, XML elements, headers, command-line flags, URL queries, pairs of `name` and `value`, calls. What a name says is
`words`' verdict, where its value ends is `extents`', and which values are none is `benign`'s.
"""

from __future__ import annotations

import re

from ..marks import REDACTED, nothing_left
from ..work_budget import WorkBudget
from .benign import is_secret
from .extents import LIST, OPENING, Span, bare, header, listed, phrase, quoted
from .words import STEMS, Verdict, judge

_NAME_LENGTH = 64  # characters of a name before and after its telling stem
_NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789_.-"
_STEM = "|".join(map(re.escape, STEMS))
_TYPES = r"(?:string|str|&str|bytes|secretstr|text|varchar|char|nsstring|bytestring|optional|any)"

# A telling stem, the rest of its name, and what joins a name to a value. Runs over lower-cased text. The name of the
# group that matched is the kind of joint.
_TEMPLATE = rf"""
    (?:{_STEM})(?P<rest>[a-z0-9_.\-]{{0,{_NAME_LENGTH}}}+)
    (?P<close>\\{{0,8}}+["'`]|%22)?+ (?:\]|%5d)?+ (?:\x1b\[[0-9;]{{0,8}}m)?+
    (?:
      (?P<pair>\s{{0,4}}[,;]?\s{{0,4}}\\{{0,8}}["']?value\\{{0,8}}["']?\s{{0,4}}[:=]\s{{0,4}})
    | (?P<assign>(?:\s{{0,2}}:?\s{{0,4}}{_TYPES}\b[\w\[\]?]{{0,12}})?\s{{0,8}}
        (?:=>|->|:{{1,3}}=|\?\?=|\|\|=|[?+.|!]=|={{1,3}}|%3d)\s{{0,8}})
    | (?P<colon>\s{{0,4}}(?::|%3a)\s{{0,8}}(?:%22)?)
    | (?P<element>>\s{{0,8}})
    | (?P<comma>\s{{0,2}},\s{{0,4}}(?=[bru]?\\{{0,8}}["'`])|,(?=[\w+/=.:-]{{10}}))
    | (?P<call>\(\s{{0,2}}(?=[bru]?\\{{0,8}}["'`]))
    | (?P<verb>\ (?:is|was)(?::|\ =)?\ (?=["'`]|\S{{0,32}}?\d))
    | (?P<space>[\ \t]{{1,4}}SPACE)
    )"""
# Side by side, a name and a value are seldom one: the value then needs a quote or a digit, unless there are flags.
_NAME = re.compile(_TEMPLATE.replace("SPACE", r"(?=[\"'`]|\S{0,32}?\d)"), re.VERBOSE)
_NAME_OR_FLAG = re.compile(_TEMPLATE.replace("SPACE", r"(?=[^\s-])"), re.VERBOSE)
# The same where the value stands on the next line: YAML block scalars, XML, wrapped assignments.
_NAME_ABOVE = re.compile(
    rf"""
    (?:{_STEM})(?P<rest>[a-z0-9_.\-]{{0,{_NAME_LENGTH}}}+) (?P<close>["'])?+
    (?: (?P<assign>[ \t]{{0,4}}(?::|[:?+]?=|=>)[ \t]{{0,4}}\\?\r?\n[ \t]{{1,32}}(?=["'`]))
      | (?P<colon>[ \t]{{0,4}}:[ \t]{{0,4}}[|>][-+]?[0-9]?[ \t]{{0,4}}\r?\n[ \t]{{1,32}})
      | (?P<pair>[ \t]{{0,4}},?\r?\n[ \t]{{1,32}}["']?value["']?[ \t]{{0,4}}[:=][ \t]{{0,8}})
      | (?P<element>>[ \t]{{0,4}}\r?\n[ \t]{{0,32}}) )
    """,
    re.VERBOSE,
)
_LINE_BREAK = re.compile(r"[:=>|\\+0-9-][ \t]{0,4}\r?\n[ \t]|>[ \t]{0,4}\r?\n|\n[ \t]{1,32}[\"']?value")
_FLAG = re.compile(r"-(?<![\w.]-)[a-z\-]")
_HEADER_NAME = re.compile(r"(?:[a-z]+[-_])*(?:authorization|cookie2?)")
_TUPLE = re.compile(r"(?<!\w)[(\[]\s?[bru]?[\"'`]$")
_PHRASES = ("mnemonic", "seedphrase", "seed_phrase", "seed-phrase", "recovery_phrase", "secret_phrase")
_COUNT = re.compile(r"\d $")
_KEY_OWNERS = frozenset(
    "api access secret private encryption decryption signing master account license licence ssh security session"
    " shared deploy webhook app service storage consumer client recovery auth ssl seed".split()
)
"""Words that stand apart before `key` and belong to it: `API key: …`."""

_OPENING_BEGINS = frozenset("\"'`\\bBrRuUfF@$&")


def scrub_names(text: str, low: str, work: WorkBudget) -> str:
    """Layer 2 over one line. `low` is the text in lower case, character for character."""
    return _scrub(_NAME_OR_FLAG if "-" in text and _FLAG.search(low) else _NAME, text, low, work)


def scrub_names_above(text: str, low: str, work: WorkBudget) -> str:
    """The same for values that stand on the line after their name."""
    return _scrub(_NAME_ABOVE, text, low, work) if _LINE_BREAK.search(low) else text


def names_value(name: str, value: str) -> str | None:
    """The mark where the key of a mapping gives this text away, else None: no notation to mistake it for."""
    match judge(name):
        case Verdict.SECRET:
            return None if nothing_left(value) else REDACTED
        case verdict:
            return REDACTED if is_secret(value, verdict) else None


def _scrub(pattern: re.Pattern[str], text: str, low: str, work: WorkBudget) -> str:
    pieces: list[str] = []
    done = 0
    for match in pattern.finditer(low):
        if match.start() < done:
            continue
        start = _name_start(low, match.start())
        name = _name(text, start, match)
        verdict = judge(name)
        if verdict is Verdict.PLAIN:
            continue
        work.step()
        span = _value(text, start, match, name, verdict)
        if span is not None and span[0] >= done:
            pieces += text[done : span[0]], work.replace(text[span[0] : span[1]])
            done = span[1]
    return "".join((*pieces, text[done:])) if pieces else text


def _name_start(low: str, stem: int) -> int:
    head = low[max(0, stem - _NAME_LENGTH) : stem]
    return stem - len(head) + len(head.rstrip(_NAME_CHARACTERS))


def _name(text: str, start: int, match: re.Match[str]) -> str:
    """The name as it is judged: with the word before it where `key` alone says too little."""
    name = text[start : match.end("rest")]
    if name.lower() in ("key", "keys", "phrase") and start and text[start - 1] == " ":
        before = text[max(0, start - 24) : start - 1].rpartition(" ")[2]
        if before.lower() in _KEY_OWNERS:
            return f"{before}_{name}"
    return name


def _value(text: str, start: int, match: re.Match[str], name: str, verdict: Verdict) -> Span | None:
    at = match.end()
    first = text[at : at + 1]
    opened = OPENING.match(text, at) if first in _OPENING_BEGINS else None
    trust = _trust(text, start, match, name, in_quotes=opened is not None)
    if trust is Verdict.PLAIN:
        return None
    verdict = min(verdict, trust)
    if opened is not None:
        return quoted(text, opened, verdict)
    if match.lastgroup == "colon" and _HEADER_NAME.fullmatch(name.lower()):
        return header(text, at, name)
    if name.lower().endswith(_PHRASES) and verdict is Verdict.SECRET:
        return phrase(text, at)
    if first in ("[", "(") and LIST.match(text, at):
        return listed(text, at) if verdict is Verdict.SECRET else None
    joint = match[match.lastgroup or 0]
    return bare(text, at, name, verdict, joint=joint, in_quotes=match["close"] is not None)


def _trust(text: str, start: int, match: re.Match[str], name: str, *, in_quotes: bool) -> Verdict:
    """How far what joins a name and a value lets the name speak for the value. `in_quotes`: the value is quoted."""
    side_by_side = Verdict.LIKELY if judge(name) is Verdict.SECRET else Verdict.PLAIN
    match match.lastgroup:
        case "assign":
            is_comparison = "==" in match["assign"] or "!=" in match["assign"]
            return Verdict.LIKELY if is_comparison else Verdict.SECRET
        case "colon":  # `/etc/passwd:12` is a place in a file, `12 tokens: …` a count
            is_other = text[start - 1 : start] == "/" or _COUNT.search(text, max(0, start - 4), start)
            return Verdict.SUSPECT if is_other else Verdict.SECRET
        case "pair":
            return Verdict.SECRET
        case "element":
            return Verdict.SECRET if start and text[start - 1] == "<" else Verdict.PLAIN
        case "comma":
            is_pair = in_quotes and match["close"] and _TUPLE.search(text, max(0, start - 4), start)
            return Verdict.SECRET if is_pair else side_by_side
        case "space":
            if name.startswith("-") and (start == 0 or text[start - 1] in " \t\"'`,[=("):
                return Verdict.SECRET
            if match["close"] is not None:  # the quote that closes here holds more than a name
                return Verdict.PLAIN
            is_told = in_quotes and name.lower().endswith(("password", "passwd", "passphrase"))
            return Verdict.SECRET if is_told else min(side_by_side, Verdict.SUSPECT)
        case "verb":
            return min(side_by_side, Verdict.SUSPECT)
        case _:
            return side_by_side
