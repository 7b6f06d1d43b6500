"""Keeps the secrets that callers send, in a store of their own: they never displace or forget the program's own.

A caller chooses its credentials. If any text were redacted, a caller could make the log unreadable with a credential such
as `request.failed`. So only what looks random is redacted, and only for an hour after its last use.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Final, final

from .layers.known_secrets import KnownSecrets

if TYPE_CHECKING:
    from .marks import Replace

MAX_CALLER_SECRETS: Final = 256
"""Secrets of callers that are kept."""

MAX_CALLER_CHARACTERS: Final = 128 * 1024
"""Characters of all secrets of callers that are kept."""

MAX_CALLER_SECRET_LENGTH: Final = 16 * 1024
"""Characters of the longest secret that is kept: more than HTTP servers accept in a header."""

LIFETIME_SECONDS: Final = 3600.0
"""How long after its last use a secret is kept."""


@final
class CallerSecrets:
    """Bounded in number, characters and time; the least recently used secret goes first. Safe to use from any thread."""

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        """`clock` gives the time in seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._known = KnownSecrets()
        self._last_use: dict[str, float] = {}  # by secret, the least recently used first
        self._characters = 0

    def __len__(self) -> int:
        return len(self._last_use)

    def add(self, secret: str) -> None:
        """Redact this secret from now on, or mark it as just used. A secret that does not look random is ignored."""
        from .layers.entropy import looks_random  # late: compiles patterns

        with self._lock:
            if secret in self._last_use:
                self._last_use[secret] = self._last_use.pop(secret)
            elif len(secret) > MAX_CALLER_SECRET_LENGTH or not looks_random(secret):
                return
            else:
                self._known.add(secret)
                self._characters += len(secret)
            self._last_use[secret] = self._clock()
        self._forget_surplus()

    def scrub(self, text: str, replace: Replace) -> str:
        """Replace every secret that is kept, in any encoding."""
        if not self._last_use:
            return text
        self._forget_surplus()
        return self._known.scrub(text, replace)

    def _forget_surplus(self) -> None:
        with self._lock:
            while self._last_use:
                oldest, used = next(iter(self._last_use.items()))
                is_surplus = len(self._last_use) > MAX_CALLER_SECRETS or self._characters > MAX_CALLER_CHARACTERS
                if not is_surplus and self._clock() - used < LIFETIME_SECONDS:
                    return
                del self._last_use[oldest]
                self._characters -= len(oldest)
                self._known.discard(oldest)
