"""Waits for the services' files to change, and asks for a new program once a check process has loaded the changed code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from ...lazy import anyio
from ..logs import log
from .reexec import CHECK, VARIABLE, Program
from .source_files import SourceFiles, differ

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

    def __init__(self, sources: SourceFiles, program: Program, swap: Callable[[], object]) -> None:
        self._sources = sources
        self._program = program
        self._swap = swap
        self._serving = sources.stamps({})
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

        from ...errors.redaction import scrub

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
