"""Runs a client's session in its dialect: writes its messages, finds its methods, and does its handshake."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, get_type_hints

import msgspec

from ...errors.decoders import decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from .. import plugins
from ..logs import log
from ..operations.context import CallFailed, Context
from ..operations.request import ClientInfo
from ..operations.service import DeclarationError, Service
from ..operations.spec import OperationSpec
from ..rpc.dialect import Dialect

if TYPE_CHECKING:
    from ...framing.events import Framing
    from ..documents import Documents
    from ..host import Host
    from ..operations.identity import Identity
    from ..operations.registry import Registry
    from ..operations.request import ContextBackend, Request, Sending


class DaemonControl(Protocol):
    """Lets a client end the daemon that it speaks to."""

    def begin_shutdown(self) -> None: ...
    def exit(self, *, failed: bool = False) -> None:
        """End soon, with status 1 if it `failed`."""
        ...

    def watch_client(self, pid: int) -> None:
        """End the daemon when this process has ended."""
        ...


class ClientConnection(Protocol):
    """A session's view of its connection."""

    @property
    def host(self) -> Host: ...

    @property
    def context_backend(self) -> ContextBackend:
        """The way to the client: notifications and requests."""
        ...

    @property
    def session(self) -> Session: ...

    @property
    def client(self) -> ClientInfo:
        """The facts that the client sent of itself."""
        ...

    def tell_updated(self, uri: str) -> Sending | None:
        """Tell the client that a resource has changed, if it subscribed to it. From any thread."""
        ...

    def take_again(self, request: Request) -> None:
        """Take a request that the dialect has held back while it was busy, and go on reading."""
        ...

    def tell(self, method: str, params: object) -> None:
        """Send a notification that belongs to no request."""
        ...

    def set_client_info(self, client: ClientInfo) -> None:
        """Keep the facts that the client sent of itself."""
        ...

    def methods(self, identity: Identity | None) -> Iterable[OperationSpec]:
        """Return the operations that this caller may call."""
        ...


class Session(Protocol):
    """The state of one connection in a dialect. Made when the client's dialect is known."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def documents(self) -> Documents | None:
        """The documents that the client has open; None in a dialect without documents."""
        ...

    def registry(self) -> Registry:
        """Return the methods of this connection alone, beside those of the services. Raises `DeclarationError`."""
        ...

    def save(self) -> bytes:
        """Return the state from which the next program goes on with the session, after a reload."""
        ...


class Plugin(Protocol):
    """The interface of a dialect's module."""

    FRAMING: Framing
    """How its messages are separated, unless the setting `framing` says otherwise."""

    HAS_SHUTDOWN: bool
    """Whether its clients say that they are about to end."""

    HAS_AGENT_METHODS: bool
    """Whether its clients can reach an agent."""

    def open_session(self, connection: ClientConnection, control: DaemonControl, saved: bytes) -> Session:
        """Begin a session, or go on with one that the previous program has saved. Raises `DeclarationError`."""
        ...

    def check(self, host: Host) -> None:
        """Raise `DeclarationError` if the services can't be served in this dialect. Opens no session: that costs more."""
        ...


class BuiltInPlugin(Plugin, Protocol):
    """A dialect that `auto` finds by the client's first message."""

    def begins_with(self, first: Request, params: Mapping[str, msgspec.Raw]) -> bool:
        """Tell whether a client that begins with this call, with these members of its params, speaks this dialect."""
        ...


def open_session(name: str, connection: ClientConnection, control: DaemonControl, saved: bytes = b"") -> Session:
    """Begin a session in this dialect, or go on with one that the previous program left. Raises `DeclarationError`."""
    plugin: Plugin = plugin_of(connection.host, name)
    unheard = () if plugin.HAS_SHUTDOWN else connection.host.catalogue.shutdowns
    if unheard:
        hint = f"clients of {name} send no shutdown; what must happen at the end belongs into Service(lifespan=…)"
        log.warning("shutdown.unheard", services=[spec.namespace for spec in unheard], hint=hint)
    try:
        return plugin.open_session(connection, control, saved)
    except DeclarationError as exc:
        raise with_place(exc, connection.host.catalogue.operations) from exc


def plugin_of(host: Host, name: str) -> Plugin:
    """The dialect of this name, or that of all clients of this host."""
    return cast("Plugin", host.bridge) if host.bridge is not None else plugins.load("dialect", name)


