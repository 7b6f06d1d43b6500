"""What an upstream raises where a call of an imported operation fails, and where an import can't be made. Tells nobody."""

from __future__ import annotations

from typing import final

from msgspec import Raw

from ..daemon.operations.service import DeclarationError


@final
class UpstreamError(Exception):
    """The other program has answered with a declared error: its code, and the details as JSON text if it sent any.

    `retry_after_ms` is how long it asks to wait, in milliseconds.
    """

    def __init__(self, code: str, details: Raw | None = None, *, retry_after_ms: int | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.details = details
        self.retry_after_ms = retry_after_ms


class ImportFailed(DeclarationError):
    """Operations can't be imported. The message is one line for the operator: what was asked for, and what is wrong with it."""
