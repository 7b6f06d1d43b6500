"""The encodings of known secrets, and the search for them in a text. Keeps no secret longer than its store does."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from html import escape
from json import dumps
from typing import Final, final
from urllib.parse import quote, quote_plus

from ..limits import MIN_SECRET_LENGTH
from ..marks import Replace

MAX_WIDE_LENGTH: Final = 256
"""Characters of the longest secret of which encodings are kept that are a multiple of its length."""

_MANY: Final = 128
"""Variants from which on a text's pieces are looked up in a table: searching for each variant takes longer."""

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

_ESCAPES: Final = re.compile(
    r"\\{1,8}u(?P<unicode>[0-9a-fA-F]{4})|\\{1,8}u\{(?P<braced>[0-9a-fA-F]{1,6})\}|\\{1,8}x(?P<byte>[0-9a-fA-F]{2})"
    r"|%(?:25)?(?P<percent>[0-9a-fA-F]{2})|&#(?P<decimal>[0-9]{1,7});|&#[xX](?P<hex>[0-9a-fA-F]{1,6});"
)
"""One character in the escapes of JSON, Python, JavaScript, URLs (also escaped twice) and HTML."""


@final
class Variants:
    """All variants of all secrets, the longest first."""

    def __init__(self, variants: Iterable[str]) -> None:
        self._variants: Final = sorted(set(variants), key=lambda variant: (-len(variant), variant))
        many = len(self._variants) > _MANY
        self._heads: Final = {variant[:MIN_SECRET_LENGTH] for variant in self._variants} if many else None

    def scrub(self, text: str, replace: Replace) -> str:
        """Replace every variant, also where single characters of it are escaped."""
        text = self._scrub_plain(text, replace)
        if ("%" in text or "\\" in text or "&#" in text) and _ESCAPES.search(text):
            text = self._scrub_escaped(text, replace)
        return text

    def _may_hold_any(self, text: str) -> bool:
        if self._heads is None:
            return True
        ends = range(MIN_SECRET_LENGTH, len(text) + 1)
        return not self._heads.isdisjoint(text[end - MIN_SECRET_LENGTH : end] for end in ends)

    def _scrub_plain(self, text: str, replace: Replace) -> str:
        if not self._may_hold_any(text):
            return text
        for variant in self._variants:
            if variant in text:
                pieces = text.split(variant)
                text = "".join(piece + replace(variant) for piece in pieces[:-1]) + pieces[-1]
        return text

    def _scrub_escaped(self, text: str, replace: Replace) -> str:
        decoded, ends = _decode(text)
        if not self._may_hold_any(decoded):
            return text
        spans: list[tuple[int, int]] = []
        for variant in self._variants:
            at = decoded.find(variant)
            while at >= 0:
                spans.append((at, at + len(variant)))
                at = decoded.find(variant, at + len(variant))
        pieces: list[str] = []
        done = 0
        for first, last in sorted(spans):
            begin, end = (ends[first - 1] if first else 0), ends[last - 1]
            if begin < done:  # a shorter variant within a longer one
                done = max(done, end)
                continue
            pieces += text[done:begin], replace(decoded[first:last])
            done = end
        return "".join((*pieces, text[done:]))


def _decode(text: str) -> tuple[str, list[int]]:
    """The text with its escapes decoded, and for each decoded character where it ends in `text`."""
    decoded: list[str] = []
    ends: list[int] = []
    done = 0
    for match in _ESCAPES.finditer(text):
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
    for shift in range(3):
        encoded = b64encode(b"\0" * shift + raw).decode("ascii")
        whole = encoded[(0, 2, 3)[shift] : (shift + len(raw)) * 8 // 6]
        if len(whole) >= MIN_SECRET_LENGTH:
            yield whole
            yield whole.replace("+", "-").replace("/", "_")


def _is_common(value: str) -> bool:
    """Whether a value is too short or too common to be redacted wherever it stands."""
    return len(value) < MIN_SECRET_LENGTH or value.lower() in _COMMON or value in _ALL_MARKS or len(set(value)) < 3
