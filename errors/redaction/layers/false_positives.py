"""Recognises values that are no secrets although their name is sensitive: placeholders, types, code, counters, prose.

Looks at one value at a time. Never redacts anything.
"""

from __future__ import annotations

import re
from typing import assert_never

from ..limits import nothing_to_redact
from .entropy import is_uuid, looks_like_password, looks_random
from .sensitivity import Sensitivity, name_sensitivity

_PLAIN_WORDS = frozenset(
    "none null nil undefined true false yes no on off required optional missing invalid valid expired empty unset"
    " unknown incorrect wrong string str bytes int integer number bool boolean float any object type text char varchar"
    " password secret token key is was not and or in for from to with must should has have if else return read write"
    " admin !secret !vault".split()
)
_CONSTANTS = frozenset({"none", "null", "true", "false", "include", "omit", "same-origin"})
_PLACEHOLDER = re.compile(
    r"""\$\w{1,80}|\$?\{[^{}]{0,80}\}|\$?\{\{[^{}]{0,80}\}\}|\$\([^()]{0,80}\)|%\(\w{1,40}\)[sdr]|%[sdrv]|%\w{1,40}%
      |:[a-z_]{1,40}|<[A-Za-z][\w ./-]{0,60}>|[*xX.\u2022\u2026]{3,64}|\[[A-Z_ ]{3,40}\]""",
    re.VERBOSE,
)
_PLACEHOLDER_BEGINS = frozenset(":${%<*xX.\u2022\u2026[")
_NAME = r"[A-Za-z_]\w{0,60}"
_CALL = re.compile(rf"(?:await |new |&|\*)?{_NAME}(?:(?:\.|::|->){_NAME}){{0,8}}[(\[{{]")
_REST_OF_CALL = re.compile(r"[^)\]}\n]{0,200}")
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
_PROSE_FOLLOWS = re.compile(r"\s(?:[\"'`(\[]|[A-Za-z][a-z']{0,20}(?:[\s.,;:!?]|$))")
_MIN_LONG_NUMBER = 12  # digits: no counter is that long
PASSWORD_NAMES = ("password", "passwd", "passphrase", "pwd")


def is_secret(value: str, sensitivity: Sensitivity) -> bool:
    """Whether a value is a secret, given the sensitivity of its name."""
    if len(value) < 2 or nothing_to_redact(value) or is_placeholder(value):
        return False
    rest = value
    if "{" in value or "%" in value:
        rest = _PLACEHOLDER.sub(" ", value)
        if nothing_to_redact(rest):
            return False
    match sensitivity:
        case Sensitivity.NONE:
            return False
        case Sensitivity.POSSIBLE:
            return looks_random(rest)
        case Sensitivity.PROBABLE:
            return looks_random(rest) or looks_like_password(rest)
        case Sensitivity.LIKELY:
            is_long_number = value.isdigit() and len(value) >= _MIN_LONG_NUMBER
            return looks_random(rest) or looks_like_password(rest) or is_uuid(value) or is_long_number
        case Sensitivity.CERTAIN:
            return value.lower() not in _CONSTANTS
        case _:
            assert_never(sensitivity)


def is_plain_word(value: str) -> bool:
    """Whether an unquoted value is a word that often follows a sensitive name and is never a secret."""
    return value.lower() in _PLAIN_WORDS


def is_placeholder(value: str) -> bool:
    """Whether a value stands for another one: `$TOKEN`, `${TOKEN}`, `%s`, `<token>`, `****`."""
    return value[:1] in _PLACEHOLDER_BEGINS and _PLACEHOLDER.fullmatch(value) is not None


def is_prose(text: str, at: int) -> bool:
    """Whether the text goes on with plain words rather than a value."""
    words = text[at : at + 48].split()[:3]
    return len(words) > 0 and all(map(_WORD.fullmatch, words))


def is_code(value: str, name: str, text: str, begin: int, *, separator: str, name_quoted: bool) -> bool:
    """Whether the unquoted value at `begin` is a variable, a type, a call, a counter or the first word of a sentence.

    `separator` stands between it and its name (` = `, `:`); `name_quoted` tells whether the name was quoted.
    """
    if _ATTRIBUTE.fullmatch(value) or _TYPE.match(value) or _is_call(text, begin):
        return True
    if value.isdigit() and len(value) < 8 and name.lower().endswith("s"):
        return True
    if not _IDENTIFIER.fullmatch(value):
        return False
    if name_sensitivity(value) is not Sensitivity.NONE or name_quoted:
        return True
    prose_follows = _WORD.fullmatch(value) is not None and _PROSE_FOLLOWS.match(text, begin + len(value)) is not None
    if separator.isspace():
        return value.isupper()
    if not separator.endswith(" ") or name.lower().endswith(PASSWORD_NAMES):
        return ":" in separator and prose_follows
    return not looks_random(value) and ("=" in separator or prose_follows)


def _is_call(text: str, begin: int) -> bool:
    """Whether a call, a subscript or a literal of a record begins here, which is closed on this line or goes on below."""
    call = _CALL.match(text, begin)
    rest = _REST_OF_CALL.match(text, call.end()) if call else None
    return rest is not None and (not rest[0].strip() or text[rest.end() : rest.end() + 1] in (")", "]", "}"))
