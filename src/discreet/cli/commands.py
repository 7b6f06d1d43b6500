"""Finds the verb of a command line and runs it, by the table of verbs: what the help of each says, and its arguments.

`verbs.json` holds the table. Imports a verb only when asked to.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from textwrap import fill
from typing import Any, Final, Protocol

from msgspec import UNSET, Struct

from ..daemon import plugins
from ..daemon.lifecycle import EXIT_OK
from ..daemon.settings import UsageError
from ..daemon.settings.option import EXPECTED
from ..errors.decoders import decoder_for
from ..errors.nearest import nearest_hint
from ..flags import FlagParser, add_setting_flags
from ..version import __version__
from .output import write_stdout


def _program() -> tuple[str, ...]:
    """This program: the package, or the archive (a zipapp) that was started and alone knows where the package is."""
    archive = getattr(getattr(sys.modules["__main__"], "__loader__", None), "archive", None)
    return (os.path.abspath(archive),) if isinstance(archive, str) else ("-m", "discreet")


SERVE: Final = (sys.executable, "-P", *_program(), "serve")
"""This program's own daemon. `-P` keeps the working directory off its import path."""


def refuse_serve_flags(argv: Sequence[str], *, instead: str = "put what your server needs into --server") -> None:
    """Raise `UsageError` if any of these is given, flags of `discreet serve`, where something else is called."""
    for word in argv:
        what = word.partition("=")[0] if word.startswith("--") else f"an app ({word})"
        raise UsageError(f"{what} is for discreet serve; {instead}")


def split_command(text: str) -> list[str]:
    """Split the value of `--server` into words, as a shell would. Raises `UsageError`."""
    try:
        command = shlex.split(text)
    except ValueError as exc:
        raise UsageError(f"--server: {exc}") from exc
    if not command:
        raise UsageError("--server: the command is empty")
    return command


def positive_seconds(text: str) -> float:
    """Read a finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: must be a number above 0")
    return number


def timeout(text: str) -> float | None:
    """Read a finite number of seconds above 0, or None for the word `none`: no limit."""
    try:
        return None if text == "none" else positive_seconds(text)
    except argparse.ArgumentTypeError as exc:
        raise argparse.ArgumentTypeError(f"{exc}, or none") from None


_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration(text: str) -> float:
    """Read a time as `90`, `90s`, `15m`, `2h` or `7d`, in seconds."""
    try:
        return positive_seconds(text[:-1] if text[-1:] in _UNITS else text) * _UNITS.get(text[-1:], 1.0)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text}: must be a number above 0, with s, m, h or d behind it") from None


def count(text: str) -> int:
    """Read a whole number, 0 or more."""
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number, 0 or more")
    return int(text)


def process_id(text: str) -> int:
    """Read the number of a process."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text)):
        raise argparse.ArgumentTypeError(f"{text}: must be the number of a process")
    return int(text)


