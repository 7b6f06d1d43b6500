"""Waits for the services' files to change, and asks for a new program once a check process has loaded the changed code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final, TypeAlias, final

from .daemon.logs import log
from .daemon.process.reexec import CHECK, VARIABLE, Program
from .daemon.settings import Settings
from .daemon.settings.option import FileReference, ModuleReference, read_reference
from .lazy import anyio

# Which files the services are made of, and whether they have changed. Looks only at modules that are loaded; imports none.


Stamp: TypeAlias = tuple[int, int, int] | None
"""Time of the last change in ns, size in bytes, and the file's number: an editor may write a new file. None: it is gone."""

PAGES = (".html", ".htm")
"""The ends of the names of pages, such as those of MCP's apps. Clients read them again where they hear of a reload."""

INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of installed packages, which are not watched even below the working directory."""


@final
class SourceFiles:
    """The files of modules below the working directory, below the folders of apps that are files, below `app-dir`, and of
    the packages that the other apps name. With them the pages (HTML) in the same folders.
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
        folders = set[str]()
        for name, module in list(sys.modules.items()):
            path = getattr(module, "__file__", None)
            if isinstance(path, str) and (name.partition(".")[0] in self._packages or self._is_ours(path)):
                folders.add(os.path.dirname(path))
                yield path
        for folder in folders:
            with suppress(OSError):  # it is gone, or not ours to list
                yield from (os.path.join(folder, each) for each in os.listdir(folder) if each.endswith(PAGES))

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


POLL_SECONDS: Final = 0.5
"""How often files are looked at. Polling also works where no event tells of a change: network and container mounts."""

SETTLE_SECONDS: Final = 0.05
"""Files that don't change for so long have been written to their end."""

CHECK_SECONDS: Final = 30.0
"""How long the changed code may take to be imported."""

CAUSE_CHARS: Final = 500


@final
class Reload:
    """`swap()` asks for the new program; it may have to be asked again, for the stream is not in step at every moment.

    Make it after the services were loaded and before anything is served: changes count from then on.
    """

    def __init__(self, settings: Settings, program: Program, swap: Callable[[], object]) -> None:
        self._sources = SourceFiles(settings, program.directory)
        self._program = program
        self._swap = swap
        self._serving = self._sources.stamps({})
        if not self._serving:
            log.warning("reload.nothing_to_watch")

    async def run(self) -> None:
        """Watch until cancelled. Each state of the files is checked once; a bad one is logged as `reload.failed`."""
        seen = checked = self._serving
        good, pause = False, POLL_SECONDS
        while True:
            await anyio.sleep(pause)
            before, seen = seen, await anyio.to_thread.run_sync(self._sources.stamps, seen)
            pause = SETTLE_SECONDS
            if differ(before, seen):
                continue
            if differ(checked, seen):
                checked, good = seen, await self._could_serve()
                continue  # once more, for the check took its time
            checked = seen
            pause = POLL_SECONDS
            if good:
                self._swap()

    async def _could_serve(self) -> bool:
        fault = await self._check()
        if fault is None:
            log.info("reload.checked")
        else:
            log.error("reload.failed", cause=fault)
        return fault is None

    async def _check(self) -> str | None:
        """Have another process load what would be served; what it said if it can't, without paths and secrets."""
        import subprocess  # late: only a change of the files comes here

        from .errors.redaction import scrub

        environ = {**self._program.environ, VARIABLE: CHECK}
        with anyio.move_on_after(CHECK_SECONDS):
            try:
                done = await anyio.run_process(
                    self._program.command,
                    stdin=subprocess.DEVNULL,
                    check=False,
                    cwd=self._program.directory,
                    env=environ,
                )
            except OSError as exc:  # the interpreter or the directory is gone
                return f"can't be started: {exc.strerror}"
            if done.returncode == 0:
                return None
            said = (done.stdout or done.stderr).decode(errors="backslashreplace").strip()
            last = said.splitlines()[-1] if said else f"status {done.returncode}"
            return scrub(last[:CAUSE_CHARS])
        return f"not loaded within {CHECK_SECONDS:g} s"
