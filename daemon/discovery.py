"""The methods by which callers learn what they may call, and how the daemon is doing (section 7 of docs/protocol.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from ..errors.exceptions import FailureError
from ..errors.failures import MethodNotFound
from ..errors.redaction import scrub_known
from . import plugins
from .operations.context import Context
from .operations.identity import IdentityCache
from .operations.service import Service
from .operations.spec import Forward, OperationKind, OperationSpec

NO_INPUT: Final = msgspec.Raw(b"null")


class DiscoveryHost(Protocol):
    """The part of the daemon that these methods need."""

    version: str
    change_count: int
    """How often what is offered has changed."""

    def offered(self, context: Context) -> Iterator[OperationSpec]:
        """The external operations of the hosted services that this caller may call, in the order of declaration."""
        ...


class Listed(msgspec.Struct, frozen=True):
    """One operation in short."""

    name: str
    namespace: str
    kind: OperationKind
    description: str


def discovery(host: DiscoveryHost) -> Service:
    """The service `services`, and `rpc.discover`."""
    service = Service("services")

    @service.query(inline=True, name="list")
    def list_services(ctx: Context, namespace: str | None = None, query: str | None = None) -> list[Listed]:
        """List the operations that the caller may call, all or those of a namespace or with a text in them."""
        wanted = (query or "").casefold()
        return [
            Listed(spec.name, spec.namespace, spec.kind, scrub_known(spec.description))
            for spec in host.offered(ctx)
            if namespace in (None, spec.namespace) and wanted in f"{spec.name} {spec.description}".casefold()
        ]

    @service.query(inline=True)
    def schema(ctx: Context, name: str) -> Any:  # Any: a document of JSON Schemas
        """Tell the whole specification of one operation: kind, access, and the schemas of input, output and errors."""
        wanted = name.removeprefix("/")
        for spec in host.offered(ctx):
            if spec.name == wanted:
                return plugins.load("schemas", "operation")(spec)
        raise FailureError(MethodNotFound())

    @service.query(inline=True)
    def call(operationId: str, input: msgspec.Raw = NO_INPUT) -> Any:  # noqa: N803
        """Call an operation that is named as data. The same as naming it as the method."""
        return Forward(operationId, input, subscribe=False)

    @service.query(inline=True)
    def subscribe(operationId: str, input: msgspec.Raw = NO_INPUT) -> Any:  # noqa: N803
        """Subscribe to an operation that is named as data. The same as naming it as the method."""
        return Forward(operationId, input, subscribe=True)

    service.operations[-2:] = [replace(spec, mode="forward") for spec in service.operations[-2:]]
    return service


def rpc_discovery(host: DiscoveryHost) -> Service:
    """`rpc.discover`, whose name OpenRPC fixes."""
    service = Service("")
    documents: IdentityCache[msgspec.Raw] = IdentityCache()

    @service.query(inline=True, name="rpc.discover")
    def discover(ctx: Context) -> Any:  # Any: an OpenRPC document
        """Describe everything that the caller may call as an OpenRPC document."""
        openrpc_document = plugins.load("schemas", "openrpc")
        return documents.get(
            ctx.identity,
            lambda: _encode(openrpc_document(host.offered(ctx), version=host.version)),
            host.change_count,
        )

    return service


def _encode(document: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(document))
