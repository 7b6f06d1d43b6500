"""`discreet generate`: writes a typed client of the operations of an app, or of a running server."""

import argparse
from collections.abc import Callable, Iterable
from typing import Final

from ...client import ClientError
from ...client.peer import DEFAULT_TIMEOUT
from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...daemon.schemas.documents import OperationSchema
from ...daemon.settings import Settings, resolve_here
from ...daemon.settings.flags import file_from_flags
from ...daemon.settings.option import RawValue
from ...generate import SchemaError, python_client, typescript_client
from ..argument_types import timeout
from ..call.credentials import add_credential_flags, read_service_params
from ..operation_sources import operations_of_apps, operations_of_server
from ..output import require_stdout, with_warning, write_file, write_stderr, write_stdout
from ..server_command import add_file_and_folder_flags, file_and_folder_flags, refuse_serve_flags, split_command
from ..signals import Interrupted, run_until_signal

LANGUAGES: Final[dict[str, Callable[[Iterable[OperationSchema]], str]]] = {
    "python": python_client,
    "typescript": typescript_client,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The language, where the operations come from, and where the client goes."""
    parser.add_argument("language", choices=tuple(LANGUAGES), help="the language of the client")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the client to FILE, not to stdout")
    source = parser.add_argument_group("source")
    source.add_argument("apps", metavar="APP", nargs="*", default=[], help="the apps, as for discreet serve")
    add_file_and_folder_flags(source)
    source.add_argument("--server", metavar="COMMAND", help="the command line of a server to start and to ask")
    source.add_argument(
        "--framing",
        choices=("content-length", "newline"),
        default="content-length",
        help="how the server delimits messages (default: content-length)",
    )
    source.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=timeout,
        default=DEFAULT_TIMEOUT,
        help=f"how long to wait for each answer of the server; or none (default: {DEFAULT_TIMEOUT:g})",
    )
    add_credential_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Write the client. Raises `UsageError` for apps that can't be hosted and for an empty command.

    Imports the apps. What they print goes to stderr.
    """
    try:
        operations = operations_of_apps(_settings(args)) if args.server is None else _ask_server(args)
        if args.output is None:
            require_stdout()
        text = LANGUAGES[args.language](operations)
    except ClientError as exc:
        write_stderr(f"--server: {exc}")
        return EXIT_FAILED
    except SchemaError as exc:
        write_stderr(str(exc))
        return EXIT_FAILED
    except Interrupted as exc:
        return exc.status
    if args.output is None:
        write_stdout(text.rstrip("\n"))
        return EXIT_OK
    return EXIT_OK if write_file(args.output, text.encode()) else EXIT_FAILED


def _settings(args: argparse.Namespace) -> Settings:
    given = {"apps": RawValue(args.apps, "APP")} if args.apps else {}
    if args.app_dir is not None:
        given["app_dir"] = RawValue(args.app_dir, "--app-dir")
    return with_warning(resolve_here(given, file_from_flags(args))).settings


def _ask_server(args: argparse.Namespace) -> list[OperationSchema]:
    refuse_serve_flags([*args.apps, *file_and_folder_flags(args)])
    command, service_params = split_command(args.server), read_service_params(args)

    async def ask() -> list[OperationSchema]:
        return await operations_of_server(
            command, framing=args.framing, timeout=args.timeout, service_params=service_params
        )

    return run_until_signal(ask)
