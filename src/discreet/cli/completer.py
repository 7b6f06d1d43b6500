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
from msgspec import UNSET, Struct

from ..client import ClientError, EndBounds, Peer, attach, spawn
from ..client.dialects import DIALECTS
from ..client.retry import ListedOperation
from ..daemon import plugins
from ..daemon.lifecycle import EXIT_OK
from ..daemon.settings import UsageError
from ..errors.decoders import convert
from ..errors.printable import printable
from ..flags import FlagParser
from .call.credentials import read_service_params
from .call.hints import ask_operation
from .commands import DEFAULT_VERB, VERBS, load_verb
from .output import write_stdout
from .verbs.call import add_call_flags, server_command

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
    """What the last word of an unfinished command line may become."""
    _, *words, prefix = ["", *_split(line)]
    if not words:
        return []
    _, *words = words
    if not words and not prefix.startswith("-"):
        return _fitting((*VERBS, *plugins.added("verb")), prefix)
    verb = DEFAULT_VERB
    if words and plugins.is_known("verb", words[0]):
        verb, *words = words
    try:
        parser, _ = load_verb(verb)
    except UsageError:
        return []
    fixed = _fixed(parser, words, prefix)
    if fixed is None and verb == "call":
        return _of_call(words, prefix)
    return _fitting(fixed or (), prefix)


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


def _fitting(words: Sequence[str], prefix: str) -> list[str]:
    return [word for word in words if word.startswith(prefix)]


def _split(line: str) -> list[str]:
    """Split into words, as a shell would. The last one may be empty, and its quotes may be open."""
    for closing in ("", '"', "'"):
        try:
            words = shlex.split(line + closing)
        except ValueError:
            continue
        return words if words and not (closing == "" and line[-1:].isspace()) else [*words, ""]
    return [""]


def _of_call(words: Sequence[str], prefix: str) -> list[str]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add_call_flags(parser)
    try:
        args, rest = parser.parse_known_args(words)
        if args.server is not None or args.url is not None or not _is_readable(args.token_file):
            return []
        return anyio.run(_ask_daemon, args, [word for word in rest if word[:1] != "-"], prefix)[:_MAX_COMPLETIONS]
    except (argparse.ArgumentError, UsageError, SystemExit):  # which argparse raises for a flag without its value
        return []


def _is_readable(token_file: str | None) -> bool:
    """Whether reading it ends at once: a pipe may never be written, and what was read of stdin or a pipe is gone."""
    return token_file is None or os.path.isfile(token_file)


async def _ask_daemon(args: argparse.Namespace, words: Sequence[str], prefix: str) -> list[str]:
    command, service_params = [*server_command(args), "--log-level=error"], read_service_params(args)
    framing = args.framing or DIALECTS[args.dialect].framing
    try:
        with anyio.move_on_after(DAEMON_SECONDS):
            async with (
                spawn(command, stderr="collect", bounds=_END_BOUNDS) as process,
                attach(process, framing=framing, timeout=DAEMON_SECONDS, service_params=service_params) as peer,
            ):
                return _fitting(await _completions(peer, words), prefix)
    except (ClientError, msgspec.ValidationError):
        pass
    return []


async def _completions(peer: Peer, words: Sequence[str]) -> list[str]:
    """The operations, or the params of the one that is named, which were not given yet."""
    if not words:
        return sorted(one.name for one in await peer.call("services/list", type=list[ListedOperation]))
    schema: _Params = convert((await ask_operation(peer, words[0], None)).input_schema, _Params)
    given = {word.partition("=")[0] for word in words[1:]}
    return [word for name in schema.properties if name not in given for word in _words_of(name, schema)]


class _Schema(Struct):
    """The part of a JSON Schema that is read here."""

    ref: str = msgspec.field(default="", name="$ref")
    any_of: list[_Schema] = msgspec.field(default=[], name="anyOf")
    enum: list[Any] = []
    const: Any = UNSET
    type: Any = None


class _Params(Struct):
    """The schema of an operation's params."""

    properties: dict[str, _Schema] = {}
    definitions: dict[str, _Schema] = msgspec.field(default={}, name="$defs")


def _words_of(name: str, schema: _Params) -> Iterator[str]:
    """Yield `name=`, and `name=value` for each value of a closed list."""
    yield f"{name}="
    for value in dict.fromkeys(_values(schema.properties[name], schema.definitions, _MAX_DEPTH)):
        yield f"{name}={value}"


def _values(schema: _Schema, definitions: dict[str, _Schema], depth: int) -> Iterator[str]:
    """The values of a closed list, as they are written on a command line; none where any value may come."""
    listed = [True, False] if schema.type == "boolean" else schema.enum if schema.const is UNSET else [schema.const]
    for value in listed:
        yield value if isinstance(value, str) else msgspec.json.encode(value).decode()
    target = definitions.get(schema.ref.removeprefix("#/$defs/"))
    for branch in (*schema.any_of, *([target] if target else ())):
        if depth:
            yield from _values(branch, definitions, depth - 1)
