"""Settings out of the environment and out of a file, as they were given. Checks names, never values."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .option import PREFIX, Given, Option, UsageError
from .table import OPTIONS

OWN_FILE: Final = "discreet.toml"
PROJECT_FILE: Final = "pyproject.toml"
SECTION: Final = "serve"
"""Keys may stand in this table or beside it; both mean the same."""

_LARGEST_FILE: Final = 1024 * 1024
"""Bytes. A settings file has a few hundred; a larger one is something else, and reading it would delay the start."""
_ALIKE: Final = 0.6
"""From this likeness on (difflib's ratio) an unknown variable is taken for a misspelling. difflib's own default."""


def from_environment(environ: Mapping[str, str]) -> dict[str, Given]:
    """What the environment sets, by field. An empty variable counts as unset.

    Raises `UsageError` for a variable that looks like a misspelling of one of ours. Others that only share the
    prefix are somebody else's and left alone.
    """
    for name in foreign_variables(environ):
        if meant := _meant(name):
            raise UsageError(f"{name}: unknown environment variable; nearest: {meant}")
    return {option.field: given for option in OPTIONS if (given := _variable(option, environ)) is not None}


def foreign_variables(environ: Mapping[str, str]) -> list[str]:
    """The variables that carry our prefix and are not ours."""
    known = {option.variable for option in OPTIONS}
    return [name for name in environ if name.startswith(PREFIX) and name not in known]


def from_file(directory: str) -> dict[str, Given]:
    """What the settings file of a directory sets, by field.

    The file is `discreet.toml`; only without one, the table `tool.discreet` of `pyproject.toml`. Raises
    `UsageError` for a file that cannot be read or is no TOML, for unknown keys and for keys set twice.
    """
    table, prefix = _table(directory)
    if not table:
        return {}
    by_key = {option.key: option for option in OPTIONS}
    found: dict[str, Given] = {}
    for key, value, source in _entries(table, prefix):
        option = by_key.get(key)
        if option is None:
            raise UsageError(f"{source}: unknown key; nearest: {nearest(key, by_key)}")
        if option.field in found:
            raise UsageError(f"{source}: set twice, here and as {found[option.field].source}")
        found[option.field] = Given(value, source, typed=True)
    return found


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.0) -> str:
    """The known word most like this one; empty when none reaches the cutoff."""
    from difflib import get_close_matches  # late: only errors need it

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=cutoff)), "")


def _meant(name: str) -> str:
    """Which of our variables a name is like; empty for none. The prefix is left out: it would make all alike."""
    spellings = {option.variable.removeprefix(PREFIX): option.variable for option in OPTIONS} | {
        option.key.replace("-", "_").upper(): option.variable for option in OPTIONS
    }
    return spellings.get(nearest(name.removeprefix(PREFIX).upper(), spellings, cutoff=_ALIKE), "")


def _variable(option: Option, environ: Mapping[str, str]) -> Given | None:
    if text := environ.get(option.variable):
        return Given(text, option.variable)
    if option.detail.presence and environ.get(option.detail.presence):
        return Given(True, option.detail.presence, typed=True)
    return None


def _table(directory: str) -> tuple[dict[str, Any], str]:
    """The table that holds our keys, and what their names in messages begin with."""
    text = _text(directory, OWN_FILE)
    if text is not None:
        return _parsed(text, OWN_FILE), f"{OWN_FILE}: "
    text = _text(directory, PROJECT_FILE)
    if text is None or "discreet" not in text:  # a project that does not name us costs no parser
        return {}, ""
    tool = _parsed(text, PROJECT_FILE).get("tool")
    ours = tool.get("discreet", {}) if isinstance(tool, dict) else {}
    if not isinstance(ours, dict):
        raise UsageError(f"{PROJECT_FILE}: tool.discreet: expected a table")
    return ours, f"{PROJECT_FILE}: tool.discreet."


def _entries(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, object, str]]:
    """Key, value and source of each entry, those of the section among them. `_` in a key is `-`."""
    for name, value in table.items():
        if name == SECTION and isinstance(value, dict):
            yield from ((_dashed(key), inner, f"{prefix}{SECTION}.{key}") for key, inner in value.items())
        else:
            yield _dashed(name), value, prefix + name


def _dashed(key: str) -> str:
    return key.replace("_", "-")


def _text(directory: str, name: str) -> str | None:
    """The file's text; None when there is no such file."""
    try:
        with open(os.path.join(directory, name), "rb", opener=_never_waiting) as file:
            content = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise UsageError(f"{name}: cannot be read: {exc.strerror}") from exc
    if len(content) > _LARGEST_FILE:
        raise UsageError(f"{name}: larger than {_LARGEST_FILE} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as exc:
        raise UsageError(f"{name}: not UTF-8 at byte {exc.start}") from exc


def _never_waiting(path: str, flags: int) -> int:
    """A FIFO of that name would wait for whoever writes to it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _parsed(text: str, name: str) -> dict[str, Any]:
    import tomllib  # late: most directories hold no file of ours

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise UsageError(f"{name}: not valid TOML{_place(str(exc))}") from exc
    except RecursionError as exc:
        raise UsageError(f"{name}: nested too deeply") from exc


def _place(message: str) -> str:
    """Where the parser stopped. Only the place is passed on: the rest of the message may quote the file."""
    _, found, place = message.rpartition("(at line ")
    line = place.partition(",")[0]
    return f", line {line}" if found and line.isdigit() else ", at its end"
