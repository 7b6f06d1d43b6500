"""Which operations of a server are imported, and by which names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from ...daemon.operations.options import check_name
from ...errors.nearest import nearest_hint
from ..arguments import check_matches
from ..failures import ImportFailed
from ..model import Note
from .model import McpImport, McpOperation


class Choice(Struct, frozen=True, array_like=True):
    """The operations whose names fit a pattern of `include`, if there is any, and none of `exclude`. `rename` has new names."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    rename: Mapping[str, str] = {}

    def of(self, imported: McpImport, *, strict: bool = False) -> McpImport:
        """What remains of an import. With `strict` each name in `rename` must be there, and each pattern must fit one;
        else they may come later.

        Raises `ImportFailed` for a new name that is none, or that another operation has.
        """
        names = [operation.name for operation in imported.operations]
        unknown = [name for name in self.rename if name not in names]
        if unknown and strict:
            raise ImportFailed(f"rename: there is no operation {unknown[0]!r}{nearest_hint(unknown[0], names)}")
        if strict:
            for what, patterns in (("include", self.include), ("exclude", self.exclude)):
                check_matches(what, patterns, [self.rename.get(name, name) for name in names], self.rename)
        kept: dict[str, McpOperation] = {}
        notes = list(imported.notes)
        for operation in imported.operations:
            name = self.rename.get(operation.name, operation.name)
            if name != operation.name:
                _check(name, operation.name)
                notes.append(Note(operation.pointer, "renamed", f"it is called {name} here"))
            if (self.include and not _fits(name, self.include)) or _fits(name, self.exclude):
                continue
            if name in kept:
                raise ImportFailed(f"rename: two operations would be called {name!r}")
            kept[name] = replace(operation, name=name)
        return replace(imported, operations=tuple(kept.values()), notes=tuple(notes))


def _check(name: str, old: str) -> None:
    try:
        check_name(name)
    except ValueError as exc:
        raise ImportFailed(f"rename: {old!r}: {exc}") from None


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
