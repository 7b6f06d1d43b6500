"""The parts that are chosen by name: dialects, task stores, services, identity providers, readers, verbs and what serves HTTP.

The core imports none of them. Each loads when it is asked for. Installed packages add their own by entry points: a package
whose metadata has, in the group `discreet`, `dialect.mine = my_package.dialect` is found by `--dialect mine`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "agents",
    "credential",
    "debugger",
    "dialect",
    "gateway",
    "identity",
    "reader",
    "reload",
    "schemas",
    "service",
    "store",
    "tools",
    "tracing",
    "verb",
]

GROUP: Final = "discreet"
"""The group of entry points that installed packages add plug-ins with; their names are `KIND.NAME`."""

AUTO: Final = "auto"
"""Stands for a dialect where the client's first message decides among those that are built in."""

FOUND_ONLY_IN: Final = {"lsp": ("textDocument/", "notebookDocument/")}
"""The prefixes of operations that only clients of one dialect call."""

ADDED_KINDS: Final = ("dialect", "store", "verb")
"""The kinds that installed packages may add to."""

BUILT_IN: Final[Mapping[Kind, Mapping[str, str]]] = {
    "agents": {"host": "discreet.agents.host:AgentRunner"},
    "credential": {"oauth": "discreet.client.oauth:check_credential"},
    "debugger": {"pdb": "discreet.debugger.debugger:Debugger"},
    "dialect": {
        "plain": "discreet.daemon.connection.plain",
        "lsp": "discreet.dialects.lsp",
        "mcp": "discreet.dialects.mcp",
        "acp": "discreet.dialects.acp",
    },
    "gateway": {
        "grpc": "discreet.gateway.grpc.listener:opened_listener",
        "http": "discreet.gateway.server.listener:opened_listener",
        "tcp": "discreet.gateway.server.sockets:accept_client",
    },
    "identity": {
        "introspection": "discreet.gateway.introspection_provider:IntrospectionProvider",
        "jwt": "discreet.gateway.jwt_provider:JwtProvider",
    },
    "reader": {"openapi": "discreet.gateway.openapi.snapshot"},
    "reload": {"polling": "discreet.reload:Reload"},
    "schemas": {
        "operation": "discreet.schemas.documents:operation_schema",
        "openrpc": "discreet.schemas.openrpc:openrpc_document",
        "phrases": "discreet.schemas.phrases",
    },
    "service": {
        "fs": "discreet.files.service:file_service",
        "import": "discreet.imports.configured:service_of",
        "import-settings": "discreet.imports.settings:read_imports",
        "metrics": "discreet.gateway.figures:metrics",
    },
    "store": {
        "memory": "discreet.agents.stores.memory:MemoryStore",
        "sqlite": "discreet.agents.stores.sqlite.store:SqliteStore",
        "postgresql": "discreet.agents.stores.postgres.store:PostgresStore",
        "postgres": "discreet.agents.stores.postgres.store:PostgresStore",
        "redis": "discreet.agents.stores.redis.store:RedisStore",
        "rediss": "discreet.agents.stores.redis.store:RedisStore",
        "unix": "discreet.agents.stores.redis.store:RedisStore",
    },
    "tools": {"mcp": "discreet.imports.mcp.tools:open_tools"},
    "tracing": {"otel": "discreet.gateway.tracing.tracing:Tracing"},
    "verb": {
        "serve": "discreet.cli.verbs.serve",
        "call": "discreet.cli.verbs.call",
        "demo": "discreet.cli.verbs.demo",
        "new": "discreet.cli.verbs.new",
        "doctor": "discreet.cli.verbs.doctor",
        "inspect": "discreet.cli.verbs.inspect",
        "install": "discreet.cli.verbs.install",
        "discover": "discreet.cli.verbs.discover",
        "attach": "discreet.cli.verbs.attach",
        "schema": "discreet.cli.verbs.schema",
        "card": "discreet.cli.verbs.card",
        "generate": "discreet.cli.verbs.generate",
        "import": "discreet.cli.verbs.imports",
        "bridge": "discreet.cli.verbs.bridge",
        "record": "discreet.cli.verbs.record",
        "replay": "discreet.cli.verbs.replay",
        "show": "discreet.cli.verbs.show",
        "tasks": "discreet.cli.verbs.tasks",
        "completion": "discreet.cli.verbs.completion",
    },
}
"""The place of each part of discreet itself: a module, or an object in one."""


class PluginError(Exception):
    """There is no such plug-in, or it can't be loaded; the message is one line that says what to do."""


def load(kind: Kind, name: str) -> Any:  # Any: each kind has an interface of its own
    """The plug-in of this name. Raises `PluginError`; what a part of discreet raises when it is imported passes."""
    place = BUILT_IN[kind].get(name)
    if place is not None:
        module, _, attribute = place.partition(":")
        return getattr(import_module(module), attribute) if attribute else import_module(module)
    found = _installed().get(f"{kind}.{name}") if kind in ADDED_KINDS else None
    if found is None:
        from ..errors.nearest import nearest_hint  # late: only a wrong name needs it

        known = names(kind)
        raise PluginError(f"there is no {kind} {name!r}{nearest_hint(name, known)}; known are {', '.join(known)}")
    try:
        return found.load()
    except Exception as exc:  # the code of another package
        raise PluginError(
            f"{_of_package(kind, name, found)} can't be loaded ({type(exc).__name__}); {_REMEDY}"
        ) from exc


_REMEDY: Final = "mend or remove the package"


def fault_of_added(used: Iterable[tuple[Kind, str]], exc: Exception) -> str | None:
    """Return a line about this failure of the start, where one of the plug-ins used comes from another package; else None."""
    found = [
        _of_package(kind, name, point)
        for kind, name in used
        if name not in BUILT_IN[kind] and (point := _installed().get(f"{kind}.{name}")) is not None
    ]
    return f"{' or '.join(found)} can't be used: {type(exc).__name__}: {exc}; {_REMEDY}" if found else None


def _of_package(kind: Kind, name: str, found: Any) -> str:
    package = found.dist.name if found.dist is not None else found.value
    return f"{kind} {name!r} of the package {package}"


def is_known(kind: Kind, name: str) -> bool:
    """Whether there is a plug-in of this name. Loads nothing."""
    return name in BUILT_IN[kind] or f"{kind}.{name}" in _installed()


def added(kind: Kind) -> list[str]:
    """The names of the plug-ins of this kind that installed packages add. One that has the name of ours is left out."""
    begin = f"{kind}."
    found = (name.removeprefix(begin) for name in _installed() if name.startswith(begin))
    return sorted(name for name in found if name not in BUILT_IN[kind])


def names(kind: Kind) -> list[str]:
    """The names of all plug-ins of this kind: discreet's own first."""
    return [*BUILT_IN[kind], *added(kind)]


def _installed() -> dict[str, Any]:  # Any: importlib.metadata.EntryPoint, which loads late
    """The entry points of installed packages. Reading them takes milliseconds: it is for names that are not built in."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}
