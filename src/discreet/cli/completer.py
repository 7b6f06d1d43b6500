"""Completes a command line: verbs, flags and their values; for `discreet call` also operations, params and their values, as the
daemon itself lists them.

Starts a daemon for each completion of a call and gives it `DAEMON_SECONDS`. Prints nothing on any failure, since a person is
typing. Never runs the command of `--server`: pressing the tabulator key must not start what only the return key should.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final

import anyio
import msgspec

from ..client import ClientError, EndBounds, Peer, attach, spawn
from ..client.dialects import DIALECTS
from ..client.retry import ListedOperation
from ..daemon import plugins
from ..daemon.lifecycle import EXIT_OK
from ..daemon.settings import UsageError
from ..errors.printable import printable
from ..flags import FlagParser
from .commands import DEFAULT_VERB, load_verb, verbs
from .output import write_stdout
from .remote_call import ask_operation
from .request import read_service_params
from .verbs.call import server_command

DAEMON_SECONDS: Final = 0.6
"""How long the daemon may take. With this program's own start and the ends below, a completion takes less than a second."""

_END_BOUNDS: Final = EndBounds(eof=0.1, terminate=0.05, kill=0.05)

_MAX_DEPTH: Final = 8
"""How many references and alternatives are followed into each other. A schema may refer to itself."""

_MAX_COMPLETIONS: Final = 1000
"""More would not fit on a screen."""


def print_completions(line: str) -> int:
    """Print what the last word of `line` may become, one completion a line. Prints nothing if that can't be found out."""
    for completion in completions(line):
        write_stdout(printable(completion))
    return EXIT_OK


def completions(line: str) -> list[str]:
    """Return the completions of the last word of an unfinished command line."""
    _, *words, prefix = ["", *_split(line)]
    if not words:
        return []
    _, *words = words
    if not words and not prefix.startswith("-"):
        return [name for name in plugins.names("verb") if name.startswith(prefix)]
    verb = DEFAULT_VERB
    if words and plugins.is_known("verb", words[0]):
        verb, *words = words
    try:
        parser, _ = load_verb(verb)
    except UsageError:
        return []
    fixed = _fixed(parser, words, prefix)
    found = _of_call(words) if fixed is None and verb == "call" else fixed or ()
    return [word for word in found if word.startswith(prefix)][:_MAX_COMPLETIONS]


def _fixed(parser: FlagParser, words: Sequence[str], prefix: str) -> Sequence[str] | None:
    """The flags and the closed lists of values that may stand here; None for another argument."""
    choices = {name: flag.choices for flag in parser.flags() if flag.value for name in flag.names}
    if words and words[-1] in choices:
        return choices[words[-1]]
    if prefix.startswith("-"):
        name = prefix.partition("=")[0]
        if name != prefix:
            return [f"{name}={choice}" for choice in choices.get(name, ())]
        return [name for flag in parser.flags() for name in flag.names]
    return parser.words() or None


def _split(line: str) -> list[str]:
    """Split into words, as a shell would. The last one may be empty, and its quotes may be open."""
    for closing in ("", '"', "'"):
        try:
            words = shlex.split(line + closing)
        except ValueError:
            continue
        return words if words and not (closing == "" and line[-1:].isspace()) else [*words, ""]
    return [""]


def _of_call(words: Sequence[str]) -> list[str]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    verbs()["call"].add_arguments(parser, flags_alone=True)
    try:
        args, rest = parser.parse_known_args(words)
        # A pipe may never be written, and what was read of one or of stdin is gone.
        readable = args.token_file is None or os.path.isfile(args.token_file)
        if args.server is not None or args.url is not None or not readable:
            return []
        return anyio.run(_ask_daemon, args, [word for word in rest if word[:1] != "-"])
    except (argparse.ArgumentError, UsageError, SystemExit):  # which argparse raises for a flag without its value
        return []


async def _ask_daemon(args: argparse.Namespace, words: Sequence[str]) -> list[str]:
    command, service_params = [*server_command(args), "--log-level=error"], read_service_params(args)
    framing = args.framing or DIALECTS[args.dialect].framing
    try:
        with anyio.move_on_after(DAEMON_SECONDS):
            async with (
                spawn(command, stderr="collect", bounds=_END_BOUNDS) as process,
                attach(process, framing=framing, timeout=DAEMON_SECONDS, service_params=service_params) as peer,
            ):
                return await _completions(peer, words)
    except (ClientError, msgspec.ValidationError):
        pass
    return []


async def _completions(peer: Peer, words: Sequence[str]) -> list[str]:
    """The operations, or the params of the one that is named, which were not given yet."""
    if not words:
        return sorted(one.name for one in await peer.call("services/list", type=list[ListedOperation]))
    schema = (await ask_operation(peer, words[0], None)).input_schema
    properties, definitions = schema.get("properties", {}), schema.get("$defs", {})
    given = {word.partition("=")[0] for word in words[1:]}
    return [
        f"{name}={value}"
        for name in properties
        if name not in given
        for value in dict.fromkeys(("", *_values(properties[name], definitions)))
    ]


def _values(schema: Any, definitions: dict[str, Any], depth: int = _MAX_DEPTH) -> Iterator[str]:  # Any: JSON Schema
    """Yield the values of a closed list, as they are written on a command line; none where any value may come."""
    if not isinstance(schema, dict) or not depth:
        return
    constants = [schema["const"]] if "const" in schema else []
    for value in [True, False] if schema.get("type") == "boolean" else schema.get("enum", constants):
        yield value if isinstance(value, str) else msgspec.json.encode(value).decode()
    for branch in (*schema.get("anyOf", ()), definitions.get(schema.get("$ref", "").removeprefix("#/$defs/"))):
        yield from _values(branch, definitions, depth - 1)
