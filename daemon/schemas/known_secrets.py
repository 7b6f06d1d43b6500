"""Keeps registered secrets out of published documents: a default may have been read from the environment.

Looks for registered values only. What else an author writes into a schema is meant to be seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ...errors.redaction import scrub_known

_TEXTS: Final = frozenset({"title", "description", "$comment"})
"""Keywords of which the rest of the text stays. Any other keyword with a secret in its value is left out."""


def without_known_secrets(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """These keywords of a schema without registered secrets. Examples with a secret are left out one by one."""
    result: dict[str, Any] = {}
    for keyword, value in keywords.items():
        if keyword in _TEXTS and isinstance(value, str):
            result[keyword] = scrub_known(value)
        elif keyword == "examples" and isinstance(value, list | tuple):
            result[keyword] = [example for example in value if not _holds_secret(example)]
        elif not _holds_secret(value):
            result[keyword] = value
    return result


def document_without_known_secrets(document: dict[str, Any]) -> dict[str, Any]:
    """A whole schema of another program without registered secrets, wherever they stand in it."""
    text = msgspec.json.encode(document).decode()
    found = scrub_known(text)
    if found == text:
        return document
    try:
        decoded: dict[str, Any] = msgspec.json.decode(found)
    except msgspec.DecodeError:  # what stands for the secret has broken a number or an escape
        return {}
    return decoded


def _holds_secret(value: object) -> bool:
    match value:
        case str():
            return scrub_known(value) != value
        case Mapping():
            return any(_holds_secret(key) or _holds_secret(item) for key, item in value.items())
        case list() | tuple():
            return any(map(_holds_secret, value))
        case _:
            return _holds_secret(msgspec.json.encode(value, enc_hook=str).decode())
