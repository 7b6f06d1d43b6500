"""A client's connection in ACP 1, the Agent Client Protocol: its handshake, and what holds for single messages.

All methods but `initialize` load when the first of them is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

import msgspec
from msgspec import Raw

from ...agents.editor import AcpOptions, AuthMethod
from ...agents.host import agent_runner_of
from ...daemon.connection.session import add_initialize, checked, run_initializers
from ...daemon.operations.context import Context
from ...daemon.operations.registry import LazyOperations, Registry
from ...daemon.operations.request import ClientInfo
from ...daemon.operations.service import DeclarationError, Service
from ...daemon.operations.spec import OperationSpec
from ...daemon.rpc import envelope
from ...daemon.rpc.dialect import Dialect
from ...errors.codes import ACP_RESERVED
from ...errors.decoders import convert, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import Failure, InvalidParams
from ...errors.wire import error_object
from ..trace_meta import TracedInMeta
from .sessions import ClientCapabilities, Sessions

if TYPE_CHECKING:
    from ...daemon.connection.session import ClientConnection
    from ...daemon.host import Host
    from ...daemon.operations.request import Request
    from ...daemon.rpc.dialect import Ignored

PROTOCOL_VERSION: Final = 1

OWN_METHODS: Final = frozenset(
    {
        "initialize",
        "authenticate",
        "session/new",
        "session/load",
        "session/resume",
        "session/close",
        "session/delete",
        "session/list",
        "session/set_mode",
        "session/set_config_option",
        "session/prompt",
        "session/cancel",
    }
)
"""Methods that the dialect answers itself, for any agent."""


def own_methods(options: AcpOptions) -> frozenset[str]:
    """The methods that the dialect answers itself. A service may have a `logout` where the agent has none."""
    return OWN_METHODS if options.logout is None else OWN_METHODS | {"logout"}


def options_of(host: Host) -> AcpOptions:
    """The options that the agent declares, if there is one."""
    agent = agent_runner_of(host).declared
    return AcpOptions() if agent is None else agent.acp


def check_declarations(host: Host) -> None:
    """Raises `DeclarationError` for an operation that ACP does not allow."""
    own = own_methods(options_of(host))
    for spec in host.catalogue.operations:
        if spec.name in own:
            raise DeclarationError(f"operation {spec.name}: ACP's session answers it; choose another name")
        for error in spec.errors:
            if error.definition.number in ACP_RESERVED:
                raise DeclarationError(
                    f"operation {spec.name}: {error.__name__} has the number {error.definition.number}, whose"
                    " meaning ACP fixes; choose another"
                )


_CANCEL_REQUEST = "$/cancel_request"


class _Named(msgspec.Struct, rename="camel"):
    session_id: str


@final
class AcpDialect(TracedInMeta):
    """One per connection. A cancellation holds for the prompts of its session that were read before it, begun or not."""

    name: ClassVar[str] = "acp"
    cancellations: ClassVar[Mapping[str, str]] = {_CANCEL_REQUEST: "requestId"}
    mends_surrogates: ClassVar[bool] = True

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def receive(self, call: Request) -> Failure | Ignored | None:
        if call.method in ("session/prompt", "session/cancel"):
            session = self._sessions.find(_session_of(call))
            if session is None:
                return None
            if call.method == "session/cancel":
                session.cancel()
            elif call.id is not None:
                session.note_prompt(call.id)
        return None

    def encode_failure(self, call_id: bytes, failure: Failure, method: str = "") -> bytes:
        """Editors show their users the message alone: that of wrong params says what is wrong."""
        if isinstance(failure, InvalidParams) and not failure.unknown:
            error = error_object(failure, self.name)
            accepted = f" {', '.join(map(str, failure.accepted))}" if failure.accepted else ""
            message = f"{error.message}: {failure.param}: expected {failure.expected}{accepted}, not {failure.received}"
            told = msgspec.json.encode(msgspec.structs.replace(error, message=message))
            return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (call_id, told)
        return super().encode_failure(call_id, failure, method)

    def encode_cancel(self, request_id: int) -> bytes:
        return envelope.encode_notification(_CANCEL_REQUEST, {"requestId": request_id})


def _session_of(call: Request) -> str:
    try:
        return decoder_for(_Named)(call.params or b"").session_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""  # the method's own decoder tells what is wrong


class _Implementation(msgspec.Struct):
    name: str
    version: str


class _InitializeParams(msgspec.Struct, rename="camel"):
    """The params of `initialize`. The capabilities are kept as they came."""

    protocol_version: int
    client_capabilities: dict[str, Any] | None = None  # Any: JSON
    client_info: _Implementation | None = None

    @property
    def client(self) -> ClientInfo:
        """Return the facts that the client sends of itself. Raises `FailureError(InvalidParams)` if they are too many."""
        info = self.client_info
        return checked(
            ClientInfo(
                name="" if info is None else info.name,
                version="" if info is None else info.version,
                protocol_version=PROTOCOL_VERSION,
                capabilities=self.client_capabilities or {},
            )
        )


class _Saved(msgspec.Struct, frozen=True):
    client: ClientInfo
    sessions: Raw


@final
class AcpSession:
    """One per connection."""

    def __init__(self, connection: ClientConnection, saved: bytes = b"") -> None:
        self._connection = connection
        agent = agent_runner_of(connection.host).declared
        self._input_modes = None if agent is None else agent.input_modes
        self._options: Final = options_of(connection.host)
        last = decoder_for(_Saved)(saved) if saved else _Saved(ClientInfo(), Raw(b"[]"))
        self._client = last.client
        self._capabilities = _capabilities_of(last.client)
        self._sessions = Sessions(self._options, bytes(last.sessions))
        self.dialect: Dialect = AcpDialect(self._sessions)
        self.documents: Final = None

    def registry(self) -> Registry:
        check_declarations(self._connection.host)
        self._connection.set_client_info(self._client)
        service = Service("")
        hooks = self._connection.host.catalogue.initializers

        def initialize(params: _InitializeParams, /) -> dict[str, Any]:
            """Say who the agent is and what it can do."""
            client = params.client
            self._capabilities = _capabilities_of(client)
            self._client = client
            self._connection.set_client_info(client)
            return self._welcome()

        async def initialize_after_hooks(ctx: Context, params: _InitializeParams, /) -> dict[str, Any]:
            answer = initialize(params)
            await run_initializers(ctx, hooks, msgspec.to_builtins(params))
            return answer

        add_initialize(service, hooks, initialize, initialize_after_hooks)
        return Registry([service], LazyOperations(own_methods(self._options) - {"initialize"}, self._make_methods))

    def _make_methods(self) -> Iterable[OperationSpec]:
        from .methods import Methods  # late: until one of them is called

        return Methods(
            self._connection, self._sessions, self._options, self._input_modes, lambda: self._capabilities
        ).operations()

    def save(self) -> bytes:
        return msgspec.json.encode(_Saved(self._client, Raw(self._sessions.save())))

    def _welcome(self) -> dict[str, Any]:
        """The result of `initialize`. Sessions are offered for later where they outlive the process."""
        agents = agent_runner_of(self._connection.host)
        agent = agents.declared
        server = self._connection.host.server if agent is None else agent.card
        modes = _JSON_MODES if self._input_modes is None else self._input_modes
        later: dict[str, Any] = {"list": {}, "resume": {}, "delete": {}} if agents.durable else {}
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": {
                "loadSession": agents.durable,
                "promptCapabilities": {
                    "image": _takes(modes, "image/"),
                    "audio": _takes(modes, "audio/"),
                    "embeddedContext": True,
                },
                "mcpCapabilities": {"http": _reaches_http(), "sse": False},
                "sessionCapabilities": {**later, "additionalDirectories": {}, "close": {}},
                **({} if self._options.logout is None else {"auth": {"logout": {}}}),
            },
            "authMethods": [
                _shown(one)
                for one in self._options.auth_methods
                if one.type != "terminal" or self._capabilities.signs_in_by_terminal
            ],
            "agentInfo": {"name": server.name, "version": server.version},
        }


def _shown(method: AuthMethod) -> dict[str, Any]:
    """A way to sign in, as ACP writes it. One without a type is the agent's own."""
    own = {"type", "args", "env"} if method.type == "agent" else set()
    members: dict[str, Any] = msgspec.to_builtins(method)
    return {name: value for name, value in members.items() if name not in own and value not in (None, [], {})}


def _reaches_http() -> bool:
    """Whether `Editor.mcp` reaches servers behind URLs: what it needs for that is an extra."""
    return find_spec("h11") is not None


_JSON_MODES: Final = ("application/json",)
"""The media types that an agent takes whose skills are the operations."""


def _capabilities_of(client: ClientInfo) -> ClientCapabilities:
    """Return the client's abilities. Raises `FailureError(InvalidParams)`."""
    try:
        capabilities: ClientCapabilities = convert(client.capabilities, ClientCapabilities)
    except msgspec.ValidationError:
        raise FailureError(InvalidParams("clientCapabilities", "the capabilities of ACP 1", "object")) from None
    return capabilities


def _takes(modes: tuple[str, ...], family: str) -> bool:
    return any(mode.startswith((family, "*/*")) for mode in modes)
