"""One editor's session with a language server: the handshake, what the server announces, and its commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, final

import msgspec

from ....errors.exceptions import FailureError
from ....errors.failures import InvalidParams
from ....errors.type_building import convert
from ...documents.store import Documents
from ...documents.text import ENCODINGS, PositionEncoding
from ...logs import log
from ...operations.context import ClientRefused, Context
from ...operations.service import Service
from ...operations.spec import Forward, OperationSpec
from ...services.builtins import Life
from ...services.handshake import client_info, run_initializers
from ..surface import Surface
from .capabilities import Announcement, announcement, command_of, has_capability
from .dialect import LspDialect

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


class _Hello(msgspec.Struct, rename="camel"):
    """What the server itself needs of `initialize`. Nothing else is checked: editors send what they like."""

    process_id: int | None = None
    capabilities: _Capabilities | None = None


@final
class LspSession:
    """The session of one client."""

    def __init__(self, surface: Surface, life: Life, state: bytes = b"") -> None:
        self._surface = surface
        self._life = life
        self._specs = surface.host.catalogue.operations
        self._announcement: Announcement = announcement(self._specs)
        self._commands = {command_of(spec): spec for spec in self._specs if spec.command}
        self.documents: Final = Documents()
        self.dialect: Final = LspDialect(
            self.documents,
            frozenset(spec.name for spec in self._specs),
            surface.host.memory,
            self._on_initialized,
            self._cancel_progress,
        )
        self._registered: dict[str, bytes] | None = None
        self._state = state

    def services(self) -> Iterable[Service]:
        if self._state:
            self._restore(self._state)
        service = Service()
        self._add_initialize(service)

        @service.mutation(inline=True)
        def shutdown() -> None:
            """Take no more requests. What runs goes on; `exit` or the end of input ends the server."""

        @service.notification("exit", inline=True)
        def leave() -> None:
            """End the server: with status 0 after `shutdown`, else 1."""
            self._life.exit(failed=self.dialect.state != "shutdown")

        @service.notification("$/setTrace", inline=True)
        def set_trace(params: dict[str, Any], /) -> None:
            """Take note of how much the client wants to be told."""

        @service.mutation("workspace/executeCommand", inline=True)
        def execute_command(params: _ExecuteCommandParams, /) -> Any:
            """Run a command of the services."""
            spec = self._commands.get(params.command)
            if spec is None:
                raise FailureError(InvalidParams("command", "one of", "string", tuple(self._commands)))
            return Forward(spec.name, params.arguments, None, prefix="arguments", progress_token=params.work_done_token)

        service.operations = [_as_needed(spec) for spec in service.operations]
        return [service]

    def state(self) -> bytes:
        from .handover import write  # late: only a reload asks

        return write(self._surface.context_host.client, self.documents, self.dialect.state, self._registered)

    # -- the handshake -----------------------------------------------------------------------------------------

    def _add_initialize(self, service: Service) -> None:
        hooks = self._surface.initializers
        if not hooks:  # then it is answered before any event loop is loaded

            @service.query(inline=True)
            def initialize(params: dict[str, Any] | list[Any] | None, /) -> dict[str, Any]:
                """Say what the server can do."""
                self._meet(params)
                return self._result({})

            return

        @service.query("initialize", errors=list(dict.fromkeys(error for hook in hooks for error in hook.errors)))
        async def initialize_services(ctx: Context, params: dict[str, Any] | list[Any] | None, /) -> dict[str, Any]:
            """Say what the server can do."""
            return self._result(await run_initializers(ctx, hooks, self._meet(params)))

        spec = service.operations[-1]
        service.operations[-1] = msgspec.structs.replace(spec, uses=frozenset(hook.name for hook in hooks))

    def _meet(self, given: dict[str, Any] | list[Any] | None) -> dict[str, Any]:
        params = _read_hello(given)
        pid = params.get("processId")
        if pid is not None:
            self._life.watch_client(int(pid))
        client = client_info(params, VERSION)
        self._surface.meet(client)
        self.documents.encoding = chosen_encoding(client.capabilities)
        return params

    def _result(self, added: dict[str, Any]) -> dict[str, Any]:
        self.dialect.state = "initialized"
        capabilities = {
            **self._announcement.capabilities,
            **self._surface.host.announced(),
            **added,
            "positionEncoding": self.documents.encoding,
        }
        return {"capabilities": capabilities, "serverInfo": self._surface.server_info}

    def _cancel_progress(self, token: str | int) -> None:
        cancel = self._surface.context_host.progress_cancels.get(token)
        if cancel is not None:
            cancel()

    def _on_initialized(self) -> None:
        if self._registered is None:
            self._register({})

    def _register(self, before: dict[str, bytes]) -> None:
        """Register what has no server capability, where the client can. `before` is what a program before this one did."""
        can = self._surface.context_host.client.capabilities
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
        if gone or new:
            self._surface.host.spawn(lambda: self._ask_to_register(gone, new))

    async def _ask_to_register(self, gone: list[dict[str, Any]], new: list[dict[str, Any]]) -> None:
        if gone:
            await self._ask("client/unregisterCapability", {"unregisterations": gone}, gone)  # LSP's own spelling
        if new:
            await self._ask("client/registerCapability", {"registrations": new}, new)

    async def _ask(self, method: str, params: dict[str, Any], about: list[dict[str, Any]]) -> None:
        try:
            await self._surface.context_host.ask(method, params, REGISTER_SECONDS)
        except (ClientRefused, TimeoutError) as exc:
            log.warning("registration.refused", methods=[one["method"] for one in about], error=str(exc))

    def _restore(self, state: bytes) -> None:
        """Go on where the program before this one stopped. What the server announces may have changed: it is registered."""
        from .handover import read  # late: most sessions begin anew

        kept = read(state)
        info = {"clientInfo": {"name": kept.name, "version": kept.version}, "capabilities": kept.capabilities}
        self._surface.meet(client_info(info, VERSION))
        kept.restore(self.documents)
        self.dialect.state = "new" if kept.state == "initializing" else kept.state
        self.dialect.count()
        if kept.registered is not None:
            self._register(kept.registered)


def _as_needed(spec: OperationSpec) -> OperationSpec:
    if spec.name in ("shutdown", "exit"):
        return msgspec.structs.replace(spec, immediate=True)
    return msgspec.structs.replace(spec, mode="forward") if spec.name == "workspace/executeCommand" else spec


def _read_hello(given: dict[str, Any] | list[Any] | None) -> dict[str, Any]:
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
        convert(params, _Hello)
    except msgspec.ValidationError:
        from ...operations.input_errors import find_input_error  # late: most clients know how to say hello

        raise FailureError(find_input_error(_Hello, msgspec.json.encode(params))) from None
    assert isinstance(params, dict)
    return params


def chosen_encoding(capabilities: Mapping[str, Any]) -> PositionEncoding:
    """The first encoding of positions that the client names and we know; LSP's own default where it names none."""
    general = capabilities.get("general")
    for encoding in (general.get("positionEncodings") if isinstance(general, Mapping) else None) or ():
        if encoding in ENCODINGS:
            return encoding  # type: ignore[no-any-return]
    return "utf-16"
