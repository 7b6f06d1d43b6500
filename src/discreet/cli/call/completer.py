"""Completes the command line of `discreet call`: operations, params and their values, as the daemon itself lists them.

Starts a daemon for each completion and gives it `DAEMON_SECONDS`. Prints nothing on any failure, since a person is typing.
Never runs the command of `--server`: pressing the tabulator key must not start what only the return key should.
"""

import argparse
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import anyio
import msgspec

from ...client import ClientError, EndBounds, Peer, attach, spawn
from ...client.dialects import DIALECTS
from ...client.policies.operation_kinds import ListedOperation
from ...daemon.lifecycle import EXIT_OK
from ...daemon.settings import UsageError
from ...errors.printable import printable
from ..output import write_stdout
from ..verbs.call import add_call_flags, server_command
from .credentials import read_service_params
from .hints import ask_operation
from .param_schemas import ParamSchemas

DAEMON_SECONDS: Final = 0.6
"""How long the daemon may take. With this program's own start and the ends below, a completion takes less than a second."""

_END_BOUNDS: Final = EndBounds(eof=0.1, terminate=0.05, kill=0.05)

_MAX_COMPLETIONS: Final = 1000
"""More would not fit on a screen."""


class PartialLine(msgspec.Struct, frozen=True):
    """An unfinished command line: the server's command, the complete words, and the word at the cursor."""

    command: Sequence[str]
    framing: Any  # as argparse has checked it
    words: Sequence[str]
    prefix: str
    service_params: Mapping[str, str] | None


def print_completions(line: str) -> int:
    """Print what the last word of `line` may become, one completion a line. Prints nothing if that can't be found out."""
    partial = parse_partial_line(line)
    if partial is not None:
        for completion in anyio.run(_ask_daemon, partial):
            write_stdout(printable(completion))
    return EXIT_OK


def parse_partial_line(line: str) -> PartialLine | None:
    """Read a command line up to the cursor, as a shell would; None where there is nothing to complete."""
    words = _split(line)
    if "call" not in words[:-1]:
        return None
    *complete, prefix = words[words.index("call") + 1 :]
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add_call_flags(parser)
    try:
        args, rest = parser.parse_known_args(complete)
        if (
            args.server is not None
            or args.url is not None
            or prefix.startswith("-")
            or not _is_readable(args.token_file)
        ):
            return None
        command, service_params = server_command(args), read_service_params(args)
    except (argparse.ArgumentError, UsageError, SystemExit):  # which argparse raises for a flag without its value
        return None
    return PartialLine(
        [*command, "--log-level=error"],
        args.framing or DIALECTS[args.dialect].framing,
        [word for word in rest if word[:1] != "-"],
        prefix,
        service_params,
    )


def _split(line: str) -> list[str]:
    """Split into words. The last one may be empty, and its quotes may be open."""
    for closing in ("", '"', "'"):
        try:
            words = shlex.split(line + closing)
        except ValueError:
            continue
        return words if words and not (closing == "" and line[-1:].isspace()) else [*words, ""]
    return [""]


async def _ask_daemon(partial: PartialLine) -> list[str]:
    found: list[str] = []
    try:
        with anyio.move_on_after(DAEMON_SECONDS):
            async with (
                spawn(partial.command, stderr="collect", bounds=_END_BOUNDS) as process,
                attach(process, framing=partial.framing, timeout=DAEMON_SECONDS) as peer,
            ):
                found = await _completions(peer, partial)
    except ClientError:
        return []
    return found[:_MAX_COMPLETIONS]


async def _completions(peer: Peer, partial: PartialLine) -> list[str]:
    if not partial.words:
        listed = await peer.call("services/list", type=list[ListedOperation], service_params=partial.service_params)
        return sorted(operation.name for operation in listed if operation.name.startswith(partial.prefix))
    schemas = (await ask_operation(peer, partial.words[0], partial.service_params)).params
    given = {word.partition("=")[0] for word in partial.words[1:]}
    return [word for word in _params(schemas, given) if word.startswith(partial.prefix) and word != partial.prefix]


def _is_readable(token_file: str | None) -> bool:
    """Whether reading it ends at once: a pipe may never be written, and what was read of stdin or a pipe is gone."""
    return token_file is None or os.path.isfile(token_file)


def _params(schemas: ParamSchemas, given: set[str]) -> Iterator[str]:
    """Yield `name=` for each param that is not given yet, and `name=value` for params with a closed list of values."""
    for name in schemas.names():
        if name not in given:
            yield f"{name}="
            yield from (f"{name}={value}" for value in schemas.values(name))
