"""The limits of the scrubber. Values only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

# The marks that replace removed text, and how later rounds recognise them. Never depends on the surrounding text.


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

_SCHEMES = frozenset(
    {"bearer", "basic", "digest", "token", "apikey", "negotiate", "ntlm", "oauth", "hawk", "api", "key", "jwt"}
)
_WORD = r"[^\W_]+"
_RARE = r"[!@#$%^&+?]"
_RARE_PUNCTUATION = 4  # characters: fewer close a sentence or a bracket, this many make a password


def nothing_to_redact(value: str) -> bool:
    """Whether a value holds only marks, punctuation and names of authentication schemes."""
    if "<" not in value:
        return re.search(_WORD, value) is None and len(re.findall(_RARE, value)) < _RARE_PUNCTUATION
    rest = re.sub(ANY_MARK, " ", value)
    if re.search(_WORD, rest):
        return all(word.lower() in _SCHEMES for word in re.findall(_WORD, rest))
    return len(re.findall(_RARE, rest)) < _RARE_PUNCTUATION


def splice(text: str, replacements: Iterable[tuple[int, int, str]]) -> str:
    """Put each text in the place of its span (begin, end). The spans are in order and do not overlap."""
    pieces: list[str] = []
    done = 0
    for begin, end, new in replacements:
        pieces += text[done:begin], new
        done = end
    return "".join((*pieces, text[done:])) if pieces else text


# The work budget of one call: counts its steps and stops it. Never looks at what a step does.


CHARACTERS_PER_STEP = 16
"""How many characters add a step to the budget: a secret with its name is rarely shorter."""


class BudgetExhaustedError(Exception):
    """The budget is used up. The caller must remove the rest of the text."""


class WorkBudget:
    """A number of steps, and what was replaced. Past the budget every step raises `BudgetExhaustedError`."""

    __slots__ = ("_left", "replaced")

    def __init__(self, steps: int, characters: int) -> None:
        self.replaced: list[tuple[str, str]] = []
        """Each secret, and its name or an empty text."""
        self._left = steps + characters // CHARACTERS_PER_STEP

    def step(self) -> None:
        """Count one check of a value, whatever its outcome."""
        self._left -= 1
        if self._left < 0:
            raise BudgetExhaustedError

    def replace(self, secret: str, name: str = "") -> str:
        """Count one replacement; returns the mark that stands for the secret."""
        self.replaced.append((secret, name))
        self.step()
        return REDACTED


MAX_FIELD_CHARACTERS: Final = 8192
"""Characters that are kept of one field of a log event."""

MIN_SECRET_LENGTH: Final = 8
"""Characters of the shortest secret that is kept: a shorter one would match inside harmless words."""


class ScrubLimits(NamedTuple):
    """How much one call may read and do."""

    characters: int = 8 * 1024 * 1024
    """Characters that are read of one text; the rest is cut."""
    steps: int = 4096
    """Checks and replacements in one text, besides one for every sixteen characters of it."""
