"""Agents and services as an ASGI app: `app = discreet.http.asgi(agent)`, for uvicorn, or mounted into FastAPI or Starlette."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agents.agent import Agent
    from .daemon.operations.access import IdentityProvider
    from .daemon.operations.service import Service
    from .gateway.mounted import MountedGateway

_OF_THE_SERVER = frozenset(
    {"apps", "backend", "http", "http_cert", "http_key", "http_max_connections", "no_stdio", "reload"}
)
"""Settings of which the server that serves the app decides."""


def asgi(*hosted: Service | Agent, provider: IdentityProvider | None = None, **settings: Any) -> MountedGateway:
    """The ASGI app that serves these services, and at most one agent, to clients of A2A.

    The settings are those of docs/settings.md with `_` for `-`. What is not given comes from the environment and the settings
    file; with `isolated=True` from neither, and `config` names another file. `provider` tells callers apart, instead of
    tokens. Without either only callers on this machine are answered, unless `http_open` is true.

    Logs go where the settings say, scrubbed; stdout is left alone.

    Raises `TypeError` for an unknown setting or one that the server decides, and `DeclarationError` for a wrong value or for
    what can't be hosted.
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
