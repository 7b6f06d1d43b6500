"""Serves the declarations of a program of one's own: `if __name__ == "__main__": discreet.serve(shop)`."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from .agents.agent import Agent
    from .daemon.operations.service import Service


def serve(*hosted: Service | Agent, **settings: Any) -> NoReturn:  # fields of `Settings`, each of its own type
    """Serve these services, and at most one agent, on stdin and stdout until the end. Then end the process.

    The settings are those of docs/settings.md with `_` for `-`. The environment and the settings file fill in the others, as
    for `discreet serve`, unless `isolated=True`; `config` names another file. `apps` and `reload` are for the command line
    alone. `store` may also be an object: a `TaskStore`.

    From the first line of this call on, stdout carries frames alone, and printed text goes to the log. Text that was printed
    before has gone to the client.

    Raises `SystemExit` with the exit status: 0, 1, or 2 after one line on stderr for a wrong setting or declaration.
    """
    from .garbage import begin_start

    begin_start()
    from .cli.output import with_warning, write_stderr
    from .daemon.apps import AppError, Hosted, hosted_objects
    from .daemon.lifecycle import EXIT_USAGE
    from .daemon.server import serve as serve_stdio
    from .daemon.settings import SettingsFile, UsageError, resolve_here
    from .daemon.settings.keywords import from_keywords, in_keywords
    from .daemon.settings.resolution import require_listener

    try:
        if not_here := settings.keys() & {"apps", "reload"}:
            raise UsageError(f"{', '.join(sorted(not_here))}: only for the command line, `discreet serve`")
        if _in_event_loop():
            raise UsageError(
                "serve() runs an event loop of its own: call it outside of async code, not under asyncio.run()"
            )
        if threading.current_thread() is not threading.main_thread():
            raise UsageError("serve() takes the process's signals: call it in the main thread")
        file = SettingsFile(settings.pop("config", None), isolated=settings.pop("isolated", False))
        store = None if isinstance(settings.get("store", ""), str) else settings.pop("store")
        flags = from_keywords(settings)
        apps = hosted_objects(hosted)
        resolved = with_warning(resolve_here(flags, file))
        require_listener(flags, resolved.settings)
    except (AppError, UsageError, TypeError) as exc:  # a `TypeError` of `from_keywords`
        write_stderr(in_keywords(str(exc)))
        sys.exit(EXIT_USAGE)
    hosting = Hosted(apps.services, apps.agent, store)
    sys.exit(serve_stdio(resolved.settings, hosted=hosting))


def _in_event_loop() -> bool:
    """Whether a loop runs in this thread. Imports none: who runs one has imported it."""
    asyncio, trio = sys.modules.get("asyncio.events"), sys.modules.get("trio.lowlevel")
    return bool(asyncio and asyncio._get_running_loop()) or bool(trio and trio.in_trio_run())
