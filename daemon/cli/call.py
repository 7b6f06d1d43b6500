"""`discreet call`: one request from a shell, its result on stdout, and an exit status that says how it went.

stdout carries results only: one JSON document, or one line per event. What went wrong is one line on stderr.
"""

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import anyio
import msgspec
from msgspec import Raw

from ...client import (
    ClientError,
    Dialect,
    OperationFailed,
    OperationTypeMismatch,
    Peer,
    RemoteError,
    RequestTimeout,
    RestartPolicy,
    RetryPolicy,
    connect,
)
from ...client.dialect import DIALECTS, PLAIN
from ...errors.codes import row_of
from ...framing.events import Framing
from ..lifecycle import EXIT_OK
from ..settings import UsageError
from . import credentials
from .out import complain
from .params import params_of, utf8
from .show import show

EXIT_DOMAIN: Final = 6
EXIT_TIMEOUT: Final = 7
EXIT_CONNECTION: Final = 10
EXIT_INTERRUPTED: Final = 130
"""128 and the number of SIGINT, as shells have it."""

EXIT_OF_HTTP: Final = {400: 3, 404: 4, 401: 5, 403: 5, 504: EXIT_TIMEOUT, 429: 8, 499: 8, 503: 8, 500: 9}
"""The exit status of an error by the HTTP status that the table of errors gives it. Domain errors are `EXIT_DOMAIN`."""

MEANINGS: Final = {
    0: "the result, or the stream's last event, was printed",
    1: "nobody reads stdout any more",
    2: "the command line is wrong; nothing was called",
    3: "the request or its params are wrong",
    4: "there is no such method",
    5: "not authenticated, or not permitted",
    EXIT_DOMAIN: "the operation failed with an error that it declares",
    EXIT_TIMEOUT: "no answer in time, here or on the server",
    8: "not now: overloaded, shutting down, or cancelled on the server",
    9: "an internal error of the server",
    EXIT_CONNECTION: "the server could not be started, went away, or wrote what is no reply",
    EXIT_INTERRUPTED: "interrupted",
}
"""Every exit status; docs/call.md says the same."""


