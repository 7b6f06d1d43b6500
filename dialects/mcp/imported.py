"""Offers the resources and prompts of imported servers of MCP under names and URIs that say which server has them.

Lists come from what the import has read; calls go to its operations. Answers are the server's, with URIs as clients know them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar, final

import msgspec
from msgspec import Raw, Struct

from ...daemon.declarations import ExternalNames, ExternalServer, Foreign, external_uri, foreign_server
from ...daemon.operations.service import DeclarationError
from ...daemon.operations.spec import OperationSpec
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.redaction import scrub_known
from .generated import structs
from .tools import tool_name

_encode: Final = msgspec.json.Encoder().encode
_json: Final = msgspec.json.Decoder().decode
Entry = TypeVar("Entry", structs.Resource, structs.ResourceTemplate, structs.Prompt)
_PROMPTS: Final = "prompts/"
"""Begins the names of operations that get a prompt, behind the namespace of the import."""
_WEB: Final = ("https://", "http://")
"""Links that hosts follow by themselves (2025-11-25, server/resources, section Common URI Schemes)."""


class ListedResource(Struct, frozen=True):
    """An entry of a server's list of resources or templates, as JSON text."""

    server: ExternalServer
    text: bytes


@final
class ImportedOffers:
    """The offers of all imported servers that callers may see. Raises `DeclarationError` for two prompts of one name."""

    def __init__(self, specs: Iterable[OperationSpec]) -> None:
        self._readers: dict[str, OperationSpec] = {}
        self._completers: dict[str, OperationSpec] = {}
        self.prompts: Final[dict[str, OperationSpec]] = {}
        """The operations that get prompts, by the names of these."""
        for spec in specs:
            if not isinstance(spec.options, Foreign) or spec.visibility != "external":
                continue
            server = spec.options.server
            match spec.options.method:
                case "resources/read" if not spec.options.target:  # else it reads those of one template
                    self._readers[server.prefix] = spec
                case "completion/complete":
                    self._completers[server.prefix] = spec
                case "prompts/get":
                    self._add_prompt(spec, server)
                case _:  # tools, and what clients of MCP get by its own methods
                    pass

    def _add_prompt(self, spec: OperationSpec, server: ExternalServer) -> None:
        own = spec.name.removeprefix(f"{server.namespace}/").removeprefix(_PROMPTS)
        name = tool_name(f"{server.namespace}/{own}")
        if name in self.prompts:
            raise DeclarationError(
                f"operations {self.prompts[name].name} and {spec.name} are both the prompt {name}; rename one of them"
            )
        self.prompts[name] = spec

    @property
    def has_resources(self) -> bool:
        return bool(self._readers)

    @property
    def has_completions(self) -> bool:
        return bool(self._completers)

    @property
    def has_apps(self) -> bool:
        return any(server.has_apps for server in self._servers())

    def _servers(self, visible: Collection[str] | None = None) -> Iterator[ExternalServer]:
        for spec in self._readers.values():
            if visible is None or spec.name in visible:
                yield foreign_server(spec.options)

    def resources(self, visible: Collection[str]) -> list[ListedResource]:
        """The resources of the servers whose resources a caller may read that sees these operations."""
        return [ListedResource(server, text) for server in self._servers(visible) for text in server.resources]

    def templates(self, visible: Collection[str]) -> list[ListedResource]:
        """The templates of the same."""
        return [ListedResource(server, text) for server in self._servers(visible) for text in server.templates]

    def reader(self, uri: str) -> tuple[OperationSpec, str] | None:
        """The operation that reads a resource, and the server's own URI of it; None where the URI names no server."""
        return _of_server(self._readers, uri)

    def completer(self, ref: structs.PromptReference | structs.ResourceTemplateReference) -> Completer | None:
        """The operation that completes arguments of a prompt or a template, and the server's own reference to that.

        None where the reference names nothing of a server; the operation is None where its server completes nothing.
        """
        match ref:
            case structs.PromptReference(name=name) if name in self.prompts:
                spec = self.prompts[name]
                own_ref = {"type": "ref/prompt", "name": spec.options.target}
                return Completer(self._completers.get(foreign_server(spec.options).prefix), spec, own_ref)
            case structs.ResourceTemplateReference(uri=uri) if (found := self.reader(uri)) is not None:
                reader, own = found
                completer = self._completers.get(foreign_server(reader.options).prefix)
                return Completer(completer, reader, {"type": "ref/resource", "uri": own})
            case _:
                return None


