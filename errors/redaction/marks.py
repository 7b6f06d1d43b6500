"""What stands where something was removed, and how later rounds recognise it. Never depends on the text around it."""

from __future__ import annotations

import re

REDACTED = "<redacted>"
"""Stands for a secret."""

CUT = "<cut>"
"""Stands for text that was dropped unread: past a limit, past the work budget, past the depth."""

PATH = "<path>"
"""Stands for the directories of a path; `/` and the last part follow it."""

USER = "<user>"
"""Stands for the name of the account or of its home directory."""

ANY = r"<(?:redacted|cut|path|user)>"
"""The pattern of every mark, for patterns that must treat a mark as one character."""

_MARKS = re.compile(ANY)
_SCHEMES = frozenset(
    {"bearer", "basic", "digest", "token", "apikey", "negotiate", "ntlm", "oauth", "hawk", "api", "key", "jwt"}
)
_WORD = re.compile(r"[^\W_]+")
_RARE = re.compile(r"[!@#$%^&+?]")
_RARE_PUNCTUATION = 4  # characters: fewer of them close a sentence or a bracket, so many make a password


def nothing_left(value: str) -> bool:
    """Whether a value holds marks, punctuation and names of auth schemes only, so that there is nothing to hide."""
    if "<" not in value:
        return _WORD.search(value) is None and len(_RARE.findall(value)) < _RARE_PUNCTUATION
    rest = _MARKS.sub(" ", value)
    if _WORD.search(rest):
        return all(word.lower() in _SCHEMES for word in _WORD.findall(rest))
    return len(_RARE.findall(rest)) < _RARE_PUNCTUATION
