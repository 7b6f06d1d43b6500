"""The service of an MCP server's operations, which become others when the server's lists do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from ...logs import log
from ...offers import Foreign, ForeignTool
from ...operations.changes import Changes
from ...operations.service import Service
from ..failures import ImportFailed
from ..packed import Packed, pack
from ..service import ImportOptions, imported_service
from .model import McpImport, McpOperation, Target
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
    packed = Packed(data, McpImport, McpOperation)
    head = packed.head
    upstream = McpUpstream(
        target, namespace, era=head.era if isinstance(head, McpImport) else "modern", credential=credential
    )
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
            changed = _service_of(namespace, Packed(now, McpImport, McpOperation), upstream, options)
        except ImportFailed as exc:
            log.error("import.changes_refused", import_=namespace, reason=str(exc))
            return
        service.operations = changed.operations
        log.info("import.changed", import_=namespace, operations=len(changed.operations))
        changes.announce()

    upstream.on_listed = follow
    return service


def _service_of(namespace: str, packed: Packed[McpOperation], upstream: McpUpstream, options: ImportOptions) -> Service:
    service = imported_service(namespace, packed, upstream, options)
    service.operations = [
        replace(spec, options=Foreign(partial(_tool, packed, index))) for index, spec in enumerate(service.operations)
    ]
    return service


def _tool(packed: Packed[McpOperation], index: int) -> ForeignTool | None:
    operation = packed.operation(index)
    if operation.method != "tools/call":
        return None
    return ForeignTool(operation.annotations, whole=not operation.structured)
