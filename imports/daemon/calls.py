"""Calls the operations of another daemon by a peer to it: to a process that it starts, or to a gateway.

Sends the facts of a call along (the mount's identity, the span, the number of mounts), and turns the other daemon's failures
into those of the caller here. The caller is told of wrong params and of declared errors. It is told nothing of identities,
which are between the other daemon and the mount: the log has the reason.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeAlias, final

from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from ...client.connect import Endpoint
from ...client.connection import Connection
from ...client.dialects import PLAIN
from ...client.errors import ClientError, ConnectionFailed, RemoteError, StreamOverrun
from ...client.http.wire import number_of
from ...client.peer import Peer
from ...client.validation import StderrMode
from ...daemon.logs import Level, log, parse_level
from ...daemon.operations.context import LAST_EVENT_ID, MOUNT_DEPTH, Context
from ...daemon.operations.spec import ServerEvent
from ...errors import failures
from ...errors.exceptions import FailureError
from ...errors.failures import Internal, Unavailable
from ...errors.printable import cut
from ..model import ImportedOperation, UpstreamError
from ..targets import Command, TooDeep, next_depth, run, started_again, trace_passed_on
from ..tokens import UpstreamTokens
from .contracts import DaemonOperation


class MountIdentity(Struct, frozen=True):
    """The identity of a mount for the other daemon: the app's credential of that name, else this token, else none."""

    credential: str = ""
    token: str = ""

    async def authorization(self, tokens: UpstreamTokens, ctx: Context) -> dict[str, str]:
        """The service param that says it for a call. Raises `FailureError`."""
        credential = ctx.credentials[self.credential] if self.credential else self.token
        return {"authorization": f"Bearer {await tokens.for_call(credential, ctx)}"} if credential else {}


def _hold_nothing(size: int) -> None:
    """Count nothing: results that are read before a daemon serves are free."""


hold: Final[ContextVar[Callable[[int], None]]] = ContextVar("hold", default=_hold_nothing)
"""Counts what a large result takes while it is read, for the call in whose context it is."""

NOBODY: Final = MountIdentity()


async def carried(ctx: Context, name: str, identity: MountIdentity, tokens: UpstreamTokens) -> dict[str, str]:
    """The service params of the call. Raises `FailureError` where a daemon mounts itself."""
    try:
        depth = next_depth(ctx.service_params.get(MOUNT_DEPTH))
    except TooDeep as exc:
        log.error("import.too_deep", import_=name, operation=ctx.operation, hint=str(exc))
        raise FailureError(Internal()) from None
    return {
        **trace_passed_on(ctx.service_params),
        **await identity.authorization(tokens, ctx),
        MOUNT_DEPTH: depth,
    }


# -- calls ---

ATTEMPTS: Final = 2
"""How often a call is made that found no process, or whose process died though it may be repeated."""

WINDOW: Final = 32
"""Events of one stream that may wait here for its consumer. All streams share the connection, and none waits for a slow one."""

OpenPeer: TypeAlias = Callable[[], AbstractAsyncContextManager[Peer]]
"""Gives the peer for as long as the block runs. What takes time may be put off to its first call."""


@final
class PeerUpstream:
    """`name` is that of the import in the log. `by_http` is whether the peer is one to a gateway: then streams have connections
    of their own, and events may have numbers."""

    def __init__(
        self, name: str, open_peer: OpenPeer, identity: MountIdentity = NOBODY, *, by_http: bool = False
    ) -> None:
        self._name = name
        self._open_peer = open_peer
        self._identity = identity
        self._by_http = by_http
        self._tokens = UpstreamTokens(name)
        self._open: Peer | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """While it is open calls can be made."""
        async with self._open_peer() as self._open:
            try:
                yield
            finally:
                self._open = None

    async def call(self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context) -> Raw:
        assert isinstance(operation, DaemonOperation)
        told = not self._by_http and ctx.progress_token is not None and operation.positions is None
        hold.set(ctx.hold_memory)
        params, service_params = params_of(operation, arguments), await self._carried(ctx)
        for attempt in range(ATTEMPTS):
            try:
                return await self._peer.call(
                    operation.method,
                    params,
                    type=Raw,
                    timeout=None,
                    service_params=service_params,
                    on_progress=ctx.progress if told else None,
                )
            except ClientError as exc:
                if attempt + 1 < ATTEMPTS and _may_repeat(operation, exc):
                    continue
                raise raised_for(exc, operation, self._name) from exc
        raise AssertionError("the last attempt returns or raises")

    async def stream(
        self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context
    ) -> AsyncGenerator[Raw | ServerEvent[Raw], None]:
        assert isinstance(operation, DaemonOperation)
        params, service_params = params_of(operation, arguments), await self._carried(ctx)
        if (last := ctx.service_params.get(LAST_EVENT_ID)) is not None:
            service_params[LAST_EVENT_ID] = last
        begun = False
        for attempt in range(ATTEMPTS):
            subscription = self._peer.subscribe(
                operation.method,
                params,
                type=Raw,
                service_params=service_params,
                window=None if self._by_http else WINDOW,
            )
            try:
                async with subscription:
                    async for event in subscription:
                        begun = True
                        number = number_of(subscription.last_event_id) if operation.numbered else None
                        yield event if number is None else ServerEvent(event, id=number)
                return
            except ClientError as exc:
                unsent = isinstance(exc, ConnectionFailed) and not exc.sent
                if attempt + 1 < ATTEMPTS and unsent and not begun:
                    continue
                raise raised_for(exc, operation, self._name) from exc

    async def _carried(self, ctx: Context) -> dict[str, str]:
        return await carried(ctx, self._name, self._identity, self._tokens)

    @property
    def _peer(self) -> Peer:
        if self._open is None:
            raise FailureError(Unavailable())
        return self._open


