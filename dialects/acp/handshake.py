"""`initialize` and `authenticate`: what client and agent say of themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ...agents.host import agent_runner_of
from ...daemon.connection.handshake import add_initialize, checked, run_initializers
from ...daemon.operations.context import ClientInfo, Context
from ...daemon.operations.service import Service
from ...errors.decoders import convert
from ...errors.exceptions import FailureError, OperationError
from ...errors.failures import InvalidParams
from .errors import AuthenticationFailed
from .generated import methods_of_agents as wire
from .generated.tables import PROTOCOL_VERSION

if TYPE_CHECKING:
    from ...agents.acp_options import AcpOptions
    from ...daemon.connection.notices import ClientConnection

_JSON_MODES = ("application/json",)
"""What an agent takes whose skills are the operations."""


class InitializeParams(msgspec.Struct, rename="camel"):
    """The params of `initialize`. The capabilities are kept as they came."""

    protocol_version: int
    client_capabilities: dict[str, Any] | None = None  # Any: JSON
    client_info: wire.Implementation | None = None

    @property
    def client(self) -> ClientInfo:
        """What the client says of itself. Raises `FailureError(InvalidParams)` where that is too much."""
        info = self.client_info
        return checked(
            ClientInfo(
                name="" if info is None else info.name,
                version="" if info is None else info.version,
                protocol_version=PROTOCOL_VERSION,
                capabilities=self.client_capabilities or {},
            )
        )


def capabilities_of(client: ClientInfo) -> wire.ClientCapabilities:
    """What the client can do. Raises `FailureError(InvalidParams)`."""
    try:
        capabilities: wire.ClientCapabilities = convert(client.capabilities, wire.ClientCapabilities)
    except msgspec.ValidationError:
        raise FailureError(InvalidParams("clientCapabilities", "the capabilities of ACP 1", "object")) from None
    return capabilities


def add_handshake(
    service: Service, connection: ClientConnection, *, options: AcpOptions, meet: Callable[[ClientInfo], None]
) -> None:
    """Add `initialize` and `authenticate`. `meet` keeps what the client says of itself, or raises
    `FailureError(InvalidParams)`.
    """

    def initialize(params: InitializeParams, /) -> wire.InitializeResponse:
        """Say who the agent is and what it can do."""
        meet(params.client)
        return _answer(connection)

    async def initialize_after_hooks(ctx: Context, params: InitializeParams, /) -> wire.InitializeResponse:
        answer = initialize(params)
        await run_initializers(ctx, connection.initializers, msgspec.to_builtins(params))
        return answer

    add_initialize(service, connection.initializers, initialize, initialize_after_hooks)
    _add_authenticate(service, options)


def _add_authenticate(service: Service, options: AcpOptions) -> None:
    @service.mutation("authenticate", timeout=None, errors=[AuthenticationFailed])
    async def authenticate(params: wire.AuthenticateRequest, /) -> wire.AuthenticateResponse:
        """Sign in with one of the agent's methods."""
        known = tuple(method.id for method in options.auth_methods)
        if params.method_id not in known:
            raise FailureError(InvalidParams("methodId", "one of", "string", known))
        if options.authenticate is not None:
            try:
                await options.authenticate(params.method_id)
            except OperationError:
                raise AuthenticationFailed from None
        return wire.AuthenticateResponse()


def _answer(connection: ClientConnection) -> wire.InitializeResponse:
    agents = agent_runner_of(connection.host)
    agent = agents.declared
    name, version = connection.server_info.name, connection.server_info.version
    if agent is not None:
        name, version = agent.card.name, agent.card.version
    auth = () if agent is None else agent.acp.auth_methods
    return wire.InitializeResponse(
        protocol_version=PROTOCOL_VERSION,
        agent_capabilities=_capabilities(_JSON_MODES if agent is None else agent.input_modes, durable=agents.durable),
        auth_methods=[wire.AuthMethodAgent(id=each.id, name=each.name, description=each.description) for each in auth],
        agent_info=wire.Implementation(name=name, version=version),
    )


def _capabilities(modes: tuple[str, ...], *, durable: bool) -> wire.AgentCapabilities:
    """Sessions are offered for later where they outlive the process."""
    return wire.AgentCapabilities(
        load_session=durable,
        prompt_capabilities=wire.PromptCapabilities(
            image=_takes(modes, "image/"), audio=_takes(modes, "audio/"), embedded_context=True
        ),
        session_capabilities=wire.SessionCapabilities(
            list=wire.SessionListCapabilities() if durable else None,
            resume=wire.SessionResumeCapabilities() if durable else None,
            close=wire.SessionCloseCapabilities(),
            additional_directories=wire.SessionAdditionalDirectoriesCapabilities(),
        ),
    )


def _takes(modes: tuple[str, ...], family: str) -> bool:
    return any(mode.startswith((family, "*/*")) for mode in modes)
