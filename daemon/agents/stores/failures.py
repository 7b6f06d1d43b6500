"""Logs that a store failed. A failure that lasts is logged once: every commit and every poll would repeat it."""

from __future__ import annotations

from ...logs import log
from .interface import StoreError


def log_failure(exc: BaseException) -> None:
    """Log `store.failed`, unless the store has raised this before."""
    if not (isinstance(exc, StoreError) and exc.repeated):
        log.error("store.failed", exc=exc)
