"""Secrets that a session has given away under a telling name: hidden wherever they are said again. Never shows them."""

from __future__ import annotations

import re
from typing import Final, final

from ..errors.redaction.layers.false_positives import is_placeholder, is_secret
from ..errors.redaction.layers.known_secrets import MIN_SECRET_LENGTH, KnownSecrets
from ..errors.redaction.layers.sensitivity import Sensitivity
from ..errors.redaction.marks import REDACTED, nothing_to_redact

SHORT_SECRETS: Final = 1024
"""Secrets of fewer than `MIN_SECRET_LENGTH` characters that are remembered."""

_SHORT: Final = re.compile(r"(?=\D*\d)[^\s<>]{6,7}")
"""Still long enough, and with a digit in it, to be told from words where it stands by itself."""

_PASSWORDS: Final = ("pass", "pwd", "secret", "cred")
"""Names under which even a plain word is one to hide everywhere; that of a token or a cookie may be a keyword."""


@final
class SessionSecrets:
    """What one session has said under telling names. Values that are too common to be found again are left out."""

    def __init__(self) -> None:
        self._known = KnownSecrets()
        self._short: dict[str, re.Pattern[str]] = {}

    def learn(self, secret: str, name: str) -> None:
        """A value, and the name that told; empty where it was found without one."""
        if nothing_to_redact(secret) or is_placeholder(secret) or REDACTED in secret:
            return
        is_word = secret.isalpha() and not is_secret(secret, Sensitivity.LIKELY)
        if is_word and not any(part in name.lower() for part in _PASSWORDS):
            return
        if len(secret) >= MIN_SECRET_LENGTH:
            self._known.add(secret)
        elif _SHORT.fullmatch(secret) and len(self._short) < SHORT_SECRETS:
            self._short.setdefault(secret, re.compile(rf"(?<!\w){re.escape(secret)}(?!\w)"))

    def scrub(self, text: str) -> str:
        """The text without them."""
        text = self._known.scrub(text, lambda _: REDACTED)
        for secret, pattern in self._short.items():
            if secret in text:
                text = pattern.sub(REDACTED, text)
        return text
