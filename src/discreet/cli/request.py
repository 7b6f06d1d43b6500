"""Makes one request, prints its result, and says how it went.

stdout carries results only: one JSON document, or one line per event. What went wrong is one line on stderr.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw

from ..client import (
    MCP,
    PLAIN,
    ClientError,
    ConnectionFailed,
    Dialect,
    MethodNotFound,
    OperationTypeMismatch,
    Peer,
    RemoteError,
    RequestTimeout,
    RestartPolicy,
    RetryPolicy,
    connect,
)
from ..client.peer import DEFAULT_TIMEOUT, LISTING_SECONDS
from ..client.policies.operation_kinds import ListedOperation
from ..daemon.lifecycle import EXIT_OK, EXIT_USAGE
from ..daemon.settings.sources import closest_match
from ..errors.type_building import decoder_for
from ..framing.events import Framing
from .exit_status import EXIT_DOMAIN, EXIT_WRONG_REQUEST, exit_status
from .json_output import show
from .output import complain

ALIKE: Final = 0.6
"""How like a method must be to one that there is, for the latter to be proposed."""


class Request(msgspec.Struct, frozen=True):
    """What is to be asked of whom.

    `ours` says that the server is `discreet serve`. `timeout` is in seconds, for the answer or for each event,
    `handshake_timeout` for each answer of a handshake; None for no limit. `retries` says how often the call may be made
    again, `idempotent` that this does no harm even if it had an effect; None where only the server knows. No framing means
    the dialect's.
    """

    command: Sequence[str]
    framing: Framing | None
    method: str
    params: object
    stream: bool
    timeout: float | None
    handshake_timeout: float | None = DEFAULT_TIMEOUT
    ours: bool = False
    retries: int = 0
    idempotent: bool | None = None
    service_params: Mapping[str, str] | None = None
    dialect: Dialect = PLAIN


class _Described(msgspec.Struct, frozen=True):
    """What `services/schema` says, as far as it matters here."""

    kind: str


class _ToolResult(msgspec.Struct, frozen=True, rename="camel"):
    """What MCP's `tools/call` answers, as far as it matters here."""

    is_error: bool = False


async def perform(request: Request) -> int:
    """Start the server, ask, print; the exit status."""
    retry = RetryPolicy(attempts=request.retries + 1, deadline=None)
    restart = RestartPolicy(limit=request.retries) if request.retries else None
    try:
        async with connect(
            request.command,
            framing=request.framing,
            dialect=request.dialect,
            timeout=request.handshake_timeout,
            retry=retry,
            restart=restart,
        ) as peer:
            peer.on_unidentified_error(lambda error: _tell_unidentified(request, error))
            return await (_stream(peer, request) if request.stream else _call(peer, request))
    except ConnectionFailed as error:
        if request.ours and error.loss.status == EXIT_USAGE:  # it has said what is wrong with the app or the flags
            return EXIT_USAGE
        return _fail(request, error)
    except ClientError as error:
        return _fail(request, error)


async def _call(peer: Peer, request: Request) -> int:
    try:
        result = await peer.call(
            request.method,
            request.params,
            type=Raw,
            timeout=request.timeout,
            service_params=request.service_params,
            idempotent=request.idempotent,
        )
    except MethodNotFound as error:
        meant = await _nearest(peer, request)
        return _fail(request, error, f"; nearest: {meant}" if meant else "")
    except OperationTypeMismatch as error:
        return _fail(request, error, "; a subscription needs --stream")
    show(result, line=False)
    if request.dialect is MCP and request.method == "tools/call" and _is_error(result):
        complain(f"{request.method}: the tool failed; its result says how")
        return EXIT_DOMAIN
    return EXIT_OK


async def _stream(peer: Peer, request: Request) -> int:
    if request.ours and await _is_something_else(peer, request):
        complain(f"{request.method}: it is no subscription: leave out --stream")
        return EXIT_WRONG_REQUEST
    try:
        async with peer.subscribe(
            request.method, request.params, type=Raw, timeout=request.timeout, service_params=request.service_params
        ) as events:
            async for event in events:
                show(event, line=True)
    except MethodNotFound as error:
        meant = await _nearest(peer, request)
        return _fail(request, error, f"; nearest: {meant}" if meant else "")
    except OperationTypeMismatch as error:
        if error.result is None:
            return _fail(request, error, "; it is no subscription: leave out --stream")
        show(error.result, line=False)
        return _fail(request, error, "; it is no subscription, and has run: leave out --stream")
    return EXIT_OK


async def _is_something_else(peer: Peer, request: Request) -> bool:
    """Whether the daemon knows the operation, and not as a subscription."""
    named = {"name": request.method.removeprefix("/")}
    try:
        described = await peer.call(
            "services/schema", named, type=_Described, timeout=LISTING_SECONDS, service_params=request.service_params
        )
    except ClientError:  # asking for the stream itself will tell
        return False
    return described.kind != "subscription"


async def _nearest(peer: Peer, request: Request) -> str:
    """The operation that was meant, perhaps; empty where none is like it."""
    if request.dialect is not PLAIN:
        return ""
    try:
        listed = await peer.call(
            "services/list", type=list[ListedOperation], timeout=LISTING_SECONDS, service_params=request.service_params
        )
    except ClientError:
        return ""
    return closest_match(request.method, [operation.name for operation in listed], cutoff=ALIKE)


def _is_error(result: Raw) -> bool:
    try:
        return decoder_for(_ToolResult)(result).is_error
    except msgspec.DecodeError:
        return False


def _tell_unidentified(request: Request, error: RemoteError) -> None:
    complain(f"{request.method}: the server reports an error and not of which request: {error}")


def _fail(request: Request, error: ClientError, hint: str = "") -> int:
    """One line on stderr; the exit status."""
    complain(f"{error}{hint}" if isinstance(error, RequestTimeout) else f"{request.method}: {error}{hint}")
    return exit_status(error)
