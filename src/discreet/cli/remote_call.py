"""Makes one call, prints its result, and returns the exit status.

stdout carries results only: one JSON document, or one line per event. A failure is one line on stderr, as is progress.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from itertools import count
from typing import Any, Final, final

import msgspec
from msgspec import Raw

from ..a2a.methods import METHODS
from ..client import (
    LSP,
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
from ..client.peer import LISTING_SECONDS
from ..daemon.lifecycle import EXIT_OK, EXIT_USAGE
from ..daemon.settings import Settings
from ..errors.decoders import convert
from ..errors.nearest import nearest_hint
from ..errors.printable import cut, printable
from .exit_status import EXIT_DOMAIN, exit_status
from .output import MAX_LINE_CHARACTERS, note_json, print_json, write_stderr
from .request import RemoteCall

MAX_REPORTED: Final = 10
"""How many errors that name no request are reported. A server may write them without end."""


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
        return bool(convert(msgspec.json.decode(result), dict[str, Any]).get("isError", False))
    except msgspec.DecodeError:
        return False


def _reporter(method: str) -> Callable[[RemoteError], None]:
    """Return the handler that reports errors of the server that name no request, up to `MAX_REPORTED` of them."""
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
    """Say whether stderr is a terminal that can return to the start of a line."""
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
        try:
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        except (OSError, ValueError):
            columns = 80
        text = f"{self._method}: {describe(value)}"
        wide = 1 if text.isascii() else 2  # columns that a character may take
        text = text[: (columns - 1) // wide]
        self._write(text, len(text) * wide)

    def close(self) -> None:
        """Leave the line empty."""
        if self._shown:
            self._write("", 0)

    def _write(self, text: str, columns: int) -> None:
        blanks, self._shown = " " * max(0, self._shown - len(text)), columns
        with suppress(OSError, UnicodeError):  # stderr is closed, or can't show these characters
            sys.stderr.write(f"{text}{blanks}\r")
            sys.stderr.flush()


def describe(value: Any) -> str:  # Any: JSON
    """Return what a person reads of one message: `2/3`, `50%` and its text where it has them, else its JSON."""
    match value:
        case [int() | float() as done, int() | float() as total]:
            text = f"{done:g}/{total:g}"
        case {"progress": int() | float() as done}:  # of MCP
            total = value.get("total")
            words = [f"{done:g}/{total:g}" if isinstance(total, int | float) else f"{done:g}", value.get("message")]
            text = " ".join(word for word in words if isinstance(word, str))
        case {"kind": "begin" | "report" | "end"}:  # of LSP
            done = value.get("percentage")
            words = [f"{done:g}%" if isinstance(done, int | float) else None, value.get("title"), value.get("message")]
            text = " ".join(word for word in words if isinstance(word, str))
        case str():
            text = value
        case _:
            text = msgspec.json.encode(value).decode()
    return printable(cut(text, MAX_LINE_CHARACTERS))


# -- what was probably meant where a server refuses a call ----------------------------------------------------------------

MAX_NAMED: Final = 8
"""How many listed methods are named where an unknown one resembles none of them."""

_FILE_SERVICE: Final = "fs/"

_PROTOCOLS: Final = {
    **dict.fromkeys(("tools", "prompts", "resources", "completion"), "mcp"),
    **dict.fromkeys(("textDocument", "workspace", "window", "notebookDocument"), "lsp"),
    "session": "acp",
}
"""The dialect that a method belongs to, by the part of its name before the slash."""

_LISTINGS: Final = {"tools/call": "tools", "prompts/get": "prompts"}
"""The methods of MCP that take a name, and of what."""


class Operation(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a `services/schema` result that is read here."""

    input_schema: dict[str, Any]  # JSON Schema
    timeout: Any = None  # seconds


class _Named(msgspec.Struct, frozen=True):
    """The part of an entry of a list that is read here."""

    name: str


async def ask_operation(peer: Peer, method: str, service_params: Mapping[str, str] | None) -> Operation:
    """Return what the server says of an operation. Raises `ClientError`."""
    named = {"name": method.removeprefix("/")}
    return await peer.call(
        "services/schema", named, type=Operation, timeout=LISTING_SECONDS, service_params=service_params
    )


