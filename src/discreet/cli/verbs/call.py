"""`discreet call`: the command line of one request, and of the server that it goes to. `asking` makes it."""

import argparse
import shlex
import sys

from ...client.dialects import DIALECTS
from ...client.peer import DEFAULT_TIMEOUT
from ...daemon.settings import UsageError
from ...daemon.settings.flags import add_file_flags, file_from_flags
from .. import credentials, interrupts
from ..output import require_stdout
from ..params import params_of, utf8
from ..request import Request, perform


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The method, its params, how it is called, and the server."""
    parser.add_argument("method", metavar="METHOD", help="the method, such as fs/read")
    parser.add_argument(
        "params",
        metavar="NAME=VALUE",
        nargs="*",
        default=[],  # or argparse would call them required
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
        type=seconds,
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
    add_source_flags(server)
    server.add_argument("--root", metavar="DIR", help="the root of the file service")
    server.add_argument("--allow-write", action="store_true", help="let the file service write")
    server.add_argument(
        "--scope",
        metavar="WORD",
        action="append",
        default=[],
        help="a scope that the call has; may be repeated (default: all)",
    )


def add_source_flags(group: argparse._ArgumentGroup) -> None:
    """Where apps and settings come from."""
    group.add_argument("--app-dir", metavar="DIR", help="a directory whose modules are importable, too")
    add_file_flags(group)


def run(args: argparse.Namespace) -> int:
    """Call and print. Returns an exit status out of `outcome.MEANINGS`; raises `UsageError` before anything is started."""
    request = request_of(args)
    require_stdout()
    try:
        return interrupts.run_until_signal(perform, request)
    except interrupts.Interrupted as exc:
        return exc.status


def request_of(args: argparse.Namespace) -> Request:
    """The command line as a request. Raises `UsageError`."""
    if args.stream and args.retry:
        raise UsageError("--retry is for calls; a stream is not resumed")
    return Request(
        command=command_of(args),
        ours=args.server is None,
        framing=args.framing,
        dialect=DIALECTS[args.dialect],
        service_params=credentials.service_params_of(args),
        method=utf8(args.method),
        params=params_of(args.params, args.json),
        stream=args.stream,
        timeout=getattr(args, "timeout", None if args.stream else DEFAULT_TIMEOUT),
        handshake_timeout=getattr(args, "timeout", DEFAULT_TIMEOUT),
        retries=args.retry,
        idempotent=args.idempotent or None,
    )


def command_of(args: argparse.Namespace) -> list[str]:
    """The server's command line. Raises `UsageError`."""
    if args.server is None:
        framing = args.framing or DIALECTS[args.dialect].framing
        return [sys.executable, "-P", "-m", "discreet", "serve", *args.app, f"--framing={framing}", *_serve_flags(args)]
    if args.app or _serve_flags(args):
        raise UsageError(
            "--app, --app-dir, --config, --isolated, --root, --allow-write and --scope are for discreet serve; "
            "put what your server needs into --server"
        )
    try:
        command = shlex.split(args.server)
    except ValueError as exc:
        raise UsageError(f"--server: {exc}") from exc
    if not command:
        raise UsageError("--server: the command is empty")
    return command


def _serve_flags(args: argparse.Namespace) -> list[str]:
    named = (("--app-dir", args.app_dir), ("--root", args.root))
    given = [f"{flag}={value}" for flag, value in named if value is not None]
    return [
        *file_from_flags(args).argv(),
        *given,
        *(["--allow-write"] if args.allow_write else []),
        *(f"--scope={scope}" for scope in args.scope),
    ]


def seconds(text: str) -> float | None:
    """What `--timeout` says; None for no limit."""
    if text == "none":
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: must be a number above 0, or none")
    return number


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number, 0 or more")
    return int(text)
