"""Layer 1: keeps registered secrets and redacts them in every encoding. Never shows them, not even in its `repr`."""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from math import inf
from time import monotonic
from typing import Final, final

from .limits import CUT, MIN_SECRET_LENGTH, Replace, splice

MAX_SECRETS: Final = 1024
"""Secrets that are kept. Past this the one added first is forgotten."""
MAX_SECRET_LENGTH: Final = 65_536
"""Characters of one secret that are kept."""
MAX_CHARACTERS: Final = 512 * 1024
"""Characters of all secrets that are kept. Past this, too, the one added first is forgotten."""


@final
class KnownSecrets:
    """A bounded store of secrets, safe to change from any thread while others scrub.

    `lifetime` is how many seconds a secret is kept after it was last added, `clock` gives the time. Adding is cheap: the
    variants of a secret are computed when the next text is scrubbed.
    """

    def __init__(
        self,
        *,
        most: int = MAX_SECRETS,
        most_characters: int = MAX_CHARACTERS,
        lifetime: float = inf,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._most = most
        self._most_characters = most_characters
        self._lifetime = lifetime
        self._clock = clock
        self._lock = threading.Lock()
        self._last_added: dict[str, float] = {}  # by secret, the earliest first
        self._variants_of: dict[str, tuple[str, ...]] = {}
        self._characters = 0
        self._variants: _Variants | None = None  # of all secrets; None: the secrets have changed

    def __len__(self) -> int:
        return len(self._last_added)

    def __repr__(self) -> str:
        return f"<KnownSecrets: {len(self)}>"

    def add(self, secret: str) -> None:
        """Keep a secret; one that is too short is ignored."""
        secret = secret.strip()[:MAX_SECRET_LENGTH]
        if len(secret) < MIN_SECRET_LENGTH:
            return
        with self._lock:
            if self._last_added.pop(secret, None) is None:
                self._characters += len(secret)
                self._variants = None
            self._last_added[secret] = self._clock()
            self._forget_surplus()

    def discard(self, secret: str) -> None:
        """Forget a secret; an unknown one is ignored."""
        secret = secret.strip()[:MAX_SECRET_LENGTH]
        with self._lock:
            if secret in self._last_added:
                self._forget(secret)

    def scrub(self, text: str, replace: Replace) -> str:
        """Replace every variant of every secret. Returns `CUT` for a text that is too costly to search."""
        if not self._last_added:
            return text
        variants = self._variants
        if variants is None or self._lifetime < inf:
            variants = self._current_variants()
        return variants.scrub(text, replace)

    def _forget_surplus(self) -> None:
        while self._last_added:
            oldest, added = next(iter(self._last_added.items()))
            is_surplus = len(self) > self._most or self._characters > self._most_characters
            if not is_surplus and self._clock() - added < self._lifetime:
                return
            self._forget(oldest)

    def _forget(self, secret: str) -> None:
        del self._last_added[secret]
        self._variants_of.pop(secret, None)
        self._characters -= len(secret)
        self._variants = None

    def _current_variants(self) -> _Variants:
        with self._lock:
            self._forget_surplus()
            if self._variants is None:
                for secret in self._last_added:
                    if secret not in self._variants_of:
                        self._variants_of[secret] = tuple(dict.fromkeys(variants_of(secret)))
                self._variants = _Variants(variant for variants in self._variants_of.values() for variant in variants)
            return self._variants


MAX_WIDE_LENGTH: Final = 256
"""Characters of the longest secret of which encodings are kept that are a multiple of its length."""

_FEW: Final = 128
"""Variants up to which a text is first searched for each of them: looking its pieces up in a table takes longer."""

_STRIDE: Final = 4
_GRAM: Final = MIN_SECRET_LENGTH - _STRIDE + 1
"""Characters that are looked up at every `_STRIDE`-th place: a beginning of `MIN_SECRET_LENGTH` holds one such piece."""

_COMPARED: Final = 1 << 20
_COMPARED_PER_CHARACTER: Final = 64
"""How many characters of variants one search may compare, besides `_COMPARED`, for each character of the text."""

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

_ESCAPES: Final = (
    r"\\{1,8}u(?P<unicode>[0-9a-fA-F]{4})|\\{1,8}u\{(?P<braced>[0-9a-fA-F]{1,6})\}|\\{1,8}x(?P<byte>[0-9a-fA-F]{2})"
    r"|%(?:25)?(?P<percent>[0-9a-fA-F]{2})|&#(?P<decimal>[0-9]{1,7});|&#[xX](?P<hex>[0-9a-fA-F]{1,6});"
)
"""One character in the escapes of JSON, Python, JavaScript, URLs (also escaped twice) and HTML."""


class _TooManyComparedError(Exception):
    """A search has compared as many characters as it may."""


@final
class _Variants:
    """All variants of all secrets, sorted: those that begin alike stand together."""

    def __init__(self, variants: Iterable[str]) -> None:
        self._sorted: Final = sorted(set(variants))
        self._prefixes: Final = _longest_prefixes(self._sorted)
        self._heads: Final = _heads_of(self._sorted)
        self._grams: Final = {head[at : at + _GRAM] for head in self._heads for at in range(_STRIDE)}

    def scrub(self, text: str, replace: Replace) -> str:
        """Replace every variant, also where single characters of it are escaped. What overlaps is one replacement.

        Returns `CUT` where that would compare too many characters.
        """
        try:
            text = splice(text, ((begin, end, replace(text[begin:end])) for begin, end in self._find_all(text)))
            if ("%" in text or "\\" in text or "&#" in text) and re.search(_ESCAPES, text):
                text = self._scrub_escaped(text, replace)
        except _TooManyComparedError:
            return CUT
        return text

    def _scrub_escaped(self, text: str, replace: Replace) -> str:
        decoded, ends = decode_escapes(text)
        found = self._find_all(decoded)
        return splice(
            text,
            ((ends[first - 1] if first else 0, ends[last - 1], replace(decoded[first:last])) for first, last in found),
        )

    def _find_all(self, text: str) -> list[tuple[int, int]]:
        """Return the places of variants, in order. Overlapping ones are one span."""
        if len(self._sorted) <= _FEW and not any(variant in text for variant in self._sorted):
            return []
        heads = self._heads
        left = _COMPARED + _COMPARED_PER_CHARACTER * len(text)
        lengths: dict[str, int] = {}  # of the variants that windows begin with: hostile texts repeat
        spans: list[tuple[int, int]] = []
        for at in self._starts(text):
            first, after, longest = heads[text[at : at + MIN_SECRET_LENGTH]]
            window = text[at : at + longest]
            length = lengths.get(window)
            if length is None:
                index = bisect_right(self._sorted, window, first, after) - 1
                while index >= first and not window.startswith(self._sorted[index]):
                    index = self._prefixes[index]
                    left -= len(window)
                length = lengths[window] = len(self._sorted[index]) if index >= first else 0
                left -= len(window)
            left -= len(window)
            if left < 0:
                raise _TooManyComparedError
            if length and spans and at < spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], at + length))
            elif length:
                spans.append((at, at + length))
        return spans

    def _starts(self, text: str) -> list[int]:
        """Return the places of texts that variants begin with. Looks at every fourth place first: each beginning covers one."""
        grams, heads = self._grams, self._heads
        near = [at for at in range(0, len(text) - _GRAM + 1, _STRIDE) if text[at : at + _GRAM] in grams]
        around = (start for at in near for start in range(max(0, at - _STRIDE + 1), at + 1))
        return [start for start in around if text[start : start + MIN_SECRET_LENGTH] in heads]


