"""What is wrong with a document: with the whole, or with a part of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, final

from ....daemon.schemas.phrases import json_kind
from ....errors.printable import cut, printable
from ...model import NoteKind

Noting: TypeAlias = Callable[[str, NoteKind, str], None]
"""Is told what is not as the document has it: pointer, kind, reason."""

_SHOWN_CHARACTERS: Final = 80
"""How much of a name of the document stands in a message."""


@final
class DocumentError(Exception):
    """The document can't be read at all. The message is one line; it begins with the pointer, if a place is to record_error."""

    def __init__(self, reason: str, pointer: str = "") -> None:
        super().__init__(f"{pointer}: {reason}" if pointer else reason)
        self.pointer = pointer
        self.reason = reason


@final
class PartError(Exception):
    """A part of the document is wrong, which others need not mind."""

    def __init__(self, pointer: str, reason: str) -> None:
        super().__init__(f"{pointer}: {reason}")
        self.pointer = pointer
        self.reason = reason


def quoted(name: object) -> str:
    """A name of the document for a message: on one line, and not too long."""
    return printable(cut(str(name), _SHOWN_CHARACTERS))


def type_name(value: object) -> str:
    """What JSON calls a value of this type, with its article."""
    kind = json_kind(value)
    return kind if kind == "null" else f"{'an' if kind in ('array', 'object') else 'a'} {kind}"
