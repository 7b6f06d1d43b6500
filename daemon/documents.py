"""The documents that an editor has open, and texts addressed as LSP does: by line and character, where a character is a unit of
the encoding that was agreed on. Knows no messages.

LSP 3.17, sections "Position", "Text Document Synchronization" and "Notebook Document Synchronization". Lines end with
`\n`, `\r\n` or `\r`, and with nothing else that Python takes for a line end. Documents change on the loop's thread; handlers
in worker threads read.

Editors that count in UTF-16 may send half a surrogate pair, or change one. Texts keep such halves, so that the other
half can join them, and show U+FFFD for each: it takes as many units in every encoding.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias, final

from msgspec import Struct

PositionEncoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]
Place: TypeAlias = tuple[int, int]
"""A line and a character in it."""

Change: TypeAlias = tuple[tuple[Place, Place] | None, str]
"""A span, or None for the whole text, and what takes its place."""

DocumentEvent: TypeAlias = Literal["open", "change", "save", "close", "refresh"]
"""What happened to a document, or with `refresh` to something that all of them depend on."""

ENCODINGS: Final[tuple[PositionEncoding, ...]] = ("utf-8", "utf-16", "utf-32")

LINE_BYTES: Final = 80
"""Bytes that a line takes beside its characters, rounded up (CPython, 64 bit)."""

_UNPAIRED: Final = "[\ud800-\udfff]"
_LINE_END: Final = re.compile(r"\r\n?|\n")
_BYTES: Final[dict[PositionEncoding, tuple[str, int]]] = {
    "utf-8": ("utf-8", 1),
    "utf-16": ("utf-16-le", 2),
    "utf-32": ("utf-32-le", 4),
}
"""The codec of each encoding, and the bytes of one unit."""


def units(text: str, encoding: PositionEncoding) -> int:
    """How many units a text has."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    codec, size = _BYTES[encoding]
    return len(text.encode(codec, "surrogatepass")) // size


def index_of(text: str, character: int, encoding: PositionEncoding) -> int:
    """The index in `text` of the character at this unit; that of its beginning for a unit within it, the end beyond."""
    character = max(0, character)
    if encoding == "utf-32" or text.isascii():
        return min(character, len(text))
    codec, size = _BYTES[encoding]
    return len(text.encode(codec, "surrogatepass")[: character * size].decode(codec, "ignore"))


@final
class Text:
    """A text that never changes, so that any thread may read it. Lines count from 0. `size` is how many bytes it may take."""

    def __init__(self, value: str, encoding: PositionEncoding) -> None:
        self.encoding: Final = encoding
        self._lines: Sequence[str] = _lines_of(_joined(value))
        """With their ends. The last one has none."""
        self.size = _size(self._lines)

    @cached_property
    def value(self) -> str:
        return shown(self.exact)

    @property
    def exact(self) -> str:
        """The text with its unpaired surrogates, which can't be encoded."""
        return "".join(self._lines)

    def line(self, number: int) -> str:
        """A line without its end. Empty beyond the last line."""
        return shown(_without_end(self._lines[number])) if 0 <= number < len(self._lines) else ""

    def lines(self) -> list[str]:
        """All lines, without their ends. At least one: behind the last line end begins a line."""
        return [shown(_without_end(line)) for line in self._lines]

    def offset(self, line: int, character: int) -> int:
        """The index in `value`. A character beyond the line's end is its end; a line beyond the last is the end of all."""
        line = max(0, line)
        if line >= len(self._lines):
            return self._starts[-1]
        return self._starts[line] + index_of(self.line(line), character, self.encoding)

    def position(self, offset: int) -> Place:
        """Line and character of an index in `value`; of one within a line's end, that of the line's end."""
        offset = max(0, min(offset, self._starts[-1]))
        line = bisect_right(self._starts, offset, 0, len(self._lines)) - 1
        return line, units(self.line(line)[: offset - self._starts[line]], self.encoding)

    @cached_property
    def _starts(self) -> list[int]:
        """The index of each line, and of the end of all."""
        return [0, *accumulate(map(len, self._lines))]

    def changed(self, changes: Iterable[Change]) -> Text:
        """The text after these changes, one after the other."""
        new = Text("", self.encoding)
        lines, new.size = list(self._lines), self.size
        for span, text in changes:
            if span is None:
                lines = _lines_of(_joined(text))
                new.size = _size(lines)
            else:
                new.size += _replace(lines, min(span), max(span), text, self.encoding)
        new._lines = lines
        return new


