"""Removes the secrets from messages and says where they were. Changes nothing else, so the rest can be sent again.

Secrets are found by name, by shape and by exact value, as in logs. But paths stay unless they are to be hidden, and texts
are not shortened. A value that was once found by its name is removed wherever it occurs later.

Removed secrets are numbered. Equal secrets of one session have equal numbers, so that a replay can put its own secret where
the recorded one was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, final

import msgspec
from msgspec import Raw

from ..client.json_path import Path, format_path
from ..errors.redaction import find_secrets, scrub
from ..errors.redaction.known_secrets import KnownSecrets
from ..errors.redaction.limits import MIN_SECRET_LENGTH, REDACTED, nothing_to_redact
from ..errors.redaction.names import redact_by_name
from ..errors.redaction.secret_values import is_placeholder, is_secret
from ..errors.redaction.sensitivity import Sensitivity, name_sensitivity
from ..errors.redaction.values import scrub_arguments
from .format import Json

# Remembers the secrets that a session showed under a telling name, and hides them wherever they occur again.
#
# Never shows them.


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


UNNUMBERED: Final = 0
"""The number of texts that can't be restored: they held several secrets or hidden paths, or were cut."""

MAX_NUMBERED_SECRETS: Final = 65_536
"""How many different secrets of a session are kept in memory to be numbered. Further ones are `UNNUMBERED`."""

_PAIR_NAMES: Final = ("name", "key", "Name", "Key")
_PAIR_VALUES: Final = ("value", "Value", "val")
_NAME: Final = re.compile(r"[\w.:-]{1,64}")
_COUNT_SUFFIX: Final = "tokens"
"""A name with this ending often holds counts, or a language server's tokens. Only texts directly under it are secret."""

_SHORT_NAME: Final = re.compile(r"(?:(?<![A-Za-z])(?:pin|auth)|(?<![A-Z])(?:Pin|PIN|Auth|AUTH))\Z")
_SHORT_NAMES: Final = {"pin": re.compile(r"\d{4,12}"), "auth": re.compile(r"(?=\D*\d).{8,}", re.DOTALL)}
"""Name endings that mark a secret if the value looks like one. In logs these words are too common."""

_CORRELATION_NAMES: Final = frozenset({"progressToken", "workDoneToken", "partialResultToken"})
_PROGRESS_METHODS: Final = frozenset({"$/progress", "window/workDoneProgress/create", "window/workDoneProgress/cancel"})
"""Tokens in these places name a progress (LSP, MCP) and are no secrets."""

_ID_PLACES: Final = frozenset({("id",), ("params", "id"), ("params", "requestId")})
"""The paths of request ids: in envelopes, cancellations and events."""


class ScrubbedMessage(msgspec.Struct, frozen=True):
    """A message without secrets. `removed` maps each path where something was removed to the number of the secret."""

    message: Json
    removed: Mapping[str, int]


