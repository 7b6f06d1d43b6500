"""Media types: what an agent takes, and what a message brings (A2A 1.0 section 3.1.1)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from ...errors.exceptions import FailureError
from ...errors.failures import ContentTypeNotSupported
from .model import Message, Part


def check_content(message: Message, taken: Sequence[str]) -> None:
    """Raises `FailureError(ContentTypeNotSupported)` for a part of a type that is not taken: `text/plain`, `image/*`, `*/*`.

    A part that tells no type is what its kind is: text, or JSON; of a file nothing is known, and it may pass.
    """
    for part in message.parts:
        brought = _type_of(part)
        if brought is not None and not any(_covers(each, brought) for each in taken):
            raise FailureError(ContentTypeNotSupported(accepted=tuple(taken)))


def _type_of(part: Part) -> str | None:
    if part.media_type:
        return part.media_type.partition(";")[0].strip().lower()
    if part.text is not None:
        return "text/plain"
    return None if part.data is UNSET else "application/json"


def _covers(taken: str, brought: str) -> bool:
    taken = taken.partition(";")[0].strip().lower()
    return taken in (brought, "*/*") or (taken.endswith("/*") and brought.startswith(taken[:-1]))