def _replace(lines: list[str], start: Place, end: Place, text: str, encoding: PositionEncoding) -> int:
    """Put a text in the place of a span. Returns by how many bytes the lines have grown."""
    first, before, after = _cut(lines, start, encoding)
    last = first
    if start != end:
        last, _, after = _cut(lines, end, encoding)
    region = _joined(before + text + after)
    if first and region.startswith("\n") and lines[first - 1].endswith("\r"):  # one line end now
        first -= 1
        region = lines[first] + region
    if region.endswith("\r") and lines[last + 1 : last + 2] and lines[last + 1].startswith("\n"):
        last += 1
        region += lines[last]
    new = _lines_of(region)
    if last + 1 < len(lines):
        new.pop()  # the next line begins behind the region's last line end
    grown = _size(new) - _size(lines[first : last + 1])
    lines[first : last + 1] = new
    return grown


def _cut(lines: Sequence[str], place: Place, encoding: PositionEncoding) -> tuple[int, str, str]:
    """The line of a place, and what stands in it before and behind. UTF-16 may cut a surrogate pair in two; the others never
    cut a character.
    """
    number, character = max(0, place[0]), max(0, place[1])
    if number >= len(lines):
        return len(lines) - 1, lines[-1], ""
    line = lines[number]
    part = _without_end(line)
    if encoding != "utf-16" or part.isascii():
        index = index_of(shown(part), character, encoding)
        return number, line[:index], line[index:]
    codec, size = _BYTES[encoding]
    encoded = part.encode(codec, "surrogatepass")
    before = encoded[: character * size].decode(codec, "surrogatepass")
    behind = encoded[character * size :].decode(codec, "surrogatepass")
    return number, before, behind + line[len(part) :]


