"""Makes the host of what the settings name, and keeps its tasks. What is wrong with either is one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors.redaction import load_environment
from ..version import __version__
from .apps import AppError, Hosted, hosted_of
from .credentials import access_of, credentials_of
from .host import Host
from .logs import log
from .settings import Settings
from .settings.option import MEMORY


def host_of(settings: Settings, hosted: Hosted | None = None) -> Host:
    """Host this, or what these settings name. Raises `AppError` or `DeclarationError`, one line for all that is wrong."""
    if hosted is None:
        hosted = hosted_of(settings)
    else:
        load_environment(os.environ)
    return Host(
        hosted.services,
        settings,
        version=__version__,
        access=access_of(settings),
        credentials=credentials_of(settings, hosted.services),
        agent=hosted.agent,
    )


@contextmanager
def opened_store(host: Host) -> Iterator[None]:
    """Keep the agent's tasks during the block. Raises `AppError`, in one line, where the store can't be used."""
    if host.settings.store == MEMORY:
        yield
        return
    from .agents.stores.interface import StoreError  # late: only who chose a store pays for it

    try:
        host.agent.open_store()
    except StoreError as exc:
        raise AppError(f"--store: {exc}") from None
    try:
        yield
    finally:
        try:
            host.agent.close_store()
        except StoreError as exc:
            log.error("store.failed", exc=exc)
