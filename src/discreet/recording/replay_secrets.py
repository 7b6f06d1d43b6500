"""Puts the secrets of a replay where a recording had its own. Knows them by the numbers that the scrubber gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec

from ..client.json_path import Path, parse_path, replace_at, value_at
from ..errors.redaction.marks import REDACTED
from .json_values import Json
from .scrubber import UNNUMBERED, removed_text


@final
class ReplaySecrets:
    """The secrets that the server has sent in this run, by number.

    `unfilled` are the (method, path) pairs of sent messages that needed a secret which is not known.
    """

    def __init__(self) -> None:
        self.unfilled: list[tuple[str, str]] = []
        self._secrets: dict[int, Json] = {}

    def learn(self, message: Json, recorded: Json, scrubbed: Mapping[str, int]) -> None:
        """Take the secrets out of a message of the server, at the paths where `recorded` was scrubbed."""
        for place, number in scrubbed.items():
            path = parse_path(place)
            try:
                now, then = value_at(message, path), value_at(recorded, path)
            except LookupError:
                continue
            if number != UNNUMBERED and isinstance(then, str):
                secret = removed_text(now, then) if isinstance(now, str) else now if then == REDACTED else None
                if isinstance(secret, (str, msgspec.Raw)):
                    self._secrets.setdefault(number, secret)

    def fill_in(self, message: Json, scrubbed: Mapping[str, int]) -> Json:
        """The message of the client with its marks replaced, in place, as far as the secrets are known."""
        for place, number in scrubbed.items():
            path = parse_path(place)
            text = value_at(message, path)
            secret = self._secrets.get(number)
            if secret is None or number == UNNUMBERED:
                method = message.get("method") if isinstance(message, dict) else None
                self.unfilled.append((method if isinstance(method, str) else "", place))
            elif text == REDACTED:
                message = _with(message, path, secret)
            elif isinstance(text, str) and isinstance(secret, str):
                message = _with(message, path, text.replace(REDACTED, secret))
        return message


def _with(message: Json, path: Path, value: Json) -> Json:
    if not path:
        return value
    replace_at(message, path, value)
    return message
