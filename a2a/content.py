"""Checks the content of messages: media types that the agent accepts (A2A 1.0 section 3.1.1), and the depth of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from ..errors.exceptions import FailureError
from ..errors.failures import ContentTypeNotSupported, InvalidParams
from .types import Message, Part

MAX_JSON_DEPTH: Final = 256
"""Levels of objects and arrays in one JSON value. What is read must be writable again, from a deeper call stack."""


def check_media_types(message: Message, accepted: Sequence[str]) -> None:
    """Raises `FailureError(ContentTypeNotSupported)` for a part whose type is not accepted (`text/plain`, `image/*`, `*/*`).

    A part without a media type counts as text by its kind. Data without one is JSON, and accepted where any type of JSON is.
    A file without one is accepted.
    """
    for part in message.parts:
        given = _media_type(part)
        if part.data is not UNSET and not part.media_type and any(map(_is_json, accepted)):
            continue
        if given is not None and not any(_matches(pattern, given) for pattern in accepted):
            raise FailureError(ContentTypeNotSupported(accepted=tuple(accepted)))


def is_within_max_depth(value: object) -> bool:
    """Whether a JSON value is nested no deeper than `MAX_JSON_DEPTH`."""
    level = [value]
    for _ in range(MAX_JSON_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list, tuple))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return True
    return False


def check_json_depth(message: Message, metadata: object) -> None:
    """Raises `FailureError(InvalidParams)`, which names the path, for JSON that is nested too deeply."""
    values = [("metadata", metadata), ("message.metadata", message.metadata)]
    for index, part in enumerate(message.parts):
        values += [(f"message.parts[{index}].data", part.data), (f"message.parts[{index}].metadata", part.metadata)]
    for path, value in values:
        if isinstance(value, (dict, list)) and not is_within_max_depth(value):
            kind = "object" if isinstance(value, dict) else "array"
            raise FailureError(InvalidParams(path, f"JSON of at most {MAX_JSON_DEPTH} levels", kind))


def _media_type(part: Part) -> str | None:
    if part.media_type:
        return _without_parameters(part.media_type)
    if part.text is not None:
        return "text/plain"
    return None if part.data is UNSET else "application/json"


def _is_json(pattern: str) -> bool:
    pattern = _without_parameters(pattern)
    return pattern.endswith(("/json", "+json"))


def _matches(pattern: str, media_type: str) -> bool:
    pattern = _without_parameters(pattern)
    return pattern in (media_type, "*/*") or (pattern.endswith("/*") and media_type.startswith(pattern[:-1]))


def _without_parameters(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()
