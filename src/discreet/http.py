"""Serves agents and services as an ASGI app, for uvicorn, or mounted into FastAPI or Starlette: `discreet.http.asgi(agent)`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agents.agent import Agent
    from .daemon.operations.access import IdentityProvider
    from .daemon.operations.service import Service
    from .gateway.mounted import MountedGateway

_OF_THE_SERVER = frozenset(
    {"apps", "backend", "grpc", "http", "http_cert", "http_key", "http_max_connections", "no_stdio", "reload"}
)
"""Settings of which the server that serves the app decides."""


def asgi(*hosted: Service | Agent, provider: IdentityProvider | None = None, **settings: Any) -> MountedGateway:
    """Return an ASGI app that serves these services, and at most one agent.

    The settings are those of docs/settings.md with `_` for `-`. The environment and the settings file fill in the others, unless
    `isolated=True`; `config` names another file. `provider` identifies callers; it replaces the settings for tokens. Without a
    provider and tokens, only callers on this machine are answered, unless `http_open` is true.

    Logs are scrubbed and go to the place that the settings name. The app never writes to stdout.

    Raises `TypeError` for an unknown setting, and for one that belongs to the server that runs the app. Raises
    `DeclarationError` for a wrong value, and for services that can't be served together.
    """
    from .daemon.apps import AppError, hosted_objects

    try:
        from .gateway.mounted import mounted
    except ModuleNotFoundError as exc:
        raise ImportError(f"discreet.http needs {exc.name}: pip install 'discreet[http]'") from None
    from .daemon.operations.service import DeclarationError
    from .daemon.settings import SettingsFile, UsageError, resolve_here
    from .daemon.settings.keywords import from_keywords, in_keywords

    if not_here := settings.keys() & _OF_THE_SERVER:
        raise TypeError(f"{', '.join(sorted(not_here))}: that is for the server to decide, which serves the app")
    file = SettingsFile(settings.pop("config", None), isolated=settings.pop("isolated", False))
    try:
        resolved = resolve_here(from_keywords(settings), file)
        return mounted(hosted_objects(hosted), resolved.settings, provider, os.environ)
    except (AppError, UsageError) as exc:
        raise DeclarationError(in_keywords(str(exc))) from exc
