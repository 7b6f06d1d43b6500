"""Makes one call, prints its result, and returns the exit status.

stdout carries results only: one JSON document, or one line per event. A failure is one line on stderr, as is progress.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Final, Literal, TypeAlias, final

import msgspec
from msgspec import Raw

from ...client import (
    MCP,
    PLAIN,
    ClientError,
    ConnectionFailed,
    Dialect,
    InvalidParams,
    MethodNotFound,
    OperationTypeMismatch,
    Peer,
    RemoteError,
    RequestTimeout,
    RestartPolicy,
    RetryPolicy,
    connect,
)
from ...client.peer import DEFAULT_TIMEOUT, LISTING_SECONDS
from ...client.policies.operation_kinds import ListedOperation
from ...daemon.lifecycle import EXIT_OK, EXIT_USAGE
from ...daemon.rpc.a2a_methods import METHODS
from ...daemon.settings.sources import closest_match
from ...errors.type_building import decoder_for
from ...framing.events import Framing
from ..exit_status import EXIT_DOMAIN, exit_status
from ..json_output import note_json, print_json
from ..output import write_stderr
from .param_schemas import ParamSchemas
from .params import Params
from .progress_line import ProgressLine

SUGGESTION_CUTOFF: Final = 0.6
"""How similar a listed method must be to an unknown one to be suggested; the ratio of `difflib`."""

MAX_COMPARED: Final = 2000
"""How many listed methods an unknown one is compared with. A comparison takes about 10 µs."""

MAX_NAMED: Final = 8
"""How many listed methods are named where an unknown one resembles none of them."""

MAX_REPORTED: Final = 10
"""How many errors that name no request are reported. A server may write them without end."""


Progress: TypeAlias = Literal["lines", "status"]
"""How progress is shown."""


class RemoteCall(msgspec.Struct, frozen=True):
    """One call: the server to start, or the URL of one, the method and its params, and how to call it.

    `is_discreet` says that the server is `discreet serve`. `timeout` is in seconds, for the result or for each event, and
    `handshake_timeout` for each answer of a handshake; None is no limit. `retries` is how often the call may be repeated.
    `idempotent` says that repeating is harmless even if the call took effect; None leaves that to the server's list of
    operations. `framing` None is the dialect's. What the server tells of the call's progress is a line of JSON each on stderr,
    or replaces the one before on the line of a terminal; with None it is not asked to tell.
    """

    server: Sequence[str] | str
    framing: Framing | None
    method: str
    params: Params
    stream: bool
    timeout: float | None
    handshake_timeout: float | None = DEFAULT_TIMEOUT
    is_discreet: bool = False
    retries: int = 0
    idempotent: bool | None = None
    service_params: Mapping[str, str] | None = None
    dialect: Dialect = PLAIN
    progress: Progress | None = None


class _Operation(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a `services/schema` result that is read here."""

    input_schema: dict[str, Any]  # JSON Schema


class _ToolResult(msgspec.Struct, frozen=True, rename="camel"):
    """The part of MCP's `tools/call` result that is read here."""

    is_error: bool = False


async def execute(call: RemoteCall) -> int:
    """Start the server, make the call, print what it returns. Returns the exit status."""
    retry = RetryPolicy(attempts=call.retries + 1, deadline=None)
    restart = RestartPolicy(limit=call.retries) if call.retries and not isinstance(call.server, str) else None
    try:
        async with connect(
            call.server,
            framing=call.framing,
            dialect=call.dialect,
            timeout=call.handshake_timeout,
            retry=retry,
            restart=restart,
        ) as peer:
            peer.on_unidentified_error(_UnidentifiedErrors(call).report)
            return await _call_with_texts(peer, call)
    except ConnectionFailed as error:
        if call.is_discreet and error.loss.status == EXIT_USAGE:  # it has already printed what is wrong
            return EXIT_USAGE
        return _fail(call, error)
    except ClientError as error:
        return _fail(call, error)


async def _call_with_texts(peer: Peer, call: RemoteCall) -> int:
    """Call; if a param is refused whose word may be a text as well (`s=5`), ask for the schema and call with the texts.

    A refusal of params comes before anything runs, so it is no second run.
    """
    make = _subscribe if call.stream else _call
    try:
        return await make(peer, call)
    except InvalidParams as error:
        if error.failure.param not in call.params.texts or call.dialect is not PLAIN:
            raise
        try:
            params = call.params.as_text(await ask_schemas(peer, call.method, call.service_params))
        except ClientError:  # a server without schemas
            raise error from None
        if params is None:
            raise
    return await make(peer, msgspec.structs.replace(call, params=params))


