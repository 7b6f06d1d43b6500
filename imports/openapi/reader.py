"""Reads an OpenAPI document of 3.0, 3.1 or 3.2 as operations that are called by HTTP. Gets no document by itself."""

from __future__ import annotations

import gc
import re
from collections.abc import Mapping
from typing import Any, Final, final

import msgspec

from ..archive import references
from ..complexity import TOO_MANY
from ..http.model import HttpImport, HttpOperation
from ..model import Note, NoteKind
from .documents.nodes import Document, DocumentError, Node, Path, quoted, type_name
from .documents.parsing import parse
from .documents.references import Documents, Fetcher
from .naming import Selection, check_distinct, check_patterns, check_selection, is_selected, names_of
from .operations import OperationFinder, OperationReader, Place
from .schemas.reader import SchemaReader
from .servers import SecurityReader, ServerReader

_VERSION: Final = re.compile(r"3\.[012](?:\.\S*)?")
_LOCAL: Final = re.compile(rb"""\$ref["']?\s*:\s*["']?#""")
_EVERYTHING: Final = Selection()


def read_openapi(
    document: bytes | Mapping[str, Any],
    *,
    origin: str = "",
    select: Selection = _EVERYTHING,
    rename: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    fetch: Fetcher | None = None,
) -> HttpImport:
    """What a document offers, and notes on all that is not as it stands there.

    `origin` is the document's own address, for relative references and servers. `rename` has new names by operationId or name,
    `variables` values for the variables of servers. `fetch` gets the documents that this one refers to; without it such
    references lead nowhere.

    A wrong part leaves its operation out, with a note. Raises `DocumentError`, whose message is one line, for a document that
    can't be read, and for a name or value in the arguments that fits nothing in it.
    """
    collects = gc.isenabled()
    gc.disable()  # it would look again and again through all that is made here, and find nothing
    try:
        return _read_text(document, origin, select, rename or {}, variables or {}, fetch)
    except RecursionError as exc:
        raise DocumentError("nested too deeply") from exc
    finally:
        if collects:
            gc.enable()


def _read_text(
    document: bytes | Mapping[str, Any],
    origin: str,
    select: Selection,
    rename: Mapping[str, str],
    variables: Mapping[str, str],
    fetch: Fetcher | None,
) -> HttpImport:
    text = document if isinstance(document, bytes) else _encoded(document)
    notes = _Notes()
    doubles: list[tuple[Path, str]] = []
    tree = parse(text, lambda path, reason: doubles.append((path, reason)))
    version = _version(tree)
    own = tree.get("$self")
    first = Document(own if isinstance(own, str) and version == "3.2" else origin, tree, is_old=version == "3.0")
    for path, reason in doubles:
        notes.part(first, path, reason)
    documents = Documents(first, fetch, notes.part)
    has_marks = b"readOnly" in text or b"writeOnly" in text or text.count(b"$ref") != len(_LOCAL.findall(text))
    del text, document
    return _read(documents, notes, select, rename, variables, has_marks)


