"""`discreet schema`: prints what the operations promise, or tells what a change of them breaks."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from ...daemon.apps import AppError, services_of
from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...daemon.operations.registry import Registry
from ...daemon.operations.service import DeclarationError
from ...daemon.printable import printable
from ...daemon.schemas.compatibility import additions, breaking_changes
from ...daemon.schemas.documents import Snapshot, read_snapshot, snapshot, snapshot_text
from ...daemon.settings import Settings, UsageError
from ...daemon.settings.flags import add_setting_flags
from ..output import complain, out
from .serve import resolved

_STDOUT, _STDERR = 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `serve`, whose operations are meant, and what to do with the snapshot."""
    parser.add_argument(
        "--check", metavar="FILE", help="compare with the snapshot in FILE; status 1 if callers may break"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the snapshot to FILE, not to stdout")
    add_setting_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print the snapshot, or write or check it. Raises `UsageError` for apps that can't be hosted or an unreadable FILE.

    The apps are imported. What they print then goes to stderr.
    """
    settings = resolved(args).settings
    kept = None if args.check is None else _read(args.check)
    with stdout_is_stderr():
        current = _snapshot(settings)
    if args.output is not None and not write_file(args.output, snapshot_text(current)):
        return EXIT_FAILED
    if kept is not None:
        return _report(kept, current)
    if args.output is None:
        out(snapshot_text(current).decode().rstrip("\n"))
    return EXIT_OK


def _snapshot(settings: Settings) -> Snapshot:
    try:
        return snapshot(Registry(services_of(settings)))
    except (AppError, DeclarationError) as exc:
        raise UsageError(str(exc)) from exc


def _report(old: Snapshot, new: Snapshot) -> int:
    broken = breaking_changes(old, new)
    for change in broken:
        complain(str(change))
    for change in additions(old, new):
        out(printable(str(change)))
    return EXIT_FAILED if broken else EXIT_OK


def _read(path: str) -> Snapshot:
    try:
        with open(path, "rb") as file:
            return read_snapshot(file.read())
    except OSError as exc:
        raise UsageError(f"--check: {path}: {os.strerror(exc.errno or 0)}") from exc
    except ValueError as exc:
        raise UsageError(f"--check: {path}: {exc}") from exc


def write_file(path: str, text: bytes) -> bool:
    """Whether the file could be written; if not, one line on stderr has said why."""
    try:
        with open(path, "wb") as file:
            file.write(text)
    except OSError as exc:
        complain(f"--output: {path}: {os.strerror(exc.errno or 0)}")
        return False
    return True


@contextmanager
def stdout_is_stderr() -> Iterator[None]:
    """While apps are imported, whatever they, their C libraries or their children print goes to stderr."""
    try:
        kept = os.dup(_STDOUT)
    except OSError:  # started with stdout closed
        kept = -1
    if kept >= 0:
        os.dup2(_STDERR, _STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if kept >= 0:
            if sys.stdout is not None:
                sys.stdout.flush()  # what was printed to the object itself
            os.dup2(kept, _STDOUT)
            os.close(kept)
