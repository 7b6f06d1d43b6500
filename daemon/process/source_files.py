"""Which files the services are made of, and whether they have changed. Looks only at modules that are loaded; imports none."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import TypeAlias, final

from ..settings import Settings
from ..settings.reference import FileReference, ModuleReference, read_reference

Stamp: TypeAlias = tuple[int, int, int] | None
"""Time of the last change in ns, size in bytes, and the file's number: an editor may write a new file. None: it is gone."""

INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of installed packages, which are not watched even below the working directory."""


@final
class SourceFiles:
    """The files of modules below the working directory, below the folders of apps that are files, below `app-dir`, and of
    the packages that the other apps name.
    """

    def __init__(self, settings: Settings, directory: str) -> None:
        apps = [read_reference(app) for app in settings.apps]
        self._packages = frozenset(app.module.partition(".")[0] for app in apps if isinstance(app, ModuleReference))
        folders = [directory, *(os.path.dirname(app.path) for app in apps if isinstance(app, FileReference))]
        folders += [] if settings.app_dir is None else [settings.app_dir]
        self._folders = tuple(os.path.join(folder, "") for folder in folders)

    def stamps(self, known: Mapping[str, Stamp]) -> dict[str, Stamp]:
        """The state of every file by its path: of those in `known`, and of modules that were imported since."""
        return {path: _stamp(path) for path in {*known, *self._files()}}

    def _files(self) -> Iterator[str]:
        for name, module in list(sys.modules.items()):
            path = getattr(module, "__file__", None)
            if isinstance(path, str) and (name.partition(".")[0] in self._packages or self._is_ours(path)):
                yield path

    def _is_ours(self, path: str) -> bool:
        return path.startswith(self._folders) and INSTALLED.isdisjoint(path.split(os.sep))


def differ(before: Mapping[str, Stamp], after: Mapping[str, Stamp]) -> bool:
    """Whether a file that was known before has changed. One that was only just imported has not."""
    return any(after.get(path) != stamp for path, stamp in before.items())


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