def _encoded(document: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(document)
    except (TypeError, ValueError, RecursionError) as exc:
        raise DocumentError("the document holds something that is no JSON") from exc


def _version(tree: Any) -> str:
    """`3.0`, `3.1` or `3.2`."""
    if not isinstance(tree, dict):
        raise DocumentError(f"an OpenAPI document is an object, and this is {type_name(tree)}")
    if "swagger" in tree and "openapi" not in tree:
        raise DocumentError(
            f"Swagger {quoted(tree['swagger'])} is not read: convert the document to OpenAPI 3, such as with"
            " npx swagger2openapi FILE, or at converter.swagger.io",
            "/swagger",
        )
    version = tree.get("openapi")
    if version is None:
        raise DocumentError("no OpenAPI document: it has no member `openapi`")
    if not isinstance(version, str | float) or not _VERSION.fullmatch(str(version)):
        raise DocumentError(f"the version {quoted(version)} is not read: only 3.0, 3.1 and 3.2 are", "/openapi")
    return str(version)[:3]


def _read(
    documents: Documents,
    notes: _Notes,
    select: Selection,
    rename: Mapping[str, str],
    variables: Mapping[str, str],
    has_marks: bool,
) -> HttpImport:
    check_selection(select)
    root = documents.first.root
    info = root.get("info")
    paths = root.get("paths")
    if paths is not None and not isinstance(paths.value, dict):
        raise DocumentError(f"must be an object, not {type_name(paths.value)}", "/paths")
    security = SecurityReader(documents, notes)
    servers = ServerReader(documents.first.uri, variables, notes)
    places = list(OperationFinder(documents, notes).find(paths)) if paths is not None else []
    left_out = notes.left_out
    found = [place.found for place in places]
    names = names_of(found, rename)
    if places:
        check_patterns(found, names, select, rename)
    chosen = [
        (place, name) for place, name in zip(places, names, strict=True) if is_selected(place.found, name, select)
    ]
    if places and not chosen:
        raise DocumentError(f"none of the {len(places)} operations is selected by the filters")
    check_distinct(name for _, name in chosen)
    schemas = SchemaReader(documents, notes.part, has_marks=has_marks)
    reader = OperationReader(documents, schemas, servers, security, notes)
    operations: list[HttpOperation] = []
    for place, name in chosen:
        _note_name(notes, place, name)
        operation = reader.read(place, name)
        if operation is not None:
            operations.append(operation)
    if chosen:
        servers.check_given()
    _leave_out_webhooks(root, notes)
    definitions = schemas.finish()
    operations = _checkable(operations, schemas.find_unbounded(definitions), notes)
    used = {name for operation in operations for names in operation.security for name in names}
    return HttpImport(
        title=info.prose("title") if info is not None else "",
        version=info.prose("version") if info is not None else "",
        description=info.prose("description") if info is not None else "",
        operations=tuple(operations),
        definitions=definitions,
        notes=notes.all(),
        left_out=left_out + len(chosen) - len(operations),
        security_schemes={name: scheme for name, scheme in security.schemes.items() if name in used},
    )


def _checkable(operations: list[HttpOperation], unbounded: set[str], notes: _Notes) -> list[HttpOperation]:
    """The operations of which every part can be checked."""
    if not unbounded:
        return operations
    kept: list[HttpOperation] = []
    for operation in operations:
        parts = [operation.input, operation.output, *(error.schema for error in operation.errors)]
        if unbounded.isdisjoint(references(parts)):
            kept.append(operation)
        else:
            notes(operation.pointer, "left-out", TOO_MANY)
    return kept


def _note_name(notes: _Notes, place: Place, name: str) -> None:
    given = place.found.operation_id
    if not given:
        notes(place.node.pointer, "renamed", f"it has no operationId; called {name}")
    elif given != name:
        notes(place.node.pointer, "renamed", f"{quoted(given)} is called {name}")


def _leave_out_webhooks(root: Node, notes: _Notes) -> None:
    webhooks = root.get("webhooks")
    for name, node in webhooks.members() if webhooks is not None and isinstance(webhooks.value, dict) else ():
        notes(node.pointer, "left-out", f"{quoted(name)} is a webhook, which the other side calls")


@final
class _Notes:
    """The notes of one import, each once."""

    def __init__(self) -> None:
        self._notes: dict[tuple[str, str], Note] = {}

    def __call__(self, pointer: str, kind: NoteKind, reason: str) -> None:
        self._notes.setdefault((pointer, reason), Note(pointer, kind, reason))

    def part(self, document: Document, path: Path, reason: str) -> None:
        """A part of a document that is read otherwise than it stands there."""
        self(document.pointer(path), "changed", reason)

    @property
    def left_out(self) -> int:
        """How many notes there are so far on what is left out."""
        return sum(note.kind == "left-out" for note in self._notes.values())

    def all(self) -> tuple[Note, ...]:
        return tuple(self._notes.values())


def is_discreet_document(document: Mapping[str, Any]) -> bool:
    """Whether a document is one that discreet itself writes, which is read by what stands in it of operations."""
    paths = document.get("paths")
    if not isinstance(paths, dict):
        return False
    return any(
        isinstance(operation, dict) and "x-kind" in operation
        for item in paths.values()
        if isinstance(item, dict)
        for operation in item.values()
    )


__all__ = ["DocumentError", "Selection", "is_discreet_document", "read_openapi"]
