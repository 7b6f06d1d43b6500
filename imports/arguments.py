"""Whether the arguments of an import can work, alike for all kinds of imports. Reads no document and asks no server.

What is wrong is `ImportFailed`; its message begins with the argument's name.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, get_args

from msgspec import UNSET

from ..daemon.logs import log
from ..daemon.operations.spec import check_name, check_names, check_text
from ..errors.nearest import nearest_hint
from ..errors.printable import cut, printable
from .model import ImportFailed, Note
from .service import Validate

_LISTS: Final = ("include", "exclude", "tags", "paths", "methods", "operation_ids", "scopes")
_TABLES: Final = ("rename", "variables", "env", "headers")
_SWITCHES: Final = ("allow_private", "outside", "error_bodies")
_TEXTS: Final = ("base_url", "credential", "token")
_EXAMPLE: Final = "list_*"
_SHOWN: Final = 80


def check_arguments(given: Mapping[str, object]) -> None:
    """Raises `ImportFailed` for an argument of another type, or out of range. `given` are arguments by their names; those that
    only one kind of import has are left to it.
    """
    _check(check_name, given["namespace"], what="namespace")
    for name, value in given.items():
        if name in _LISTS or (name == "expose" and not isinstance(value, bool)):
            _check_list(name, value)
        elif name in _TABLES and not (value is None or _is_table(value)):
            raise ImportFailed(f"{name} must be a dict of strings")
        elif name in _SWITCHES and not isinstance(value, bool):
            raise ImportFailed(f"{name} must be True or False")
        elif name in _TEXTS:
            _check(lambda text, name=name: check_text(name, text), value)
        elif name == "credentials" and not (isinstance(value, str) or _is_table(value)):
            raise ImportFailed("credentials must be a name, or a dict of names by security scheme")
        elif name == "validate" and value is not UNSET and value not in get_args(Validate):
            raise ImportFailed(f"validate must be one of {', '.join(get_args(Validate))}")
        elif name == "timeout" and not (value is None or value is UNSET or _is_number(value, above=True)):
            raise ImportFailed("timeout must be a number of seconds above 0, or None for no deadline")
        elif name == "max_age" and not _is_number(value):
            raise ImportFailed("max_age must be a number of seconds, 0 or more")


def _check_list(name: str, value: object) -> None:
    if name == "scopes":
        _check(lambda names: check_names(name, names, "files:read"), value)
    elif isinstance(value, str | bytes | Mapping) or not isinstance(value, Collection):
        also = "True, False or " if name == "expose" else ""
        raise ImportFailed(
            f"{name} must be {also}a list of strings, such as [{_EXAMPLE!r}], not {_shown(type(value).__name__)}"
        )
    elif not all(isinstance(each, str) and each for each in value):
        raise ImportFailed(f"{name} must hold strings that are not empty, such as {_EXAMPLE!r}")


def _check(check: object, value: object, *, what: str = "") -> None:
    assert callable(check)
    try:
        check(value)
    except (TypeError, ValueError) as exc:
        raise ImportFailed(f"{what}: {exc}" if what else str(exc)) from None


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, str) for pair in value.items() for each in pair)


def _is_number(value: object, *, above: bool = False) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return (0 < value < math.inf) if above else 0 <= value <= math.inf


def check_matches(
    what: str, patterns: Collection[str], names: Sequence[str], rename: Mapping[str, str] | None = None
) -> None:
    """Raises `ImportFailed` for a pattern that matches none of these names. `rename` has the new names by old ones."""
    for pattern in patterns:
        if any(fnmatchcase(name, pattern) for name in names):
            continue
        renamed = (rename or {}).get(pattern)
        hint = f"; it is called {renamed} here" if renamed in names else nearest_hint(pattern, names)
        raise ImportFailed(f"{what}: no operation is called {_shown(pattern)}{_shown(hint)}")


def check_expose(expose: bool | Sequence[str], names: Sequence[str], rename: Mapping[str, str] | None = None) -> None:
    """Raises `ImportFailed` for a pattern of `expose` that matches no operation that is imported."""
    if not isinstance(expose, bool):
        check_matches("expose", expose, names, rename)


def tell_left_out(namespace: str, left_out: int, imported: int, hint: str) -> None:
    """One line in the log for the operations that can't be imported, if there are any. `hint` is where to read why."""
    if left_out:
        log.warning("import.left_out", import_=namespace, left_out=left_out, imported=imported, hint=hint)


def tell_notes(namespace: str, notes: Sequence[Note], imported: int) -> None:
    """The same for a server, all of whose notes on what is left out stand for an operation. The hint is the first of them."""
    left_out = [note for note in notes if note.kind == "left-out"]
    if left_out:
        first = _shown(f"{left_out[0].pointer}: {left_out[0].reason}", 3 * _SHOWN)
        tell_left_out(namespace, len(left_out), imported, first)


def _shown(text: str, longest: int = _SHOWN) -> str:
    return printable(cut(text, longest))