def params_of(operation: DaemonOperation, arguments: Mapping[str, Any]) -> Any:  # Any: JSON
    """The params as the server takes them. By position they end with the last one that is given."""
    if operation.positions is None:
        return arguments
    given = [arguments.get(name) for name in operation.positions]
    while given and operation.positions[len(given) - 1] not in arguments:
        given.pop()
    return given


def _may_repeat(operation: DaemonOperation, exc: ClientError) -> bool:
    """Whether the call has certainly had no effect, or may have it twice."""
    if not isinstance(exc, ConnectionFailed):
        return False
    return not exc.sent or operation.kind == "query" or operation.idempotent


LONGEST_TEXT: Final = 1000
"""Characters of each text that the other daemon says of a param."""

_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


def raised_for(exc: ClientError, operation: DaemonOperation, name: str) -> UpstreamError | FailureError:
    """The exception in place of this one. `name` is that of the import."""
    match exc:
        case RemoteError():
            return raised_for_failure(exc.failure, operation, name, number=exc.number, data=exc.error.data)
        case ConnectionFailed():
            log.warning("import.unavailable", import_=name, operation=operation.method, reason=exc.loss.reason)
            if exc.loss.gave_up or (exc.sent and not operation.repeatable):
                return FailureError(failures.Internal())  # it would fail again, or may have had its effect
            return FailureError(failures.Unavailable(upstream=True))
        case StreamOverrun():
            log.warning("import.stream_overrun", import_=name, operation=operation.method)
            return FailureError(failures.Overloaded())
        case _:
            log.error("import.invalid_reply", import_=name, operation=operation.method, reason=str(exc))
            return FailureError(failures.Internal())


def raised_for_failure(
    failure: failures.Failure,
    operation: DaemonOperation,
    name: str,
    *,
    number: int = 0,
    data: object = UNSET,
) -> UpstreamError | FailureError:
    """The exception for a failure that the other daemon told. `number` and `data` are those of its JSON-RPC error."""
    if (code := operation.codes.get(number)) is not None:
        return UpstreamError(code, data if isinstance(data, Raw) else None)
    match failure:
        case failures.DomainFailure():
            return UpstreamError(failure.code, failure.details)
        case failures.InvalidParams():
            return FailureError(_params(failure))
        case failures.Unavailable():
            return FailureError(failures.Unavailable(upstream=True))
        case failures.TimedOut() | failures.Overloaded():
            return FailureError(failure)
        case failures.InvalidRequest("oversize"):
            return FailureError(failure)
        case failures.Internal(code=str(code)) if _CODE.fullmatch(code):
            return FailureError(failure)
        case failures.Internal():
            return FailureError(failures.Internal())
        case failures.AuthenticationRequired() | failures.InsufficientPermissions():
            hint = "the import's credential is not accepted there, or has too few scopes"
            log.error("import.refused", import_=name, operation=operation.method, hint=hint)
        case failures.MethodNotFound() | failures.OperationTypeMismatch():
            hint = "the daemon behind the import has other operations than when this one started"
            log.error("import.changed", import_=name, operation=operation.method, hint=hint)
        case _:
            log.error("import.invalid_reply", import_=name, operation=operation.method, reason=type(failure).__name__)
    return FailureError(failures.Internal())


def _params(failure: failures.InvalidParams) -> failures.InvalidParams:
    """Describe the fault of the params, in a bounded text. Other servers say nothing of it in our form."""
    if not failure.expected:
        return failures.InvalidParams("$", "params that the server accepts", "object")
    param, expected, received = (
        cut(text, LONGEST_TEXT) for text in (failure.param, failure.expected, failure.received)
    )
    return replace(failure, param=param, expected=expected, received=received, unknown="")


# -- the process ---

_LEVEL: Final = re.compile(r"""\blevel"?[=:] ?"?([a-z]{4,7})\b""")
"""In both forms of discreet's log."""

LONGEST_LINE: Final = 4096
"""Characters of a line of its stderr that are logged."""


@asynccontextmanager
async def running(command: Command, endpoint: Endpoint, stderr: StderrMode) -> AsyncGenerator[Connection]:
    """One process and the connection to it. Raises `ConnectionFailed`."""
    async with run(command, stderr) as process, endpoint.open(process, process.explain) as connection:
        yield connection


def endpoint_of(service_params: Mapping[str, str] | None = None) -> Endpoint:
    """This side of such a connection. Calls have no time limit of their own."""
    return Endpoint(PLAIN, framing=None, timeout=None, errors=(), retry=None, service_params=service_params)


def level_of(line: str) -> Level:
    """The level of a line of its log; that of what is printed past ours for any other line."""
    found = _LEVEL.search(line)
    return (found and parse_level(found[1])) or "warn"


@asynccontextmanager
async def restarted(command: Command, name: str) -> AsyncGenerator[Peer]:
    """A peer whose calls start the process where none runs. Leaving ends it."""

    @asynccontextmanager
    async def start() -> AsyncGenerator[Connection]:
        async with running(command, endpoint, log_lines) as connection:
            log.info("import.started", import_=name)
            yield connection
            if connection.loss is not None:
                log.warning("import.ended", import_=name, reason=connection.loss.reason)

    def log_lines(line: str) -> None:
        log.record(level_of(line), "import.stderr", {"import_": name, "text": cut(line, LONGEST_LINE)})

    endpoint = endpoint_of()
    async with started_again(start) as connector:
        yield endpoint.peer(connector)
