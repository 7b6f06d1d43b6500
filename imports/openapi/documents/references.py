"""The documents of one import, and what `$ref`, `$id` and `$anchor` in them mean. Fetches by the function that it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, final
from urllib.parse import unquote, urldefrag, urljoin

from .nodes import Document, DocumentError, Node, PartError, Path, quoted
from .parsing import parse

Fetcher: TypeAlias = Callable[[str], bytes]
"""The text of another document, by its absolute address. Raises `DocumentError`."""

_MAX_HOPS: Final = 100
"""How many references may follow each other."""


@final
class Documents:
    """The first document, and those that were fetched because one referred to them."""

    def __init__(self, first: Document, fetch: Fetcher | None, note: Callable[[Document, Path, str], None]) -> None:
        self.first = first
        self._fetch = fetch
        self._note = note
        self._resources: dict[str, Node | str] = {first.uri: first.root}  # by address; or why there is none
        self._indexed: set[str] = set()
        self._found: dict[tuple[str, str, str], Node] = {}

    def follow(self, node: Node) -> Node:
        """What a node is, behind all references. Raises `PartError` for one that leads nowhere or in a circle."""
        start = node
        for _ in range(_MAX_HOPS):
            ref = node.value.get("$ref") if type(node.value) is dict else None
            if not isinstance(ref, str):
                return node
            node = self.locate(node.document, self.base_at(node), ref, node.path)
        raise start.wrong("the references from here lead in a circle, and never to a value")

    def locate(self, document: Document, base: str, ref: str, path: Path) -> Node:
        """What one reference refers to. `base` is the address that it is relative to; `path` is where it stands.

        Raises `PartError` if there is nothing.
        """
        key = (document.uri, base, ref)
        found = self._found.get(key)
        if found is None:
            try:
                found = self._found[key] = self._locate(document, base, ref)
            except (DocumentError, PartError) as exc:
                raise PartError(document.pointer((path, "$ref")), exc.reason) from exc
        return found

    def _locate(self, document: Document, base: str, ref: str) -> Node:
        try:
            uri, fragment = urldefrag(urljoin(base, ref))
        except ValueError:
            raise DocumentError(f"{quoted(ref)} is no reference") from None
        resource = self._resource(document, uri)
        if not fragment:
            return resource
        if fragment.startswith("/"):
            return self._walk(resource, fragment, ref)
        self._index(resource.document)
        anchored = self._resources.get(f"{uri}#{unquote(fragment)}")
        if not isinstance(anchored, Node):
            raise DocumentError(f"{quoted(ref)} refers to nothing")
        return anchored

    def _resource(self, document: Document, uri: str) -> Node:
        if uri not in self._resources:
            self._index(document)
            self._index(self.first)
        if uri not in self._resources:
            self._load(document, uri)
        found = self._resources[uri]
        if isinstance(found, str):
            raise DocumentError(found)
        return found

    def _load(self, document: Document, uri: str) -> None:
        if self._fetch is None:
            raise DocumentError(f"{quoted(uri)} is another document, and only references within this one are followed")
        label = uri.removeprefix(f"{self.first.uri.rpartition('/')[0]}/")
        try:
            text = self._fetch(uri)
            doubles: list[tuple[Path, str]] = []
            tree = parse(text, lambda path, reason: doubles.append((path, reason)))
        except DocumentError as exc:
            self._resources[uri] = f"{quoted(label)}: {exc}" if label not in str(exc) else str(exc)
            return
        version = tree.get("openapi") if isinstance(tree, dict) else None
        is_old = version.startswith("3.0") if isinstance(version, str) else document.is_old
        loaded = Document(uri, tree, label=label, is_old=is_old)
        self._resources[uri] = loaded.root
        for path, reason in doubles:
            self._note(loaded, path, reason)

    def _walk(self, resource: Node, fragment: str, ref: str) -> Node:
        node = resource
        for token in unquote(fragment).split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            below = _step(node, name)
            if below is None:
                below = _step(self.follow(node), name)
            if below is None:
                raise DocumentError(f"{quoted(ref)} refers to nothing")
            node = below
        return node

    def _index(self, document: Document) -> None:
        """Looks once through a document for `$id` and `$anchor`."""
        if document.uri in self._indexed:
            return
        self._indexed.add(document.uri)
        waiting: list[tuple[Any, Path, str]] = [(document.root.value, None, document.uri)]
        while waiting:
            value, path, base = waiting.pop()
            if type(value) is list:
                waiting += [
                    (item, (path, str(at)), base) for at, item in enumerate(value) if type(item) in (dict, list)
                ]
                continue
            if type(value) is not dict:
                continue
            base = self.base_of(value, base)
            node = Node(document, path, value)
            if isinstance(value.get("$id"), str):
                self._resources.setdefault(base, node)
            for word in ("$anchor", "$dynamicAnchor"):
                if isinstance(anchor := value.get(word), str):
                    self._resources.setdefault(f"{base}#{anchor}", node)
            waiting += [(item, (path, name), base) for name, item in value.items() if type(item) in (dict, list)]

    def base_at(self, node: Node) -> str:
        """The address that references at a node are relative to, but for an `$id` of its own."""
        base = node.document.uri
        if node.document.is_old or node.path is None:
            return base
        tokens: list[str] = []
        path = node.path[0]
        while path is not None:
            path, token = path
            tokens.append(token)
        value = node.document.root.value
        for token in reversed(tokens):
            if isinstance(value, dict):
                base = self.base_of(value, base)
                value = value.get(token)
            elif isinstance(value, list):
                value = value[int(token)]
        return self.base_of(value, base) if isinstance(value, dict) else base

    @staticmethod
    def base_of(schema: dict[str, Any], base: str) -> str:
        """The address that references in a schema are relative to: its own `$id`, or that of what holds it."""
        own = schema.get("$id")
        if not isinstance(own, str):
            return base
        try:
            return urldefrag(urljoin(base, own)).url
        except ValueError:
            return base


def _step(node: Node, name: str) -> Node | None:
    value = node.value
    if type(value) is dict and name in value:
        return Node(node.document, (node.path, name), value[name])
    if type(value) is list and name.isascii() and name.isdigit() and len(name) < 10 and int(name) < len(value):
        return Node(node.document, (node.path, name), value[int(name)])
    return None