@final
class MessageScrubber:
    """Scrubs the messages of one session. Not thread-safe.

    With `hide_paths`, directories and account names are removed too; texts that held some can't be restored.
    """

    def __init__(self, *, hide_paths: bool = False) -> None:
        self._hide_paths = hide_paths
        self._numbers: dict[str, int] = {}
        self._aliases: dict[str, str] = {}
        self._removed: dict[str, int] = {}
        self._names_progress = False
        self._learned = LearnedSecrets()

    def scrub(self, message: Json) -> ScrubbedMessage:
        """A scrubbed copy. Raises `RecursionError` for values nested too deeply."""
        method = message.get("method") if isinstance(message, dict) else None
        self._names_progress = method in _PROGRESS_METHODS
        learned = len(self._learned)
        scrubbed = self._scrub(message)
        return scrubbed if len(self._learned) == learned else self._scrub(message)  # a text may come before the name

    def scrub_text(self, text: str, *, cap: int) -> str:
        """A text that is no message, such as a line of stderr, without secrets and paths; at most `cap` characters."""
        self._clean(text[: 2 * cap])  # remembers what it finds
        return scrub(self._learned.scrub(text), cap=cap)

    def _scrub(self, message: Json) -> ScrubbedMessage:
        self._removed = {}
        return ScrubbedMessage(self._copy(message, "", (), owner=""), self._removed)

    def _copy(self, value: Json, name: str, path: Path, *, owner: str) -> Json:
        match value:
            case str():
                return self._id(value) if path in _ID_PLACES else self._text(value, name, path, owner=owner)
            case Raw():
                return self._number(value, name, path, owner=owner)
            case dict():
                return self._members(value, path, owner=name if _covers_nested_values(name) else owner)
            case list():
                return self._items(value, name, path, owner=owner)
            case _:
                return value

    def _members(self, members: dict[str, Json], path: Path, *, owner: str) -> dict[str, Json]:
        result: dict[str, Json] = {}
        named = next((_as_name(members[key]) for key in _PAIR_NAMES if key in members), "")
        for key, value in members.items():
            clean = _unused_key(self._clean(key), result)
            name = named if named and key in _PAIR_VALUES else key
            at = (*path, clean)
            if key in _CORRELATION_NAMES or (self._names_progress and at == ("params", "token")):
                name = ""
            result[clean] = self._copy(value, name, at, owner=owner)
        return result

    def _items(self, items: list[Json], name: str, path: Path, *, owner: str) -> list[Json]:
        result: list[Json] = []
        before = ""
        for place, item in enumerate(items):
            item_name = before if name_sensitivity(before) is not Sensitivity.NONE else name
            result.append(self._copy(item, item_name, (*path, place), owner=owner))
            text = _as_name(item)
            is_header = len(items) == 2 and place == 0
            before = text if is_header or text.startswith("-") else ""
        for place, clean in enumerate(scrub_arguments(result, find_secrets)):
            item, scrubbed = items[place], result[place]
            if clean != scrubbed and isinstance(item, str) and isinstance(clean, str):
                self._removed[format_path((*path, place))] = self._number_of(removed := removed_text(item, clean))
                self._learned.learn(removed or "", "")
                result[place] = clean
        return result

    def _text(self, text: str, name: str, path: Path, *, owner: str) -> str:
        is_secret = (owner and not nothing_to_redact(text)) or _fits_short_name(name, text)
        by_name = REDACTED if is_secret else redact_by_name(name, text) if name else None
        clean = by_name or self._clean(text, paths=self._hide_paths)
        if clean != text:
            removed = removed_text(text, clean)
            self._removed[format_path(path)] = self._number_of(removed)
            if by_name:
                self._learned.learn(text, _joined_name(owner, name))
        return clean

    def _clean(self, text: str, *, paths: bool = False) -> str:
        """The text without secrets that are found by exact value, by shape, and by names within the text."""
        clean, secrets = find_secrets(self._learned.scrub(text))
        for secret, name in secrets:
            self._learned.learn(secret, name)
        return scrub(clean) if paths else clean

    def _number(self, number: Raw, name: str, path: Path, *, owner: str) -> Raw | str:
        digits = bytes(number).decode()
        named = name_sensitivity(name) is Sensitivity.CERTAIN and not name.lower().endswith("s")
        known = _fits_short_name(name, digits) or self._learned.scrub(digits) == REDACTED
        if not (named or owner or known):
            return number
        self._removed[format_path(path)] = self._number_of(digits)
        self._learned.learn(digits, _joined_name(owner, name))
        return REDACTED

    def _id(self, text: str) -> str:
        """Ids that look like secrets become other ids; different ones stay different."""
        if self._clean(text) == text:
            return text
        return self._aliases.setdefault(text, f"{REDACTED}-{len(self._aliases) + 1}")

    def _number_of(self, secret: str | None) -> int:
        if secret is None or (secret not in self._numbers and len(self._numbers) >= MAX_NUMBERED_SECRETS):
            return UNNUMBERED
        return self._numbers.setdefault(secret, len(self._numbers) + 1)


def removed_text(text: str, clean: str) -> str | None:
    """The part of `text` that the only mark in `clean` replaces; None if that can't be told."""
    head, mark, tail = clean.partition(REDACTED)
    fits = len(text) >= len(head) + len(tail) and text.startswith(head) and text.endswith(tail)
    return text[len(head) : len(text) - len(tail)] if mark and "<" not in head + tail and fits else None


def _covers_nested_values(name: str) -> bool:
    return name_sensitivity(name) is Sensitivity.CERTAIN and not name.lower().endswith(_COUNT_SUFFIX)


def _joined_name(owner: str, name: str) -> str:
    """The name of a secret that is nested in the value of another name."""
    return f"{owner}_{name}" if owner else name


def _fits_short_name(name: str, text: str) -> bool:
    match = _SHORT_NAME.search(name) if name else None
    return match is not None and _SHORT_NAMES[match[0].lower()].fullmatch(text) is not None


def _as_name(value: Json) -> str:
    return value if isinstance(value, str) and _NAME.fullmatch(value) else ""


def _unused_key(key: str, taken: Mapping[str, object]) -> str:
    """The key; with a number if scrubbing made two keys equal."""
    number = 1
    while (unused := key if number == 1 else f"{key}#{number}") in taken:
        number += 1
    return unused
