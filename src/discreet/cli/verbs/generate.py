"""`discreet generate`: writes a typed client of what an app, or a running server, offers."""

import argparse
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ...client import ClientError, Peer, connect
from ...client.peer import DEFAULT_TIMEOUT
from ...daemon.apps import AppError, services_of
from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...daemon.operations.registry import Registry
from ...daemon.operations.service import DeclarationError
from ...daemon.schemas.documents import OperationSchema, snapshot
from ...daemon.settings import UsageError, resolve_settings
from ...daemon.settings.option import RawValue
from ...generate.python import python
from ...generate.typescript import typescript
from .. import credentials
from ..interrupts import Interrupted, run_until_signal
from ..output import complain, out, require_stdout
from .call import seconds
from .schema import stdout_is_stderr, write_file

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
        operations = _of_apps(args.app) if args.server is None else _of_server(args)
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


def _of_apps(apps: Sequence[str]) -> list[OperationSchema]:
    """The external operations of what `serve` would host."""
    given = {"apps": RawValue(" ".join(apps), "--app")} if apps else {}
    try:
        settings = resolve_settings(given, os.environ, os.getcwd()).settings
        with stdout_is_stderr():
            return list(snapshot(Registry(services_of(settings))).operations.values())
    except OSError as exc:
        raise UsageError("the working directory is gone") from exc
    except (AppError, DeclarationError) as exc:
        raise UsageError(str(exc)) from exc


def _of_server(args: argparse.Namespace) -> list[OperationSchema]:
    if args.app:
        raise UsageError("--app is for discreet serve; put what your server needs into --server")
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
