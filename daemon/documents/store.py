"""The documents of one client, kept as its notifications tell. What it tells of a document that is not open is ignored.

LSP 3.17, "Text Document Synchronization" and "Notebook Document Synchronization". Used on the loop's thread; handlers in
worker threads read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, final

from msgspec import Struct

from .text import Change, PositionEncoding, Text, index_of

DOCUMENT_BYTES: Final = 1024
"""What a document takes beside its lines and its URI, rounded up (CPython, 64 bit)."""


_ELSEWHERE: Final = {
    "source": "document.text",
    "offset_at_position": "document.offset_at(position)",
    "word_at_position": "document.word_at(position)",
    "position_codec": "document.offset_at(position) and document.position_at(offset)",
}
"""pygls' names, and what stands here for them."""


class Position(Struct, rename="camel", frozen=True, order=True):
    """A place in a text: LSP's own struct. Both count from 0; `character` in units of the encoding that was agreed on."""

    line: int
    character: int


@final
class TextDocument:
    """One version of an open document, which never changes, so that any thread may read it. `version` is the client's own."""

    __slots__ = ("_text", "language_id", "uri", "version")

    def __init__(self, uri: str, language_id: str, version: int, text: Text) -> None:
        self.uri: Final = uri
        self.language_id: Final = language_id
        self.version: Final = version
        self._text: Final = text

    if not TYPE_CHECKING:  # checkers know what there is

        def __getattr__(self, name: str) -> NoReturn:
            hint = f": write {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            raise AttributeError(f"a document has no {name}{hint}")

    @property
    def text(self) -> str:
        return self._text.value

    @property
    def exact(self) -> str:
        """The text with the halves of surrogate pairs that the client has in it. `text` has U+FFFD for each."""
        return self._text.exact

    @property
    def size(self) -> int:
        """How many bytes it takes at most."""
        return self._text.size + 4 * len(self.uri) + DOCUMENT_BYTES

    @property
    def lines(self) -> list[str]:
        """The lines without their ends. Behind the last line end begins one more."""
        return self._text.lines()

    @property
    def encoding(self) -> PositionEncoding:
        """What the client counts characters in."""
        return self._text.encoding

    def line(self, number: int) -> str:
        """One line without its end; empty beyond the last."""
        return self._text.line(number)

    def offset_at(self, position: Any) -> int:
        """The index in `text` of anything with `line` and `character`. Beyond a line's end is its end."""
        return self._text.offset(position.line, position.character)

    def position_at(self, offset: int) -> Position:
        """Where an index in `text` is."""
        return Position(*self._text.position(offset))

    def slice(self, range: Any) -> str:
        """The text of anything with `start` and `end`."""
        text = self._text
        start, end = range.start, range.end
        return text.value[text.offset(start.line, start.character) : text.offset(end.line, end.character)]

    def word_at(self, position: Any) -> str:
        """The letters, digits and underscores around a position; empty where there are none."""
        line = self.line(position.line)
        at = index_of(line, position.character, self.encoding)
        start = end = at
        while start > 0 and _is_word(line[start - 1]):
            start -= 1
        while end < len(line) and _is_word(line[end]):
            end += 1
        return line[start:end]

    def changed(self, version: int, changes: list[Change]) -> TextDocument:
        """The document after all of these changes, one after the other."""
        return TextDocument(self.uri, self.language_id, version, self._text.changed(changes))


@final
class NotebookDocument:
    """One open notebook. `cells` are as the client sent them; their texts are documents of their own. `size` is about how
    many bytes it takes without those.
    """

    __slots__ = ("cells", "metadata", "notebook_type", "size", "uri", "version")

    def __init__(
        self, uri: str, notebook_type: str, version: int, metadata: Any, cells: list[Any]
    ) -> None:  # Any: what the protocol's structs hold
        self.uri: Final = uri
        self.notebook_type = notebook_type
        self.version = version
        self.metadata = metadata
        self.cells = cells
        self.size = 0


