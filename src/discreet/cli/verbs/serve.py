"""`discreet serve`: resolves the settings, then runs the daemon. Imports nothing else before the first reply."""

import argparse
import os

from ...daemon.process.reexec import take
from ...daemon.settings import Resolved, UsageError, resolve_settings
from ...daemon.settings.flags import add_setting_flags, from_flags


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of the daemon, from the table of settings."""
    add_setting_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until the daemon ends. Returns its exit status; raises `UsageError` before anything is served."""
    handed = take()  # first: a usage error must reach the real stderr
    settings = resolved(args).settings
    from ...daemon.server import check, serve  # late: a usage error need not wait for the whole daemon

    return check(settings) if isinstance(handed, str) else serve(settings, handed)


def resolved(args: argparse.Namespace) -> Resolved:
    """Return the settings from these flags, the environment and the working directory. Raises `UsageError`."""
    try:
        directory = os.getcwd()
    except OSError as exc:
        raise UsageError("the working directory no longer exists") from exc
    return resolve_settings(from_flags(args), os.environ, directory)
