"""Whether metrics can be served. Imports nothing of the extra's library where they can't."""

from __future__ import annotations

from importlib.util import find_spec

from ...daemon.apps import AppError


def check_available() -> None:
    """Raises `AppError`, in one line, where the extra is missing."""
    if find_spec("prometheus_client") is None:
        raise AppError("--http-metrics needs prometheus-client: pip install 'discreet[metrics]'")
