"""Registers the secrets that callers send, within a bound of their own, so that they never displace the program's own."""

from __future__ import annotations

from typing import Final, final

from .scrubber import register, unregister

MAX_CALLER_SECRETS: Final = 256
"""Secrets that one `CallerSecrets` keeps registered."""


@final
class CallerSecrets:
    """At most `MAX_CALLER_SECRETS` registered secrets. Past that the least recently used one is unregistered."""

    def __init__(self) -> None:
        self._secrets: dict[str, None] = {}

    def add(self, secret: str) -> None:
        """Redact this secret from now on, or mark it as just used."""
        if secret not in self._secrets:
            register(secret)
        self._secrets[secret] = self._secrets.pop(secret, None)
        if len(self._secrets) > MAX_CALLER_SECRETS:
            oldest = next(iter(self._secrets))
            del self._secrets[oldest]
            unregister(oldest)
