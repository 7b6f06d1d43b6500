"""`discreet generate`: writes a typed client of what an app, or a running server, offers."""

import argparse
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ...client import ClientError, Peer, connect
from ...client.peer import DEFAULT_TIMEOUT
from ...daemon.apps import AppError, services_of
from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...daemon.operations.registry import Registry
from ...daemon.operations.service import DeclarationError
from ...daemon.schemas.documents import OperationSchema, snapshot
from ...daemon.settings import UsageError
from ...daemon.settings.flags import file_from_flags
from ...daemon.settings.option import RawValue
from ...generate.python import python
from ...generate.typescript import typescript
from .. import credentials
from ..interrupts import Interrupted, run_until_signal
from ..output import complain, out, require_stdout
from .call import add_source_flags, seconds
from .schema import stdout_is_stderr, write_file
from .serve import resolve_here, with_warning

LANGUAGES: Final[dict[str, Callable[[Iterable[OperationSchema]], str]]] = {"python": python, "typescript": typescript}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The language, where the operations come from, and where the client goes."""
    parser.add_argument("language", choices=tuple(LANGUAGES), help="the language of the client")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the client to FILE, not to stdout")
    source = parser.add_argument_group("source")
    source.add_argument(
        "--app",
        metavar="APP",
        action="append",
        default=[],
        help="an app, as for discreet serve (default: its settings)",
    )
    add_source_flags(source)
    source.add_argument("--server", metavar="COMMAND", help="the command line of a server to start and to ask")
    source.add_argument(
        "--framing",
        choices=("content-length", "newline"),
        default="content-length",
        help="how messages of the server are told apart (default: content-length)",
    )
    source.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=DEFAULT_TIMEOUT,
        help=f"how long to wait for each answer of the server; or none (default: {DEFAULT_TIMEOUT:g})",
    )
    credentials.add_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Write the client. Raises `UsageError` for apps that can't be hosted and for an empty command.

    The apps are imported. What they print then goes to stderr.
    """
    try:
        operations = _of_apps(args) if args.server is None else _of_server(args)
    except ClientError as exc:
        complain(f"--server: {exc}")
        return EXIT_FAILED
    except Interrupted as exc:
        return exc.status
    if args.output is None:
        require_stdout()
    text = LANGUAGES[args.language](operations)
    if args.output is None:
        out(text.rstrip("\n"))
        return EXIT_OK
    return EXIT_OK if write_file(args.output, text.encode()) else EXIT_FAILED


def _of_apps(args: argparse.Namespace) -> list[OperationSchema]:
    """The external operations of what `serve` would host."""
    given = {"apps": RawValue(args.app, "--app")} if args.app else {}
    if args.app_dir is not None:
        given["app_dir"] = RawValue(args.app_dir, "--app-dir")
    settings = with_warning(resolve_here(given, file_from_flags(args))).settings
    try:
        with stdout_is_stderr():
            return list(snapshot(Registry(services_of(settings))).operations.values())
    except (AppError, DeclarationError) as exc:
        raise UsageError(str(exc)) from exc


def _of_server(args: argparse.Namespace) -> list[OperationSchema]:
    if args.app or args.app_dir is not None or args.config is not None or args.isolated:
        raise UsageError(
            "--app, --app-dir, --config and --isolated are for discreet serve; put what your server needs into --server"
        )
    try:
        command = shlex.split(args.server)
    except ValueError as exc:
        raise UsageError(f"--server: {exc}") from exc
    if not command:
        raise UsageError("--server: the command is empty")

    service_params = credentials.service_params_of(args)

    async def ask() -> list[OperationSchema]:
        async with connect(command, framing=args.framing, timeout=args.timeout) as peer:
            return await offered(peer, service_params)

    return run_until_signal(ask)


async def offered(peer: Peer, service_params: Mapping[str, str] | None = None) -> list[OperationSchema]:
    """The operations that a server offers to a caller with these service params. Raises `ClientError`."""
    listed = await peer.call("services/list", type=list[dict[str, str]], service_params=service_params)
    return [
        await peer.call("services/schema", {"name": it["name"]}, type=OperationSchema, service_params=service_params)
        for it in listed
    ]
