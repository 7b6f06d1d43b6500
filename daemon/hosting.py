"""From settings to what is served: the host of the apps that they name, and the store that it keeps open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors.redaction import load_environment
from ..version import __version__
from .apps import AppError, Hosted, hosted_of
from .credentials import access_of, checked_provider, credentials_of
from .host import Host
from .hosted_agent import AgentDeclaration
from .logs import AnyLevel, LogSettings
from .operations.access import PARENT, Access, IdentityProvider
from .settings import Settings


def build_host(settings: Settings, hosted: Hosted | None = None, provider: IdentityProvider | None = None) -> Host:
    """Host this, or what these settings name. `provider` tells callers apart, instead of what the settings name.

    Raises `AppError` or `DeclarationError`, one line for all that is wrong.
    """
    if hosted is None:
        hosted = hosted_of(settings)
    else:
        load_environment(os.environ)
    return Host(
        hosted.services,
        settings,
        version=__version__,
        access=hosted_access(settings, hosted.agent)
        if provider is None
        else Access(PARENT, checked_provider(provider)),
        credentials=credentials_of(settings, hosted.services),
        agent=hosted.agent,
        store=hosted.store,
    )


def hosted_access(settings: Settings, agent: AgentDeclaration | None) -> Access:
    """How callers are told apart where this agent is hosted. Raises as `access_of` does."""
    return access_of(settings, api_keys=agent is not None and agent.takes_api_keys)


@contextmanager
def opened_store(host: Host) -> Iterator[None]:
    """Keep the agent's tasks during the block. Raises `AppError`, in one line, where the store can't be used."""
    if not host.agent.durable:
        if host.settings.role != "both":
            raise AppError(
                f"--role {host.settings.role} needs a store that other daemons share:"
                " --store sqlite:PATH, postgresql://... or redis://..."
            )
        yield
        return
    host.agent.open_store()
    try:
        yield
    finally:
        host.agent.close_store()


def log_settings(settings: Settings, level: AnyLevel | None = None) -> LogSettings:
    """How logs are written. `level` is one that was set later."""
    return LogSettings(
        level=level or settings.log_level,
        format=settings.log_format,
        file=settings.log_file,
        color=False if settings.no_color else None,
    )
