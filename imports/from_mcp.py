"""Makes a service of an MCP server: asks it for its operations, or reads them from the cache, and joins them with the code
that calls it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from msgspec import UNSET, Raw
from msgspec.structs import replace

from ..daemon.declarations import ExternalServer, ExternalTool, Foreign
from ..daemon.logs import log
from ..daemon.operations.service import Changes, Service
from ..daemon.operations.spec import Timeout
from .archive import ImportArchive, keep, key_of, pack, read_cached
from .arguments import Found, Selection, check_arguments, check_expose, choose, tell_notes
from .mcp.model import McpImport, McpOperation
from .mcp.watched import WatchedResources
from .model import ImportFailed
from .service import ImportOptions, Upstream, Validate, imported_service
from .targets import Source, StrPath, Target, require, target_of

if TYPE_CHECKING:
    from ..daemon.operations.context import Context
    from .mcp.upstream import McpUpstream

Select: TypeAlias = Callable[[McpImport], McpImport]
"""A function that selects and names the operations of an import before it is served."""


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
        from .mcp.upstream import McpUpstream  # late: what it needs takes longer to load than all the rest

        return McpUpstream(target, namespace, era=head.era, credential=credential, on_listed=follow, watched=watched)

    upstream, watched = _LateUpstream(make_upstream), WatchedResources()
    service = _service_of(namespace, packed, upstream, options, watched)
    service.changes = changes = Changes()
    last = data

    def follow(found: McpImport) -> None:
        nonlocal last
        try:
            now = pack(select(found))
            if now == last:
                return
            last = now
            changed = _service_of(namespace, ImportArchive(now, McpImport, McpOperation), upstream, options, watched)
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
    namespace: str,
    packed: ImportArchive[McpOperation],
    upstream: Upstream,
    options: ImportOptions,
    watched: WatchedResources,
) -> Service:
    service = imported_service(namespace, packed, upstream, options)
    head = packed.head
    assert isinstance(head, McpImport)
    server = ExternalServer(namespace, watched, head.resources, head.templates, head.prompts, head.has_apps)
    service.operations = [
        replace(spec, options=Foreign(partial(_tool, packed, index), entry.method, entry.target, server))
        for index, (spec, entry) in enumerate(zip(service.operations, packed.entries, strict=True))
    ]
    return service


def _tool(packed: ImportArchive[McpOperation], index: int) -> ExternalTool | None:
    operation = packed.operation(index)
    if operation.method != "tools/call":
        return None
    return ExternalTool(operation.annotations, whole=not operation.structured, ui=operation.ui)


def _chosen(selection: Selection, rename: Mapping[str, str], imported: McpImport, *, strict: bool = False) -> McpImport:
    """Return the selected part of an import. With `strict` each name and each pattern must fit an operation."""
    found = [Found("", "", operation.name) for operation in imported.operations]
    chosen = choose(imported.operations, found, selection, rename, strict=strict)
    return replace(imported, operations=tuple(replace(each, name=name) for each, name in chosen))


READ_SECONDS: Final = 10.0


def from_mcp(  # noqa: PLR0913 - what can be said of an import
    server: Source,
    *,
    namespace: str,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    credential: str = "",
    token: str = "",
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    rename: Mapping[str, str] | None = None,
    expose: bool | Sequence[str] = False,
    scopes: Sequence[str] = (),
    validate: Validate = "on",
    timeout: Timeout = UNSET,
    allow_private: bool = True,
    max_age: float = 0.0,
) -> Service:
    """Return a service with the tools, resources and prompts of an MCP server.

    `server` is a command, or a URL (Streamable HTTP). A command is started now, for at most 10 s, to ask for its operations,
    and again with the first call. It ends with the daemon. `cwd` and `env` are as in `subprocess.Popen`, but `env` is added to
    the daemon's own environment without its settings. A URL gets `headers` with each request, and as a bearer token the
    credential of the app that `credential` names. `token` is the bearer token of the first question, as the daemon has no
    credentials yet. Private addresses are refused with `allow_private=False`.

    The operations are called `namespace/name`. `include` and `exclude` are patterns of names; an operation is imported if it
    matches `include`, if given, and not `exclude`. `rename` maps old names to new ones. `expose` has patterns of the
    operations that callers may call, or True for all; the others can only be called by operations of this daemon. A caller
    needs all of `scopes`. The same rules select operations that the server adds later.

    Params and results are checked against the server's schemas. With `validate="on"` a value that does not fit is an error,
    with `log` a line in the log, with `off` it is not checked. `timeout` is in seconds, as that of an operation. The
    operations that were read are used again for `max_age` seconds; meanwhile the server is started only with the first call.

    Blocks while the server is asked. Raises `DeclarationError`, in one line, if that fails, and for a wrong argument.
    """
    require("an imported operation", "mcp", "jsonschema_rs")
    check_arguments(dict(locals()))
    target = target_of("an MCP server", server, cwd=cwd, env=env, headers=headers, allow_private=allow_private)
    selection, renamed = Selection(include=tuple(include), exclude=tuple(exclude)), dict(rename or {})
    select = partial(_chosen, selection, renamed)
    key = key_of(type(target).__name__, target, token, selection, renamed)
    cached = read_cached(key) if max_age > 0 else None
    if cached is not None and 0 <= time() - cached.made < max_age:
        data = cached.data
    else:
        from .mcp.session import read_mcp  # late: what the cache has is not asked for

        data = pack(select(read_mcp(target, namespace, token=token or None, seconds=READ_SECONDS), strict=True))
        if max_age > 0:
            keep(key, data, {})
    packed = ImportArchive(data, McpImport, McpOperation)
    check_expose(expose, [entry.name for entry in packed.entries], rename)
    tell_notes(namespace, packed.head.notes, len(packed.entries))
    options = ImportOptions(
        expose=expose,
        validate=validate,
        timeout=timeout,
        scopes=scopes,
        credentials=[credential] if credential else [],
    )
    return mcp_service(namespace, target, data, options, select=select, credential=credential or None)
