"""Remembers the secrets that a session showed under a telling name, and hides them wherever they occur again.

Never shows them.
"""

from __future__ import annotations

import re
from typing import Final, final

from ..errors.redaction.layers.false_positives import is_placeholder, is_secret
from ..errors.redaction.layers.known_secrets import KnownSecrets
from ..errors.redaction.layers.sensitivity import Sensitivity, name_sensitivity
from ..errors.redaction.limits import MIN_SECRET_LENGTH
from ..errors.redaction.marks import REDACTED, nothing_to_redact

MAX_SHORT_SECRETS: Final = 1024
"""How many secrets of fewer than `MIN_SECRET_LENGTH` characters are remembered."""

_SHORT: Final = re.compile(r"(?=\D*\d)[^\s<>]{6,7}")
"""A short secret that can be told from words: long enough, and with a digit in it."""

_PASSWORD_NAMES: Final = ("pass", "pwd", "secret", "cred")
"""Under these names even a plain word is hidden everywhere. The plain word of a token or a cookie may be a keyword."""


@final
class LearnedSecrets:
    """The secrets of one session. Values that are too common to be recognised again are left out."""

    def __init__(self) -> None:
        self._known = KnownSecrets()
        self._short: dict[str, re.Pattern[str]] = {}

    def __len__(self) -> int:
        return len(self._known) + len(self._short)

    def learn(self, secret: str, name: str) -> None:
        """Remember a value that was found under `name`; empty if it was found without a name.

        So is the credential after its scheme (`Bearer …`), and the password in the user info of a URL.
        """
        self._learn(secret, name)
        scheme, _, credential = secret.partition(" ")
        user, _, password = secret.partition(":")
        if credential and scheme.isalpha() and " " not in credential:
            self._learn(credential, "")
        elif user and password and not name:
            self._learn(password, "")

    def _learn(self, secret: str, name: str) -> None:
        if nothing_to_redact(secret) or is_placeholder(secret) or REDACTED in secret:
            return
        is_word = secret.isalpha() and not is_secret(secret, Sensitivity.LIKELY)
        is_password = any(part in name.lower() for part in _PASSWORD_NAMES)
        if is_word and (not is_password or name_sensitivity(name) is Sensitivity.NONE):  # `credentials.user` describes
            return
        if len(secret) >= MIN_SECRET_LENGTH:
            self._known.add(secret)
        elif _SHORT.fullmatch(secret) and len(self._short) < MAX_SHORT_SECRETS:
            self._short.setdefault(secret, re.compile(rf"(?<!\w){re.escape(secret)}(?!\w)"))

    def scrub(self, text: str) -> str:
        """The text without the remembered secrets."""
        text = self._known.scrub(text, lambda _: REDACTED)
        for secret, pattern in self._short.items():
            if secret in text:
                text = pattern.sub(REDACTED, text)
        return text