def check_declarations(host: Host) -> None:
    """Raise `DeclarationError` if the services can't be served in every dialect."""
    for name in plugins.BUILT_IN["dialect"]:
        try:
            check_dialect(host, name)
        except DeclarationError as exc:
            raise DeclarationError(f"{exc} (dialect auto speaks {name}, too; choose one with --dialect)") from None


def check_dialect(host: Host, name: str) -> None:
    """Raise `DeclarationError` if the services can't be served in this dialect."""
    plugin: Plugin = plugins.load("dialect", name)
    try:
        plugin.check(host)
    except DeclarationError as exc:
        raise with_place(exc, host.catalogue.operations) from exc


def with_place(exc: DeclarationError, specs: Iterable[OperationSpec]) -> DeclarationError:
    """Return the error with the source lines of the operations that it names."""
    named = re.match(r"operations? (\S+?)(?::| and (\S+) )", str(exc))
    wanted = named.groups() if named else ()
    places = [spec.source for spec in specs if spec.name in wanted and spec.source]
    return DeclarationError(f"{exc} ({', '.join(places)})") if places else exc


def dialect_of(first: Request) -> str:
    """Return the dialect of a client that begins with this message."""
    params = members_of(first.params)
    for name in plugins.BUILT_IN["dialect"]:
        plugin: BuiltInPlugin = plugins.load("dialect", name)
        if plugin.begins_with(first, params):
            return name
    return "plain"


def members_of(text: msgspec.Raw | None) -> dict[str, msgspec.Raw]:
    """The members of a JSON object; none where this is another text."""
    try:
        return decoder_for(dict[str, msgspec.Raw])(text or b"{}")
    except msgspec.DecodeError:
        return {}


# What the `initialize` of every dialect has in common.


MAX_CLIENT_BYTES: Final = 256 * 1024
"""Bytes that a client may send of itself, as JSON. They are kept as long as the client is there. Editors say some 20 KiB."""


def add_initialize(
    service: Service, hooks: Sequence[OperationSpec], answer: Callable[..., Any], answer_after_hooks: Callable[..., Any]
) -> None:
    """Add `initialize` to a service: `answer`, or the coroutine `answer_after_hooks` if services run something before."""
    if not hooks:  # then it is answered before any event loop is loaded
        service.query("initialize", inline=True)(answer)
        return answer_at_once(service)
    errors = list(dict.fromkeys(error for hook in hooks for error in hook.errors))
    service.query("initialize", errors=errors, description=answer.__doc__ or "")(answer_after_hooks)
    uses = frozenset(hook.name for hook in hooks)
    service.operations[-1] = msgspec.structs.replace(service.operations[-1], uses=uses)


def answer_at_once(service: Service) -> None:
    """Let the last operation wait for nothing that was read before it, except with `--ordered`. It is inline."""
    service.operations[-1] = msgspec.structs.replace(service.operations[-1], immediate="unordered")


def add_shutdown(service: Service, hooks: Sequence[OperationSpec], end: Callable[[], Any]) -> None:
    """Add `shutdown` to a service: `end`, behind what services run before."""
    if not hooks:
        service.mutation("shutdown", inline=True)(end)
        return

    async def shutdown(ctx: Context) -> Any:
        for hook in hooks:
            await ctx.call(hook.name, {})
        return end()

    errors = list(dict.fromkeys(error for hook in hooks for error in hook.errors))
    shutdown.__annotations__["return"] = get_type_hints(end)["return"]
    service.mutation("shutdown", errors=errors, description=end.__doc__ or "")(shutdown)
    uses = frozenset(hook.name for hook in hooks)
    service.operations[-1] = msgspec.structs.replace(service.operations[-1], uses=uses)


async def run_initializers(ctx: Context, hooks: Sequence[OperationSpec], params: dict[str, Any]) -> dict[str, Any]:
    """Run the initializers of the services, one after the other, and return the capabilities that they add.

    Call it in an operation that `uses` them. Raises the first exception of one; `FailureError(InvalidParams)` for wrong params.
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
    """Read the client's facts from its `initialize`. Members of another type count as absent. Raises as `checked` does."""
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
    """Return the facts if they may be kept. Raises `FailureError(InvalidParams)` for a client that sends too many."""
    if len(msgspec.json.encode(client)) > MAX_CLIENT_BYTES:
        raise FailureError(InvalidParams("capabilities", f"at most {MAX_CLIENT_BYTES} bytes with clientInfo", "more"))
    return client
