"""Finds the verb of a command line and runs it, with the parser and the help text made from the table of verbs.

Imports a verb only when asked to.
"""

import argparse
from collections.abc import Sequence
from typing import Final, Protocol

from ..daemon import plugins
from ..daemon.lifecycle import EXIT_OK
from ..daemon.settings import UsageError
from ..daemon.settings.flags import FlagParser
from ..daemon.settings.option import EXPECTED
from ..errors.nearest import nearest_hint
from ..version import __version__
from .output import write_stdout
from .verb_table import Verb, verbs


class VerbModule(Protocol):
    """The interface of a verb's module. `run` returns the exit status and may raise `UsageError`.

    That of an installed package has `add_arguments(parser)`, too; those of our own are in the table of verbs.
    """

    def run(self, args: argparse.Namespace) -> int: ...


DEFAULT_VERB: Final = "serve"
"""What a command line without a verb means."""


_MEANT: Final = {
    **dict.fromkeys(("run", "start", "host", "daemon"), "serve"),
    **dict.fromkeys(("init", "create"), "new"),
    **dict.fromkeys(("invoke", "exec", "send"), "call"),
    **dict.fromkeys(("check", "test"), "doctor"),
}
"""The verbs of other programs that no spelling leads to."""


def run_command(argv: Sequence[str]) -> int:
    """Run what a command line names. Returns the exit status; raises `UsageError`."""
    try:
        return _run(argv)
    except HelpShown:
        return EXIT_OK


def _run(argv: Sequence[str]) -> int:
    match argv:
        case ["-h" | "--help", *_]:
            write_stdout(general_help())
            return EXIT_OK
        case ["--version", *_]:
            write_stdout(f"discreet {__version__}")
            return EXIT_OK
        case ["help", *rest] if not rest or rest[0] in verbs():
            raise UsageError(f"help: write discreet {''.join(f'{verb} ' for verb in rest[:1])}--help")
        case [name, *rest] if not name.startswith("-") and ":" not in name and plugins.is_known("verb", name):
            pass
        case [word, *_] if not word.startswith("-") and ":" not in word:
            from ..daemon.settings.meant_app import meant_by  # late: only errors need it

            if word.endswith(".py"):
                meant = meant_by(word) or f": ./{word.removeprefix('./')}:name"
                raise UsageError(f"{word}: an app is a name in a file{meant}")
            near = f"; nearest: {_MEANT[word]}" if word in _MEANT else nearest_hint(word, plugins.names("verb"))
            meant = meant_by(word) or near or f"; commands: {', '.join(plugins.names('verb'))}"
            raise UsageError(f"{word}: neither a command nor an app ({EXPECTED}){meant}")
        case _:
            name, rest = DEFAULT_VERB, list(argv)
    parser, module = load_verb(name)
    return module.run(parser.read(rest))


def load_verb(name: str) -> tuple[FlagParser, VerbModule]:
    """Import a verb's module. Returns the parser with all the verb's arguments, and the module. Raises `UsageError` where an
    installed package adds the verb and can't be loaded.
    """
    try:
        module: VerbModule = plugins.load("verb", name)
    except plugins.PluginError as exc:
        raise UsageError(str(exc)) from exc
    verb = verbs().get(name) or Verb(getattr(module, "USAGE", "[ARGUMENT ...]"), getattr(module, "SUMMARY", ""))
    parser = FlagParser(f"discreet {name}", verb.usage, description=verb.summary)
    parser.add_argument("-h", "--help", action=_HelpAction, help="show this text and exit")
    add_arguments = verb.add_arguments if name in verbs() else module.add_arguments  # type: ignore[attr-defined]
    add_arguments(parser)
    return parser, module


class HelpShown(Exception):
    """Ends the parsing of a command line that asks for help, whatever else is on it."""


class _HelpAction(argparse.Action):
    """Prints the help of one verb. argparse's own action would hide that the reader of stdout is gone."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        verb = verbs().get(parser.prog.rpartition(" ")[2])  # that of a package tells all by its flags
        write_stdout("\n\n".join((parser.format_help().rstrip(), *(verb.sections() if verb else ()))))
        raise HelpShown


def general_help() -> str:
    """Return the text of `discreet --help`. It fits on a screen of 24 lines and 80 columns."""
    width = max(map(len, verbs()))
    lines = [f"  {name:{width}}  {verb.summary}" for name, verb in verbs().items()]
    if added := plugins.added("verb"):
        lines.append(f"  {'':{width}}  Of installed packages: {', '.join(added)}.")
    return _GENERAL_HELP.format(verbs="\n".join(lines))


_GENERAL_HELP: Final = """\
usage: discreet [serve] [APP ...] [FLAG ...]
       discreet COMMAND [ARGUMENT ...]

A daemon that speaks JSON-RPC 2.0 on stdin and stdout. Without a command it
serves; without an app it serves the files of the working directory, read only.

{verbs}

An app is a name in a module (shop:service) or in a file (./shop.py:service).
`discreet COMMAND --help` tells of its flags, examples, settings and statuses."""
