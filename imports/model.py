"""Describes another program's operations: names, schemas, errors, and how each is called. Reads and calls nothing.

Readers make these structs of a document or a list of tools; `service` makes a `Service` of them. A schema refers to the types
that all operations of one import share as `#/$defs/NAME`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, final

from msgspec import UNSET, Raw, Struct, UnsetType

from ..daemon.operations.service import DeclarationError


@final
class UpstreamError(Exception):
    """The other program has answered with a declared error: its code, and the details as JSON text if it sent any.

    `retry_after_ms` is how long it asks to wait, in milliseconds.
    """

    def __init__(self, code: str, details: Raw | None = None, *, retry_after_ms: int | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.details = details
        self.retry_after_ms = retry_after_ms


class ImportFailed(DeclarationError):
    """Operations can't be imported. The message is one line for the operator: what was asked for, and what is wrong with it."""


JsonSchema: TypeAlias = dict[str, Any]
Schema: TypeAlias = JsonSchema | bool
"""JSON Schema 2020-12."""

NoteKind: TypeAlias = Literal["renamed", "left-out", "changed"]


class Note(Struct, frozen=True):
    """Something that is not as the document has it: where (a JSON pointer), what happened, and why, in one line."""

    pointer: str
    kind: NoteKind
    reason: str


class ImportedError(Struct, frozen=True):
    """A declared error. `schema` is that of its details, None where it has none."""

    code: str
    http_status: int
    description: str = ""
    schema: Schema | None = None
    retryable: bool = False
    message: str = ""


class ImportedOperation(Struct, frozen=True, kw_only=True):
    """One operation. `name` has no namespace. `input` is the schema of an object, `output` that of the result or of one event.

    `pointer` is where the document has it. `idempotent` says that a call may be repeated though it is no query. `timeout` is in
    seconds, None for no deadline; without it the daemon's setting applies. Events of a `numbered` subscription are `ServerEvent`.
    `annotations` are MCP's hints about a tool, as its server gives them.
    """

    name: str
    kind: Literal["query", "mutation", "subscription"]
    input: JsonSchema
    output: Schema = True
    errors: tuple[ImportedError, ...] = ()
    description: str = ""
    pointer: str = ""
    idempotent: bool = False
    timeout: float | None | UnsetType = UNSET
    numbered: bool = False
    annotations: Mapping[str, bool | str] = {}

    @property
    def repeatable(self) -> bool:
        """Whether a call may be made again that may have had its effect."""
        return self.kind != "mutation" or self.idempotent


class Imported(Struct, frozen=True, kw_only=True):
    """All that one import offers. `definitions` are the shared types; `notes` come in the order of the document. `left_out` is
    how many operations of a document are not imported because something in them is wrong.
    """

    title: str = ""
    version: str = ""
    description: str = ""
    operations: tuple[ImportedOperation, ...] = ()
    definitions: Mapping[str, Schema] = {}
    notes: tuple[Note, ...] = ()
    left_out: int = 0
