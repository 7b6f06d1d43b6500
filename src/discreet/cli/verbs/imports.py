"""`discreet import check`: says what an OpenAPI document would offer as operations, and what is not as it stands there."""

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from ...daemon.declarations import LONGEST_TOOL_NAME
from ...daemon.lifecycle import EXIT_OK
from ...daemon.settings import UsageError
from ...dialects.mcp.tools import tool_name
from ...errors.printable import printable
from ...imports.http.model import HttpImport, HttpOperation
from ...imports.model import Note
from ...imports.openapi.loading import load_document
from ...imports.openapi.parsing import DocumentError
from ...imports.openapi.reader import read_openapi
from ..output import print_json, require_stdout, write_stdout


class Imports(msgspec.Struct, frozen=True):
    """An operation as `--json` shows it. `errors` are the codes of those that are declared. `tool` is its name as a tool of MCP,
    null without a namespace.
    """

    name: str
    kind: str
    method: str
    path: str
    errors: list[str]
    pointer: str
    tool: str | None


class Report(msgspec.Struct, frozen=True):
    """The document that `--json` prints. `types` is the number of the shared types."""

    title: str
    version: str
    operations: list[Imports]
    types: int
    notes: list[Note]


def run(args: argparse.Namespace) -> int:
    """Print what the document offers. Raises `UsageError` for one that can't be read."""
    require_stdout()
    try:
        loaded = load_document(args.source, outside=args.outside)
        found = read_openapi(loaded.text, origin=loaded.origin, fetch=loaded.fetch)
    except DocumentError as exc:
        raise UsageError(_located(args.source, str(exc))) from exc
    if args.json:
        print_json(msgspec.Raw(msgspec.json.encode(_report(found, args.namespace))), one_line=False)
    else:
        write_stdout("\n".join(map(printable, _lines(found, args.namespace))))
    return EXIT_OK


def _located(source: str, reason: str) -> str:
    return reason if source in reason else f"{source}: {reason}"


def _report(found: HttpImport, namespace: str) -> Report:
    operations = [
        Imports(
            each.name,
            each.kind,
            each.method,
            each.path,
            [error.code for error in each.errors],
            each.pointer,
            tool_name(f"{namespace}/{each.name}") if namespace else None,
        )
        for each in found.operations
    ]
    return Report(found.title, found.version, operations, len(found.definitions), list(found.notes))


def _lines(found: HttpImport, namespace: str) -> Iterator[str]:
    kinds = Counter(operation.kind for operation in found.operations)
    errors = sum(len(operation.errors) for operation in found.operations)
    counted = ", ".join(_count(kinds[kind], kind) for kind in ("query", "mutation", "subscription") if kinds[kind])
    yield f"{found.title} {found.version}".strip() or "(no title)"
    yield (
        f"{_count(len(found.operations), 'operation')}{f' ({counted})' if counted else ''},"
        f" {_count(errors, 'declared error')}, {_count(len(found.definitions), 'shared type')}"
    )
    if found.operations:
        yield ""
        yield from _rows(found.operations)
    for kind, title in _TITLES.items():
        notes = [note for note in found.notes if note.kind == kind]
        if notes:
            yield from ("", f"{title}:")
            yield from (f"  {note.pointer or '/'}: {note.reason}" for note in notes)
    yield from _shortened(found.operations, namespace)


def _shortened(operations: tuple[HttpOperation, ...], namespace: str) -> Iterator[str]:
    """The operations whose names are too long for tools of MCP. What they become depends on the namespace."""
    before = f"{namespace or 'x'}/"
    names = [each.name for each in operations if len(before) + len(each.name) > LONGEST_TOOL_NAME]
    if names and namespace:
        yield from ("", "shortened as tools of MCP:")
        yield from (f"  {before}{name}: {tool_name(before + name)}" for name in names)
    elif names:
        yield from ("", "shortened as tools of MCP (--namespace NAME says to what):")
        yield from (f"  {name}" for name in names)


_TITLES: Final = {"renamed": "renamed", "left-out": "left out", "changed": "changed"}


def _rows(operations: tuple[HttpOperation, ...]) -> Iterator[str]:
    width = min(max(len(operation.name) for operation in operations), 60)
    for each in operations:
        errors = f"  {_count(len(each.errors), 'error')}" if each.errors else ""
        yield f"  {each.kind:<12}  {each.name:<{width}}  {each.method} {each.path}{errors}"


def _count(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
