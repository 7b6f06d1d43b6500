"""Checks the arguments of an import, and chooses and names its operations: alike for all kinds of imports.

Reads no document and asks no server. An error is `ImportFailed`; its message begins with the argument's name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, TypeVar, final, get_args

from msgspec import UNSET, Struct

from ..daemon.logs import log
from ..daemon.operations.spec import check_name, check_names, check_text
from ..errors.nearest import nearest_hint
from ..errors.printable import cut, printable
from .model import ImportFailed, Note
from .openapi.parsing import quoted
from .service import Validate

_LISTS: Final = ("include", "exclude", "tags", "paths", "methods", "operation_ids", "scopes")
_TABLES: Final = ("rename", "variables", "env", "headers")
_SWITCHES: Final = ("allow_private", "outside", "error_bodies")
_TEXTS: Final = ("base_url", "credential", "token")
_EXAMPLE: Final = "list_*"
_NOTE_CHARACTERS: Final = 240


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
            f"{name} must be {also}a list of strings, such as [{_EXAMPLE!r}], not {quoted(type(value).__name__)}"
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
    what: str,
    patterns: Collection[str],
    names: Collection[str],
    rename: Mapping[str, str] | None = None,
    *,
    has: str = "is called",
) -> None:
    """Raises `ImportFailed` for a pattern that matches none of these names. `rename` has the new names by old ones."""
    for pattern in patterns:
        if pattern in names or any(fnmatchcase(name, pattern) for name in names):
            continue
        renamed = (rename or {}).get(pattern)
        hint = f"; it is called {renamed} here" if renamed in names else nearest_hint(pattern, names)
        raise ImportFailed(f"{what}: no operation {has} {quoted(pattern)}{quoted(hint)}")


def check_expose(expose: bool | Sequence[str], names: Sequence[str], rename: Mapping[str, str] | None = None) -> None:
    """Raises `ImportFailed` for a pattern of `expose` that matches no operation that is imported."""
    if not isinstance(expose, bool):
        check_matches("expose", expose, names, rename)


def tell_left_out(namespace: str, left_out: int, imported: int, hint: str) -> None:
    """One line in the log for the operations that can't be imported, if there are any. `hint` is where to read why."""
    if left_out:
        log.warning("import.left_out", import_=namespace, left_out=left_out, imported=imported, hint=hint)


def tell_notes(namespace: str, notes: Sequence[Note], imported: int) -> None:
    """Log how many operations of a server were left out, by its notes. The hint is the first note."""
    left_out = [note for note in notes if note.kind == "left-out"]
    if left_out:
        first = printable(cut(f"{left_out[0].pointer}: {left_out[0].reason}", _NOTE_CHARACTERS))
        tell_left_out(namespace, len(left_out), imported, first)


_NOT_IN_NAMES: Final = re.compile(r"[^\w.$/-]+", re.ASCII)
_NAME_CHARACTERS: Final = 200


class Selection(Struct, frozen=True):
    """Which operations are imported: those that each filter with entries has one for. All entries but tags are patterns with
    `*` and `?`; `methods` are those of HTTP, in any case. `include` and `exclude` are for names, renamed ones."""

    tags: Collection[str] = ()
    paths: Collection[str] = ()
    methods: Collection[str] = ()
    operation_ids: Collection[str] = ()
    include: Collection[str] = ()
    exclude: Collection[str] = ()


class Found(Struct, frozen=True):
    """An operation of the document, as far as its name and the filters need it. `tags` are those of the document."""

    method: str
    path: str
    operation_id: str
    tags: tuple[str, ...] = ()


T = TypeVar("T")


