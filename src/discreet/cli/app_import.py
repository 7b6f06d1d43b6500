"""Imports apps for verbs that inspect them. Keeps what apps print off stdout, which holds only the verb's result."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from ..daemon.apps import AppError, services_of
from ..daemon.operations.registry import Registry
from ..daemon.operations.service import DeclarationError
from ..daemon.schemas.documents import Snapshot, snapshot
from ..daemon.settings import Settings, UsageError
from ..framing.stdio_guard import STDERR, STDOUT


def load_snapshot(settings: Settings) -> Snapshot:
    """Import the apps and return the schemas of their external operations. Raises `UsageError` for apps that can't be hosted."""
    with importing_apps():
        return snapshot(Registry(services_of(settings)))


@contextmanager
def importing_apps() -> Iterator[None]:
    """While entered, stdout is stderr: for apps, their C libraries and their child processes.

    Raises `UsageError` in place of `AppError` and `DeclarationError`.
    """
    try:
        with _stdout_to_stderr():
            yield
    except (AppError, DeclarationError) as exc:
        raise UsageError(str(exc)) from exc


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    try:
        saved = os.dup(STDOUT)
    except OSError:  # started with stdout closed
        saved = -1
    if saved >= 0:
        os.dup2(STDERR, STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if saved >= 0:
            if sys.stdout is not None:
                sys.stdout.flush()  # what was printed to the stream object itself
            os.dup2(saved, STDOUT)
            os.close(saved)
