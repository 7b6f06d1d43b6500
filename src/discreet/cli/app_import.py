"""Imports apps for verbs that inspect them. Keeps what apps print off stdout, which holds only the verb's result."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from ..daemon.apps import AppError, Hosted, hosted_of
from ..daemon.hosting import access_of
from ..daemon.operations.registry import Registry
from ..daemon.operations.service import DeclarationError
from ..daemon.plugins import PluginError
from ..daemon.settings import Settings, UsageError
from ..framing.stdio_guard import STDERR, STDOUT
from ..gateway.openapi.document import about, document_text, openapi_document
from ..schemas.documents import Snapshot, snapshot, snapshot_text
from ..version import __version__


def load_contract(settings: Settings, *, openapi: bool = False) -> tuple[Snapshot, bytes]:
    """Import the apps and return the schemas of their external operations, and a text for a file: of the snapshot, or of the
    OpenAPI document of the same operations. Raises `UsageError` for apps that can't be hosted.
    """
    with importing_apps():
        hosted = hosted_of(settings)
        operations = Registry(hosted.services)
        current = snapshot(operations)
        return current, _document_text(hosted, operations, settings) if openapi else snapshot_text(current)


def _document_text(hosted: Hosted, operations: Registry, settings: Settings) -> bytes:
    from ..agents.agent import Agent  # late: only OpenAPI documents tell of it

    provider = access_of(settings, hosted.agent).provider
    card = hosted.agent.card if isinstance(hosted.agent, Agent) else None
    told = about(hosted.services, card, provider, version=__version__, url=settings.http_url or "/")
    return document_text(openapi_document((spec for spec in operations if spec.visibility == "external"), told))


@contextmanager
def importing_apps() -> Iterator[None]:
    """While entered, stdout is stderr: for apps, their C libraries and their child processes.

    Raises `UsageError` in place of `AppError` and `DeclarationError`.
    """
    try:
        with _stdout_to_stderr():
            yield
    except (AppError, DeclarationError, PluginError) as exc:
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