class Completer(Struct, frozen=True):
    """How a value is completed. `reads` is the operation whose arguments are completed: who may not call it is told nothing."""

    spec: OperationSpec | None
    reads: OperationSpec
    ref: Mapping[str, str]


def _of_server(operations: Mapping[str, OperationSpec], uri: str) -> tuple[OperationSpec, str] | None:
    found = external_uri(uri)
    if found is None or found[0] not in operations:
        return None
    return operations[found[0]], found[1]


# -- lists ----------------------------------------------------------------------------------------------------------


def listed_resource(entry: ListedResource) -> structs.Resource | None:
    """How a resource of a server is listed; None for what MCP does not have."""
    return _listed(entry.text, structs.Resource, lambda one: {"uri": entry.server.uri(one.uri)})


def listed_template(entry: ListedResource) -> structs.ResourceTemplate | None:
    """The same for a template."""
    return _listed(
        entry.text, structs.ResourceTemplate, lambda one: {"uri_template": entry.server.uri(one.uri_template)}
    )


def listed_prompt(name: str, spec: OperationSpec) -> structs.Prompt | None:
    """The same for a prompt."""
    text = foreign_server(spec.options).prompts.get(spec.options.target, b"")
    return _listed(text, structs.Prompt, lambda _: {"name": name})


def _listed(text: bytes, kind: type[Entry], changes: Callable[[Entry], dict[str, Any]]) -> Entry | None:  # Any: JSON
    try:
        found: Entry = decoder_for(kind)(text)
    except DECODE_ERRORS:
        return None
    told = scrub_known(found.description) if found.description else None
    return msgspec.structs.replace(found, description=told, **changes(found))


# -- answers --------------------------------------------------------------------------------------------------------


def read_contents(text: bytes, server: ExternalNames) -> dict[str, Any]:  # Any: JSON
    """The members of a result of `resources/read`, of the server's own."""
    members: dict[str, Any] = _json(text)
    for contents in _objects(members.get("contents")):
        _rename(contents, server)
    return members


def got_prompt(text: bytes, server: ExternalNames) -> dict[str, Any]:
    """The members of a result of `prompts/get`, of the server's own."""
    members: dict[str, Any] = _json(text)
    for message in _objects(members.get("messages")):
        _with_uris_here(message.get("content"), server)
    return members


def content_here(content: bytes, server: ExternalNames) -> bytes:
    """Content of a tool of the server, with the URIs of links and embedded resources as clients know them."""
    if b'"resource' not in content:
        return content
    try:
        blocks = decoder_for(list[dict[str, Any]])(content)
    except DECODE_ERRORS:
        return content
    for block in blocks:
        _with_uris_here(block, server)
    return _encode(blocks)


def _with_uris_here(block: object, server: ExternalNames) -> None:
    """Change the URI of a link or an embedded resource. Addresses of the web stay: hosts fetch them by themselves."""
    match block:
        case {"type": "resource_link", "uri": str(uri)} if not uri.startswith(_WEB):
            _rename(block, server)
        case {"type": "resource", "resource": {"uri": str(uri)} as resource} if not uri.startswith(_WEB):
            _rename(resource, server)
        case _:
            pass


def _rename(place: Any, server: ExternalNames) -> None:  # Any: a JSON object
    if isinstance(uri := place.get("uri"), str):
        place["uri"] = server.uri(uri)


def _objects(value: object) -> Iterator[dict[str, Any]]:
    return (each for each in (value if isinstance(value, list) else ()) if isinstance(each, dict))


def asked_completion(ref: Mapping[str, str], name: str, value: str, context: Raw | None) -> Raw:
    """The params of a completion, for the server."""
    given = {} if context is None else {"context": context}
    return Raw(_encode({"ref": ref, "argument": {"name": name, "value": value}, **given}))