@final
class Documents(Mapping[str, TextDocument]):
    """The open text documents by their URI, those of notebooks' cells among them. `size` is about how many bytes all take."""

    def __init__(self, encoding: PositionEncoding = "utf-16") -> None:
        self.encoding: PositionEncoding = encoding
        self.notebooks: Final[dict[str, NotebookDocument]] = {}
        self.root_uri: str | None = None
        """The folder that the client has opened; None where it has none."""
        self.folders: Mapping[str, str] = {}
        """The names of the workspace's folders by their URIs, in the client's order."""
        self.size = 0
        self._open: dict[str, TextDocument] = {}

    def __getitem__(self, uri: str) -> TextDocument:
        """Raises `KeyError` for a document that is not open."""
        try:
            return self._open[uri]
        except KeyError:
            raise KeyError(f"no document {uri} is open; ctx.documents.get(uri) is None then") from None

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._open))

    def __len__(self) -> int:
        return len(self._open)

    def of_text(self, text: str, uri: str = "", *, language_id: str = "", version: int = 0) -> TextDocument:
        """A document of a text of one's own, which counts as the client does. It is not kept."""
        return TextDocument(uri, language_id, version, Text(text, self.encoding))

    def read(self, uri: str) -> TextDocument:
        """The open document, or else that of the file. It blocks, so call it in a `def` handler or in a worker thread.

        Raises `ValueError` for a URI that names no file and for a file that is not UTF-8, and `OSError` for one that can't be
        read.
        """
        document = self._open.get(uri)
        if document is not None:
            return document
        with open(path_of_uri(uri), encoding="utf-8", newline="") as file:
            return self.of_text(file.read(), uri)

    def open(self, uri: str, language_id: str, version: int, text: str) -> None:
        self.keep(TextDocument(uri, language_id, version, Text(text, self.encoding)))

    def keep(self, document: TextDocument) -> None:
        """Keep a document that was opened or changed."""
        before = self._open.get(document.uri)
        self.size += document.size - (0 if before is None else before.size)
        self._open[document.uri] = document

    def close(self, uri: str) -> None:
        document = self._open.pop(uri, None)
        if document is not None:
            self.size -= document.size

    def keep_notebook(self, notebook: NotebookDocument, size: int) -> None:
        """Keep a notebook that was opened or changed, and takes so many bytes now."""
        self.close_notebook(notebook.uri)
        self.notebooks[notebook.uri] = notebook
        notebook.size = size
        self.size += size

    def close_notebook(self, uri: str) -> None:
        """Close a notebook. The texts of its cells stay open."""
        notebook = self.notebooks.pop(uri, None)
        if notebook is not None:
            self.size -= notebook.size


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def path_of_uri(uri: str, *, windows: bool = os.name == "nt") -> str:
    """The path that a `file:` URI names on this system. Raises `ValueError` for one of another scheme.

    RFC 8089; editors on Windows write `file:///c%3A/a`.
    """
    from urllib.parse import unquote, urlsplit  # late: most servers read open documents alone

    parts = urlsplit(uri)
    if parts.scheme != "file":
        raise ValueError(f"{uri} names no file: ctx.documents.read takes open documents and file: URIs")
    path = unquote(parts.path)
    if "\0" in path:
        raise ValueError("a path has no NUL")
    if not windows:
        return path
    drive = path[1:3]
    if len(drive) == 2 and drive[0].isalpha() and drive[1] == ":":
        path = path[1:]
    share = f"//{parts.netloc}" if parts.netloc not in ("", "localhost") else ""
    return (share + path).replace("/", "\\")


def uri_of_path(path: str) -> str:
    """The URI of an absolute path of either kind of system: the client's may be another than ours."""
    from urllib.parse import quote  # late: clients of today send URIs

    slashes = path.replace("\\", "/")
    return "file://" + quote(slashes if slashes.startswith("/") else f"/{slashes}")
