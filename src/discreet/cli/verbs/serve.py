"""`discreet serve`: resolves the settings, then runs the daemon. Imports nothing else before the first reply."""

import argparse

from ...daemon.process.collector import begin_start
from ...daemon.process.reexec import take
from ...daemon.settings import Resolved, resolve_here
from ...daemon.settings.flags import add_setting_flags, file_from_flags, from_flags
from ...daemon.settings.resolution import require_listener
from ..output import with_warning


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of the daemon, from the table of settings."""
    add_setting_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until the daemon ends. Returns its exit status; raises `UsageError` before anything is served."""
    begin_start()
    handed = take()  # before the settings: a usage error must reach the real stderr
    settings = resolved(args).settings
    require_listener(from_flags(args), settings)
    from ...daemon.server import check, serve  # late: a usage error need not wait for the whole daemon

    return check(settings) if isinstance(handed, str) else serve(settings, handed)


def resolved(args: argparse.Namespace) -> Resolved:
    """Return the settings from these flags, the environment and the working directory. Raises `UsageError`.

    What a file sets that was merely found, and may not set it, is one line on stderr.
    """
    return with_warning(resolve_here(from_flags(args), file_from_flags(args)))
