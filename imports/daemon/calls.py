"""Calls the operations of a daemon by a peer to it: to one that is started as a process, or to a gateway."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeAlias, final

from anyio.lowlevel import current_token
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from ... import call_tracing
from ...client.connect import Endpoint
from ...client.connection import Connection
from ...client.connector import RestartPolicy, restarting
from ...client.dialects import PLAIN
from ...client.errors import ClientError, ConnectionFailed, ConnectionLoss, RemoteError, StreamOverrun
from ...client.peer import Peer
from ...client.process import EndBounds, spawn
from ...client.validation import StderrMode
from ...daemon.logs import Level, log, parse_level
from ...daemon.operations.context import LAST_EVENT_ID, LONGEST_NUMBER, MOUNT_DEPTH, Context
from ...daemon.operations.spec import ServerEvent
from ...daemon.settings.option import PREFIX
from ...errors import failures
from ...errors.exceptions import FailureError
from ...errors.failures import Internal, Unavailable
from ...errors.printable import cut
from ..model import ImportedOperation, UpstreamError
from .contracts import Command, DaemonOperation

# How deep mounts are nested: a daemon that mounts itself must come to an end. Counts processes and calls, starts neither.


MAX_DEPTH: Final = 8
"""Daemons that may stand behind each other. A chain that somebody builds has two or three."""

VARIABLE: Final = "_DISCREET_MOUNT_DEPTH"
"""Tells a process that is started for a mount how many stand before it."""

TOO_DEEP: Final = f"mounts are nested more than {MAX_DEPTH} deep: does a daemon mount itself?"


class TooDeep(Exception):
    """One mount more would be one too many."""


def depth_of_process(environ: Mapping[str, str] = os.environ) -> int:
    """How many processes, each a mount of the one before, stand before this one."""
    return _depth(environ.get(VARIABLE))


def depth_of_call(service_params: Mapping[str, str]) -> int:
    """How many mounts a call has come through."""
    return _depth(service_params.get(MOUNT_DEPTH))


def next_depth(depth: int) -> str:
    """The depth of what stands behind. Raises `TooDeep`."""
    if depth >= MAX_DEPTH:
        raise TooDeep(TOO_DEEP)
    return str(depth + 1)


def _depth(text: str | None) -> int:
    """Any caller may send one: what is no small number of digits is none of ours."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) <= 2 else 0


_TRACE: Final = {"traceparent": 256, "tracestate": 512}
"""Members of W3C Trace Context, and their longest texts."""


class MountIdentity(Struct, frozen=True):
    """Who a mount is to the other daemon: by the credential of the app that is called so, else by this token, else nobody."""

    credential: str = ""
    token: str = ""

    def authorization(self, credentials: Mapping[str, str]) -> dict[str, str]:
        """The service param that says it."""
        token = credentials[self.credential] if self.credential else self.token
        return {"authorization": f"Bearer {token}"} if token else {}


def _hold_nothing(size: int) -> None:
    """Nobody counts what is read before a daemon serves."""


hold: Final[ContextVar[Callable[[int], None]]] = ContextVar("hold", default=_hold_nothing)
"""Counts what a large result takes while it is read, for the call in whose context it is."""

NOBODY: Final = MountIdentity()


def carried(ctx: Context, name: str, identity: MountIdentity) -> dict[str, str]:
    """The service params of the call. Raises `FailureError` where a daemon mounts itself."""
    try:
        depth = next_depth(depth_of_call(ctx.service_params))
    except TooDeep as exc:
        log.error("import.too_deep", import_=name, operation=ctx.operation, hint=str(exc))
        raise FailureError(Internal()) from None
    return {**_trace(ctx.service_params), **identity.authorization(ctx.credentials), MOUNT_DEPTH: depth}


def _trace(service_params: Mapping[str, str]) -> Mapping[str, str]:
    """The caller's span, where nothing is recorded here. Where calls are, the client names its own."""
    if call_tracing.tracer is not None:
        return {}
    return {
        member: text
        for member, longest in _TRACE.items()
        if (text := service_params.get(member)) is not None and len(text) <= longest
    }


# -- calls ---

