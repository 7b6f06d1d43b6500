"""`discreet serve`: resolves the settings, then runs the daemon. Imports nothing else before the first reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...daemon.process.reexec import take
from ...daemon.settings import Resolved, SettingsFile, resolve_here
from ...daemon.settings.option import RawValue
from ...daemon.settings.resolution import require_listener
from ...garbage import begin_start

if TYPE_CHECKING:
    import argparse


def run(args: argparse.Namespace) -> int:
    """Serve until the daemon ends. Returns its exit status; raises `UsageError` before anything is served."""
    from ...flags import file_from_flags, from_flags  # late, as above

    return _serve(from_flags(args), file_from_flags(args))


def serve_apps(apps: Sequence[str]) -> int:
    """Do the same for a command line without flags, which needs no parser."""
    return _serve({"apps": RawValue([*apps], "APP")} if apps else {}, SettingsFile())


def _serve(values: Mapping[str, RawValue], file: SettingsFile) -> int:
    begin_start()
    handed = take()  # before the settings: a usage error must reach the real stderr
    settings = _warned(resolve_here(values, file)).settings
    require_listener(values, settings)
    from ...daemon.server import check, serve  # late: a usage error need not wait for the whole daemon

    return check(settings) if isinstance(handed, str) else serve(settings, handed)


def resolved(args: argparse.Namespace) -> Resolved:
    """Return the settings from these flags, the environment and the working directory. Raises `UsageError`.

    What a file sets that was merely found, and may not set it, is one line on stderr.
    """
    from ...flags import file_from_flags, from_flags  # late, as above

    return _warned(resolve_here(from_flags(args), file_from_flags(args)))


def _warned(found: Resolved) -> Resolved:
    if not found.ignored:
        return found
    from ..output import with_warning  # late: most find nothing to warn of

    return with_warning(found)
