"""The command line: finds the verb, reads its arguments, runs it, and turns its end into an exit status.

Status 0 is success, 1 is failure, 2 is wrong usage: one line on stderr, never a traceback.
"""

import argparse
import importlib
from collections.abc import Sequence
from typing import Final, Protocol, cast

from msgspec import Struct

from .. import __version__
from ..daemon.lifecycle import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from ..daemon.settings import UsageError
from ..daemon.settings.flags import FlagParser
from ..daemon.settings.reference import EXPECTED
from ..daemon.settings.sources import closest_match
from .output import complain, forget_stdout, out

DEFAULT_VERB: Final = "serve"


class Verb(Struct, frozen=True):
    """One command: the module that does it, and what the help says of it."""

    module: str
    usage: str
    summary: str
    examples: tuple[str, ...]


class VerbModule(Protocol):
    """What a verb's module offers. `run` returns the exit status and may raise `UsageError`."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, args: argparse.Namespace) -> int: ...


VERBS: Final[dict[str, Verb]] = {
    "serve": Verb(
        "serve",
        "[APP ...] [FLAG ...]",
        "Serve services to the program that started this one, over stdin and stdout.",
        (
            "discreet serve ./app.py:files",
            "discreet --root ~/project --allow-write",
            "discreet ./app.py:files --framing newline",
        ),
    ),
    "call": Verb(
        "call",
        "METHOD [NAME=VALUE ... | JSON] [FLAG ...]",
        "Call one method of a daemon from a shell and print the result.",
        (
            "discreet call fs/read path=README.md",
            "discreet call listMethods --app ./app.py:files",
            """discreet call fs/read '{"path": "README.md", "limit": 80}' --root ~/project""",
        ),
    ),
    "demo": Verb(
        "demo",
        "",
        "Start daemons in a temporary folder, talk to them, and show what goes over the wire.",
        ("discreet demo",),
    ),
    "doctor": Verb(
        "doctor",
        "[APP ...] [FLAG ...] [--json]",
        "Check the surroundings, and a trial run of the daemon with the same settings.",
        ("discreet doctor", "discreet doctor ./app.py:files --root ~/project", "discreet doctor --json"),
    ),
    "schema": Verb(
        "schema",
        "[APP ...] [--check FILE] [-o FILE] [FLAG ...]",
        "Print what the operations promise, or tell what a change of them breaks for callers.",
        (
            "discreet schema ./app.py:files > schema.json",
            "discreet schema ./app.py:files --check schema.json",
            "discreet schema ./app.py:files --check schema.json -o schema.json",
        ),
    ),
    "card": Verb(
        "card",
        "[APP ...] [--dialect 1.0|0.3] [--extended] [FLAG ...]",
        "Print the agent card (A2A) of what would be served.",
        (
            "discreet card ./app.py:agent",
            "discreet card ./app.py:files --dialect 0.3",
            "discreet card ./app.py:agent --extended",
        ),
    ),
    "generate": Verb(
        "generate",
        "python|typescript [--app APP ... | --server COMMAND] [-o FILE]",
        "Write a typed client of the operations of an app, or of a running server.",
        (
            "discreet generate python --app ./app.py:files -o files_client.py",
            "discreet generate typescript --app ./app.py:files -o files_client.ts",
            "discreet generate python --server 'discreet serve --allow-write' -o fs_client.py",
        ),
    ),
    "record": Verb(
        "record",
        "[-o FILE] [FLAG ...] -- COMMAND ...",
        "Run a server, pass everything through, and write a scrubbed recording of the session.",
        (
            "discreet record -- discreet serve ./app.py:files",
            "discreet record -o session.jsonl --framing newline -- my-server",
        ),
    ),
    "replay": Verb(
        "replay",
        "FILE [FLAG ...] -- COMMAND ...",
        "Say to a server what a recorded client said, and report what it answers differently.",
        (
            "discreet replay session.jsonl -- discreet serve ./app.py:files",
            "discreet replay session.jsonl --ignore 'result.**.modified' -- discreet serve",
        ),
    ),
    "completion": Verb(
        "completion",
        "bash|zsh|fish",
        "Print the completion script of a shell.",
        (
            'eval "$(discreet completion bash)"',
            "discreet completion zsh > ~/.zfunc/_discreet",
            "discreet completion fish > ~/.config/fish/completions/discreet.fish",
        ),
    ),
}
"""All commands, in the order in which the help lists them."""


def main(argv: Sequence[str]) -> int:
    """Run one command line, without the program's name; returns the exit status."""
    try:
        return _run(argv)
    except _HelpShown:
        return EXIT_OK
    except UsageError as exc:
        complain(str(exc))
        return EXIT_USAGE
    except BrokenPipeError:
        forget_stdout()
        return EXIT_FAILED
    except OSError as exc:  # a full disk behind stdout, above all
        complain(exc.strerror or "the output can't be written")
        forget_stdout()
        return EXIT_FAILED


def parser_of(name: str) -> tuple[FlagParser, VerbModule]:
    """The parser of a verb with all its arguments, and the verb's module, which this imports."""
    verb = VERBS[name]
    examples = "\n".join(("examples:", *(f"  {example}" for example in verb.examples)))
    parser = FlagParser(f"discreet {name}", verb.usage, description=verb.summary, epilog=examples)
    parser.add_argument("-h", "--help", action=_Help, help="show this text and exit")
    module = cast(VerbModule, importlib.import_module(f".verbs.{verb.module}", __package__))
    module.add_arguments(parser)
    return parser, module


def _run(argv: Sequence[str]) -> int:
    match argv:
        case ["-h" | "--help", *_]:
            out(_help())
            return EXIT_OK
        case ["--version", *_]:
            out(f"discreet {__version__}")
            return EXIT_OK
        case ["call", "--complete", line]:  # in no help: what the scripts of `completion` ask
            from .candidates import print_candidates  # late: no other run needs it

            return print_candidates(line)
        case [name, *rest] if name in VERBS:
            pass
        case [word, *_] if not word.startswith("-") and ":" not in word:
            if word.endswith(".py"):
                raise UsageError(f"{word}: an app is a name in a file: ./{word.removeprefix('./')}:name")
            raise UsageError(
                f"{word}: neither a command nor an app ({EXPECTED}); nearest: {closest_match(word, VERBS)}"
            )
        case _:
            name, rest = DEFAULT_VERB, list(argv)
    parser, module = parser_of(name)
    return module.run(parser.read(rest))


class _HelpShown(Exception):
    """Ends the reading of a command line that asks for help, whatever else is on it."""


class _Help(argparse.Action):
    """argparse's own help action would hide that nobody reads stdout."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        out(parser.format_help().rstrip())
        raise _HelpShown


def _help() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:{width}}  {verb.summary}" for name, verb in VERBS.items())
    return _HELP.format(verbs=verbs, examples="\n".join(f"  {verb.examples[0]}" for verb in VERBS.values()))


_HELP: Final = """\
usage: discreet [serve] [APP ...] [FLAG ...]
       discreet COMMAND [ARGUMENT ...]

A daemon that speaks JSON-RPC 2.0 on stdin and stdout. Without a command it serves; without an
app it serves the files under the working directory, read only.

commands:
{verbs}

examples:
{examples}

An app is an installed module's (shop:service) or a file's (./shop.py:service). Flags may also be
set as DISCREET_* environment variables or in a file (--config). A discreet.toml that is merely found
in the working directory may set little; nothing there is run.

`discreet COMMAND --help` tells more. Exit status: 0 success, 1 failure, 2 wrong usage."""
