"""`discreet schema`: prints the schemas of the operations, or reports the changes that break callers."""

import argparse
import os

from ...compatibility.changes import additions, breaking_changes
from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...daemon.settings import UsageError
from ...errors.printable import printable
from ...gateway.openapi.snapshot import is_openapi, read_openapi
from ...schemas.documents import Snapshot, read_snapshot
from ..app_import import load_contract
from ..output import require_stdout, write_file, write_stderr, write_stdout
from .serve import resolved


def run(args: argparse.Namespace) -> int:
    """Print the snapshot or the document, or write or check it. Raises `UsageError` for apps that can't be hosted or an
    unreadable FILE.

    Imports the apps. What they print goes to stderr.
    """
    if args.output is None and args.check is None:
        require_stdout()
    settings = resolved(args).settings
    old = None if args.check is None else _read(args.check)
    current, text = load_contract(settings, openapi=args.openapi)
    if not current.operations:
        write_stderr(
            "there are no operations, so the document is empty; an agent is described by its card: discreet card"
        )
    if args.output is not None and not write_file(args.output, text):
        return EXIT_FAILED
    if old is not None:
        return _report(old, current)
    if args.output is None:
        write_stdout(text.decode().rstrip("\n"))
    return EXIT_OK


def _report(old: Snapshot, new: Snapshot) -> int:
    broken = breaking_changes(old, new)
    for change in broken:
        write_stderr(str(change))
    for change in additions(old, new):
        write_stdout(printable(str(change)))
    return EXIT_FAILED if broken else EXIT_OK


def _read(path: str) -> Snapshot:
    try:
        with open(path, "rb") as file:
            text = file.read()
        return read_openapi(text) if is_openapi(text) else read_snapshot(text)
    except OSError as exc:
        raise UsageError(f"--check: {path}: {os.strerror(exc.errno or 0)}") from exc
    except ValueError as exc:
        raise UsageError(f"--check: {path}: {exc}") from exc
