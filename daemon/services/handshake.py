"""`initialize`: what client and server say of themselves, and what services run before they answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from ..operations.context import CallFailed, ClientInfo, Context
from ..operations.service import Service
from ..operations.spec import OperationSpec

PROTOCOL_VERSION = "2.0"

MAX_CLIENT_BYTES: Final = 256 * 1024
"""What a client may say of itself, as JSON. It is kept as long as the client is there. Editors say some 20 KiB."""


class ServerInfo(msgspec.Struct, frozen=True):
    name: str
    version: str


class InitializeResult(msgspec.Struct, frozen=True, rename="camel"):
    server_info: ServerInfo
    protocol_version: str
    capabilities: dict[str, Any]  # the daemon's own and what the services declare


class Watcher(Protocol):
    """Who ends the daemon when a process has ended."""

    def watch_client(self, pid: int) -> None: ...


class Hello(Protocol):
    """What `initialize` needs of the connection."""

    @property
    def server_info(self) -> ServerInfo: ...

    @property
    def initializers(self) -> Sequence[OperationSpec]:
        """What the services run when the client says hello, in the order of declaration."""
        ...

    def capabilities(self) -> dict[str, Any]: ...

    def meet(self, client: ClientInfo) -> None:
        """Keep what the client says of itself."""
        ...


def add_initialize(service: Service, hello: Hello, watcher: Watcher) -> None:
    """Add `initialize` to a service. It takes LSP's params, of which it needs none."""

    def welcome(params: dict[str, Any]) -> InitializeResult:
        pid = params.get("processId")
        if type(pid) is int:
            watcher.watch_client(pid)
        hello.meet(client_info(params, PROTOCOL_VERSION))
        return InitializeResult(hello.server_info, PROTOCOL_VERSION, hello.capabilities())

    hooks = hello.initializers
    if not hooks:

        @service.query(inline=True)
        def initialize(**params: Any) -> InitializeResult:  # Any: editors send whatever LSP holds
            """Say who the server is and what it can do. Takes LSP's params; no handshake is required."""
            return welcome(params)

        return

    @service.query("initialize", errors=list(dict.fromkeys(error for hook in hooks for error in hook.errors)))
    async def initialize_services(ctx: Context, **params: Any) -> InitializeResult:
        """Say who the server is and what it can do. Takes LSP's params; no handshake is required."""
        result = welcome(params)
        result.capabilities.update(await run_initializers(ctx, hooks, params))
        return result

    spec = service.operations[-1]
    service.operations[-1] = msgspec.structs.replace(spec, uses=frozenset(hook.name for hook in hooks))


async def run_initializers(ctx: Context, hooks: Sequence[OperationSpec], params: dict[str, Any]) -> dict[str, Any]:
    """Run what the services declare, one after the other; what they add to the capabilities. In an operation that `uses` them.

    Raises what the first of them raises; `FailureError(InvalidParams)` for params that are none of it.
    """
    added: dict[str, Any] = {}
    for hook in hooks:
        given = hook.input
        everything = given.whole or given.extra is not None
        wanted = params if everything else {name: params[name] for name in given.names if name in params}
        try:
            added.update(await ctx.call(hook.name, wanted, type=dict[str, Any] | None) or {})
        except CallFailed as exc:
            if isinstance(exc.failure, InvalidParams):  # the client's own fault, since they are its params
                raise FailureError(exc.failure) from None
            raise
    return added


def client_info(params: dict[str, Any], protocol_version: str | int) -> ClientInfo:
    """What a client's `initialize` says of it. Members of another type count as absent. Raises as `checked` does."""
    info, capabilities = params.get("clientInfo"), params.get("capabilities")
    name, version = (info.get("name"), info.get("version")) if isinstance(info, dict) else (None, None)
    return checked(
        ClientInfo(
            name=name if isinstance(name, str) else "",
            version=version if isinstance(version, str) else "",
            protocol_version=protocol_version,
            capabilities=capabilities if isinstance(capabilities, dict) else {},
        )
    )


def checked(client: ClientInfo) -> ClientInfo:
    """The same, if it may be kept. Raises `FailureError(InvalidParams)` for a client that says too much."""
    if len(msgspec.json.encode(client)) > MAX_CLIENT_BYTES:
        raise FailureError(InvalidParams("capabilities", f"at most {MAX_CLIENT_BYTES} bytes with clientInfo", "more"))
    return client
