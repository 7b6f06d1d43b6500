"""A client's connection in ACP 1, the Agent Client Protocol: its handshake, what holds for single messages, and which sessions it
has open.

All methods but `initialize` load when the first of them is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, final

import msgspec
from msgspec import Raw

from ...agents.acp_options import AcpOptions
from ...agents.host import agent_runner_of
from ...daemon.connection.handshake import add_initialize, checked, run_initializers
from ...daemon.operations.context import ClientInfo, Context
from ...daemon.operations.registry import LazyOperations, Registry
from ...daemon.operations.service import DeclarationError, Service
from ...daemon.operations.spec import OperationSpec
from ...daemon.rpc import envelope
from ...daemon.rpc.dialect import Dialect
from ...errors.codes import ACP_RESERVED
from ...errors.decoders import convert, decoder_for
from ...errors.exceptions import FailureError, OperationError
from ...errors.failures import Failure, InvalidParams
from ...errors.wire import error_object

if TYPE_CHECKING:
    from ...daemon.connection.notices import ClientConnection
    from ...daemon.rpc.dialect import Ignored
    from ...daemon.rpc.envelope import Call
    from .generated.structs import McpServer

PROTOCOL_VERSION: Final = 1

OWN_METHODS: Final = frozenset(
    {
        "initialize",
        "authenticate",
        "session/new",
        "session/load",
        "session/resume",
        "session/close",
        "session/list",
        "session/set_mode",
        "session/set_config_option",
        "session/prompt",
        "session/cancel",
    }
)
"""Methods that the dialect answers itself."""


def check_declarations(specs: Iterable[OperationSpec]) -> None:
    """Raises `DeclarationError` for an operation that ACP does not allow."""
    for spec in specs:
        if spec.name in OWN_METHODS:
            raise DeclarationError(f"operation {spec.name}: ACP's session answers it; choose another name")
        for error in spec.errors:
            if error.definition.number in ACP_RESERVED:
                raise DeclarationError(
                    f"operation {spec.name}: {error.__name__} has the number {error.definition.number}, whose"
                    " meaning ACP fixes; choose another"
                )


# What the client has opened, and which prompts run in it. Bounded; knows no task.


AUTHENTICATION_REQUIRED: Final = -32000

MAX_SESSIONS: Final = 1024
"""Sessions that one client may have open."""

MAX_BYTES: Final = 16 * 1024 * 1024
"""What the sessions of one client may take together: their directories and MCP servers, as JSON."""

MAX_UNBEGUN: Final = 16
"""Prompts of one session that may be cancelled before they begin: one may run, so a client that sends more is mistaken."""


_ABSOLUTE: Final = re.compile(r"/|\\\\|[A-Za-z]:[\\/]")


class SessionNotFound(OperationError, code="SESSION_NOT_FOUND", number=-32002, http_status=404):
    """There is no such session."""


class TooManySessions(OperationError, code="TOO_MANY_SESSIONS", http_status=429):
    """Too many sessions are open: close some."""


class AuthenticationFailed(
    OperationError, code="AUTHENTICATION_FAILED", number=AUTHENTICATION_REQUIRED, http_status=401
):
    """Signing in has failed."""


class _FileSystem(msgspec.Struct, rename="camel", frozen=True):
    read_text_file: bool | None = None
    write_text_file: bool | None = None


class ClientCapabilities(msgspec.Struct, frozen=True):
    """What the client can do for an executor."""

    fs: _FileSystem | None = None
    terminal: bool | None = None


def is_absolute(path: str) -> bool:
    """Whether a path is absolute on the client's system, which may be another than ours."""
    return _ABSOLUTE.match(path) is not None


class SessionRecord(msgspec.Struct):
    """A session as it is handed on at a live reload. `task_id` is the task with which the next prompt goes on.

    MCP servers stay JSON text: decoded, they may take twenty times as much.
    """

    id: str
    cwd: str
    directories: tuple[str, ...]
    mcp_servers: Raw
    mode: str | None
    config: dict[str, str | bool]
    task_id: str | None = None

    def absolute(self, path: str) -> str:
        """The path; a relative one is in the session's directory."""
        if is_absolute(path):
            return path
        separator = "/" if self.cwd.startswith("/") or "\\" not in self.cwd else "\\"
        return f"{self.cwd.rstrip(separator)}{separator}{path}"


@final
class OpenSession:
    """One open session."""

    __slots__ = ("_cancelled", "_unbegun", "cancel_turn", "record", "size")

    def __init__(self, record: SessionRecord) -> None:
        self.record: Final = record
        self.size: Final = len(msgspec.json.encode(record))
        self.cancel_turn: Callable[[], None] | None = None
        """Cancels the prompt that runs."""
        self._unbegun: dict[int, None] = {}
        self._cancelled: frozenset[int] = frozenset()

    def note_prompt(self, call_id: bytes) -> None:
        """A prompt was read. It begins later, or is refused. Of its id, which may be long, a hash is kept."""
        mark = hash(call_id)
        self._cancelled -= {mark}  # of a prompt that is over
        self._unbegun[mark] = None
        while len(self._unbegun) > MAX_UNBEGUN:
            del self._unbegun[next(iter(self._unbegun))]

    def cancel(self) -> None:
        """Cancel what was read before: the prompt that runs, and those that have not begun."""
        if self.cancel_turn is not None:
            self.cancel_turn()
        self._cancelled = frozenset(self._unbegun)

    def begin_prompt(self, call_id: str | None) -> bool:
        """A prompt begins; False where it was cancelled before."""
        mark = hash((call_id or "").encode())
        self._unbegun.pop(mark, None)
        return mark not in self._cancelled


