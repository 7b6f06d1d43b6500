"""Reads settings from the command line. The flags of `serve` are built from the table."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NoReturn

from msgspec import Struct

from .daemon.settings.option import KINDS, MANY, Option, RawValue, UsageError
from .daemon.settings.resolution import SettingsFile
from .daemon.settings.table import OPTION_OF, OPTIONS
from .errors.nearest import closest_match

_WIDTH: Final = 100
"""Columns of the help text. Fixed, so that help looks the same everywhere, and asking the terminal costs an import."""

PARAM: Final = "NAME=VALUE"
"""The metavar of arguments that are params of a call, which are easily taken for flags."""


class Flag(Struct, frozen=True):
    """A flag, for completion and documentation. `value` is empty for a flag that takes none."""

    names: tuple[str, ...]
    help: str
    value: str = ""
    choices: tuple[str, ...] = ()


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=_WIDTH)


class FlagParser(argparse.ArgumentParser):
    """argparse, but it raises `UsageError` instead of exiting, and accepts no abbreviated flags.

    Flags and positional arguments may come in any order. If `command` has a default, the words after the first `--` are
    another program's command line: they become `command` unchanged.
    """

    def __init__(self, prog: str, usage: str, **texts: Any) -> None:
        super().__init__(
            prog, f"{prog} {usage}".rstrip(), add_help=False, allow_abbrev=False, formatter_class=_Formatter, **texts
        )

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError`; argparse itself would exit."""
        flag, found, _ = message.partition(": ignored explicit argument")
        if found:
            message = f"{flag.removeprefix('argument ')}: a switch takes no value"
        raise UsageError(message)

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """The arguments. Raises `UsageError`, which names the nearest flag for an unknown one."""
        if "--" in argv and self.get_default("command") is not None:
            at = argv.index("--")
            args = self.read(argv[:at])
            args.command = tuple(argv[at + 1 :])
            return args
        takes_rest = any(action.nargs in (argparse.REMAINDER, argparse.PARSER) for action in self._actions)
        parse = self.parse_known_args if takes_rest else self.parse_known_intermixed_args
        args, unknown = parse(list(argv))
        for word in unknown:
            name = word.partition("=")[0]
            if name.startswith("-"):
                raise UsageError(f"{name}: {self._about_unknown(name)}")
            if self.get_default("command") is not None:
                raise UsageError(f"the server's command line goes after `--`: -- {word} …")
            raise UsageError(f"{word}: one argument too many")
        return args

    def _about_unknown(self, name: str) -> str:
        if name == "--app" and any(action.dest == "apps" for action in self._actions):
            return "an app is an argument here, without a flag"
        known = [known for flag in self.flags() for known in flag.names]
        if name in ("--token", "--bearer") and "--token-env" in known:
            return "no flag holds a token; --token-env NAME names the variable that does, --token-file FILE the file"
        if name in ("--port", "--host", "--bind") and "--http" in known:
            return "where to listen is given with --http HOST:PORT"
        if any(name in option.flags for option in OPTIONS):
            variable = f", or set {OPTION_OF['debug'].variable}" if name == "--debug" else ""
            return "a flag of serve" + (f": put it into --server{variable}" if "--server" in known else "")
        if name == "-o" and "--output" not in known:
            return "unknown flag; what is printed is put into a file with > FILE"
        takes_params = any(action.metavar == PARAM for action in self._actions)
        param = f"; a param is written without dashes: {name.lstrip('-')}=…" if takes_params else ""
        words = {word.lstrip("-"): word for word in known}  # the dashes make all flags alike
        near = closest_match(name.lstrip("-"), words)
        return f"unknown flag{f'; nearest: {words[near]}' if near else ''}{param}"

    def words(self) -> tuple[str, ...]:
        """The accepted words of positional arguments with a closed list."""
        return tuple(
            str(word) for action in self._actions if not action.option_strings for word in action.choices or ()
        )

    def flags(self) -> Iterator[Flag]:
        """All flags that this parser takes."""
        for action in self._actions:
            if action.option_strings and action.help is not argparse.SUPPRESS:
                value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
                choices = value.strip("{}").split(",") if value.startswith("{") else action.choices or ()
                yield Flag(tuple(action.option_strings), action.help or "", value, tuple(map(str, choices)))


def add_setting_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `serve` to a parser. Values stay text, so that errors are the same for each source."""
    for title, options in groupby(OPTIONS, lambda option: option.group):
        group = parser.add_argument_group(title)
        for option in options:
            _add(group, option)
    add_file_flags(parser.add_argument_group("sources"))
    parser.add_argument("--stdio", action="store_true", help="accepted and ignored: editors send it")


def add_file_flags(group: "argparse._ArgumentGroup") -> None:
    """Add the flags that choose among the sources."""
    group.add_argument(
        "--config",
        metavar="FILE",
        help="a settings file; without it, discreet.toml here is read for harmless keys only",
    )
    group.add_argument(
        "--isolated", action="store_true", help="read no settings file and no DISCREET_* variable, only flags"
    )


def file_from_flags(args: argparse.Namespace) -> SettingsFile:
    """Which file the command line chooses."""
    return SettingsFile(args.config, isolated=args.isolated)


def from_flags(args: argparse.Namespace) -> dict[str, RawValue]:
    """The settings of the command line, by field."""
    found: dict[str, RawValue] = {}
    for option in OPTIONS:
        value = getattr(args, option.field)
        if option.kind == "apps":
            if "" in value:  # such as an empty shell variable in quotes
                raise UsageError(f"{option.flag}: expected {option.expected}")
            value = value or None
        elif isinstance(value, list):
            value = " ".join(value)
        if value is not None:
            found[option.field] = RawValue(value, "/".join(option.flags), typed=option.kind == "switch")
    return found


def to_argv(values: Mapping[str, RawValue], file: SettingsFile | None = None) -> list[str]:
    """A command line that sets the same."""
    argv = [] if file is None else file.argv()
    for option in OPTIONS:
        if option.field not in values:
            continue
        match values[option.field].value:
            case True:
                argv.append(option.flag)
            case list() as words:
                argv += words
            case value:
                argv.append(f"{option.flag}={value}")
    return argv


def _add(group: "argparse._ArgumentGroup", option: Option) -> None:
    more: dict[str, Any] = {"help": f"{option.row.help} (default: {option.default_text})".replace("%", "%%")}
    metavar = KINDS[option.kind][0] or f"{{{','.join(option.choices)}}}"
    if option.kind == "apps":
        group.add_argument(option.field, nargs="*", metavar=metavar, **more)
        return
    if option.kind == "switch":
        more = {"action": "store_true", "default": None, "help": option.row.help}
    else:
        more |= {"metavar": metavar, "action": "append" if option.kind in MANY else "store"}
    group.add_argument(*option.flags, dest=option.field, **more)
