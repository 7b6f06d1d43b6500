"""Messages without secrets, and where they were. Changes nothing else: whatever is left can be sent again.

Secrets are found by name, by shape and by exact value, as in logs, but paths stay unless they are to be hidden, and
nothing is shortened that could be read. A value that a name has given away is hidden from then on, wherever it stands.

What was removed is numbered: equal secrets of one session have equal numbers, so that whoever plays the session again can
put a new secret where the old one was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, final

import msgspec
from msgspec import Raw

from ..client.json_path import Path, format_path
from ..errors.redaction import scrub, scrub_secrets
from ..errors.redaction.layers.names import names_value
from ..errors.redaction.layers.words import Verdict, judge
from ..errors.redaction.marks import REDACTED, nothing_left
from .json_values import Json
from .session_secrets import SessionSecrets

UNNUMBERED: Final = 0
"""The number of what can't be told apart: several secrets in one text, hidden paths, text that was cut."""

NUMBERED_SECRETS: Final = 65_536
"""Different secrets of one session that are kept in memory to be numbered; more are `UNNUMBERED`."""

_PAIR_NAMES: Final = ("name", "key", "Name", "Key")
_PAIR_VALUES: Final = ("value", "Value", "val")
_NAME: Final = re.compile(r"[\w.:-]{1,64}")
_MEASURED: Final = "tokens"
"""Behind such a name stand counts, or what a language server says of words: it speaks for texts, not for what is nested."""

_SHORT_NAME: Final = re.compile(r"(?:(?<![A-Za-z])(?:pin|auth)|(?<![A-Z])(?:Pin|PIN|Auth|AUTH))\Z")
_SHORT_NAMES: Final = {"pin": re.compile(r"\d{4,12}"), "auth": re.compile(r"(?=\D*\d).{8,}", re.DOTALL)}
"""Words that tell at the end of a name, where the value looks the part; in logs they are too common to tell."""

_CORRELATION_NAMES: Final = frozenset({"progressToken", "workDoneToken", "partialResultToken"})
_PROGRESS_METHODS: Final = frozenset({"$/progress", "window/workDoneProgress/create", "window/workDoneProgress/cancel"})
"""Tokens in these places name a progress (LSP, MCP), and open nothing."""

_ID_PLACES: Final = frozenset({("id",), ("params", "id"), ("params", "requestId")})
"""Where ids of requests stand: in envelopes, cancellations and events."""


class Scrubbed(msgspec.Struct, frozen=True):
    """A message that may be kept, and the number of the secret that was at each place where something was removed."""

    message: Json
    removed: Mapping[str, int]


@final
class MessageScrubber:
    """Scrubs the messages of one session. Safe for one thread at a time.

    With `hide_paths`, directories and account names go as well, and texts that held them can't be sent again as they were.
    """

    def __init__(self, *, hide_paths: bool = False) -> None:
        self._hide_paths = hide_paths
        self._numbers: dict[str, int] = {}
        self._aliases: dict[str, str] = {}
        self._removed: dict[str, int] = {}
        self._names_progress = False
        self._overheard = SessionSecrets()

    def scrub(self, message: Json) -> Scrubbed:
        """A scrubbed copy. Raises `RecursionError` for values nested too deeply to be walked."""
        self._removed = {}
        method = message.get("method") if isinstance(message, dict) else None
        self._names_progress = method in _PROGRESS_METHODS
        return Scrubbed(self._copy(message, "", (), secret=False), self._removed)

    def _copy(self, value: Json, name: str, path: Path, *, secret: bool) -> Json:
        match value:
            case str():
                return self._id(value) if path in _ID_PLACES else self._text(value, name, path, secret=secret)
            case Raw():
                return self._number(value, name, path, secret=secret)
            case dict():
                return self._members(value, path, secret=secret or _speaks_for_nested(name))
            case list():
                return self._items(value, name, path, secret=secret)
            case _:
                return value

    def _members(self, members: dict[str, Json], path: Path, *, secret: bool) -> dict[str, Json]:
        result: dict[str, Json] = {}
        named = next((_as_name(members[key]) for key in _PAIR_NAMES if key in members), "")
        for key, value in members.items():
            clean = _free(self._clean(key), result)
            name = named if named and key in _PAIR_VALUES else key
            at = (*path, clean)
            if key in _CORRELATION_NAMES or (self._names_progress and at == ("params", "token")):
                name = ""
            result[clean] = self._copy(value, name, at, secret=secret)
        return result

    def _items(self, items: list[Json], name: str, path: Path, *, secret: bool) -> list[Json]:
        result: list[Json] = []
        before = ""
        for place, item in enumerate(items):
            told = before if judge(before) is not Verdict.PLAIN else name
            result.append(self._copy(item, told, (*path, place), secret=secret))
            text = _as_name(item)
            is_header = len(items) == 2 and place == 0
            before = text if is_header or text.startswith("-") else ""
        return result

    def _text(self, text: str, name: str, path: Path, *, secret: bool) -> str:
        told = (secret and not nothing_left(text)) or _fits_a_short_name(name, text)
        by_name = REDACTED if told else names_value(name, text) if name else None
        clean = by_name or self._clean(text, paths=self._hide_paths)
        if clean != text:
            piece = removed_piece(text, clean)
            self._removed[format_path(path)] = self._numbered(piece)
            if piece is not None:
                self._overheard.learn(piece, name)
        return clean

    def _clean(self, text: str, *, paths: bool = False) -> str:
        """By exact value, by shape, and by names within the text."""
        text = self._overheard.scrub(text)
        return scrub(text) if paths else scrub_secrets(text)[0]

    def _number(self, number: Raw, name: str, path: Path, *, secret: bool) -> Raw | str:
        digits = bytes(number).decode()
        tells = judge(name) is Verdict.SECRET and not name.lower().endswith("s")
        known = _fits_a_short_name(name, digits) or self._overheard.scrub(digits) == REDACTED
        if not (tells or secret or known):
            return number
        self._removed[format_path(path)] = self._numbered(digits)
        self._overheard.learn(digits, name)
        return REDACTED

    def _id(self, text: str) -> str:
        """Ids stay apart from each other even where they look like secrets."""
        if self._clean(text) == text:
            return text
        return self._aliases.setdefault(text, f"{REDACTED}-{len(self._aliases) + 1}")

    def _numbered(self, secret: str | None) -> int:
        if secret is None or (secret not in self._numbers and len(self._numbers) >= NUMBERED_SECRETS):
            return UNNUMBERED
        return self._numbers.setdefault(secret, len(self._numbers) + 1)


def removed_piece(text: str, clean: str) -> str | None:
    """What the one mark in `clean` stands for in `text`; None where that can't be told."""
    head, mark, tail = clean.partition(REDACTED)
    fits = len(text) >= len(head) + len(tail) and text.startswith(head) and text.endswith(tail)
    return text[len(head) : len(text) - len(tail)] if mark and "<" not in head + tail and fits else None


def _speaks_for_nested(name: str) -> bool:
    return judge(name) is Verdict.SECRET and not name.lower().endswith(_MEASURED)


def _fits_a_short_name(name: str, text: str) -> bool:
    match = _SHORT_NAME.search(name) if name else None
    return match is not None and _SHORT_NAMES[match[0].lower()].fullmatch(text) is not None


def _as_name(value: Json) -> str:
    return value if isinstance(value, str) and _NAME.fullmatch(value) else ""


def _free(key: str, taken: Mapping[str, object]) -> str:
    """The key, numbered where scrubbing made two keys alike."""
    number = 1
    while (free := key if number == 1 else f"{key}#{number}") in taken:
        number += 1
    return free
