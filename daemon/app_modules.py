"""Imports the modules of apps, by name or by file. The only place that adds to what is importable.

A folder is never put on `sys.path`. A finder behind all others serves what stood in the folder when it was added. So no
file there takes the place of an installed module, packages that look for plug-ins don't find any there, and a file that a
caller writes later is not importable.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Final, final

PACKAGE_FILE: Final = "__init__.py"


class UnusableFile(Exception):
    """A file can't be an app; the message says why, in a few words."""


@final
class FolderFinder:
    """Finds modules with these names in one folder. Stands at the end of `sys.meta_path`."""

    def __init__(self, folder: str, names: Iterable[str]) -> None:
        self._folder = folder
        self._names = frozenset(names)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module, if it is one of the folder's own; `path` is that of a package, whose modules others find."""
        return PathFinder.find_spec(name, [self._folder]) if path is None and name in self._names else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FolderFinder) and (self._folder, self._names) == (other._folder, other._names)

    __hash__ = None  # type: ignore[assignment]


def add_folder(folder: str) -> None:
    """Make the modules of a folder importable that nothing else provides. Raises `UnusableFile` for one that can't be read."""
    try:
        _add(FolderFinder(folder, {entry.partition(".")[0] for entry in os.listdir(folder)}))
    except OSError:
        raise UnusableFile("its folder can't be read") from None


def import_file(path: str) -> ModuleType:
    """The module of a file, and what stands beside it becomes importable; of a package's file, only the package.

    `path` is absolute. Raises `UnusableFile`, and whatever the module raises.
    """
    if not os.path.isfile(path):
        from .settings.meant_app import nearest_file  # late: only errors need it

        raise UnusableFile(f"there is no such file{nearest_file(_shown(path))}")
    folder, parts = _package_of(path)
    if any("." in part for part in parts):
        raise UnusableFile("a name with a dot can't be imported")
    if len(parts) == 1 and os.path.basename(path) != PACKAGE_FILE:
        add_folder(folder)
        return import_module(parts[0]) if _provides(parts[0], path) else _import_apart(parts[0], path)
    _add(FolderFinder(folder, parts[:1]))
    if not _provides(parts[0], os.path.join(folder, parts[0], PACKAGE_FILE)):
        raise UnusableFile(f"its package has the name of another module, {parts[0]}")
    return import_module(".".join(parts))


def _shown(path: str) -> str:
    """The path from the working directory, if it leads down from there."""
    try:
        shorter = os.path.relpath(path)
    except (OSError, ValueError):  # the directory is gone, or on another drive
        return path
    return path if shorter.startswith(os.pardir) else os.path.join(os.curdir, shorter)


def _add(finder: FolderFinder) -> None:
    if finder not in sys.meta_path:
        sys.meta_path.append(finder)


def _package_of(path: str) -> tuple[str, list[str]]:
    """The folder from which the file is imported, and the names on the way to it: those of its packages, and its own."""
    folder, file = os.path.split(path)
    parts = [] if file == PACKAGE_FILE else [file.removesuffix(".py")]
    while os.path.isfile(os.path.join(folder, PACKAGE_FILE)) and os.path.basename(folder):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    return folder, parts or [file.removesuffix(".py")]


def _provides(name: str, path: str) -> bool:
    """Whether importing the name would load this very file."""
    from importlib.util import find_spec  # late: apps with names do without

    try:
        spec = find_spec(name)
    except ValueError:  # a module without a spec, such as `__main__`
        return False
    return spec is not None and _is(spec.origin, path)


def _import_apart(name: str, path: str) -> ModuleType:
    """The file as a module of a name that is free. Whoever imports its own name gets the module that has it already."""
    from importlib.util import find_spec, module_from_spec, spec_from_file_location

    number = 2
    while (known := sys.modules.get(f"{name}_{number}")) is not None or find_spec(f"{name}_{number}") is not None:
        if known is not None and _is(known.__file__, path):
            return known
        number += 1
    spec = spec_from_file_location(f"{name}_{number}", path)
    if spec is None or spec.loader is None:
        raise UnusableFile("it is no Python module")
    module = sys.modules[spec.name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(spec.name, None)
        raise
    return module


def _is(found: str | None, path: str) -> bool:
    try:
        return found is not None and os.path.samefile(found, path)
    except OSError:  # such as a built-in module
        return False
