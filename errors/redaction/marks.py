"""The marks that replace removed text, and how later rounds recognise them. Never depends on the surrounding text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

Replace: TypeAlias = Callable[[str], str]
"""Gets one secret and returns what replaces it."""

REDACTED = "<redacted>"
"""Replaces a secret."""

CUT = "<cut>"
"""Replaces text that was removed unread: past a limit, past the work budget, past the nesting depth."""

PATH = "<path>"
"""Replaces the directories of a path; `/` and the last part follow."""

USER = "<user>"
"""Replaces the name of an account or of its home directory."""

ANY_MARK = r"<(?:redacted|cut|path|user)>"
"""Matches every mark. For patterns that treat a mark as one character."""

_MARKS = re.compile(ANY_MARK)
_SCHEMES = frozenset(
    {"bearer", "basic", "digest", "token", "apikey", "negotiate", "ntlm", "oauth", "hawk", "api", "key", "jwt"}
)
_WORD = re.compile(r"[^\W_]+")
_RARE = re.compile(r"[!@#$%^&+?]")
_RARE_PUNCTUATION = 4  # characters: fewer close a sentence or a bracket, this many make a password


def nothing_to_redact(value: str) -> bool:
    """Whether a value holds only marks, punctuation and names of authentication schemes."""
    if "<" not in value:
        return _WORD.search(value) is None and len(_RARE.findall(value)) < _RARE_PUNCTUATION
    rest = _MARKS.sub(" ", value)
    if _WORD.search(rest):
        return all(word.lower() in _SCHEMES for word in _WORD.findall(rest))
    return len(_RARE.findall(rest)) < _RARE_PUNCTUATION