def _lines_of(text: str) -> list[str]:
    """The lines with their ends, and behind the last line end one more, which may be empty."""
    if "\r" not in text:
        lines = [f"{line}\n" for line in text.split("\n")]
        lines[-1] = lines[-1][:-1]
        return lines
    ends = [0, *(end.end() for end in _LINE_END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(ends)]


def _without_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _size(lines: Iterable[str]) -> int:
    """How many bytes lines take at most."""
    return sum(len(line) * (1 if line.isascii() else 4) + LINE_BYTES for line in lines)


def _joined(text: str) -> str:
    """The text with one character for each two surrogates that are a pair now."""
    if text.isascii() or not re.search(_UNPAIRED, text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def shown(text: str) -> str:
    """The text with U+FFFD for each surrogate in it."""
    return text if text.isascii() else re.sub(_UNPAIRED, "\ufffd", text)


DOCUMENT_BYTES: Final = 1024
"""Bytes that a document takes beside its lines and its URI, rounded up (CPython, 64 bit)."""


_ELSEWHERE: Final = {
    "source": "document.text",
    "offset_at_position": "document.offset_at(position)",
    "word_at_position": "document.word_at(position)",
    "position_codec": "document.offset_at(position) and document.position_at(offset)",
}
"""pygls' names, and what stands here for them."""


class Position(Struct, rename="camel", frozen=True, order=True):
    """A place in a text (LSP's own struct). Both count from 0, `character` in units of the encoding that the client and the
    daemon agreed on."""

    line: int
    character: int


@final
class TextDocument:
    """One version of an open document. It never changes, so any thread may read it. `version` is the client's number."""

    __slots__ = ("_text", "derived", "language_id", "uri", "version")

    def __init__(self, uri: str, language_id: str, version: int, text: Text) -> None:
        self.derived: dict[object, Any] | None = None
        """What functions have made of this version, by the function. It ends with the version."""
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
    def path(self) -> str | None:
        """The path of the file that the URI names on this system; None for a URI of another scheme."""
        return path_or_none(self.uri)

    @property
    def exact(self) -> str:
        """The text with lone surrogates, as the client has it. `text` has U+FFFD for each."""
        return self._text.exact

    @property
    def size(self) -> int:
        """The bytes that the document takes, rounded up."""
        return self._text.size + 4 * len(self.uri) + DOCUMENT_BYTES

    @property
    def lines(self) -> list[str]:
        """The lines without their ends. After the last line end there is one more line, which may be empty."""
        return self._text.lines()

    @property
    def encoding(self) -> PositionEncoding:
        """The encoding whose units `character` counts."""
        return self._text.encoding

    def line(self, number: int) -> str:
        """Return one line without its end; empty after the last line."""
        return self._text.line(number)

    def offset_at(self, position: Any) -> int:
        """Return the index in `text` of a position: any object with `line` and `character`. A position beyond a line's end is
        at its end."""
        return self._text.offset(position.line, position.character)

    def position_at(self, offset: int) -> Position:
        """Return the position of an index in `text`."""
        return Position(*self._text.position(offset))

    def slice(self, range: Any) -> str:
        """Return the text of a range: any object with `start` and `end`."""
        text = self._text
        start, end = range.start, range.end
        return text.value[text.offset(start.line, start.character) : text.offset(end.line, end.character)]

    def word_at(self, position: Any) -> str:
        """Return the letters, digits and underscores around a position; empty if there are none."""
        line = self.line(position.line)
        at = index_of(line, position.character, self.encoding)
        start = end = at
        while start > 0 and _is_word(line[start - 1]):
            start -= 1
        while end < len(line) and _is_word(line[end]):
            end += 1
        return line[start:end]

    def changed(self, version: int, changes: list[Change]) -> TextDocument:
        """Return the document after these changes, made one after the other."""
        return TextDocument(self.uri, self.language_id, version, self._text.changed(changes))


@final
class NotebookDocument:
    """One open notebook. `cells` are as the client sent them; their texts are documents of their own. `size` is about how many
    bytes it takes without those."""

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
        self.changes = 0
        """How often a document was opened, changed or closed, or `refresh` was called."""
        self.refreshes = 0
        self.derived: dict[object, Any] = {}
        """What is made of the documents for this client, by what makes it. It ends with the client."""
        self.watchers: list[Callable[[DocumentEvent, str], None]] = []
        """The functions that are called after each event with it and the URI of its document, which is empty for `refresh`. On
        the loop's thread; they must not raise."""
        self._open: dict[str, TextDocument] = {}

    @property
    def root_path(self) -> str | None:
        """The path of `root_uri`; None without one, and for one that names no folder of this system."""
        return None if self.root_uri is None else path_or_none(self.root_uri)

    def __getitem__(self, uri: str) -> TextDocument:
        """Return an open document. Raises `KeyError` for one that is not open."""
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
        read: pipes and devices, too, which may have no end.
        """
        document = self._open.get(uri)
        if document is not None:
            return document
        with open(path_of_uri(uri), encoding="utf-8", newline="", opener=_open_file) as file:
            return self.of_text(file.read(), uri)

    def open(self, uri: str, language_id: str, version: int, text: str, event: DocumentEvent = "open") -> None:
        """Keep a new document. A cell that comes by a change of its notebook is a `change`."""
        self.keep(TextDocument(uri, language_id, version, Text(text, self.encoding)), event)

    def keep(self, document: TextDocument, event: DocumentEvent = "change") -> None:
        """Keep a document that was opened or changed."""
        before = self._open.get(document.uri)
        self.size += document.size - (0 if before is None else before.size)
        self._open[document.uri] = document
        self._tell(event, document.uri)

    def close(self, uri: str) -> None:
        document = self._open.pop(uri, None)
        if document is not None:
            self.size -= document.size
            self._tell("close", uri)

    def saved(self, uri: str) -> None:
        """The client has saved a document. Those that are not open are ignored."""
        if uri in self._open:
            self._tell("save", uri)

    def refresh(self) -> None:
        """What was derived from documents depends on something else that has changed. On the loop's thread."""
        self.refreshes += 1
        self._tell("refresh", "")

    def _tell(self, event: DocumentEvent, uri: str) -> None:
        self.changes += event != "save"
        for watcher in self.watchers:
            watcher(event, uri)

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


def path_or_none(uri: str) -> str | None:
    """The path that a `file:` URI names on this system; None for one of another scheme."""
    try:
        return path_of_uri(uri)
    except ValueError:
        return None


def _open_file(path: str, flags: int) -> int:
    """Open a file, and nothing that makes a reader wait or has no end. Raises `OSError`."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, "not a regular file", path)
    return descriptor


def uri_of_path(path: str) -> str:
    """The URI of an absolute path of either kind of system: the client's may be another than ours."""
    from urllib.parse import quote  # late: clients of today send URIs

    slashes = path.replace("\\", "/")
    return "file://" + quote(slashes if slashes.startswith("/") else f"/{slashes}")