def choose(
    items: Sequence[T], found: Sequence[Found], selection: Selection, rename: Mapping[str, str], *, strict: bool = True
) -> list[tuple[T, str]]:
    """The items that are wanted, with their names. `found` says what each is called, `rename` has new names by operationId, or by
    the name that it would have. Without `strict`, what fits no item may come later.

    Raises `ImportFailed` for a new name that is none, is given twice, or that another operation has; for one that no
    operation has and for a filter that fits none; and where nothing is left.
    """
    _check_rename(rename)
    names = _names_of(found, rename, strict=strict)
    if strict:
        _check_patterns(found, names, selection, rename)
    chosen = [
        (item, name)
        for item, each, name in zip(items, found, names, strict=True)
        if _is_selected(each, name, selection)
    ]
    if strict and items and not chosen:
        raise ImportFailed(f"none of the {len(items)} operations is imported: the filters fit none")
    _check_distinct(name for _, name in chosen)
    return chosen


def _is_selected(found: Found, name: str, selection: Selection) -> bool:
    if selection.tags and not set(found.tags) & set(selection.tags):
        return False
    if selection.methods and found.method not in {method.upper() for method in selection.methods}:
        return False
    for patterns, text in (
        (selection.paths, found.path),
        (selection.operation_ids, found.operation_id),
        (selection.include, name),
    ):
        if patterns and not _matches(text, patterns):
            return False
    return not _matches(name, selection.exclude)


def _matches(text: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def _names_of(operations: Sequence[Found], rename: Mapping[str, str], *, strict: bool) -> list[str]:
    """A name for each operation. Only a new name can be that of another operation, too."""
    own = [_name_of(each) for each in operations]
    exact = [name == each.operation_id for name, each in zip(own, operations, strict=True)]
    names = [""] * len(own)
    unique = UniqueNames()
    for wanted in (True, False):  # the names that the document has come first
        for at, name in enumerate(own):
            if exact[at] is wanted:
                names[at] = unique.add(name)
    used: dict[str, int] = {}
    for at, each in enumerate(operations):
        key = each.operation_id if each.operation_id in rename else names[at]
        if key in rename:
            if key in used:
                raise ImportFailed(f"rename: {quoted(key)} stands for several operations")
            used[key] = at
            names[at] = rename[key]
    for key in rename if strict else ():
        if key not in used:
            raise ImportFailed(f"rename: there is no operation {quoted(key)}{nearest_hint(key, names)}")
    return names


def _check_distinct(names: Iterable[str]) -> None:
    """Raises `ImportFailed` where a new name is that of another operation that is imported."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ImportFailed(f"rename: two operations would be called {quoted(name)}")
        seen.add(name)


def _check_patterns(
    operations: Collection[Found], names: Sequence[str], select: Selection, rename: Mapping[str, str]
) -> None:
    """Raises `ImportFailed` for a filter that fits nothing in the document. `methods` may name those that it does not use."""
    check_matches("include", select.include, names, rename)
    check_matches("exclude", select.exclude, names, rename)
    check_matches("operation_ids", select.operation_ids, [each.operation_id for each in operations])
    check_matches("paths", select.paths, {each.path for each in operations}, has="has")
    check_matches("tags", select.tags, {tag for each in operations for tag in each.tags}, has="has")


def _check_rename(rename: Mapping[str, str]) -> None:
    for old, new in rename.items():
        _check(check_name, new, what=f"rename: {quoted(old)}")
    _check_distinct(rename.values())


def _name_of(found: Found) -> str:
    if found.operation_id:
        return operation_name(found.operation_id)
    text = f"{found.method.lower()}_{found.path.strip('/')}".replace("/", "_")
    return re.sub(r"_{2,}", "_", operation_name(text)).rstrip("_") or found.method.lower()


def operation_name(text: str) -> str:
    """The name of an operation that is nearest to a text: `_` stands for characters that it can't have."""
    name = re.sub(r"/{2,}", "/", _NOT_IN_NAMES.sub("_", text)[:_NAME_CHARACTERS]).strip("/")
    try:
        check_name(name)
    except ValueError:
        return f"_{name}"
    return name


@final
class UniqueNames:
    """Gives each name once: where two want the same one, the second gets `NAME_2`."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._counts: dict[str, int] = {}

    def add(self, name: str) -> str:
        """The name, or the next one that is free."""
        unique = name
        while unique in self._taken:
            self._counts[name] = self._counts.get(name, 1) + 1
            unique = f"{name}_{self._counts[name]}"
        self._taken.add(unique)
        return unique
