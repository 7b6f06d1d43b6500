"""`discreet serve`: settings, then the daemon. Nothing else is imported on the way to the first reply."""

import argparse
import os
from collections.abc import Mapping

from ...daemon.process.reexec import take
from ...daemon.settings import Resolved, SettingsFile, UsageError, resolve_settings
from ...daemon.settings.flags import add_setting_flags, file_from_flags, from_flags
from ...daemon.settings.option import RawValue
from ..output import complain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of the daemon, from the table of settings."""
    add_setting_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until the end. Raises `UsageError` before anything is served."""
    handed = take()  # first: a line of usage has to reach the real stderr
    settings = resolved(args).settings
    from ...daemon.server import check, serve  # late: a usage error need not wait for the whole daemon

    return check(settings) if isinstance(handed, str) else serve(settings, handed)


def resolved(args: argparse.Namespace) -> Resolved:
    """The settings of this process, in its environment and its working directory. Raises `UsageError`.

    What a file was found to set that it may not is one line on stderr.
    """
    return with_warning(resolve_here(from_flags(args), file_from_flags(args)))


def with_warning(found: Resolved) -> Resolved:
    """The same, after its line on stderr, if it has one."""
    if found.ignored:
        complain(found.ignored)
    return found


def resolve_here(flags: Mapping[str, RawValue], file: SettingsFile) -> Resolved:
    """As `resolved`, from flags that have been read, and without a word."""
    try:
        directory = os.getcwd()
    except OSError as exc:
        raise UsageError("the working directory is gone") from exc
    return resolve_settings(flags, os.environ, directory, file)
