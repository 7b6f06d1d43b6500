"""The table of verbs: what the help of each says, and its arguments. `verbs.json` holds it. Starts nothing."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from textwrap import fill
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from ..daemon.settings import UsageError
from ..daemon.settings.flags import add_setting_flags


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
    """What the help says about a verb, and its arguments. The table of plug-ins says which module implements it.

    With `settings` it takes the flags of `serve`, with `command` another program's command line after `--`. With `signals` its
    status may also be that of a signal.
    """

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
    return msgspec.json.decode(files(__package__ or "").joinpath("verbs.json").read_bytes(), type=_Table)


def verbs() -> Mapping[str, Verb]:
    """Return all verbs, in the order in which the help lists them."""
    return _table().verbs
