"""Makes one call, prints its result, and returns the exit status.

stdout carries results only: one JSON document, or one line per event. A failure is one line on stderr, as is progress.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from typing import Any, Final, final

import msgspec
from msgspec import Raw

from ...client import (
    MCP,
    PLAIN,
    ClientError,
    ConnectionFailed,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    OperationTimedOut,
    OperationTypeMismatch,
    Peer,
    RemoteError,
    RequestTimeout,
    RestartPolicy,
    RetryPolicy,
    connect,
)
from ...daemon.lifecycle import EXIT_OK, EXIT_USAGE
from ...errors.decoders import decoder_for
from ...errors.printable import cut, printable
from ..exit_status import EXIT_DOMAIN, exit_status
from ..output import MAX_LINE_CHARACTERS, note_json, print_json, write_stderr
from .hints import deadline_hint, handshake_hint, methods_hint, names_hint, oversize_hint
from .request import RemoteCall

MAX_REPORTED: Final = 10
"""How many errors that name no request are reported. A server may write them without end."""


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
            peer.on_unidentified_error(_reporter(call.method))
            return await _call_with_texts(peer, call)
    except ConnectionFailed as error:
        if call.is_discreet and error.loss.status == EXIT_USAGE:  # it has already printed what is wrong
            return EXIT_USAGE
        return _fail(call, error)
    except ClientError as error:
        return _fail(call, error)


async def _call_with_texts(peer: Peer, call: RemoteCall) -> int:
    """Call. Where a param is refused whose word may be a text as well (`s=5`), call again with the text.

    A refusal of params comes before anything runs, so it is no second run. If the text is refused, too, the first refusal counts.
    """
    make = _subscribe if call.stream else _call
    refused: dict[str, InvalidParams] = {}
    while True:
        try:
            return await make(peer, call)
        except InvalidParams as error:
            name = error.failure.param
            if call.dialect is not PLAIN or name not in call.params.texts:
                return _fail(call, refused.get(name, error), await names_hint(peer, call))
            refused[name] = error
            call = msgspec.structs.replace(call, params=call.params.with_text(name))


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
        return _fail(call, error, await methods_hint(peer, call))
    except OperationTypeMismatch as error:
        error.remedy = ""  # that of a program
        return _fail(call, error, "; a subscription needs --stream")
    except OperationTimedOut as error:
        return _fail(call, error, await deadline_hint(peer, call))
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
        return _fail(call, error, await methods_hint(peer, call))
    except OperationTypeMismatch as error:
        error.remedy = ""
        if error.result is None:
            return _fail(call, error, "; not a subscription: leave out --stream")
        print_json(error.result, one_line=False)
        return _fail(call, error, "; not a subscription, and it has run: leave out --stream")
    return EXIT_OK


def _is_tool_error(result: Raw) -> bool:
    try:
        return decoder_for(_ToolResult)(result).is_error
    except msgspec.DecodeError:
        return False


def _reporter(method: str) -> Callable[[RemoteError], None]:
    """What reports errors of the server that name no request, up to `MAX_REPORTED` of them."""
    numbers = count(1)

    def report(error: RemoteError) -> None:
        number = next(numbers)
        if number <= MAX_REPORTED:
            write_stderr(f"{method}: the server sent an error that names no request: {error}")
        elif number == MAX_REPORTED + 1:
            write_stderr(f"{method}: further errors that name no request are not shown")

    return report


def _fail(call: RemoteCall, error: ClientError, hint: str = "") -> int:
    """Write one line to stderr. Returns the exit status."""
    if isinstance(error, InvalidRequest) and error.failure.reason == "oversize":
        hint = oversize_hint(call)
    elif isinstance(error, RemoteError) and not hint:
        hint = handshake_hint(call, error)
    is_named = isinstance(error, RequestTimeout) or (isinstance(error, RemoteError) and error.method)
    write_stderr(f"{error}{hint}" if is_named else f"{call.method}: {error}{hint}")
    return exit_status(error)


def is_terminal() -> bool:
    """Whether stderr is a terminal that can return to the start of a line."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@final
class ProgressLine:
    """The progress of a call as one line on a terminal, which is gone when the call ends. Nothing of it raises.

    The cursor rests at the start of the line, so that whatever else is written covers it.
    """

    def __init__(self, method: str) -> None:
        self._method = method
        self._shown = 0  # columns

    def show(self, value: Any) -> None:  # Any: JSON
        """Show what the server tells in the place of what it told before."""
        width = _columns() - 1
        text = f"{self._method}: {describe(value)}"
        wide = 1 if text.isascii() else 2  # columns that a character may take
        text = text[: width // wide]
        self._write(text, len(text) * wide)

    def close(self) -> None:
        """Leave the line empty."""
        if self._shown:
            self._write("", 0)

    def _write(self, text: str, columns: int) -> None:
        blanks, self._shown = " " * max(0, self._shown - len(text)), columns
        try:
            sys.stderr.write(f"{text}{blanks}\r")
            sys.stderr.flush()
        except (OSError, UnicodeError):  # nobody looks at it, or not in these characters
            pass


def describe(value: Any) -> str:  # Any: JSON
    """What a person reads of one message: `2/3`, `50%` and its text where it has them, else its JSON."""
    match value:
        case [int() | float() as done, int() | float() as total]:
            text = f"{done:g}/{total:g}"
        case {"progress": int() | float()} | {"kind": "begin" | "report" | "end"}:
            text = " ".join(_words(value))
        case str():
            text = value
        case _:
            text = msgspec.json.encode(value).decode()
    return printable(cut(text, MAX_LINE_CHARACTERS))


def _words(members: dict[str, Any]) -> Iterator[str]:
    """What the progress of MCP and LSP says: how far, and the texts."""
    match members:
        case {"progress": int() | float() as done, "total": int() | float() as total}:
            yield f"{done:g}/{total:g}"
        case {"progress": int() | float() as done} | {"percentage": int() | float() as done}:
            yield f"{done:g}{'%' if 'percentage' in members else ''}"
        case _:
            pass
    for name in ("title", "message"):
        if isinstance(text := members.get(name), str):
            yield text


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
