"""Values that are no secrets although a telling name stands before them: placeholders, types, code, counters, prose."""

from __future__ import annotations

import re
from typing import assert_never

from ..marks import nothing_left
from .entropy import is_uuid, looks_random
from .words import Verdict, judge

_NO_SECRETS = frozenset(
    "none null nil undefined true false yes no on off required optional missing invalid valid expired empty unset"
    " unknown incorrect wrong string str bytes int integer number bool boolean float any object type text char varchar"
    " password secret token key is was not and or in for from to with must should has have if else return read write"
    " admin !secret !vault".split()
)
_CONSTANTS = frozenset({"none", "null", "true", "false", "include", "omit", "same-origin"})
_PLACEHOLDER = re.compile(
    r"""\$\w{1,80}|\$?\{[^{}]{0,80}\}|\$?\{\{[^{}]{0,80}\}\}|\$\([^()]{0,80}\)|%\(\w{1,40}\)[sdr]|%[sdrv]|%\w{1,40}%
      |<[A-Za-z][\w ./-]{0,60}>|[*xX.\u2022\u2026]{3,64}|\[[A-Z_ ]{3,40}\]""",
    re.VERBOSE,
)
_PLACEHOLDER_BEGINS = frozenset("${%<*xX.\u2022\u2026[")
_NAME = r"[A-Za-z_]\w{0,60}"
_CALL = re.compile(rf"(?:await |new |&|\*)?{_NAME}(?:(?:\.|::|->){_NAME}){{0,8}}[(\[{{]")
_ATTRIBUTE = re.compile(
    r"(?:self|this|cls|os|config|cfg|conf|settings|args|opts|options|request|req|res|response|env|environ|process|ctx"
    r"|context|params|data|body|user|client|app|secrets|vault|props|state|credentials|obj|payload|session|kwargs)"
    rf"(?:\.{_NAME}){{1,6}}"
)
_TYPE = re.compile(
    r"(?:Optional|Union|List|Dict|Sequence|Secret|list|dict|tuple|set|Vec|Option|Promise|Array|Map)[\[<]"
)
_IDENTIFIER = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)*")
_WORD = re.compile(r"[A-Za-z][a-z']{0,20}[.,;:!?)]?")
_MORE_PROSE = re.compile(r"\s(?:[\"'`(\[]|[A-Za-z][a-z']{0,20}(?:[\s.,;:!?]|$))")
_LONG_NUMBER = 12  # digits: past any counter
_PASSWORDS = ("password", "passwd", "passphrase", "pwd")


def is_secret(value: str, verdict: Verdict) -> bool:
    """Whether a value is one to hide, given what its name says of it."""
    if len(value) < 2 or nothing_left(value) or is_placeholder(value):
        return False
    rest = value
    if "{" in value or "%" in value:
        rest = _PLACEHOLDER.sub(" ", value)
        if nothing_left(rest):
            return False
    match verdict:
        case Verdict.PLAIN:
            return False
        case Verdict.SUSPECT:
            return looks_random(rest)
        case Verdict.LIKELY:
            return looks_random(rest) or is_uuid(value) or (value.isdigit() and len(value) >= _LONG_NUMBER)
        case Verdict.SECRET:
            return value.lower() not in _CONSTANTS
        case _:
            assert_never(verdict)


def is_plain_word(value: str) -> bool:
    """Whether an unquoted value is one of the words that follow telling names and are never secrets."""
    return value.lower() in _NO_SECRETS


def is_placeholder(value: str) -> bool:
    """Whether a value only says where a value goes: `$TOKEN`, `${TOKEN}`, `%s`, `<token>`, `****`."""
    return value[:1] in _PLACEHOLDER_BEGINS and _PLACEHOLDER.fullmatch(value) is not None


def is_prose(text: str, at: int) -> bool:
    """Whether plain words go on from here rather than a value."""
    words = text[at : at + 48].split()[:3]
    return len(words) > 0 and all(map(_WORD.fullmatch, words))


def is_code(value: str, name: str, text: str, begin: int, *, joint: str, in_quotes: bool) -> bool:
    """Whether an unquoted value, which begins at `begin`, is a variable, a type, a call or a counter, or goes on as prose.

    `joint` is what joins it to its name (` = `, `:`), `in_quotes` whether the name was quoted.
    """
    if _ATTRIBUTE.fullmatch(value) or _TYPE.match(value) or _CALL.match(text, begin):
        return True
    if value.isdigit() and len(value) < 8 and name.lower().endswith("s"):
        return True
    if not _IDENTIFIER.fullmatch(value):
        return False
    if judge(value) is not Verdict.PLAIN or in_quotes:
        return True
    goes_on = _WORD.fullmatch(value) is not None and _MORE_PROSE.match(text, begin + len(value)) is not None
    if joint.isspace():
        return value.isupper()
    if not joint.endswith(" ") or name.lower().endswith(_PASSWORDS):
        return ":" in joint and goes_on
    return not looks_random(value) and ("=" in joint or goes_on)
