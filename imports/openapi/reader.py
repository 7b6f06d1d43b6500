"""Reads an OpenAPI document of 3.0, 3.1 or 3.2 as operations that are called by HTTP. Gets no document by itself."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Final

from ..archive import references
from ..complexity import TOO_MANY
from ..http.model import HttpImport, HttpOperation
from .document import Documents, Fetcher, Node, PartError, type_name
from .naming import Selection, check_distinct, check_patterns, is_selected, names_of
from .operations import OperationReader, Place, find_operations, note_left_out
from .parsing import DocumentError, quoted
from .schemas import SchemaReader
from .servers import SecurityReader, ServerReader

_EVERYTHING: Final = Selection()


def read_openapi(
    text: bytes,
    *,
    origin: str = "",
    select: Selection = _EVERYTHING,
    rename: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    fetch: Fetcher | None = None,
) -> HttpImport:
    """Return what a document offers, with notes on all that is not as it stands there.

    `origin` is the document's own address, for relative references and servers. `rename` has new names by operationId or name,
    `variables` values for the variables of servers. `fetch` gets the documents that this one refers to; without it such
    references lead nowhere.

    A wrong part leaves its operation out, with a note. Raises `DocumentError`, whose message is one line, for a document that
    can't be read, and for a name or value in the arguments that fits nothing in it.
    """
    collects = gc.isenabled()
    gc.disable()  # it would look again and again through all that is made here, and find nothing
    try:
        return _read(Documents(text, origin, fetch), select, rename or {}, variables or {})
    except RecursionError as exc:
        raise DocumentError("nested too deeply") from exc
    finally:
        if collects:
            gc.enable()


def _read(
    documents: Documents, select: Selection, rename: Mapping[str, str], variables: Mapping[str, str]
) -> HttpImport:
    root = documents.first.root
    security = SecurityReader(documents)
    servers = ServerReader(documents.first.uri, variables)
    places = _places(documents)
    left_out = documents.left_out
    chosen = _chosen(places, select, rename)
    schemas = SchemaReader(documents)
    reader = OperationReader(documents, schemas, servers, security)
    operations: list[HttpOperation] = []
    for place, name in chosen:
        _note_name(place, name)
        try:
            operations.append(reader.read(place, name))
        except PartError as exc:
            note_left_out(place.node, exc)
    if chosen:
        servers.check_given()
    webhooks = root.get("webhooks")
    for name, node in webhooks.members() if webhooks is not None and isinstance(webhooks.value, dict) else ():
        node.note("left-out", f"{quoted(name)} is a webhook, which the other side calls")
    definitions = schemas.finish()
    operations = _checkable(operations, schemas.find_unbounded(definitions), documents)
    used = {name for operation in operations for names in operation.security for name in names}
    info = root.get("info") or Node(documents.first, None, None)
    return HttpImport(
        title=info.prose("title"),
        version=info.prose("version"),
        description=info.prose("description"),
        operations=tuple(operations),
        definitions=definitions,
        notes=tuple(documents.notes.values()),
        left_out=left_out + len(chosen) - len(operations),
        security_schemes={name: scheme for name, scheme in security.schemes.items() if name in used},
    )


def _places(documents: Documents) -> list[Place]:
    paths = documents.first.root.get("paths")
    if paths is None:
        return []
    if not isinstance(paths.value, dict):
        raise DocumentError(f"must be an object, not {type_name(paths.value)}", "/paths")
    return list(find_operations(paths))


def _chosen(places: list[Place], select: Selection, rename: Mapping[str, str]) -> list[tuple[Place, str]]:
    """The operations that are wanted, with their names."""
    found = [place.found for place in places]
    names = names_of(found, rename)
    if not places:
        return []
    check_patterns(found, names, select, rename)
    chosen = [
        (place, name) for place, name in zip(places, names, strict=True) if is_selected(place.found, name, select)
    ]
    if not chosen:
        raise DocumentError(f"none of the {len(places)} operations is selected by the filters")
    check_distinct(name for _, name in chosen)
    return chosen


def _note_name(place: Place, name: str) -> None:
    given = place.found.operation_id
    if not given:
        place.node.note("renamed", f"it has no operationId; called {name}")
    elif given != name:
        place.node.note("renamed", f"{quoted(given)} is called {name}")


def _checkable(operations: list[HttpOperation], unbounded: set[str], documents: Documents) -> list[HttpOperation]:
    """The operations of which every part can be checked."""
    if not unbounded:
        return operations
    kept: list[HttpOperation] = []
    for operation in operations:
        parts = [operation.input, operation.output, *(error.schema for error in operation.errors)]
        if unbounded.isdisjoint(references(parts)):
            kept.append(operation)
        else:
            documents.note(operation.pointer, "left-out", TOO_MANY)
    return kept


__all__ = ["DocumentError", "Selection", "read_openapi"]
