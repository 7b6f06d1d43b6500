"""One editor's session with a language server: the handshake, what the server announces, and its commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

import msgspec

from ...daemon import plugins
from ...daemon.connection.handshake import add_initialize, add_shutdown, client_info, run_initializers
from ...daemon.connection.notices import ClientConnection, DaemonControl
from ...daemon.declarations import Command
from ...daemon.documents.store import Documents
from ...daemon.documents.text import ENCODINGS, PositionEncoding
from ...daemon.logs import log
from ...daemon.operations.context import ClientRefused, Context
from ...daemon.operations.params import InputModel
from ...daemon.operations.registry import Registry
from ...daemon.operations.service import DeclarationError, Service
from ...daemon.operations.spec import Forward
from ...errors.decoders import convert, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from ...lazy import anyio
from .capabilities import Announcement, announcement, command_of, has_capability, slips
from .dialect import LspDialect, set_workspace

VERSION: Final = "3.17"
REGISTER_SECONDS: Final = 30.0
"""How long the client has to answer a registration."""


class _ExecuteCommandParams(msgspec.Struct, rename="camel"):
    command: str
    arguments: msgspec.Raw = msgspec.Raw(b"[]")
    work_done_token: str | int | None = None


class _General(msgspec.Struct, rename="camel"):
    position_encodings: list[str] | None = None


class _Capabilities(msgspec.Struct):
    general: _General | None = None


class _InitializeParams(msgspec.Struct, rename="camel"):
    """What the server itself needs of `initialize`. Nothing else is checked: editors send what they like."""

    process_id: int | None = None
    capabilities: _Capabilities | None = None


@final
class LspSession:
    """The session of one client."""

    def __init__(self, connection: ClientConnection, control: DaemonControl, saved: bytes = b"") -> None:
        self._connection = connection
        self._control = control
        specs = connection.host.catalogue.operations
        self._announcement: Announcement = announcement(specs)
        for line in slips(spec.name for spec in specs if spec.name.startswith(plugins.FOUND_ONLY_IN["lsp"])):
            log.warning("method.unknown", hint=line)
        self._commands = {command_of(spec): spec for spec in specs if isinstance(spec.offer, Command)}
        self.documents: Final = Documents()
        self.dialect: Final = LspDialect(
            self.documents,
            frozenset(spec.name for spec in specs),
            connection.host.memory,
            self._on_initialized,
            lambda token: connection.context_backend.progress_cancels.get(token, _nothing)(),
            lambda: connection.host.spawn(self._apply_steps),
            connection.take_again,
        )
        self._registered: dict[str, bytes] | None = None
        self._saved = saved
        watchers = connection.host.operation_watchers
        watchers.append(self._take_changes)
        self.dialect.on_close = lambda: watchers.remove(self._take_changes)

    def registry(self) -> Registry:
        if self._saved:
            self._restore(self._saved)
        service = Service()
        self._add_initialize(service)

        def shutdown() -> None:
            """Take no more requests. What runs goes on; `exit` or the end of input ends the server."""

        add_shutdown(service, self._connection.host.catalogue.shutdowns, shutdown)

        @service.notification("exit", inline=True)
        def leave() -> None:
            """End the server: with status 0 after `shutdown`, else 1."""
            self._control.exit(failed=self.dialect.state != "shutdown")

        @service.notification("$/setTrace", inline=True)
        def set_trace(params: dict[str, Any], /) -> None:
            """Take note of how much the client wants to be told."""

        @service.mutation("workspace/executeCommand", inline=True)
        def execute_command(params: _ExecuteCommandParams, /) -> Any:
            """Run a command of the services."""
            spec = self._commands.get(params.command)
            if spec is None:
                raise FailureError(InvalidParams("command", "one of", "string", tuple(self._commands)))
            given = _with_rest(params.arguments, spec.input)
            return Forward(spec.name, given, None, prefix="arguments", progress_token=params.work_done_token)

        needed = msgspec.structs.replace
        service.operations = [
            needed(spec, immediate="always")
            if spec.name in ("shutdown", "exit") and spec.mode == "inline"
            else (needed(spec, mode="forward") if spec.name == "workspace/executeCommand" else spec)
            for spec in service.operations
        ]
        return Registry([service])

    def save(self) -> bytes:
        from .sync import write  # late: only a reload asks

        return write(self._connection.context_backend.client, self.documents, self.dialect.state, self._registered)

    # -- the handshake -----------------------------------------------------------------------------------------

    def _add_initialize(self, service: Service) -> None:
        hooks = self._connection.initializers

        def initialize(params: dict[str, Any] | list[Any] | None, /) -> dict[str, Any]:
            """Say what the server can do."""
            self._meet(params)
            return self._result({})

        async def initialize_after_hooks(ctx: Context, params: dict[str, Any] | list[Any] | None, /) -> dict[str, Any]:
            return self._result(await run_initializers(ctx, hooks, self._meet(params)))

        add_initialize(service, hooks, initialize, initialize_after_hooks)

    def _meet(self, given: dict[str, Any] | list[Any] | None) -> dict[str, Any]:
        params = _read_initialize(given)
        pid = params.get("processId")
        if pid is not None:
            self._control.watch_client(int(pid))
        client = client_info(params, VERSION)
        self._connection.set_client_info(client)
        self.documents.encoding = chosen_encoding(client.capabilities)
        set_workspace(self.documents, params)
        return params

    def _result(self, added: dict[str, Any]) -> dict[str, Any]:
        self.dialect.state = "initialized"
        capabilities = {
            **self._announcement.capabilities,
            **self._connection.host.announced(),
            **added,
            "positionEncoding": self.documents.encoding,
        }
        return {"capabilities": capabilities, "serverInfo": self._connection.server_info}

    def _take_changes(self) -> None:
        """Operations were declared while they are served: the answer to `initialize` tells of those that come before it."""
        specs = self._connection.host.catalogue.operations
        try:
            self._announcement = announcement(specs)
        except DeclarationError as exc:
            log.error("lsp.capabilities_unchanged", reason=str(exc))
            return
        self._commands = {command_of(spec): spec for spec in specs if isinstance(spec.offer, Command)}
        self.dialect.declared = frozenset(spec.name for spec in specs)
        if self._registered is not None:
            self._register(self._registered)

    async def _apply_steps(self) -> None:
        while self.dialect.busy:
            await anyio.lowlevel.checkpoint()
            if self.dialect.busy:
                self.dialect.advance()

    def _on_initialized(self) -> None:
        if self._registered is None:
            self._register({})

    def _register(self, before: dict[str, bytes]) -> None:
        """Register what has no server capability, where the client can. `before` is what a program before this one did."""
        can = self._connection.context_backend.client.capabilities
        now = {
            one.method: msgspec.json.encode(one.options)
            for one in self._announcement.registrations
            if has_capability(can, one.client_capability)
        }
        self._registered = now
        gone = [{"id": method, "method": method} for method in before if before[method] != now.get(method)]
        new = [
            {"id": method, "method": method, "registerOptions": msgspec.Raw(options)}
            for method, options in now.items()
            if before.get(method) != options
        ]

        async def ask() -> None:
            if gone:
                await self._ask("client/unregisterCapability", {"unregisterations": gone}, gone)  # LSP's own spelling
            if new:
                await self._ask("client/registerCapability", {"registrations": new}, new)

        if gone or new:
            self._connection.host.spawn(ask)

    async def _ask(self, method: str, params: dict[str, Any], about: list[dict[str, Any]]) -> None:
        try:
            await self._connection.context_backend.ask(method, params, REGISTER_SECONDS)
        except (ClientRefused, TimeoutError) as exc:
            log.warning("registration.refused", methods=[one["method"] for one in about], error=str(exc))

    def _restore(self, saved: bytes) -> None:
        """Go on where the program before this one stopped. What the server announces may have changed: it is registered."""
        from .sync import read  # late: most sessions begin anew

        last = read(saved)
        info = {"clientInfo": {"name": last.name, "version": last.version}, "capabilities": last.capabilities}
        self._connection.set_client_info(client_info(info, VERSION))
        last.restore(self.documents)
        self.dialect.state = "new" if last.state == "initializing" else last.state
        self.dialect.count()
        if last.registered is not None:
            self._register(last.registered)


def _with_rest(arguments: msgspec.Raw, model: InputModel) -> msgspec.Raw:
    """The arguments of a command, with those of its `*args` as one list."""
    if not model.rest:
        return arguments
    try:
        given = decoder_for(list[msgspec.Raw])(arguments)
    except msgspec.DecodeError:
        return arguments  # the command's input says what is wrong
    before = model.names.index(model.rest)
    rest = [msgspec.Raw(msgspec.json.encode(given[before:]))] if len(given) > before else []
    return msgspec.Raw(msgspec.json.encode([*given[:before], *rest]))


def _nothing() -> None: ...


def _read_initialize(given: dict[str, Any] | list[Any] | None) -> dict[str, Any]:
    """The params of `initialize`. An empty array counts as an empty object, since that is how clients in Lua write one.

    Raises `FailureError(InvalidParams)`.
    """
    params = given or {}
    if isinstance(params, dict):
        capabilities = params.get("capabilities")
        if isinstance(capabilities, dict):
            params["capabilities"] = {name: {} if value == [] else value for name, value in capabilities.items()}
        elif capabilities == []:
            params["capabilities"] = {}
    try:
        convert(params, _InitializeParams)
    except msgspec.ValidationError:
        from ...daemon.operations.input_errors import find_input_error  # late: most clients know how to say hello

        raise FailureError(find_input_error(_InitializeParams, msgspec.json.encode(params))) from None
    assert isinstance(params, dict)
    return params


def chosen_encoding(capabilities: Mapping[str, Any]) -> PositionEncoding:
    """The first encoding of positions that the client names and we know; LSP's own default where it names none."""
    general = capabilities.get("general")
    for encoding in (general.get("positionEncodings") if isinstance(general, Mapping) else None) or ():
        if encoding in ENCODINGS:
            return encoding  # type: ignore[no-any-return]
    return "utf-16"
