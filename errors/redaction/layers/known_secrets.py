"""Layer 1: keeps registered secrets and redacts them in every encoding. Never shows them, not even in its `repr`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..marks import Replace

MIN_SECRET_LENGTH = 8
"""Characters of the shortest secret that is kept: a shorter one would match inside harmless words."""
MAX_SECRETS = 1024
"""Secrets that are kept. Past this the one registered first is forgotten."""
MAX_SECRET_LENGTH = 65_536
"""Characters of one secret that are kept."""

_COMMON = frozenset(
    "true false none null undefined localhost localdomain production development staging testing default disabled"
    " enabled password passwords passphrase changeme changeit secret secrets required optional unknown administrator"
    " postgres postgresql database username redacted anonymous developer internal external placeholder example"
    " examples automatic automatically password1 password123 12345678 123456789 1234567890 00000000 11111111"
    " environment application container kubernetes credential credentials certificate authorization bearer"
    " readonly readwrite public private register registry github-actions us-east-1 us-east-2 us-west-1 us-west-2"
    " eu-west-1 eu-central-1 127.0.0.1 0.0.0.0 utf-8 iso-8859-1 application/json".split()
)
"""Values so common that redacting them would make logs unreadable."""

_ALL_MARKS = "<redacted> <cut> <path> <user>"


class KnownSecrets:
    """A bounded store of secrets, safe to change from any thread while others scrub.

    Adding is cheap: the variants of a secret are computed when the next text is scrubbed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: dict[str, tuple[str, ...] | None] = {}  # with their variants; None: not computed yet
        self._variants: tuple[str, ...] | None = ()  # of all secrets, longest first; None: the secrets have changed

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
            variants = self._secrets.pop(secret, None)
            self._secrets[secret] = variants
            if len(self._secrets) > MAX_SECRETS:
                del self._secrets[next(iter(self._secrets))]
            self._variants = None

    def discard(self, secret: str) -> None:
        """Forget a secret; an unknown one is ignored."""
        with self._lock:
            self._secrets.pop(secret.strip()[:MAX_SECRET_LENGTH], None)
            self._variants = None

    def scrub(self, text: str, replace: Replace) -> str:
        """Replace every variant of every secret, the longest first."""
        variants = self._variants
        for variant in self._update_variants() if variants is None else variants:
            if variant in text:
                pieces = text.split(variant)
                text = "".join(piece + replace(variant) for piece in pieces[:-1]) + pieces[-1]
        return text

    def _update_variants(self) -> tuple[str, ...]:
        with self._lock:
            for secret, variants in self._secrets.items():
                if variants is None:
                    self._secrets[secret] = tuple(dict.fromkeys(_variants(secret)))
            every = {variant for variants in self._secrets.values() for variant in variants or ()}
            self._variants = tuple(sorted(every, key=lambda variant: (-len(variant), variant)))
            return self._variants


def is_common(value: str) -> bool:
    """Whether a value is too short or too common to be redacted wherever it stands."""
    return len(value) < MIN_SECRET_LENGTH or value.lower() in _COMMON or value in _ALL_MARKS or len(set(value)) < 3


def _variants(secret: str) -> Iterator[str]:
    """The secret and each of its lines, as plain text, JSON, URL, base64 and `repr` encode them."""
    lines = [line.strip() for line in secret.splitlines()]
    for value in dict.fromkeys((secret, *lines)):
        if not is_common(value):
            yield from (variant for variant in _encodings(value) if not is_common(variant))


def _encodings(value: str) -> Iterator[str]:
    from json import dumps  # late, as below: only a process with secrets needs them
    from urllib.parse import quote, quote_plus

    raw = value.encode("utf-8", "surrogatepass")
    yield value
    yield dumps(value)[1:-1]
    yield dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    yield repr(raw)[2:-1]
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield quoted
        yield quoted.lower() if "%" in quoted else quoted
    yield from _base64(raw)


def _base64(raw: bytes) -> Iterator[str]:
    """The characters that depend on the secret alone, for each of the three offsets in a group of three bytes."""
    from base64 import b64encode

    for shift in range(3):
        encoded = b64encode(b"\0" * shift + raw).decode("ascii")
        whole = encoded[(0, 2, 3)[shift] : (shift + len(raw)) * 8 // 6]
        if len(whole) >= MIN_SECRET_LENGTH:
            yield whole
            yield whole.replace("+", "-").replace("/", "_")
