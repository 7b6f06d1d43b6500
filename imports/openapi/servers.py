"""Reads the servers of a document, and how callers show who they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, final
from urllib.parse import urljoin, urlsplit

from ..http.model import SecurityScheme
from .document import Documents, Node, PartError, type_name
from .parsing import DocumentError, quoted

_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")


@final
class ServerReader:
    """Reads servers. `given` are values for their variables; `origin` is the address of the document."""

    def __init__(self, origin: str, given: Mapping[str, str]) -> None:
        self._origin = origin if urlsplit(origin).scheme in ("http", "https") else ""
        self._given = given
        self._known: set[str] = set()
        self._read: dict[int, str] = {}

    def read(self, *lists: Node | None) -> str:
        """Return the base URL by the first of these lists that has a server; empty if it can't be known."""
        for servers in lists:
            if servers is not None and servers.value != []:
                key = id(servers.value)
                if key not in self._read:
                    self._read[key] = self._first(servers)
                return self._read[key]
        return urljoin(self._origin, "/") if self._origin else ""

    def _first(self, servers: Node) -> str:
        try:
            first, *others = servers.items()
            if others:
                servers.note("changed", f"the first of {len(others) + 1} servers is taken")
            return self._url(first)
        except PartError as exc:
            exc.node.note("left-out", exc.reason)
            return ""

    def check_given(self) -> None:
        """Raises `DocumentError` for a given variable that no server has."""
        for name in self._given:
            if name not in self._known:
                known = quoted(", ".join(sorted(self._known)) or "none")
                raise DocumentError(f"no server has the variable {quoted(name)}; those of this document: {known}")

    def _url(self, node: Node) -> str:
        node.object()
        variables = node.get("variables")

        def value(match: re.Match[str]) -> str:
            return self._value(match[1], variables.get(match[1]) if variables is not None else None, node)

        url = _VARIABLE.sub(value, node.text("url"))
        if not url.isprintable() or " " in url:
            raise node.wrong(f"{quoted(url)!r} is no URL")
        try:
            return urljoin(self._origin, url) if self._origin else url
        except ValueError:
            raise node.wrong(f"{quoted(url)!r} is no URL") from None

    def _value(self, name: str, variable: Node | None, server: Node) -> str:
        self._known.add(name)
        choices = variable.get("enum") if variable is not None else None
        if name in self._given:
            given = self._given[name]
            allowed = [str(each.value) for each in choices.items()] if choices is not None else [given]
            if given not in allowed:
                told = quoted(", ".join(allowed))
                raise DocumentError(f"the variable {quoted(name)} must be one of {told}, not {quoted(given)}")
            return given
        default = variable.get("default") if variable is not None else None
        if default is None or not isinstance(default.value, str | int | float):
            raise server.wrong(f"the variable {quoted(name)} has no default; give it a value")
        return str(default.value)


@final
class SecurityReader:
    """Reads security schemes and requirements."""

    def __init__(self, documents: Documents) -> None:
        self.schemes: dict[str, SecurityScheme] = {}
        self._required: dict[int, tuple[tuple[str, ...], ...]] = {}
        components = documents.first.root.get("components")
        declared = components.get("securitySchemes") if components is not None else None
        if declared is not None and not isinstance(declared.value, dict):
            declared.note("left-out", f"must be an object, not {type_name(declared.value)}")
            return
        for name, node in declared.members() if declared is not None else ():
            try:
                self.schemes[name] = _scheme(node.followed())
            except PartError as exc:
                exc.node.note("left-out", exc.reason)

    def required(self, node: Node | None) -> tuple[tuple[str, ...], ...]:
        """Return the alternatives, each of the schemes that it needs together. Raises `PartError`."""
        if node is None:
            return ()
        key = id(node.value)
        if key not in self._required:
            self._required[key] = tuple(self._alternatives(node))
        return self._required[key]

    def _alternatives(self, node: Node) -> Iterator[tuple[str, ...]]:
        for requirement in node.items():
            names = tuple(requirement.object())
            unknown = [name for name in names if name not in self.schemes]
            if unknown:
                requirement.note("left-out", f"the security scheme {quoted(unknown[0])} is declared nowhere")
            else:
                yield names


def _scheme(node: Node) -> SecurityScheme:
    node.object()
    match node.text("type"), node.text("scheme").lower(), node.text("in"):
        case "http", ("bearer" | "basic") as kind, _:
            return SecurityScheme(kind)
        case "apiKey", _, ("header" | "query" | "cookie") as location if node.text("name"):
            return SecurityScheme("api-key", location, node.text("name"))
        case "apiKey", _, _:
            raise node.wrong("an API key needs `name`, and `in`: header, query or cookie")
        case (("oauth2" | "openIdConnect"), _, _):
            return SecurityScheme("bearer")
        case ("http" | "mutualTLS") as kind, scheme, _:
            node.note("changed", f"{quoted(f'{kind} {scheme}'.strip())} can't be sent; calls go without it")
            return SecurityScheme("other")
        case kind, _, _:
            raise node.wrong(f"{quoted(kind)!r} is no type of security scheme")