async def ask_schemas(peer: Peer, method: str, service_params: Mapping[str, str] | None) -> ParamSchemas:
    """Return what the server says of the params of an operation. Raises `ClientError`."""
    operation = await peer.call(
        "services/schema",
        {"name": method.removeprefix("/")},
        type=_Operation,
        timeout=LISTING_SECONDS,
        service_params=service_params,
    )
    return ParamSchemas(operation.input_schema)


async def _call(peer: Peer, call: RemoteCall) -> int:
    line = ProgressLine(call.method)
    show = {None: None, "lines": note_json, "status": line.show}[call.progress]
    try:
        with closing(line):
            result = await peer.call(
                call.method,
                call.params.value,
                type=Raw,
                timeout=call.timeout,
                service_params=call.service_params,
                idempotent=call.idempotent,
                on_progress=show,
            )
    except MethodNotFound as error:
        return _fail(call, error, await _suggestion(peer, call))
    except OperationTypeMismatch as error:
        return _fail(call, error, "; a subscription needs --stream")
    print_json(result, one_line=False)
    if call.dialect is MCP and call.method == "tools/call" and _is_tool_error(result):
        write_stderr(f"{call.method}: the tool failed; its result says how")
        return EXIT_DOMAIN
    return EXIT_OK


async def _subscribe(peer: Peer, call: RemoteCall) -> int:
    try:
        async with peer.subscribe(
            call.method, call.params.value, type=Raw, timeout=call.timeout, service_params=call.service_params
        ) as events:
            async for event in events:
                print_json(event, one_line=True)
    except MethodNotFound as error:
        return _fail(call, error, await _suggestion(peer, call))
    except OperationTypeMismatch as error:
        if error.result is None:
            return _fail(call, error, "; not a subscription: leave out --stream")
        print_json(error.result, one_line=False)
        return _fail(call, error, "; not a subscription, and it has run: leave out --stream")
    return EXIT_OK


async def _suggestion(peer: Peer, call: RemoteCall) -> str:
    """Return a hint that names the most similar operation, or if none is similar enough, what there is instead."""
    if call.dialect is MCP:
        return "; a tool is called with tools/call name=… arguments='{…}', and tools/list names them"
    if call.dialect is not PLAIN:
        return ""
    if isinstance(call.server, str):
        name = closest_match(call.method, sorted(METHODS), cutoff=SUGGESTION_CUTOFF)
        return f"; nearest: {name}" if name and call.method not in METHODS else ""
    try:
        listed = await peer.call(
            "services/list", type=list[ListedOperation], timeout=LISTING_SECONDS, service_params=call.service_params
        )
    except ClientError:
        return ""
    longest = 3 * len(call.method)  # a longer name can't reach the cutoff
    names = [operation.name for operation in listed[:MAX_COMPARED] if len(operation.name) <= longest]
    name = closest_match(call.method, names, cutoff=SUGGESTION_CUTOFF)
    if name or not listed:
        return f"; nearest: {name}" if name else ""
    there = ", ".join(sorted(operation.name for operation in listed[:MAX_COMPARED])[:MAX_NAMED])
    return f"; there is {there}{', …' if len(listed) > MAX_NAMED else ''}"


def _is_tool_error(result: Raw) -> bool:
    try:
        return decoder_for(_ToolResult)(result).is_error
    except msgspec.DecodeError:
        return False


@final
class _UnidentifiedErrors:
    """Reports errors of the server that name no request, up to `MAX_REPORTED` of them."""

    def __init__(self, call: RemoteCall) -> None:
        self._method = call.method
        self._count = 0

    def report(self, error: RemoteError) -> None:
        self._count += 1
        if self._count <= MAX_REPORTED:
            write_stderr(f"{self._method}: the server sent an error that names no request: {error}")
        elif self._count == MAX_REPORTED + 1:
            write_stderr(f"{self._method}: further errors that name no request are not shown")


def _fail(call: RemoteCall, error: ClientError, hint: str = "") -> int:
    """Write one line to stderr. Returns the exit status."""
    write_stderr(f"{error}{hint}" if isinstance(error, RequestTimeout) else f"{call.method}: {error}{hint}")
    return exit_status(error)
