"""Layer 1: keeps registered secrets and redacts them in every encoding. Never shows them, not even in its `repr`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from ..limits import MIN_SECRET_LENGTH

if TYPE_CHECKING:
    from ..limits import Replace
    from .known_variants import Variants

MAX_SECRETS = 1024
"""Secrets that are kept. Past this the one registered first is forgotten."""
MAX_SECRET_LENGTH = 65_536
"""Characters of one secret that are kept."""
MAX_CHARACTERS: Final = 512 * 1024
"""Characters of all secrets that are kept. Past this, too, the one registered first is forgotten."""


class KnownSecrets:
    """A bounded store of secrets, safe to change from any thread while others scrub.

    Adding is cheap: the variants of a secret are computed when the next text is scrubbed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: dict[str, tuple[str, ...] | None] = {}  # with their variants; None: not computed yet
        self._characters = 0
        self._variants: Variants | None = None  # of all secrets; None: the secrets have changed

    def __len__(self) -> int:
        return len(self._secrets)

    def __repr__(self) -> str:
        return f"<KnownSecrets: {len(self)}>"

    def add(self, secret: str) -> None:
        """Keep a secret; one that is too short is ignored."""
        secret = secret.strip()[:MAX_SECRET_LENGTH]
        if len(secret) < MIN_SECRET_LENGTH:
            return
        with self._lock:
            if secret in self._secrets:
                self._secrets[secret] = self._secrets.pop(secret)
                return
            self._secrets[secret] = None
            self._characters += len(secret)
            while len(self._secrets) > MAX_SECRETS or self._characters > MAX_CHARACTERS:
                oldest = next(iter(self._secrets))
                del self._secrets[oldest]
                self._characters -= len(oldest)
            self._variants = None

    def discard(self, secret: str) -> None:
        """Forget a secret; an unknown one is ignored."""
        secret = secret.strip()[:MAX_SECRET_LENGTH]
        with self._lock:
            if secret in self._secrets:
                del self._secrets[secret]
                self._characters -= len(secret)
                self._variants = None

    def scrub(self, text: str, replace: Replace) -> str:
        """Replace every variant of every secret. Returns `CUT` for a text that is too costly to search."""
        if not self._secrets:
            return text
        variants = self._variants
        return (self._update_variants() if variants is None else variants).scrub(text, replace)

    def _update_variants(self) -> Variants:
        from .known_variants import Variants, variants_of  # late: only a process with secrets needs them

        with self._lock:
            for secret, variants in self._secrets.items():
                if variants is None:
                    self._secrets[secret] = tuple(dict.fromkeys(variants_of(secret)))
            self._variants = Variants(variant for variants in self._secrets.values() for variant in variants or ())
            return self._variants