ATTEMPTS: Final = 2
"""How often a call is made that found no process, or whose process died though it may be repeated."""

WINDOW: Final = 32
"""Events of one stream that may wait here for its consumer. All streams share the connection, and nobody waits for a slow one."""

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
        self._peers: list[tuple[object, Peer]] = []

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """While it is open calls can be made, in this event loop."""
        async with self._open_peer() as peer:
            mine = _loop(), peer
            self._peers.append(mine)
            try:
                yield
            finally:
                self._peers.remove(mine)

    async def call(self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context) -> Raw:
        assert isinstance(operation, DaemonOperation)
        told = not self._by_http and ctx.progress_token is not None and operation.positions is None
        hold.set(ctx.hold_memory)
        params, service_params = params_of(operation, arguments), carried(ctx, self._name, self._identity)
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
        params, service_params = params_of(operation, arguments), carried(ctx, self._name, self._identity)
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
                        number = _number(subscription.last_event_id) if operation.numbered else None
                        yield event if number is None else ServerEvent(event, id=number)
                return
            except ClientError as exc:
                unsent = isinstance(exc, ConnectionFailed) and not exc.sent
                if attempt + 1 < ATTEMPTS and unsent and not begun:
                    continue
                raise raised_for(exc, operation, self._name) from exc

    @property
    def _peer(self) -> Peer:
        here = _loop()
        for loop, peer in reversed(self._peers):
            if loop is here:
                return peer
        raise FailureError(Unavailable())


def _loop() -> object:
    return current_token().native_token


def params_of(operation: DaemonOperation, arguments: Mapping[str, Any]) -> Any:  # Any: JSON
    """The params as the server takes them. By position they end with the last one that is given."""
    if operation.positions is None:
        return arguments
    given = [arguments.get(name) for name in operation.positions]
    while given and operation.positions[len(given) - 1] not in arguments:
        given.pop()
    return given


def _number(event_id: str | None) -> int | None:
    if event_id is None or not (event_id.isascii() and event_id.isdecimal() and len(event_id) <= LONGEST_NUMBER):
        return None
    return int(event_id)


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
    """What is wrong with the params, at most so long. Other servers say nothing of it in our form."""
    if not failure.expected:
        return failures.InvalidParams("$", "params that the server accepts", "object")
    param, expected, received = (
        cut(text, LONGEST_TEXT) for text in (failure.param, failure.expected, failure.received)
    )
    return replace(failure, param=param, expected=expected, received=received, unknown="")


# -- the process ---

BOUNDS: Final = EndBounds(eof=0.7, terminate=0.5, kill=0.5)
"""How it is ended: within this daemon's drain window of 2 s."""

RESTARTS: Final = RestartPolicy(limit=sys.maxsize, within=60.0)
"""It is started as often as calls need it, a moment later each time while it keeps dying, up to 5 s. A daemon runs for months:
whatever was wrong may be mended by then."""

_LEVEL: Final = re.compile(r"""\blevel"?[=:] ?"?([a-z]{4,7})\b""")
"""In both forms of discreet's log."""

LONGEST_LINE: Final = 4096
"""Characters of a line of its stderr that are logged."""


def child_environment(command: Command) -> dict[str, str]:
    """The variables of the process. Raises `TooDeep` where too many daemons stand before it."""
    own = {name: value for name, value in os.environ.items() if not name.startswith((PREFIX, f"_{PREFIX}"))}
    return {**own, **command.env, VARIABLE: next_depth(depth_of_process())}


@asynccontextmanager
async def running(command: Command, endpoint: Endpoint, stderr: StderrMode) -> AsyncGenerator[Connection]:
    """One process and the connection to it. Raises `ConnectionFailed`; before anything is started where mounts are too deep."""
    try:
        environment = child_environment(command)
    except TooDeep as exc:
        raise ConnectionFailed(ConnectionLoss(str(exc)), sent=False) from None
    async with (
        spawn(command.words, cwd=command.cwd, env=environment, stderr=stderr, bounds=BOUNDS) as process,
        endpoint.open(process, process.explain) as connection,
    ):
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
    async with restarting(start, RESTARTS, at_once=False) as connector:
        yield endpoint.peer(connector)
