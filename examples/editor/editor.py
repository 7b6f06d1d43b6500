"""A language server for plain text, with LSP's own names: open documents, hover, definition, and diagnostics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from discreet import Context, OperationError, Service

text_document = Service("textDocument", description="Open documents, as in the Language Server Protocol.")


class Position(Struct, frozen=True):
    """A position in a document: line from 0, and UTF-16 code unit in the line from 0."""

    line: int
    character: int


class Range(Struct, frozen=True):
    start: Position
    end: Position


class DocumentIdentifier(Struct, frozen=True):
    """A document. Other members that editors send, such as versions, are ignored."""

    uri: str


class DocumentItem(Struct, frozen=True):
    """A document with its text."""

    uri: str
    text: str


class ContentChange(Struct, frozen=True):
    """The whole new text of a document."""

    text: str


class Hover(Struct, frozen=True):
    contents: str
    range: Range


class Location(Struct, frozen=True):
    uri: str
    range: Range


class Diagnostic(Struct, frozen=True):
    range: Range
    message: str
    severity: int = 2


class NotOpen(OperationError, code="NOT_OPEN", http_status=409):
    """The document has not been opened."""

    uri: str


documents: dict[str, list[str]] = {}


@text_document.mutation(inline=True, name="didOpen")
def did_open(ctx: Context, textDocument: DocumentItem) -> None:  # noqa: N803 - LSP's name
    """Store a document's text and publish its diagnostics."""
    documents[textDocument.uri] = textDocument.text.splitlines()
    _publish(ctx, textDocument.uri)


@text_document.mutation(inline=True, name="didChange", errors=[NotOpen])
def did_change(ctx: Context, textDocument: DocumentIdentifier, contentChanges: list[ContentChange]) -> None:  # noqa: N803
    """Store a document's new text and publish its diagnostics."""
    _lines(textDocument.uri)
    if contentChanges:
        documents[textDocument.uri] = contentChanges[-1].text.splitlines()
        _publish(ctx, textDocument.uri)


@text_document.mutation(inline=True, name="didClose")
def did_close(textDocument: DocumentIdentifier) -> None:  # noqa: N803
    """Forget a document."""
    documents.pop(textDocument.uri, None)


@text_document.query(inline=True, errors=[NotOpen])
def hover(textDocument: DocumentIdentifier, position: Position, **more: Any) -> Hover | None:  # noqa: N803
    """Count the occurrences of the word at a position; null if there is no word."""
    found = _word_at(_lines(textDocument.uri), position)
    if found is None:
        return None
    word, found_range = found
    count = len([*_occurrences(documents[textDocument.uri], word)])
    return Hover(f"`{word}`: {count} times", found_range)


@text_document.query(inline=True, errors=[NotOpen])
def definition(textDocument: DocumentIdentifier, position: Position, **more: Any) -> Location | None:  # noqa: N803
    """Find the first occurrence of the word at a position."""
    found = _word_at(_lines(textDocument.uri), position)
    if found is None:
        return None
    return Location(textDocument.uri, next(_occurrences(documents[textDocument.uri], found[0])))


def _lines(uri: str) -> list[str]:
    if uri not in documents:
        raise NotOpen(uri=uri)
    return documents[uri]


def _publish(ctx: Context, uri: str) -> None:
    diagnostics = [
        Diagnostic(_range(number, line, len(line.rstrip()), len(line)), "white space at the end of the line")
        for number, line in enumerate(documents[uri])
        if line != line.rstrip()
    ]
    ctx.notify("textDocument/publishDiagnostics", {"uri": uri, "diagnostics": diagnostics})


def _word_at(lines: list[str], position: Position) -> tuple[str, Range] | None:
    if not 0 <= position.line < len(lines):
        return None
    line = lines[position.line]
    for match in re.finditer(r"\w+", line):
        found = _range(position.line, line, *match.span())
        if found.start.character <= position.character <= found.end.character:
            return match[0], found
    return None


def _occurrences(lines: list[str], word: str) -> Iterator[Range]:
    for number, line in enumerate(lines):
        for match in re.finditer(rf"\b{re.escape(word)}\b", line):
            yield _range(number, line, *match.span())


def _range(number: int, line: str, start: int, end: int) -> Range:
    return Range(Position(number, _units(line[:start])), Position(number, _units(line[:end])))


def _units(text: str) -> int:
    """The length in UTF-16 code units, LSP's default."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
