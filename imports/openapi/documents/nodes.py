"""A value of a document, and where it stands. Reads members, and says in one line which are of the wrong type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias, final

from ....daemon.schemas.phrases import json_kind
from ....errors.printable import cut, printable
from ...model import NoteKind

# What is wrong with a document: with the whole, or with a part of it.


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


Path: TypeAlias = "tuple[Path, str] | None"
"""The way to a value from the root of its document: the way to what holds it, and its name or index. None is the root."""


@final
class Document:
    """A parsed document. `label` stands before the pointers into it; that of the first is empty.

    `is_old` says that its schemas are those of OpenAPI 3.0. `root` is where it begins.
    """

    def __init__(self, uri: str, tree: Any, *, label: str = "", is_old: bool = False) -> None:  # Any: JSON
        self.uri = uri
        self.label = label
        self.is_old = is_old
        self.root = Node(self, None, tree)

    def pointer(self, path: Path) -> str:
        """The JSON pointer (RFC 6901) of a place, behind `LABEL#` in another document than the first."""
        tokens: list[str] = []
        while path is not None:
            path, token = path
            tokens.append(token.replace("~", "~0").replace("/", "~1"))
        pointer = "".join(f"/{token}" for token in reversed(tokens))
        return f"{self.label}#{pointer}" if self.label else pointer


@final
class Node:
    """A value of a document, and where it stands."""

    __slots__ = ("document", "path", "value")

    def __init__(self, document: Document, path: Path, value: Any) -> None:  # Any: JSON
        self.document = document
        self.path = path
        self.value = value

    @property
    def pointer(self) -> str:
        return self.document.pointer(self.path)

    def wrong(self, reason: str) -> PartError:
        """The error that says what is wrong here."""
        return PartError(self.pointer, reason)

    def get(self, name: str) -> Node | None:
        """A member. None where it is missing or null, and where this is no object."""
        value = self.value.get(name) if isinstance(self.value, dict) else None
        return None if value is None else Node(self.document, (self.path, name), value)

    def members(self) -> Iterator[tuple[str, Node]]:
        """The members of an object. Raises `PartError` where this is no object."""
        for name, value in self.object().items():
            yield name, Node(self.document, (self.path, name), value)

    def fields(self) -> Iterator[tuple[str, Node]]:
        """The same for an object whose members that begin with `x-` are extensions."""
        return ((name, node) for name, node in self.members() if not name.startswith("x-"))

    def items(self) -> Iterator[Node]:
        """The items of an array. Raises `PartError` where this is no array."""
        if not isinstance(self.value, list):
            raise self.wrong(f"must be an array, not {type_name(self.value)}")
        for index, value in enumerate(self.value):
            yield Node(self.document, (self.path, str(index)), value)

    def object(self) -> dict[str, Any]:
        """The value. Raises `PartError` where it is no object."""
        if not isinstance(self.value, dict):
            raise self.wrong(f"must be an object, not {type_name(self.value)}")
        return self.value

    def text(self, name: str) -> str:
        """A member that is a string; empty where it is missing. Raises `PartError` for another."""
        member = self.get(name)
        if member is None:
            return ""
        if not isinstance(member.value, str):
            raise member.wrong(f"must be a string, not {type_name(member.value)}")
        return member.value

    def prose(self, name: str) -> str:
        """A member that is a string for people; empty where it is anything else."""
        value = self.value.get(name) if isinstance(self.value, dict) else None
        return value.strip() if isinstance(value, str) else ""

    def flag(self, name: str) -> bool | None:
        """A member that is a boolean; None where it is missing. Raises `PartError` for another."""
        member = self.get(name)
        if member is None:
            return None
        if not isinstance(member.value, bool):
            raise member.wrong(f"must be true or false, not {quoted(member.value)!r}")
        return member.value
