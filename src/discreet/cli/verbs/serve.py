"""`discreet serve`: resolves the settings, then runs the daemon. Imports nothing else before the first reply."""

import argparse
import os
from collections.abc import Mapping

from ...daemon.process.reexec import take
from ...daemon.settings import Resolved, SettingsFile, UsageError, resolve_settings
from ...daemon.settings.flags import add_setting_flags, file_from_flags, from_flags
from ...daemon.settings.option import RawValue
from ..output import write_stderr


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
    """Return the settings from these flags, the environment and the working directory. Raises `UsageError`.

    What a file sets that was merely found, and may not set it, is one line on stderr.
    """
    return with_warning(resolve_here(from_flags(args), file_from_flags(args)))


def with_warning(found: Resolved) -> Resolved:
    """Return the same, after its line on stderr, if it has one."""
    if found.ignored:
        write_stderr(found.ignored)
    return found


def resolve_here(flags: Mapping[str, RawValue], file: SettingsFile) -> Resolved:
    """Return the same as `resolved`, from flags that have been read. Prints nothing."""
    try:
        directory = os.getcwd()
    except OSError as exc:
        raise UsageError("the working directory no longer exists") from exc
    return resolve_settings(flags, os.environ, directory, file)
