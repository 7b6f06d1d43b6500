"""From an MCP server to a service: asks it what it offers, or takes what the cache has of it, and joins it with what calls it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from functools import partial
from importlib.util import find_spec
from time import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from ..client.outbound.network import EXPECTED_PUBLIC_URL, parse_url
from ..daemon.declarations import ExternalTool, Foreign
from ..daemon.logs import log
from ..daemon.operations.service import Changes, Service
from ..daemon.operations.spec import Timeout, check_name
from ..errors.nearest import nearest_hint
from ..version import __version__
from .archive import ImportArchive, keep, pack, read_cached
from .arguments import check_arguments, check_expose, check_matches, tell_notes
from .mcp.model import Command, McpImport, McpOperation, Target, Url
from .model import ImportFailed, Note
from .service import ImportOptions, Upstream, Validate, imported_service
from .validation import require_validator

if TYPE_CHECKING:
    from ..daemon.operations.context import Context
    from .mcp.upstream import McpUpstream


# The service of an MCP server's operations, which become others when the server's lists do.


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
        from .mcp.upstream import McpUpstream  # late: what it needs takes longer to load than all the rest

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


# What an author writes for a server, a command or a URL, as a target. Starts and reaches nothing.


Server: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_SCHEMES: Final = ("http://", "https://")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_LIBRARIES: Final = ("h11",)
"""What HTTP needs."""


def mcp_target(
    server: Server,
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    allow_private: bool = True,
) -> Target:
    """The server that is meant: a list of words, a line of them as a shell takes it, or a URL.

    `cwd` and `env` are for commands, `headers` and `allow_private` for URLs. Raises `ImportFailed`.
    """
    if isinstance(server, str) and server.lower().startswith(_SCHEMES):
        if cwd is not None or env is not None:
            raise ImportFailed("an MCP server behind a URL has neither cwd nor env")
        found = parse_url(server, allow_private=allow_private)
        if found == EXPECTED_PUBLIC_URL:
            raise ImportFailed(
                f"{server.partition('?')[0]}: an MCP server needs a URL of a public host, and this address is private;"
                " allow_private=True (--import-private, or allow-private = true in a settings file) allows it"
            )
        if isinstance(found, str):
            raise ImportFailed(f"an MCP server needs an {found}, or a command")
        if missing := [name for name in _LIBRARIES if find_spec(name) is None]:
            raise ImportFailed(
                f"an MCP server behind a URL needs {' and '.join(missing)}: pip install 'discreet[http]'"
            )
        return Url(server, dict(headers or {}), allow_private)
    if isinstance(server, str) and _SCHEME.match(server):
        raise ImportFailed(f"{server.partition('?')[0]}: an MCP server is a command or an http(s) URL")
    if headers is not None:
        raise ImportFailed("an MCP server that is a command has no headers")
    try:
        words = shlex.split(server) if isinstance(server, str) else _words(server)
    except (TypeError, ValueError):
        words = []
    if not words or not words[0] or any("\0" in word for word in words):
        raise ImportFailed("an MCP server is a command, such as ['uvx', 'mcp-server-time'], or a URL")
    return Command(tuple(words), None if cwd is None else os.fspath(cwd), dict(env or {}))


def _words(server: os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    return [os.fspath(server)] if isinstance(server, os.PathLike) else [os.fspath(word) for word in server]


# Which operations of a server are imported, and by which names.


class Choice(Struct, frozen=True, array_like=True):
    """The operations whose names fit a pattern of `include`, if there is any, and none of `exclude`. `rename` has new names."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    rename: Mapping[str, str] = {}

    def of(self, imported: McpImport, *, strict: bool = False) -> McpImport:
        """What remains of an import. With `strict` each name in `rename` must be there, and each pattern must fit one;
        else they may come later.

        Raises `ImportFailed` for a new name that is none, or that another operation has.
        """
        names = [operation.name for operation in imported.operations]
        unknown = [name for name in self.rename if name not in names]
        if unknown and strict:
            raise ImportFailed(f"rename: there is no operation {unknown[0]!r}{nearest_hint(unknown[0], names)}")
        if strict:
            for what, patterns in (("include", self.include), ("exclude", self.exclude)):
                check_matches(what, patterns, [self.rename.get(name, name) for name in names], self.rename)
        kept: dict[str, McpOperation] = {}
        notes = list(imported.notes)
        for operation in imported.operations:
            name = self.rename.get(operation.name, operation.name)
            if name != operation.name:
                _check(name, operation.name)
                notes.append(Note(operation.pointer, "renamed", f"it is called {name} here"))
            if (self.include and not _fits(name, self.include)) or _fits(name, self.exclude):
                continue
            if name in kept:
                raise ImportFailed(f"rename: two operations would be called {name!r}")
            kept[name] = replace(operation, name=name)
        return replace(imported, operations=tuple(kept.values()), notes=tuple(notes))


def _check(name: str, old: str) -> None:
    try:
        check_name(name)
    except ValueError as exc:
        raise ImportFailed(f"rename: {old!r}: {exc}") from None


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


READ_SECONDS: Final = 10.0


def from_mcp(  # noqa: PLR0913 - what can be said of an import
    server: Server,
    *,
    namespace: str,
    cwd: str | os.PathLike[str] | None = None,
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
    """A service with the tools, resources and prompts of an MCP server, which is a command or a URL (Streamable HTTP).

    The operations are called `namespace/name`. A command is started now, for at most 10 s, to ask what it offers, and again with
    the first call; it ends with the daemon. `cwd` and `env` are as in `subprocess.Popen`, but that `env` is added to the
    daemon's own without its settings. To a URL, `headers` are sent with each request, and of the app's credentials the one
    that `credential` names, as a bearer token. `token` is one for now, as the daemon has no credentials yet. Private addresses
    are refused with `allow_private=False`.

    Imported are the operations whose names fit a pattern of `include`, if there is any, and none of `exclude`. `rename` has new
    names by name. Those that `expose` has a pattern for can be called from outside, all of them for True; the others by
    operations of the daemon alone. A caller needs all of `scopes`. All of this holds for what the server offers later, too.

    Params and answers are checked against the server's schemas: `validate` says whether what does not fit is an error, a line
    in the log, or nothing. `timeout` is in seconds, as that of an operation. What was read is used again for `max_age` seconds;
    then the server is started with the first call alone.

    Raises `DeclarationError`: a wrong argument, or a server that can't be asked, in one line. Blocks while the server is asked.
    """
    require_validator("mcp")
    check_arguments(dict(locals()))
    target = mcp_target(server, cwd=cwd, env=env, headers=headers, allow_private=allow_private)
    choice = Choice(tuple(include), tuple(exclude), dict(rename or {}))
    data = _data(target, namespace, token, choice, max_age)
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
    return mcp_service(namespace, target, data, options, select=choice.of, credential=credential or None)


class _Key(Struct, frozen=True, array_like=True):
    """What decides what an import is."""

    version: str
    target: Target
    token: str
    choice: Choice


def _data(target: Target, namespace: str, token: str, choice: Choice, max_age: float) -> bytes:
    key = msgspec.msgpack.encode((type(target).__name__, _Key(__version__, target, token, choice)))
    cached = read_cached(key) if max_age > 0 else None
    if cached is not None and 0 <= time() - cached.made < max_age:
        return cached.data
    from .mcp.session import read_mcp  # late: what the cache has is not asked for

    data = pack(choice.of(read_mcp(target, namespace, token=token or None, seconds=READ_SECONDS), strict=True))
    if max_age > 0:
        keep(key, data, {})
    return data
