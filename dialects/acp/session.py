"""A client's connection in ACP, the Agent Client Protocol: its handshake, and what holds for single messages.

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
DRAFT_VERSION: Final = 2
"""The versions. A connection speaks the one that its `initialize` has agreed on, and version 1 without a handshake."""

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
"""Methods that the dialect answers itself in version 1, for any agent."""

DRAFT_METHODS: Final = frozenset({"auth/login", "auth/logout"})
"""Those that only the draft has."""


def own_methods(options: AcpOptions, latest: int = PROTOCOL_VERSION) -> frozenset[str]:
    """The methods that the dialect answers itself in the versions up to the latest that is spoken. A service may have a `logout`
    where the agent has none."""
    own = OWN_METHODS if options.logout is None else OWN_METHODS | {"logout"}
    return own | DRAFT_METHODS if latest == DRAFT_VERSION else own


def options_of(host: Host) -> AcpOptions:
    """The options that the agent declares, if there is one."""
    agent = agent_runner_of(host).declared
    return AcpOptions() if agent is None else agent.acp


def check_declarations(host: Host) -> None:
    """Raises `DeclarationError` for an operation that ACP does not allow."""
    options, latest = options_of(host), host.settings.acp_version
    own = own_methods(options, latest)
    if latest == DRAFT_VERSION and options.auth_methods and options.logout is None:
        raise DeclarationError("acp: in version 2 who can sign in can sign out; declare logout beside auth_methods")
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
        self.version = PROTOCOL_VERSION

    @property
    def batches(self) -> bool:
        return self.version == DRAFT_VERSION

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
    capabilities: dict[str, Any] | None = None  # Any: JSON
    info: _Implementation | None = None

    def for_hooks(self, *, draft: bool) -> dict[str, Any]:
        """Return the params for the services, which know the names of version 1 alone."""
        given: dict[str, Any] = msgspec.to_builtins(self)
        capabilities, info = given.pop("capabilities"), given.pop("info")
        return given | {"clientCapabilities": capabilities, "clientInfo": info} if draft else given

    def client(self, version: int) -> ClientInfo:
        """Return the facts that the client sends of itself, under the names of this version.

        Raises `FailureError(InvalidParams)` if they are too many, and where version 2 needs a name.
        """
        info, capabilities = self.client_info, self.client_capabilities
        if version == DRAFT_VERSION:
            info, capabilities = self.info, self.capabilities
            if info is None:
                raise FailureError(InvalidParams("info", "object", "missing"))
        return checked(
            ClientInfo(
                name="" if info is None else info.name,
                version="" if info is None else info.version,
                protocol_version=version,
                capabilities=capabilities or {},
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
        self._dialect = AcpDialect(self._sessions)
        self._version = last.client.protocol_version  # None until it is agreed on
        if isinstance(self._version, int):
            self._dialect.version = self._version
        self.documents: Final = None

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    def registry(self) -> Registry:
        check_declarations(self._connection.host)
        self._connection.set_client_info(self._client)
        service = Service("")
        hooks = self._connection.host.catalogue.initializers

        def initialize(params: _InitializeParams, /) -> dict[str, Any]:
            """Say who the agent is and what it can do."""
            client = params.client(version := self._agree(params.protocol_version))
            self._capabilities = _capabilities_of(client)
            self._version = self._dialect.version = version
            self._client = client
            self._connection.set_client_info(client)
            return self._welcome()

        async def initialize_after_hooks(ctx: Context, params: _InitializeParams, /) -> dict[str, Any]:
            answer = initialize(params)
            await run_initializers(ctx, hooks, params.for_hooks(draft=self._version == DRAFT_VERSION))
            return answer

        add_initialize(service, hooks, initialize, initialize_after_hooks)
        own = own_methods(self._options, self._connection.host.settings.acp_version) - {"initialize"}
        return Registry([service], LazyOperations(own, self._make_methods))

    def _agree(self, asked: int) -> int:
        """The version to speak: the one that the client asks for, else the latest; once agreed on, it stays."""
        if isinstance(self._version, int):
            return self._version
        latest = self._connection.host.settings.acp_version
        return asked if PROTOCOL_VERSION <= asked <= latest else latest

    def _make_methods(self) -> Iterable[OperationSpec]:
        from .methods import Methods  # late: until one of them is called

        self._version = self._dialect.version  # version 1 without a handshake
        methods = Methods(
            self._connection,
            self._sessions,
            self._options,
            self._input_modes,
            lambda: self._capabilities,
            self._connection.context_backend,
        )
        if self._version == PROTOCOL_VERSION:
            return methods.operations()
        from .draft import operations  # late: few clients speak it

        return operations(methods)

    def save(self) -> bytes:
        return msgspec.json.encode(_Saved(self._client, Raw(self._sessions.save())))

    def _welcome(self) -> dict[str, Any]:
        """The result of `initialize`. Sessions are offered for later where they outlive the process."""
        agents = agent_runner_of(self._connection.host)
        agent = agents.declared
        server = self._connection.host.server if agent is None else agent.card
        modes = _JSON_MODES if self._input_modes is None else self._input_modes
        later: dict[str, Any] = {"list": {}, "resume": {}, "delete": {}} if agents.durable else {}
        answer = {
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
        return answer if self._version == PROTOCOL_VERSION else _in_draft(answer)


def _in_draft(answer: dict[str, Any]) -> dict[str, Any]:
    """The result of `initialize` in version 2, from that of version 1. What every agent can do is not told there."""
    can = answer["agentCapabilities"]
    always = {"list", "resume", "close"}
    session: dict[str, Any] = {name: {} for name in can["sessionCapabilities"] if name not in always}
    for group, capabilities in (
        ("prompt", can["promptCapabilities"]),
        ("mcp", {"stdio": True, **can["mcpCapabilities"]}),
    ):
        session[group] = {name: {} for name, has_it in capabilities.items() if has_it}
    return {
        "protocolVersion": DRAFT_VERSION,
        "info": answer["agentInfo"],
        "capabilities": {"session": session},
        "authMethods": [_method_in_draft(**method) for method in answer["authMethods"]],
    }


def _method_in_draft(
    id: str, type: str = "agent", env: Mapping[str, str] | None = None, **others: Any
) -> dict[str, Any]:
    variables = {"env": [{"name": name, "value": value} for name, value in env.items()]} if env else {}
    return {"methodId": id, "type": type, **others, **variables}


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
    draft = client.protocol_version == DRAFT_VERSION
    given = _of_draft(client.capabilities) if draft else client.capabilities
    try:
        capabilities: ClientCapabilities = convert(given, ClientCapabilities)
    except msgspec.ValidationError:
        param = "capabilities" if draft else "clientCapabilities"
        raise FailureError(
            InvalidParams(param, f"the capabilities of ACP {client.protocol_version}", "object")
        ) from None
    return capabilities


def _of_draft(given: Mapping[str, Any]) -> dict[str, Any]:
    """The capabilities of a client of version 2 as those of version 1: it has no files and no terminals, and shows switches."""
    auth = given.get("auth")
    return {
        "auth": {"terminal": auth.get("terminal") is not None} if isinstance(auth, dict) else auth,
        "elicitation": given.get("elicitation"),
        "session": {"configOptions": {"boolean": {}}},
    }


def _takes(modes: tuple[str, ...], family: str) -> bool:
    return any(mode.startswith((family, "*/*")) for mode in modes)