def _longest_prefixes(variants: list[str]) -> list[int]:
    """For each of the sorted variants, the index of the longest other one that it begins with, or -1."""
    prefixes: list[int] = []
    open_prefixes: list[int] = []
    for index, variant in enumerate(variants):
        while open_prefixes and not variant.startswith(variants[open_prefixes[-1]]):
            open_prefixes.pop()
        prefixes.append(open_prefixes[-1] if open_prefixes else -1)
        open_prefixes.append(index)
    return prefixes


def _heads_of(variants: list[str]) -> dict[str, tuple[int, int, int]]:
    """For each beginning: the index of the first variant with it, that after the last one, and the longest one's length."""
    heads: dict[str, tuple[int, int, int]] = {}
    for index, variant in enumerate(variants):
        head = variant[:MIN_SECRET_LENGTH]
        first, _, longest = heads.get(head, (index, index, 0))
        heads[head] = first, index + 1, max(longest, len(variant))
    return heads


def decode_escapes(text: str) -> tuple[str, list[int]]:
    """The text with its escapes decoded, and for each decoded character where it ends in `text`."""
    decoded: list[str] = []
    ends: list[int] = []
    done = 0
    for match in re.finditer(_ESCAPES, text):
        decoded.append(text[done : match.start()])
        ends.extend(range(done + 1, match.start() + 1))
        kind = match.lastgroup or ""
        number = int(match[kind], 10 if kind == "decimal" else 16)
        decoded.append(chr(number) if number <= 0x10FFFF else "\ufffd")
        ends.append(match.end())
        done = match.end()
    decoded.append(text[done:])
    ends.extend(range(done + 1, len(text) + 1))
    return "".join(decoded), ends


def variants_of(secret: str) -> Iterator[str]:
    """The secret and each of its lines, in every encoding in which logs show texts."""
    lines = [line.strip() for line in secret.splitlines()]
    for value in dict.fromkeys((secret, *lines)):
        if not _is_common(value):
            yield from (variant for variant in _encodings(value) if not _is_common(variant))


def _encodings(value: str) -> Iterator[str]:
    from html import escape  # late, as below: only a process with secrets needs them
    from json import dumps
    from urllib.parse import quote, quote_plus

    raw = value.encode("utf-8", "surrogatepass")
    yield value
    yield dumps(value)[1:-1]
    yield dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    yield repr(raw)[2:-1]
    yield escape(value)
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield quoted
        yield quoted.lower() if "%" in quoted else quoted
    yield from _base64(raw)
    if len(value) <= MAX_WIDE_LENGTH:
        yield from _wide(value, raw)


def _wide(value: str, raw: bytes) -> Iterator[str]:
    """Every character, or every byte in hexadecimal, with or without something between two of them."""
    for between in (" ", "-", "."):
        yield between.join(value)
    for digits in (raw.hex(), raw.hex().upper()):
        pairs = [digits[at : at + 2] for at in range(0, len(digits), 2)]
        yield from (between.join(pairs) for between in ("", " ", ":", "-"))
        yield ", ".join(f"0x{pair}" for pair in pairs)


def _base64(raw: bytes) -> Iterator[str]:
    """The characters that depend on the secret alone, for each of the three offsets in a group of three bytes."""
    from base64 import b64encode

    for shift in range(3):
        encoded = b64encode(b"\0" * shift + raw).decode("ascii")
        whole = encoded[(0, 2, 3)[shift] : (shift + len(raw)) * 8 // 6]
        if len(whole) >= MIN_SECRET_LENGTH:
            yield whole
            yield whole.replace("+", "-").replace("/", "_")


def _is_common(value: str) -> bool:
    """Whether a value is too short or too common to be redacted wherever it stands."""
    return len(value) < MIN_SECRET_LENGTH or value.lower() in _COMMON or value in _ALL_MARKS or len(set(value)) < 3