async def methods_hint(peer: Peer, call: RemoteCall) -> str:
    """For a method that is not there: the most similar one, or if none is similar enough, what there is instead."""
    if call.dialect is MCP:
        return "; a tool is called with tools/call name=… arguments='{…}', and tools/list names them"
    if call.dialect not in (PLAIN, LSP):
        return ""
    if isinstance(call.server, str):
        near = "" if call.method in METHODS else _nearest(call.method, sorted(METHODS))
        if near or "/" not in call.method:
            return near
        return (
            "; by URL the methods of an agent are called; an operation is "
            f"POST {call.server.rstrip('/')}/operations/{call.method.removeprefix('/')} where http-operations is on"
        )
    listed = await _names(peer, call, "services/list")
    known = [] if listed is None or call.dialect is LSP else await _names(peer, call, "listMethods") or []
    if near := _nearest(call.method, [*(listed or ()), *known]):
        return near
    if (hint := _dialect_hint(call)) or listed is None:
        return hint
    if not listed:
        return "; the server lists no operations; an agent is called with SendMessage, and listMethods names the rest"
    is_file_service = call.is_discreet and all(name.startswith(_FILE_SERVICE) for name in listed)
    return f"; there is {_some(listed)}" + (": the file service; --app names another app" if is_file_service else "")


async def names_hint(peer: Peer, call: RemoteCall) -> str:
    """For refused params: the most similar tool or prompt of MCP, or what there is, if the named one is not there."""
    what = _LISTINGS.get(call.method) if call.dialect is MCP else None
    name = call.params.text_of("name")
    if what is None or name is None:
        return ""
    try:
        page = await _ask(peer, call, f"{what}/list", dict[str, Any])
        there = [row.name for row in convert(page.get(what), list[_Named])]
    except (ClientError, msgspec.ValidationError):
        return ""
    if name in there or "nextCursor" in page:
        return ""
    return _nearest(name, there) or (f"; there is {_some(there)}" if there else f"; there are no {what}")


async def deadline_hint(peer: Peer, call: RemoteCall) -> str:
    """For a call whose deadline passed on the server: that deadline, if the operation tells its own."""
    try:
        timeout = (await ask_operation(peer, call.method, call.service_params)).timeout
    except ClientError:
        return ""
    return f"; the operation's own deadline is {timeout:g} s" if isinstance(timeout, int | float) else ""


def oversize_hint(call: RemoteCall) -> str:
    """For a request that is larger than the server takes."""
    if not call.is_discreet:
        return "; the request is larger than the server takes"
    return f"; DISCREET_MAX_MESSAGE_BYTES sets the limit (default: {Settings().max_message_bytes})"


def handshake_hint(call: RemoteCall, error: RemoteError) -> str:
    """For a server that answers nothing before its client has said hello."""
    if call.dialect is not PLAIN or "initializ" not in error.message.lower():
        return ""
    return _dialect_hint(call) or "; its protocol begins with a handshake: --dialect lsp"


async def _names(peer: Peer, call: RemoteCall, method: str) -> list[str] | None:
    """The names that a list of the server has; None where it has no such list."""
    try:
        return [row.name for row in await _ask(peer, call, method, list[_Named])]
    except ClientError:
        return None


async def _ask(peer: Peer, call: RemoteCall, method: str, kind: Any) -> Any:  # as the type says
    return await peer.call(method, type=kind, timeout=LISTING_SECONDS, service_params=call.service_params)


def _dialect_hint(call: RemoteCall) -> str:
    meant = _PROTOCOLS.get(call.method.partition("/")[0]) if call.dialect is PLAIN else None
    return f"; a method of another protocol: --dialect {meant}" if meant else ""


def _nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint of the most similar one; empty if it resembles the name in nothing but its namespace."""
    hint = nearest_hint(name, known)
    (space, _, last), (space_of_near, _, last_of_near) = name.rpartition("/"), hint.rpartition(" ")[2].rpartition("/")
    return "" if space and space == space_of_near and not nearest_hint(last, [last_of_near]) else hint


def _some(names: Sequence[str]) -> str:
    return ", ".join(sorted(names)[:MAX_NAMED]) + (", …" if len(names) > MAX_NAMED else "")
