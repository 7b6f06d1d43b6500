"""`discreet generate`: writes a typed client of the operations of an app, or of a running server."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from ...client import ClientError, InvalidReply, connect
from ...client.subscription import decode_as
from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...daemon.settings import UsageError, resolve_here
from ...daemon.settings.option import RawValue
from ...flags import file_from_flags
from ...framing.events import Framing
from ...generate import SchemaError, python_client, typescript_client
from ...schemas.documents import OperationSchema
from ..app_import import load_contract
from ..commands import refuse_serve_flags, split_command, verbs
from ..exit_status import run_until_signal
from ..output import require_stdout, with_warning, write_file, write_stderr, write_stdout
from ..request import read_service_params

# Reads the schemas of operations from apps, or from a running server. Writes nothing.


MAX_OPERATIONS: Final = 10_000
"""How many operations a server may list. Each costs a call."""

MAX_SCHEMA_BYTES: Final = 64 * 1024 * 1024
"""How many bytes the schemas of a server may have together. The largest published protocols have less than one."""


class _OperationName(msgspec.Struct, frozen=True):
    """The part of a `services/list` entry that is read here."""

    name: str


async def operations_of_server(
    command: Sequence[str],
    *,
    framing: Framing,
    timeout: float | None,
    service_params: Mapping[str, str] | None,
) -> list[OperationSchema]:
    """Start a server and return the operations that it lists for a caller with these service params.

    `timeout` is in seconds for each answer, None for no limit. Raises `ClientError`; `InvalidReply` also for a server that
    lists more than `MAX_OPERATIONS` or describes them in more than `MAX_SCHEMA_BYTES`.
    """
    async with connect(command, framing=framing, timeout=timeout) as peer:
        listed = await peer.call("services/list", type=list[_OperationName], service_params=service_params)
        if len(listed) > MAX_OPERATIONS:
            raise InvalidReply(f"the server lists {len(listed)} operations; at most {MAX_OPERATIONS} are asked for")
        found: list[OperationSchema] = []
        size = 0
        for operation in listed:
            text = await peer.call("services/schema", operation, type=msgspec.Raw, service_params=service_params)
            size += memoryview(text).nbytes
            if size > MAX_SCHEMA_BYTES:
                raise InvalidReply(f"the server's schemas have more than {MAX_SCHEMA_BYTES} bytes")
            found.append(decode_as(text, OperationSchema, "services/schema"))
        return found


LANGUAGES: Final[dict[str, Callable[[Iterable[OperationSchema]], str]]] = {
    "python": python_client,
    "typescript": typescript_client,
}


_OF_AGENTS: Final = "an agent needs no generated client: discreet.client.agent has its types"


def run(args: argparse.Namespace) -> int:
    """Write the client. Raises `UsageError` for apps that can't be hosted or have no operations, and for an empty command.

    Imports the apps. What they print goes to stderr.
    """
    try:
        operations = _of_apps(args) if args.server is None else _of_server(args)
        if not operations and args.server is None:
            raise UsageError(f"there are no external operations of a Service to call; {_OF_AGENTS}")
        if not operations:
            raise SchemaError(f"--server: the server lists no operations for this caller; {_OF_AGENTS}")
        if args.output is None:
            require_stdout()
        text = LANGUAGES[args.language](operations)
    except (ClientError, SchemaError) as exc:
        write_stderr(f"--server: {exc}" if isinstance(exc, ClientError) else str(exc))
        return EXIT_FAILED
    if args.output is None:
        write_stdout(text.rstrip("\n"))
        return EXIT_OK
    return EXIT_OK if write_file(args.output, text.encode()) else EXIT_FAILED


def _of_apps(args: argparse.Namespace) -> list[OperationSchema]:
    """The external operations that `discreet serve` would host. Imports the apps."""
    given = {"apps": RawValue(args.apps, "APP")} if args.apps else {}
    if args.app_dir is not None:
        given["app_dir"] = RawValue(args.app_dir, "--app-dir")
    settings = with_warning(resolve_here(given, file_from_flags(args))).settings
    return list(load_contract(settings)[0].operations.values())


def _of_server(args: argparse.Namespace) -> list[OperationSchema]:
    refuse_serve_flags(verbs()["generate"].serve_flags(args))
    command, service_params = split_command(args.server), read_service_params(args)
    ask = partial(operations_of_server, framing=args.framing, timeout=args.timeout, service_params=service_params)
    return run_until_signal(ask, command)
