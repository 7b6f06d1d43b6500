"""`discreet call`: parses the command line of one call and of the server that it goes to. `call.remote_call` makes the call."""

import argparse
import os
from collections.abc import Mapping

from ...client.dialects import DIALECTS
from ...client.peer import DEFAULT_TIMEOUT
from ...client.request import with_token
from ...daemon.settings import UsageError
from ...flags import PARAM
from ..arguments import SERVE, add_source_flags, count, refuse_serve_flags, source_flags, split_command, timeout
from ..call.credentials import add_credential_flags, read_service_params
from ..call.remote_call import execute, is_terminal
from ..call.request import STDIN_PATH, Params, Progress, RemoteCall, parse_params, reads_stdin, require_utf8
from ..output import require_stdout
from ..signals import Interrupted, run_until_signal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The method, its params, how it is called, and the server."""
    parser.add_argument("method", metavar="METHOD", help="the method, such as fs/read")
    parser.add_argument(
        "params",
        metavar=PARAM,
        nargs="*",
        default=[],  # or argparse would call them required
        help="params; a value that parses as JSON is sent as such, unless the operation takes a string; any other as a string;"
        " @FILE is the text of a file, @- of stdin. Or all params as one JSON text",
    )
    add_call_flags(parser)


def add_call_flags(parser: argparse.ArgumentParser) -> None:
    """Every flag of the verb. Completion parses a command line with these alone, since its words may be unfinished."""
    parser.add_argument("--json", metavar="JSON", help="all params as one JSON object or array; - for stdin")
    parser.add_argument("--stream", action="store_true", help="subscribe, and print each event on a line of its own")
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="ask for progress, and print each message of it on stderr, one JSON a line (default: on a terminal, as one line"
        " that is gone at the end)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=timeout,
        default=argparse.SUPPRESS,
        help="how long to wait for the result, or for each event; or none (default: 30, for events none)",
    )
    parser.add_argument(
        "--retry",
        metavar="N",
        type=count,
        default=0,
        help="repeat the call up to N times after errors that may pass, and restart a server that died (default: 0)",
    )
    parser.add_argument(
        "--idempotent",
        action="store_true",
        help="with --retry: repeat even a call that may have taken effect; a query is repeated in any case",
    )
    add_credential_flags(parser)
    server = parser.add_argument_group("server")
    server.add_argument("--server", metavar="COMMAND", help="the server's command line (default: discreet serve)")
    server.add_argument(
        "--url",
        metavar="URL",
        help="an agent that is served by HTTP: http://HOST:PORT/, https://HOST/ or unix:PATH",
    )
    _add_serve_flags(server)
    server.add_argument(
        "--dialect",
        choices=tuple(DIALECTS),
        default="plain",
        help="the protocol that is spoken: its framing and its handshake (default: plain)",
    )
    server.add_argument(
        "--framing",
        choices=("content-length", "newline"),
        help="how messages are delimited (default: as the dialect does; plain: content-length)",
    )


def _add_serve_flags(server: argparse._ArgumentGroup) -> None:
    """The flags that are passed on to `discreet serve`."""
    add_source_flags(server)
    server.add_argument(
        "--log-level",
        metavar="LEVEL",
        help="what discreet serve logs (default: DISCREET_LOG_LEVEL, else error)",
    )
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
    """Call and print. Returns an exit status out of `CALL_STATUSES`; raises `UsageError` before anything is started."""
    call = remote_call_of(args)
    require_stdout()
    try:
        return run_until_signal(execute, call)
    except Interrupted as exc:
        return exc.status


def remote_call_of(args: argparse.Namespace) -> RemoteCall:
    """Return the call that the parsed command line describes. Raises `UsageError`."""
    if args.stream and args.retry:
        raise UsageError("--retry is for calls, not for streams")
    if args.token_file == STDIN_PATH and reads_stdin(args.params, args.json):
        raise UsageError("--token-file: stdin holds either the token or the params, not both")
    if ".py:" in args.method:
        raise UsageError(f"{args.method}: an app is given with --app: discreet call METHOD --app {args.method}")
    if args.method.startswith(("http://", "https://", "unix:")):
        raise UsageError(f"{args.method}: an address is given with --url: discreet call METHOD --url {args.method}")
    params = parse_params(args.params, args.json)
    service_params = read_service_params(args)
    return RemoteCall(
        server=server_command(args) if args.url is None else _server_url(args, service_params or {}),
        is_discreet=args.server is None and args.url is None,
        framing=args.framing,
        dialect=DIALECTS[args.dialect],
        service_params=service_params,
        method=require_utf8(args.method),
        params=params,
        progress=_progress(args, params),
        stream=args.stream,
        timeout=getattr(args, "timeout", None if args.stream else DEFAULT_TIMEOUT),
        handshake_timeout=getattr(args, "timeout", DEFAULT_TIMEOUT),
        retries=args.retry,
        idempotent=args.idempotent or None,
    )


def _progress(args: argparse.Namespace, params: Params) -> Progress | None:
    """How progress is shown. Nobody has asked for the line on a terminal: it is left out where it may do harm."""
    if args.progress is None:
        takes_tokens = (args.server is None and args.url is None) or args.dialect == "mcp"
        shown = takes_tokens and not args.stream and is_terminal() and _has_place_for_token(args, params)
        return "status" if shown else None
    if not args.progress:
        return None
    if args.stream:
        raise UsageError("--progress is for calls; a stream tells by its events")
    if args.url is not None:
        raise UsageError("--progress is not for --url: no progress is told by HTTP")
    if not _has_place_for_token(args, params):
        raise UsageError("--progress needs params by name, with _meta an object: its token has no other place")
    return "lines"


def _has_place_for_token(args: argparse.Namespace, params: Params) -> bool:
    try:
        with_token(params.value, 0, DIALECTS[args.dialect])
    except TypeError:
        return False
    return True


def _server_url(args: argparse.Namespace, service_params: Mapping[str, str]) -> str:
    """Return the server's URL. Raises `UsageError` for one that is none, and for what can't go with one."""
    from ...client.http.wire import checked_headers, parse_address, require_http  # late: most calls start their server

    if args.server is not None:
        raise UsageError("either --server or --url, not both")
    log_level = [] if args.log_level is None else ["--log-level"]
    refuse_serve_flags(
        [*source_flags(args), *_serve_flags(args), *log_level], instead="the server at --url has its own"
    )
    if args.dialect != "plain" or args.framing is not None:
        raise UsageError("--dialect and --framing are not for --url: the method names the version of A2A")
    try:
        parse_address(args.url)
    except ValueError as exc:
        raise UsageError(f"--{exc}") from None
    try:
        checked_headers(service_params)
    except ValueError as exc:
        raise UsageError(f"--service-param: {str(exc).removeprefix('service_params: ')}") from None
    try:
        require_http()
    except ImportError as exc:
        raise UsageError(f"--url: {exc}") from None
    return str(args.url)


def server_command(args: argparse.Namespace) -> list[str]:
    """Return the server's command line. Raises `UsageError`."""
    if args.server is None:
        framing = args.framing or DIALECTS[args.dialect].framing
        spoken = [f"--dialect={args.dialect}", f"--framing={framing}"]  # whatever the app declares
        return [*SERVE, *source_flags(args), *spoken, *_log_level(args), *_serve_flags(args)]
    refuse_serve_flags([*source_flags(args), *_serve_flags(args), *([] if args.log_level is None else ["--log-level"])])
    return split_command(args.server)


def _log_level(args: argparse.Namespace) -> list[str]:
    """What a daemon does for one call is news only where it failed. The variable says otherwise where it counts."""
    if args.log_level is None and not args.isolated and os.environ.get("DISCREET_LOG_LEVEL"):
        return []
    return [f"--log-level={args.log_level or 'error'}"]


def _serve_flags(args: argparse.Namespace) -> list[str]:
    root = [] if args.root is None else [f"--root={args.root}"]
    return [*root, *(["--allow-write"] if args.allow_write else []), *(f"--scope={scope}" for scope in args.scope)]
