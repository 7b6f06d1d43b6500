"""The dialect `plain`: JSON-RPC with the methods of section 7 of docs/protocol.md, which are a service like any other."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, final

import msgspec

from ...errors.decoders import ExternalSchema
from ...errors.redaction import scrub_known
from .. import plugins
from ..logs import log, parse_level
from ..operations.context import Context
from ..operations.identity import IdentityCache
from ..operations.registry import LazyOperations, Registry, ServerInfo
from ..operations.service import Service
from ..rpc.dialect import PLAIN, Dialect
from .session import ClientConnection, DaemonControl, add_initialize, add_shutdown, client_info, run_initializers

if TYPE_CHECKING:
    from ..host import Host
    from ..operations.request import Request
    from ..operations.spec import Immediate, OperationSpec

PROTOCOL_VERSION = "2.0"

SHUTDOWN_MESSAGE = "Shutting down gracefully"

METHODS: Final = frozenset(
    {
        "initialize",
        "initialized",
        "notifications/initialized",
        "version",
        "setLogLevel",
        "shutdown",
        "exit",
        "listMethods",
        "describeMethods",
    }
)
"""The declarations of `builtins`. They are made when one of them is first called: the first answer need not wait for it."""

_IMMEDIATE: Final[Mapping[str, Immediate]] = {"shutdown": "always", "exit": "always", "version": "unordered"}
"""They run before all requests that wait."""


class LogLevel(enum.Enum):
    """How much is logged. Any case is taken, and `warning` for `warn`."""

    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"

    @classmethod
    def _missing_(cls, value: object) -> LogLevel | None:
        level = parse_level(value) if isinstance(value, str) else None
        return None if level is None else cls(level)


class InitializeResult(msgspec.Struct, frozen=True, rename="camel"):
    server_info: ServerInfo
    protocol_version: str
    capabilities: dict[str, Any]  # the daemon's own and what the services declare


class Version(msgspec.Struct, frozen=True):
    version: str


class LevelSet(msgspec.Struct, frozen=True):
    level: str
    success: bool


class ShutdownResult(msgspec.Struct, frozen=True):
    message: str


class Method(msgspec.Struct, frozen=True):
    name: str
    description: str


class MethodDescription(msgspec.Struct, frozen=True):
    name: str
    params: list[str]
    returns: str


FRAMING: Final = "content-length"
HAS_SHUTDOWN: Final = True
HAS_AGENT_METHODS: Final = True


def open_session(connection: ClientConnection, control: DaemonControl, saved: bytes) -> PlainSession:
    return PlainSession(connection, control)


def begins_with(first: Request, params: Mapping[str, msgspec.Raw]) -> bool:
    return False  # plain is what is left


def check(host: Host) -> None: ...


@final
class PlainSession:
    """One per connection."""

    def __init__(self, connection: ClientConnection, control: DaemonControl) -> None:
        self._connection = connection
        self._control = control
        self.dialect: Dialect = PLAIN
        self.documents: Final = None

    def registry(self) -> Registry:
        return Registry((), LazyOperations(METHODS, lambda: builtins(self._connection, self._control).operations))

    def save(self) -> bytes:
        return b""


def builtins(connection: ClientConnection, control: DaemonControl) -> Service:
    """The service without a namespace that speaks for the daemon itself, to one client."""
    service = Service("")
    _add_handshakes(service, connection, control)
    _add_controls(service, connection, control)
    _add_lists(service, connection)
    service.operations = [
        msgspec.structs.replace(spec, immediate=_IMMEDIATE[spec.name])
        if spec.name in _IMMEDIATE and spec.mode == "inline"
        else spec
        for spec in service.operations
    ]
    return service


def _add_handshakes(service: Service, connection: ClientConnection, control: DaemonControl) -> None:
    _add_initialize(service, connection, control)

    @service.query(inline=True)
    def initialized(**params: Any) -> None:
        """Take note that the client has finished LSP's handshake; nothing follows from it."""

    @service.query(inline=True, name="notifications/initialized")
    def mcp_initialized(**params: Any) -> None:
        """The same for MCP's handshake."""

    @service.query(inline=True)
    def version() -> Version:
        """Tell the daemon's version (SemVer)."""
        return Version(connection.host.version)


def _add_initialize(service: Service, connection: ClientConnection, control: DaemonControl) -> None:
    def initialize(**params: Any) -> InitializeResult:  # Any: editors send whatever LSP holds
        """Say who the server is and what it can do. Takes LSP's params; no handshake is required."""
        pid = params.get("processId")
        if type(pid) is int:
            control.watch_client(pid)
        connection.set_client_info(client_info(params, PROTOCOL_VERSION))
        return InitializeResult(connection.host.server, PROTOCOL_VERSION, _capabilities(connection.host))

    async def initialize_after_hooks(ctx: Context, **params: Any) -> InitializeResult:
        result = initialize(**params)
        result.capabilities.update(await run_initializers(ctx, connection.host.catalogue.initializers, params))
        return result

    add_initialize(service, connection.host.catalogue.initializers, initialize, initialize_after_hooks)


def _capabilities(host: Host) -> dict[str, Any]:
    return {
        "cancelRequest": True,
        "progress": True,
        "streams": True,
        "maxMessageBytes": host.settings.max_message_bytes,
        **host.catalogue.announced_capabilities(),
    }


def _add_controls(service: Service, connection: ClientConnection, control: DaemonControl) -> None:
    @service.mutation(inline=True, name="setLogLevel")
    def set_log_level(level: LogLevel) -> LevelSet:
        """Change how much is logged: debug, info, warn or error, in any case."""
        return LevelSet(log.set_level(level.value), success=True)

    def shutdown() -> ShutdownResult:
        """End the daemon when the requests that run have been answered."""
        control.begin_shutdown()
        return ShutdownResult(SHUTDOWN_MESSAGE)

    add_shutdown(service, connection.host.catalogue.shutdowns, shutdown)

    @service.mutation(inline=True, name="exit")
    def exit_() -> None:
        """End the daemon; sent as a notification, after `shutdown` where there is time for it."""
        control.exit()


def _add_lists(service: Service, connection: ClientConnection) -> None:
    listed: IdentityCache[list[Method]] = IdentityCache()
    described: IdentityCache[list[MethodDescription]] = IdentityCache()

    @service.query(inline=True, name="listMethods")
    def list_methods(ctx: Context) -> list[Method]:
        """List the methods that the caller may call."""
        return listed.get(
            ctx.identity,
            lambda: [Method(spec.name, scrub_known(spec.description)) for spec in connection.methods(ctx.identity)],
            connection.host.change_count,
        )

    @service.query(inline=True, name="describeMethods")
    def describe_methods(ctx: Context) -> list[MethodDescription]:
        """List the methods that the caller may call, with their params and results."""
        return described.get(
            ctx.identity,
            lambda: [MethodDescription(spec.name, *_in_words(spec)) for spec in connection.methods(ctx.identity)],
            connection.host.change_count,
        )


def _in_words(spec: OperationSpec) -> tuple[list[str], str]:
    """The params and the result of an operation for people."""
    given, result = spec.input.type, spec.returns
    if not isinstance(given, ExternalSchema):
        return spec.describe_params(), spec.describe_result()
    phrases = plugins.load("schemas", "phrases")  # late: only imported operations need it
    described = phrases.describe_value(result.load()) if isinstance(result, ExternalSchema) else spec.describe_result()
    return phrases.describe_members(given.load()), described
