"""Gives operations their names, and says which of them are wanted."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from ...daemon.operations.spec import check_name
from ...errors.nearest import nearest_hint
from ..arguments import check_matches
from .parsing import DocumentError, quoted

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
    tags: tuple[str, ...]


def is_selected(found: Found, name: str, selection: Selection) -> bool:
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


def names_of(operations: Collection[Found], rename: Mapping[str, str]) -> list[str]:
    """A name for each operation. `rename` has new names by operationId, or by the name that it would have. Only a new name can be
    that of another operation, too, which `check_distinct` finds.

    Raises `DocumentError` for one that is no name, is given twice, or that no operation has.
    """
    _check(rename)
    own = [_name_of(each) for each in operations]
    exact = [name == each.operation_id for name, each in zip(own, operations, strict=True)]
    names = [""] * len(own)
    taken: set[str] = set()
    counts: dict[str, int] = {}
    for wanted in (True, False):  # the names that the document has come first
        for at, name in enumerate(own):
            if exact[at] is wanted:
                names[at] = _unique(name, taken, counts)
    used: dict[str, int] = {}
    for at, each in enumerate(operations):
        key = each.operation_id if each.operation_id in rename else names[at]
        if key in rename:
            if key in used:
                raise DocumentError(f"rename: {quoted(key)} stands for several operations")
            used[key] = at
            names[at] = rename[key]
    for key in rename:
        if key not in used:
            raise DocumentError(f"rename: there is no operation {quoted(key)}{nearest_hint(key, names)}")
    return names


def check_distinct(names: Iterable[str]) -> None:
    """Raises `DocumentError` where a new name is that of another operation that is imported."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DocumentError(f"rename: two operations would be called {quoted(name)}")
        seen.add(name)


def check_patterns(
    operations: Collection[Found], names: Sequence[str], select: Selection, rename: Mapping[str, str]
) -> None:
    """Raises `ImportFailed` for a filter that fits nothing in the document. `methods` may name those that it does not use."""
    check_matches("include", select.include, names, rename)
    check_matches("exclude", select.exclude, names, rename)
    check_matches("operation_ids", select.operation_ids, [each.operation_id for each in operations])
    tags = {tag for each in operations for tag in each.tags}
    for what, patterns, known in (
        ("paths", select.paths, {each.path for each in operations}),
        ("tags", select.tags, tags),
    ):
        for pattern in patterns:
            if not (pattern in known or (what == "paths" and any(fnmatchcase(path, pattern) for path in known))):
                raise DocumentError(f"{what}: no operation has {quoted(pattern)}{nearest_hint(pattern, known)}")


def _check(rename: Mapping[str, str]) -> None:
    seen: set[str] = set()
    for old, new in rename.items():
        try:
            check_name(new)
        except ValueError as exc:
            raise DocumentError(f"rename: {quoted(old)}: {exc}") from exc
        if new in seen:
            raise DocumentError(f"rename: two operations would be called {quoted(new)}")
        seen.add(new)


def _name_of(found: Found) -> str:
    text = found.operation_id or f"{found.method.lower()}_{found.path.strip('/')}".replace("/", "_")
    name = _NOT_IN_NAMES.sub("_", text)[:_NAME_CHARACTERS]
    if not found.operation_id:
        name = re.sub(r"_{2,}", "_", name).rstrip("_")
    name = re.sub(r"/{2,}", "/", name).strip("/") or found.method.lower()
    try:
        check_name(name)
    except ValueError:
        return f"_{name}"
    return name


def _unique(name: str, taken: set[str], counts: dict[str, int]) -> str:
    unique = name
    while unique in taken:
        counts[name] = counts.get(name, 1) + 1
        unique = f"{name}_{counts[name]}"
    taken.add(unique)
    return unique
