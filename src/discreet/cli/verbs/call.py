"""`discreet call`: parses the command line of one call and of the server that it goes to. `call.remote_call` makes the call."""

import argparse
import os
from collections.abc import Mapping

from ...client.dialects import DIALECTS
from ...client.peer import DEFAULT_TIMEOUT
from ...client.pending import with_token
from ...daemon.settings import UsageError
from ..commands import SERVE, refuse_serve_flags, split_command, verbs
from ..exit_status import run_until_signal
from ..output import require_stdout
from ..remote_call import execute, is_terminal
from ..request import (
    STDIN_PATH,
    Params,
    Progress,
    RemoteCall,
    parse_params,
    read_service_params,
    reads_stdin,
    require_utf8,
)


def run(args: argparse.Namespace) -> int:
    """Call and print. Returns an exit status; raises `UsageError` before anything is started."""
    call = remote_call_of(args)
    require_stdout()
    return run_until_signal(execute, call)


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
    """Choose how progress is shown. The line on a terminal was not asked for, so it is left out where it may do harm."""
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
    refuse_serve_flags(verbs()["call"].serve_flags(args), instead="the server at --url has its own")
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
    flags = verbs()["call"].serve_flags(args)
    if args.server is not None:
        refuse_serve_flags(flags)
        return split_command(args.server)
    framing = args.framing or DIALECTS[args.dialect].framing
    spoken = [f"--dialect={args.dialect}", f"--framing={framing}"]  # whatever the app declares
    if args.log_level is None and (args.isolated or not os.environ.get("DISCREET_LOG_LEVEL")):
        spoken.append("--log-level=error")  # what a daemon does for one call is news only where it failed
    return [*SERVE, *flags, *spoken]