class Request(msgspec.Struct, frozen=True):
    """What is to be asked of whom.

    `timeout` is in seconds, for the answer or for each event; None for no limit. `retries` says how often the call may be
    made again, `idempotent` that this does no harm even if it had an effect; None where only the server knows. No framing
    means the dialect's.
    """

    command: Sequence[str]
    framing: Framing | None
    method: str
    params: object
    stream: bool
    timeout: float | None
    retries: int = 0
    idempotent: bool | None = None
    service_params: Mapping[str, str] | None = None
    dialect: Dialect = PLAIN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The method, its params, how it is called, and the server."""
    parser.add_argument("method", metavar="METHOD", help="the method, such as fs/read")
    parser.add_argument(
        "params",
        metavar="NAME=VALUE",
        nargs="*",
        help="params; a value is JSON if it parses as such, else text. Or all params as one JSON text",
    )
    add_flags(parser)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """All of that but the method and the params that stand by themselves."""
    parser.add_argument("--json", metavar="JSON", help="all params as one JSON object or array")
    parser.add_argument("--stream", action="store_true", help="subscribe, and print each event on a line of its own")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=argparse.SUPPRESS,
        help="how long to wait for the result, or for each event; or none (default: 30, for events none)",
    )
    parser.add_argument(
        "--retry",
        metavar="N",
        type=_count,
        default=0,
        help="call again up to N times after errors that may pass, and start a server that died again (default: 0)",
    )
    parser.add_argument(
        "--idempotent",
        action="store_true",
        help="with --retry: also when the call may have had an effect; for a query that is so by itself",
    )
    credentials.add_flags(parser)
    server = parser.add_argument_group("server")
    server.add_argument("--server", metavar="COMMAND", help="the server's command line (default: discreet serve)")
    add_serve_flags(server)
    server.add_argument(
        "--dialect",
        choices=tuple(DIALECTS),
        default="plain",
        help="what a server of another make speaks: its framing, and the handshake that it waits for (default: plain)",
    )
    server.add_argument(
        "--framing",
        choices=("content-length", "newline"),
        help="how messages are told apart (default: the dialect's; of plain, content-length)",
    )


def add_serve_flags(server: argparse._ArgumentGroup) -> None:
    """What is handed on to `discreet serve`."""
    server.add_argument("--app", metavar="APP", action="append", default=[], help="an app for discreet serve to host")
    server.add_argument("--root", metavar="DIR", help="the root of the file service")
    server.add_argument("--allow-write", action="store_true", help="let the file service write")
    server.add_argument(
        "--scope",
        metavar="WORD",
        action="append",
        default=[],
        help="a scope that the call has; may be repeated (default: all)",
    )


def run(args: argparse.Namespace) -> int:
    """Call and print. Returns an exit status out of `MEANINGS`; raises `UsageError` before anything is started."""
    request = request_of(args)
    try:
        return anyio.run(_perform, request)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def request_of(args: argparse.Namespace) -> Request:
    """The command line as a request. Raises `UsageError`."""
    if args.stream and args.retry:
        raise UsageError("--retry is for calls; a stream is not resumed")
    return Request(
        command=command_of(args),
        framing=args.framing,
        dialect=DIALECTS[args.dialect],
        service_params=credentials.service_params_of(args),
        method=utf8(args.method),
        params=params_of(args.params, args.json),
        stream=args.stream,
        timeout=getattr(args, "timeout", None if args.stream else 30.0),
        retries=args.retry,
        idempotent=args.idempotent or None,
    )


def exit_status(error: ClientError) -> int:
    """The exit status for what a call raised."""
    match error:
        case OperationFailed():
            return EXIT_DOMAIN
        case RemoteError(failure=failure):
            return EXIT_OF_HTTP[row_of(failure).http_status]
        case RequestTimeout():
            return EXIT_TIMEOUT
        case _:
            return EXIT_CONNECTION


async def _perform(request: Request) -> int:
    retry = RetryPolicy(attempts=request.retries + 1, deadline=None)
    restart = RestartPolicy(limit=request.retries) if request.retries else None
    try:
        async with connect(
            request.command, framing=request.framing, dialect=request.dialect, retry=retry, restart=restart
        ) as peer:
            await _ask(peer, request)
    except ClientError as error:
        complain(f"{request.method}: {error}{_hint(error, request)}")
        return exit_status(error)
    return EXIT_OK


async def _ask(peer: Peer, request: Request) -> None:
    if not request.stream:
        result = await peer.call(
            request.method,
            request.params,
            type=Raw,
            timeout=request.timeout,
            service_params=request.service_params,
            idempotent=request.idempotent,
        )
        show(result, line=False)
        return
    async with peer.subscribe(
        request.method, request.params, type=Raw, timeout=request.timeout, service_params=request.service_params
    ) as events:
        async for event in events:
            show(event, line=True)


def _hint(error: ClientError, request: Request) -> str:
    if not isinstance(error, OperationTypeMismatch):
        return ""
    return "; it is no subscription: leave out --stream" if request.stream else "; a subscription needs --stream"


def command_of(args: argparse.Namespace) -> list[str]:
    """The server's command line. Raises `UsageError`."""
    if args.server is None:
        framing = args.framing or DIALECTS[args.dialect].framing
        return [sys.executable, "-P", "-m", "discreet", "serve", *args.app, f"--framing={framing}", *_serve_flags(args)]
    if args.app or _serve_flags(args):
        raise UsageError(
            "--app, --root, --allow-write and --scope are for discreet serve; put what your server needs into --server"
        )
    try:
        command = shlex.split(args.server)
    except ValueError as exc:
        raise UsageError(f"--server: {exc}") from exc
    if not command:
        raise UsageError("--server: the command is empty")
    return command


def _serve_flags(args: argparse.Namespace) -> list[str]:
    root = [] if args.root is None else [f"--root={args.root}"]
    return [*root, *(["--allow-write"] if args.allow_write else []), *(f"--scope={scope}" for scope in args.scope)]


def _seconds(text: str) -> float | None:
    if text == "none":
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: must be a number above 0, or none")
    return seconds


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number, 0 or more")
    return int(text)
