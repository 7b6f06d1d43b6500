"""Layer 1: secrets known by value, in the spellings in which they turn up. Holds them; never shows them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

SHORTEST = 8
"""Characters of a known secret: a shorter one would be found in the middle of harmless words."""
MOST = 1024
"""Known secrets that are kept; beyond it the one registered first is forgotten."""
LONGEST = 65_536
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
"""Values so common that hiding them would hide the log."""

_MARKS = "<redacted> <cut> <path> <user>"


class KnownSecrets:
    """A bounded store of secrets, safe to change from any thread while others scrub.

    Adding costs next to nothing: spellings are worked out when the next text is scrubbed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: dict[str, tuple[str, ...] | None] = {}  # with their spellings, None where not yet known
        self._spellings: tuple[str, ...] | None = ()  # of all, longest first; None when secrets have changed since

    def __len__(self) -> int:
        return len(self._secrets)

    def __repr__(self) -> str:
        return f"<KnownSecrets: {len(self)}>"

    def add(self, secret: str) -> None:
        secret = secret.strip()[:LONGEST]
        if len(secret) < SHORTEST:
            return
        with self._lock:
            spellings = self._secrets.pop(secret, None)
            self._secrets[secret] = spellings
            if len(self._secrets) > MOST:
                del self._secrets[next(iter(self._secrets))]
            self._spellings = None

    def discard(self, secret: str) -> None:
        with self._lock:
            self._secrets.pop(secret.strip()[:LONGEST], None)
            self._spellings = None

    def scrub(self, text: str, replace: Callable[[str], str]) -> str:
        """Replaces every spelling of every secret, the longest first."""
        spellings = self._spellings
        for spelling in self._spell() if spellings is None else spellings:
            if spelling in text:
                pieces = text.split(spelling)
                text = "".join(piece + replace(spelling) for piece in pieces[:-1]) + pieces[-1]
        return text

    def _spell(self) -> tuple[str, ...]:
        with self._lock:
            for secret, spellings in self._secrets.items():
                if spellings is None:
                    self._secrets[secret] = tuple(dict.fromkeys(_spellings(secret)))
            every = {spelling for spellings in self._secrets.values() for spelling in spellings or ()}
            self._spellings = tuple(sorted(every, key=lambda spelling: (-len(spelling), spelling)))
            return self._spellings


def is_common(value: str) -> bool:
    """Whether a value is too short or too common to be hidden wherever it stands."""
    return len(value) < SHORTEST or value.lower() in _COMMON or value in _MARKS or len(set(value)) < 3


def _spellings(secret: str) -> Iterator[str]:
    """The secret, each of its lines, and what JSON, URLs, base64 and `repr` make of them."""
    lines = [line.strip() for line in secret.splitlines()]
    for value in dict.fromkeys((secret, *lines)):
        if not is_common(value):
            yield from (spelling for spelling in _encodings(value) if not is_common(spelling))


def _encodings(value: str) -> Iterator[str]:
    from json import dumps  # late, as the two below: only a process that has secrets needs them
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
    """The characters that depend on the secret alone, for each of its three positions in a group of three bytes."""
    from base64 import b64encode

    for shift in range(3):
        encoded = b64encode(b"\0" * shift + raw).decode("ascii")
        whole = encoded[(0, 2, 3)[shift] : (shift + len(raw)) * 8 // 6]
        if len(whole) >= SHORTEST:
            yield whole
            yield whole.replace("+", "-").replace("/", "_")