@final
class Sessions:
    """Raises `SessionNotFound` for an id that is not open."""

    def __init__(self, options: AcpOptions, saved: bytes = b"") -> None:
        self._options = options
        self._open: dict[str, OpenSession] = {}
        self._bytes = 0
        for record in decoder_for(list[SessionRecord])(saved) if saved else ():
            self._add(record)

    def open(
        self, session_id: str, cwd: str, directories: list[str] | None, servers: list[McpServer] | None
    ) -> OpenSession:
        """Open a session, or open it anew. Raises `TooManySessions`."""
        record = SessionRecord(
            session_id,
            cwd,
            tuple(directories or ()),
            Raw(msgspec.json.encode(servers or [])),
            self._options.modes[0].id if self._options.modes else None,
            {option.id: option.initial for option in self._options.config_options},
        )
        if session_id in self._open:
            self.close(session_id)
        return self._add(record)

    def _add(self, record: SessionRecord) -> OpenSession:
        session = OpenSession(record)
        if len(self._open) >= MAX_SESSIONS or self._bytes + session.size > MAX_BYTES:
            raise TooManySessions
        self._bytes += session.size
        self._open[record.id] = session
        return session

    def find(self, session_id: str) -> OpenSession | None:
        return self._open.get(session_id)

    def get(self, session_id: str) -> OpenSession:
        session = self._open.get(session_id)
        if session is None:
            raise SessionNotFound
        return session

    def close(self, session_id: str) -> None:
        """Cancel what runs in it and forget it."""
        session = self.get(session_id)
        session.cancel()
        self._bytes -= session.size
        del self._open[session_id]

    def save(self) -> bytes:
        """What `Sessions(saved=…)` takes."""
        return msgspec.json.encode([session.record for session in self._open.values()])


# The dialect and the handshake.


_CANCEL_REQUEST = "$/cancel_request"


class _Named(msgspec.Struct, rename="camel"):
    session_id: str


@final
class AcpDialect(Dialect):
    """One per connection. A cancellation holds for the prompts of its session that were read before it, begun or not."""

    name: ClassVar[str] = "acp"
    cancellations: ClassVar[Mapping[str, str]] = {_CANCEL_REQUEST: "requestId"}
    mends_surrogates: ClassVar[bool] = True
    trace_place: ClassVar[Literal["serviceParams", "_meta"] | None] = "_meta"

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def receive(self, call: Call) -> Failure | Ignored | None:
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


def _session_of(call: Call) -> str:
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


class _Saved(msgspec.Struct, frozen=True):
    """What the next program needs to go on."""

    client: ClientInfo
    sessions: Raw


@final
class AcpSession:
    """One per connection."""

    def __init__(self, connection: ClientConnection, saved: bytes = b"") -> None:
        self._connection = connection
        agent = agent_runner_of(connection.host).declared
        self._input_modes = None if agent is None else agent.input_modes
        self._options: Final = AcpOptions() if agent is None else agent.acp
        last = decoder_for(_Saved)(saved) if saved else _Saved(ClientInfo(), Raw(b"[]"))
        self._client = last.client
        self._capabilities = _capabilities_of(last.client)
        self._sessions = Sessions(self._options, bytes(last.sessions))
        self.dialect: Dialect = AcpDialect(self._sessions)
        self.documents: Final = None

    def registry(self) -> Registry:
        check_declarations(self._connection.host.catalogue.operations)
        self._connection.set_client_info(self._client)
        service = Service("")
        hooks = self._connection.initializers

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
        return Registry([service], LazyOperations(OWN_METHODS - {"initialize"}, self._make_methods))

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
        server = self._connection.server_info if agent is None else agent.card
        modes = _JSON_MODES if self._input_modes is None else self._input_modes
        later: dict[str, Any] = {"list": {}, "resume": {}} if agents.durable else {}
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": {
                "loadSession": agents.durable,
                "promptCapabilities": {
                    "image": _takes(modes, "image/"),
                    "audio": _takes(modes, "audio/"),
                    "embeddedContext": True,
                },
                "sessionCapabilities": {**later, "additionalDirectories": {}, "close": {}},
            },
            "authMethods": [
                {"id": one.id, "name": one.name, **({"description": one.description} if one.description else {})}
                for one in self._options.auth_methods
            ],
            "agentInfo": {"name": server.name, "version": server.version},
        }


_JSON_MODES: Final = ("application/json",)
"""What an agent takes whose skills are the operations."""


def _capabilities_of(client: ClientInfo) -> ClientCapabilities:
    """What the client can do. Raises `FailureError(InvalidParams)`."""
    try:
        capabilities: ClientCapabilities = convert(client.capabilities, ClientCapabilities)
    except msgspec.ValidationError:
        raise FailureError(InvalidParams("clientCapabilities", "the capabilities of ACP 1", "object")) from None
    return capabilities


def _takes(modes: tuple[str, ...], family: str) -> bool:
    return any(mode.startswith((family, "*/*")) for mode in modes)
