"""The service of an MCP server's operations, which become others when the server's lists do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, final

from msgspec import Raw
from msgspec.structs import replace

from ...daemon.declarations import ExternalTool, Foreign
from ...daemon.logs import log
from ...daemon.operations.changes import Changes
from ...daemon.operations.service import Service
from ..archive import ImportArchive, pack
from ..failures import ImportFailed
from ..service import ImportOptions, Upstream, imported_service
from .model import McpImport, McpOperation, Target

if TYPE_CHECKING:
    from ...daemon.operations.context import Context
    from .upstream import McpUpstream

Select: TypeAlias = Callable[[McpImport], McpImport]
"""What becomes of an import before it is served: which operations, by which names."""


def mcp_service(
    namespace: str,
    target: Target,
    data: bytes,
    options: ImportOptions,
    *,
    select: Select = lambda imported: imported,
    credential: str | None = None,
) -> Service:
    """The service of what `read_mcp` found and `select` chose of it, as `pack` wrote it. `credential` is one of those in the
    options: a server behind a URL gets it as its bearer token. Raises `ImportFailed`, and `ValueError` for other bytes.
    """
    packed = ImportArchive(data, McpImport, McpOperation)
    head = packed.head
    assert isinstance(head, McpImport)

    def make_upstream() -> McpUpstream:
        from .upstream import McpUpstream  # late: what it needs takes longer to load than all the rest

        return McpUpstream(target, namespace, era=head.era, credential=credential, on_listed=follow)

    upstream = _LateUpstream(make_upstream)
    service = _service_of(namespace, packed, upstream, options)
    service.changes = changes = Changes()
    last = data

    def follow(found: McpImport) -> None:
        nonlocal last
        try:
            now = pack(select(found))
            if now == last:
                return
            last = now
            changed = _service_of(namespace, ImportArchive(now, McpImport, McpOperation), upstream, options)
        except ImportFailed as exc:
            log.error("import.changes_refused", import_=namespace, reason=str(exc))
            return
        service.operations = changed.operations
        log.info("import.changed", import_=namespace, operations=len(changed.operations))
        changes.announce()

    return service


@final
class _LateUpstream:
    """An upstream that is made when it is opened."""

    def __init__(self, make: Callable[[], McpUpstream]) -> None:
        self._make = make
        self._made: McpUpstream

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        self._made = self._make()
        async with self._made.opened():
            yield

    async def call(self, operation: McpOperation, arguments: dict[str, Any], ctx: Context) -> Raw:  # Any: JSON
        return await self._made.call(operation, arguments, ctx)

    def stream(self, operation: McpOperation, arguments: dict[str, Any], ctx: Context) -> AsyncGenerator[Raw, None]:
        return self._made.stream(operation, arguments, ctx)


def _service_of(
    namespace: str, packed: ImportArchive[McpOperation], upstream: Upstream, options: ImportOptions
) -> Service:
    service = imported_service(namespace, packed, upstream, options)
    service.operations = [
        replace(spec, options=Foreign(partial(_tool, packed, index))) for index, spec in enumerate(service.operations)
    ]
    return service


def _tool(packed: ImportArchive[McpOperation], index: int) -> ExternalTool | None:
    operation = packed.operation(index)
    if operation.method != "tools/call":
        return None
    return ExternalTool(operation.annotations, whole=not operation.structured)
