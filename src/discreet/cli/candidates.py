"""What may stand next in a `discreet call`: operations, params and their values, as the daemon itself lists them.

Asks a daemon of its own, within `SECONDS`, and offers nothing rather than complain: a person is typing. It never runs
the command of `--server`: pressing a key must not start what only the return key should.
"""

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import anyio
import msgspec

from ..client import ClientError, EndBounds, Peer, attach, spawn
from ..client.dialects import DIALECTS
from ..daemon.lifecycle import EXIT_OK
from ..daemon.printable import printable
from ..daemon.settings import UsageError
from .credentials import STDIN, service_params_of
from .output import out
from .verbs.call import add_flags, command_of

SECONDS: Final = 0.6
"""How long the daemon is asked. With this program's own start and the ends below it stays within a second."""

_ENDS: Final = EndBounds(eof=0.1, terminate=0.05, kill=0.05)

_MOST: Final = 1000
"""More than that nobody reads."""


class _Listed(msgspec.Struct, frozen=True):
    name: str


class _Operation(msgspec.Struct, frozen=True, rename="camel"):
    """What `services/schema` says, as far as it matters here."""

    input_schema: dict[str, Any]  # JSON Schema


class Typed(msgspec.Struct, frozen=True):
    """A command line on its way: the server's, the words that are complete, and the one that is being typed."""

    command: Sequence[str]
    framing: Any  # as argparse has checked it
    words: Sequence[str]
    partial: str
    service_params: Mapping[str, str] | None


def print_candidates(line: str) -> int:
    """Print what may stand for the last word of `line`, one a line; nothing when that can't be found out."""
    typed = typed_of(line)
    if typed is not None:
        for candidate in anyio.run(_ask, typed):
            out(printable(candidate))
    return EXIT_OK


def typed_of(line: str) -> Typed | None:
    """Read a command line up to the cursor, as a shell would; None where there is nothing to complete."""
    words = _split(line)
    if "call" not in words[:-1]:
        return None
    *complete, partial = words[words.index("call") + 1 :]
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add_flags(parser)
    try:
        args, rest = parser.parse_known_args(complete)
        if args.server is not None or partial.startswith("-") or args.token_file == STDIN:
            return None
        command, service_params = command_of(args), service_params_of(args)
    except (argparse.ArgumentError, UsageError, SystemExit):  # which argparse raises for a flag without its value
        return None
    return Typed(
        [*command, "--log-level=error"],
        args.framing or DIALECTS[args.dialect].framing,
        [word for word in rest if word[:1] != "-"],
        partial,
        service_params,
    )


def _split(line: str) -> list[str]:
    """Words; the last one may be empty, and its quotes not closed yet."""
    for closing in ("", '"', "'"):
        try:
            words = shlex.split(line + closing)
        except ValueError:
            continue
        return words if words and not (closing == "" and line[-1:].isspace()) else [*words, ""]
    return [""]


async def _ask(typed: Typed) -> list[str]:
    found: list[str] = []
    try:
        with anyio.move_on_after(SECONDS):
            async with (
                spawn(typed.command, stderr="collect", bounds=_ENDS) as process,
                attach(process, framing=typed.framing, timeout=SECONDS) as peer,
            ):
                found = await _candidates(peer, typed)
    except ClientError:
        return []
    return found[:_MOST]


async def _candidates(peer: Peer, typed: Typed) -> list[str]:
    if not typed.words:
        listed = await peer.call("services/list", type=list[_Listed], service_params=typed.service_params)
        return sorted(operation.name for operation in listed if operation.name.startswith(typed.partial))
    named = {"name": typed.words[0]}
    operation = await peer.call("services/schema", named, type=_Operation, service_params=typed.service_params)
    given = {word.partition("=")[0] for word in typed.words[1:]}
    return [word for word in _params(operation, given) if word.startswith(typed.partial) and word != typed.partial]


def _params(operation: _Operation, given: set[str]) -> Iterator[str]:
    """`name=` of each param that is not given yet, and `name=value` where the values are a closed list."""
    properties = operation.input_schema.get("properties")
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        if name not in given:
            yield f"{name}="
            yield from (f"{name}={value}" for value in _values(schema))


def _values(schema: object) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    values = schema.get("enum", [schema["const"]] if "const" in schema else ())
    if schema.get("type") == "boolean":
        values = (True, False)
    for value in values if isinstance(values, list | tuple) else ():
        yield value if isinstance(value, str) else msgspec.json.encode(value).decode()
    for choice in schema.get("anyOf", ()) if isinstance(schema.get("anyOf", ()), list) else ():
        yield from _values(choice)
