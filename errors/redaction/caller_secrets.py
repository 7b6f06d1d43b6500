"""Secrets that callers bring: so many of them are known at a time that nobody's crowd out the program's own."""

from __future__ import annotations

from typing import Final, final

from .scrubber import register, unregister

MOST: Final = 256
"""Secrets of one kind of caller that the scrubber knows at the same time."""


@final
class CallerSecrets:
    """A bounded part of what the scrubber knows. Of too many, those that were not met for longest are forgotten."""

    def __init__(self) -> None:
        self._secrets: dict[str, None] = {}

    def conceal(self, secret: str) -> None:
        """From now on the logs don't hold it."""
        if secret not in self._secrets:
            register(secret)
        self._secrets[secret] = self._secrets.pop(secret, None)
        if len(self._secrets) > MOST:
            oldest = next(iter(self._secrets))
            del self._secrets[oldest]
            unregister(oldest)