def field_pattern(text: str) -> str:
    """Read a pattern of paths in a message."""
    from ..client.json_path import parse_pattern  # late: few verbs need it

    if not text:
        raise argparse.ArgumentTypeError("it names nothing; ** is everything")
    try:
        parse_pattern(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc
    return text


SIGNAL_STATUSES: Final[Mapping[int, str]] = {
    129: "hung up (SIGHUP)",
    130: "interrupted (SIGINT)",
    143: "terminated (SIGTERM)",
}

_TYPES: Final[Mapping[str, Callable[[str], Any]]] = {
    "count": count,
    "duration": duration,
    "field-pattern": field_pattern,
    "positive-seconds": positive_seconds,
    "process-id": process_id,
    "timeout": timeout,
}


class Argument(Struct, frozen=True):
    """A row: an argument, or with `share` several that verbs have in common.

    `flag` is its names and its metavar, as in `-o/--output FILE`. With `either` there is `--no-…`, too; with `suppress` nothing
    is set where it is missing; with `serve` it is passed on to `discreet serve`.
    """

    flag: str = ""
    help: str = ""
    share: str = ""
    dest: str = ""
    nargs: str | None = None
    choices: tuple[str, ...] | None = None
    type: str = ""
    repeat: bool = False
    either: bool = False
    suppress: bool = False
    serve: bool = False
    default: Any = UNSET  # JSON
    group: str = ""

    @property
    def is_positional(self) -> bool:
        """Whether it is told by its place."""
        return bool(self.flag) and not self.flag.startswith("-")

    def add_to(self, group: argparse._ActionsContainer) -> None:
        """Add it to a parser or a group of one."""
        names, _, metavar = self.flag.partition(" ")
        options: dict[str, Any] = {"help": self.help}
        if self.is_positional:
            options |= ({"metavar": self.flag} if self.dest else {}) | ({"nargs": self.nargs} if self.nargs else {})
            names = self.dest or self.flag
        if metavar:
            options["metavar"] = metavar
        if self.either:
            options["action"] = argparse.BooleanOptionalAction
        elif not (self.is_positional or metavar or self.choices):
            options["action"] = "store_true"
        if self.repeat:
            options["action"] = "append"
        if self.type:
            options["type"] = _TYPES[self.type]
        if self.choices:
            options["choices"] = self.choices
        if self.repeat or self.nargs == "*":
            options["default"] = []  # or argparse would call the words required
        if self.suppress or self.default is not UNSET:
            options["default"] = argparse.SUPPRESS if self.suppress else self.default
        group.add_argument(*names.split("/"), **options)


class Verb(Struct, frozen=True):
    """A verb as the help shows it, and its arguments. The table of plug-ins says which module implements it."""

    usage: str
    summary: str
    examples: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = ()
    settings: bool = False
    command: bool = False
    signals: bool = False
    environment: dict[str, str] = {}
    statuses: dict[str, str] = {}

    def add_arguments(self, parser: argparse.ArgumentParser, *, flags_alone: bool = False) -> None:
        """Add its arguments to a parser."""
        groups: dict[str, argparse._ActionsContainer] = {"": parser}
        if self.command:
            parser.set_defaults(command=())
        for row, name in self._rows():
            if name not in groups:
                groups[name] = parser.add_argument_group(name)
            if not (flags_alone and row.is_positional):
                row.add_to(groups[name])
        if self.settings:
            add_setting_flags(parser)

    def _rows(self) -> Iterator[tuple[Argument, str]]:
        """Yield each argument with its group."""
        for row in self.arguments:
            for each in _table().shared[row.share] if row.share else [row]:
                yield each, each.group or row.group

    def serve_flags(self, args: argparse.Namespace) -> list[str]:
        """Return the arguments that are for `discreet serve`, as it takes them."""
        found: list[str] = []
        for row, _ in self._rows():
            flag = row.flag.partition(" ")[0]
            value = getattr(args, row.dest or flag.strip("-").replace("-", "_")) if row.serve else None
            match value:
                case True:
                    found.append(flag)
                case str():
                    found.append(f"{flag}={value}")
                case [*words]:
                    found += words if flag in ("APP", "--app") else [f"{flag}={word}" for word in words]
                case _:  # not given
                    pass
        return found

    @property
    def all_statuses(self) -> dict[str, str]:
        """The statuses, with those of signals."""
        return self.statuses | ({f"{status}": text for status, text in SIGNAL_STATUSES.items()} if self.signals else {})

    def sections(self) -> Iterator[str]:
        """Yield the sections that stand below the flags in its help."""
        yield "\n".join(("examples:", *(f"  {example}" for example in self.examples)))
        if self.environment:
            yield "\n".join(("environment:", *_rows(self.environment.items())))
        yield "\n".join(("exit status:", *_rows(self.all_statuses.items())))


_COLUMNS: Final = 100
"""As wide as the flags are shown."""


def _rows(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    rows = list(rows)
    width = max(len(word) for word, _ in rows)
    for word, meaning in rows:
        yield fill(meaning, _COLUMNS, initial_indent=f"  {word:{width}}  ", subsequent_indent=" " * (width + 4))


class _Table(Struct, frozen=True):
    shared: dict[str, tuple[Argument, ...]]
    verbs: dict[str, Verb]


@cache
def _table() -> _Table:
    return decoder_for(_Table)(files(__package__ or "").joinpath("verbs.json").read_bytes())


def verbs() -> Mapping[str, Verb]:
    """Return all verbs, in the order in which the help lists them."""
    return _table().verbs


class VerbModule(Protocol):
    """The interface of a verb's module. `run` returns the exit status and may raise `UsageError`.

    That of an installed package has `add_arguments(parser)`, too; those of our own are in the table of verbs.
    """

    def run(self, args: argparse.Namespace) -> int: ...


DEFAULT_VERB: Final = "serve"
"""The meaning of a command line without a verb."""


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
usage: discreet [serve] [APP ...] [FLAG ...] | discreet COMMAND [ARGUMENT ...]
Serves apps (shop:service, ./shop.py:service) by JSON-RPC, or files, read only.

{verbs}
`discreet COMMAND --help` tells of its flags, examples, settings and statuses."""
