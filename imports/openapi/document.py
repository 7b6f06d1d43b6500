"""The documents of one import: their values with their places, and what `$ref`, `$id` and `$anchor` mean. Fetches by the function
that it is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias, TypeVar, final
from urllib.parse import unquote, urldefrag, urljoin

from ...schemas.phrases import json_kind
from ..model import Note, NoteKind
from .parsing import DocumentError, Path, parse, quoted

T = TypeVar("T")

Fetcher: TypeAlias = Callable[[str], bytes]
"""The text of another document, by its absolute address. Raises `DocumentError`."""

_VERSION: Final = re.compile(r"3\.[012](?:\.\S*)?")
_MAX_HOPS: Final = 100
"""How many references may follow each other."""


@final
class PartError(Exception):
    """A part of the document is wrong, which others need not mind."""

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason


def type_name(value: object) -> str:
    """Return what JSON calls a value of this type, with its article."""
    kind = json_kind(value)
    return kind if kind == "null" else f"{'an' if kind in ('array', 'object') else 'a'} {kind}"


@final
class Document:
    """A parsed document. `label` stands before the pointers into it; that of the first is empty. The names of its types begin
    with `stem`. `is_old` says that its schemas are older than 2020-12: those of OpenAPI 3.0, or of draft 7.
    """

    def __init__(
        self, documents: Documents, uri: str, value: Any, *, label: str = "", stem: str = "", is_old: bool = False
    ) -> None:  # Any: JSON
        self.documents = documents
        self.uri = uri
        self.label = label
        self.stem = stem or label.rpartition("/")[2].partition(".")[0]
        self.is_old = is_old
        self.root = Node(self, None, value)

    def note(self, path: Path, reason: str) -> None:
        """Note that a place is read otherwise than it stands there."""
        Node(self, path, None).note("changed", reason)


@final
class Node:
    """A value of a document, and where it stands."""

    __slots__ = ("document", "path", "value")

    def __init__(self, document: Document, path: Path, value: Any) -> None:  # Any: JSON
        self.document = document
        self.path = path
        self.value = value

    @property
    def tokens(self) -> list[str]:
        """The names and indexes on the way from the root."""
        found: list[str] = []
        path = self.path
        while path is not None:
            path, token = path
            found.append(token)
        return found[::-1]

    @property
    def pointer(self) -> str:
        """The JSON pointer (RFC 6901) of the place, behind `LABEL#` in another document than the first."""
        pointer = "".join(f"/{token.replace('~', '~0').replace('/', '~1')}" for token in self.tokens)
        return f"{self.document.label}#{pointer}" if self.document.label else pointer

    def wrong(self, reason: str) -> PartError:
        """Return the error that says what is wrong here."""
        return PartError(self, reason)

    def note(self, kind: NoteKind, reason: str) -> None:
        """Note that this is not imported as it stands here."""
        self.document.documents.note(self.pointer, kind, reason)

    def followed(self) -> Node:
        """Return what this is, behind all references. Raises `PartError` for one that leads nowhere or in a circle."""
        node = self
        for _ in range(_MAX_HOPS):
            ref = node.value.get("$ref") if type(node.value) is dict else None
            if not isinstance(ref, str):
                return node
            node = node.located(ref)
        raise self.wrong("the references from here lead in a circle, and never to a value")

    def located(self, ref: str, base: str | None = None) -> Node:
        """Return what a reference here refers to. `base` is the address that it is relative to. Raises `PartError`."""
        documents = self.document.documents
        return documents.locate(self, documents.base_at(self) if base is None else base, ref)

    def get(self, name: str) -> Node | None:
        """Return a member. None where it is missing or null, and where this is no object."""
        value = self.value.get(name) if isinstance(self.value, dict) else None
        return None if value is None else Node(self.document, (self.path, name), value)

    def component_names(self) -> Iterable[str]:
        """Return the names in `components/schemas` of an object."""
        components = self.get("components")
        schemas = components and components.get("schemas")
        return schemas.value if schemas and isinstance(schemas.value, dict) else ()

    def members(self) -> Iterator[tuple[str, Node]]:
        """Yield the members of an object. Raises `PartError` where this is no object."""
        for name, value in self.object().items():
            yield name, Node(self.document, (self.path, name), value)

    def fields(self) -> Iterator[tuple[str, Node]]:
        """Yield the members of an object without its extensions, which begin with `x-`. Raises `PartError` as `members`."""
        return ((name, node) for name, node in self.members() if not name.startswith("x-"))

    def items(self) -> Iterator[Node]:
        """Yield the items of an array. Raises `PartError` where this is no array."""
        if not isinstance(self.value, list):
            raise self.wrong(f"must be an array, not {type_name(self.value)}")
        for index, value in enumerate(self.value):
            yield Node(self.document, (self.path, str(index)), value)

    def object(self) -> dict[str, Any]:
        """Return the value. Raises `PartError` where it is no object."""
        if not isinstance(self.value, dict):
            raise self.wrong(f"must be an object, not {type_name(self.value)}")
        return self.value

    def text(self, name: str) -> str:
        """Return a member that is a string; empty where it is missing. Raises `PartError` for another."""
        return self._member(name, str, "a string") or ""

    def flag(self, name: str) -> bool | None:
        """Return a member that is a boolean; None where it is missing. Raises `PartError` for another."""
        return self._member(name, bool, "true or false")

    def _member(self, name: str, kind: type[T], what: str) -> T | None:
        member = self.get(name)
        if member is None or isinstance(member.value, kind):
            return None if member is None else member.value
        raise member.wrong(f"must be {what}, not {type_name(member.value)}")

    def prose(self, name: str) -> str:
        """Return a member that is a string for people; empty where it is anything else."""
        value = self.value.get(name) if isinstance(self.value, dict) else None
        return value.strip() if isinstance(value, str) else ""


@final
class Documents:
    """The first document, those that were fetched because one referred to them, and the notes on all of them."""

    def __init__(
        self, value: Any, origin: str = "", fetch: Fetcher | None = None, *, stem: str = "", is_old: bool = False
    ) -> None:  # Any: JSON
        self.notes: dict[tuple[str, str], Note] = {}
        self.first = first = Document(self, origin, value, stem=stem, is_old=is_old)
        self._fetch = fetch
        self._resources: dict[str, Node | str] = {first.uri: first.root}  # by address; or why there is none
        self._indexed: set[str] = set()
        self._found: dict[tuple[str, str, str], Node] = {}
        self._locating: set[tuple[str, str, str]] = set()

    def note(self, pointer: str, kind: NoteKind, reason: str) -> None:
        """Keep a note on a place, unless there is the same."""
        self.notes.setdefault((pointer, reason), Note(pointer, kind, reason))

    @property
    def left_out(self) -> int:
        """How many notes there are so far on what is left out."""
        return sum(note.kind == "left-out" for note in self.notes.values())

    def locate(self, at: Node, base: str, ref: str) -> Node:
        """Return what a reference refers to that stands in a node. Raises `PartError` if there is nothing."""
        key = (at.document.uri, base, ref)
        if key not in self._found:
            if key in self._locating:  # `{"$ref": "#/$defs/none"}` at a root: the way to it leads through itself
                raise PartError(Node(at.document, (at.path, "$ref"), ref), f"{quoted(ref)} refers to nothing")
            self._locating.add(key)
            try:
                self._found[key] = self._locate(at.document, base, ref)
            except (DocumentError, PartError) as exc:
                raise PartError(Node(at.document, (at.path, "$ref"), ref), exc.reason) from exc
            finally:
                self._locating.discard(key)
        return self._found[key]

    def _locate(self, document: Document, base: str, ref: str) -> Node:
        try:
            uri, fragment = urldefrag(urljoin(base, ref))
        except ValueError:
            raise DocumentError(f"{quoted(ref)} is no reference") from None
        found: Node | None = self._resource(document, uri)
        if fragment.startswith("/"):
            for token in unquote(fragment).split("/")[1:]:
                name = token.replace("~1", "/").replace("~0", "~")
                found = found and (_step(found, name) or _step(found.followed(), name))
        elif fragment and found is not None:
            self._index(found.document)
            anchored = self._resources.get(f"{uri}#{unquote(fragment)}")
            found = anchored if isinstance(anchored, Node) else None
        if found is None:
            raise DocumentError(f"{quoted(ref)} refers to nothing")
        return found

    def _resource(self, document: Document, uri: str) -> Node:
        if uri not in self._resources:
            self._index(document)
            self._index(self.first)
        if uri not in self._resources:
            self._resources[uri] = self._loaded(document, uri)
        found = self._resources[uri]
        if isinstance(found, str):
            raise DocumentError(found)
        return found

    def _loaded(self, document: Document, uri: str) -> Node | str:
        """Another document, or why there is none."""
        if self._fetch is None:
            return f"{quoted(uri)} is another document, and only references within this one are followed"
        label = uri.removeprefix(f"{self.first.uri.rpartition('/')[0]}/")
        told: list[tuple[Path, str]] = []
        try:
            tree = parse(self._fetch(uri), lambda *each: told.append(each))
        except DocumentError as exc:
            return f"{quoted(label)}: {exc}" if label not in str(exc) else str(exc)
        version = tree.get("openapi") if isinstance(tree, dict) else None
        is_old = version.startswith("3.0") if isinstance(version, str) else document.is_old
        loaded = Document(self, uri, tree, label=label, is_old=is_old)
        for path, reason in told:
            loaded.note(path, reason)
        return loaded.root

    def _index(self, document: Document) -> None:
        """Look once through a document for `$id` and `$anchor`."""
        if document.uri in self._indexed:
            return
        self._indexed.add(document.uri)
        waiting: list[tuple[Any, Path, str]] = [(document.root.value, None, document.uri)]
        while waiting:
            value, path, base = waiting.pop()
            if type(value) is dict:
                base = base_of(value, base)
                node = Node(document, path, value)
                if isinstance(value.get("$id"), str):
                    self._resources.setdefault(base, node)
                for word in ("$anchor", "$dynamicAnchor"):
                    if isinstance(anchor := value.get(word), str):
                        self._resources.setdefault(f"{base}#{anchor}", node)
            inner = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
            waiting += [(each, (path, str(name)), base) for name, each in inner if type(each) in (dict, list)]

    def base_at(self, node: Node) -> str:
        """Return the address that references at a node are relative to."""
        base = node.document.uri
        if node.document.is_old or node.path is None:
            return base
        value = node.document.root.value
        for token in (*node.tokens[:-1], None):
            if isinstance(value, dict):
                base = base_of(value, base)
                value = value.get(token)
            elif isinstance(value, list) and token is not None:
                value = value[int(token)]
        return base


def base_of(schema: dict[str, Any], base: str) -> str:
    """Return the address that references in a schema are relative to: its own `$id`, or that of what holds it."""
    own = schema.get("$id")
    if not isinstance(own, str):
        return base
    try:
        return urldefrag(urljoin(base, own)).url
    except ValueError:
        return base


def read_documents(text: bytes, origin: str, fetch: Fetcher | None) -> Documents:
    """Return the OpenAPI document in a text. Raises `DocumentError` for one that is none of 3.0, 3.1 or 3.2."""
    told: list[tuple[Path, str]] = []
    tree = parse(text, lambda *each: told.append(each))
    version = _version(tree)
    own = tree.get("$self") if version == "3.2" else None
    documents = Documents(tree, own if isinstance(own, str) else origin, fetch, is_old=version == "3.0")
    for path, reason in told:
        documents.first.note(path, reason)
    return documents


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


def _step(node: Node, name: str) -> Node | None:
    value = node.value
    if type(value) is dict and name in value:
        return Node(node.document, (node.path, name), value[name])
    if type(value) is list and name.isascii() and name.isdigit() and len(name) < 10 and int(name) < len(value):
        return Node(node.document, (node.path, name), value[int(name)])
    return None
