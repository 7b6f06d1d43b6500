"""What goes wrong with an import: at its declaration, and in a call of one of its operations."""

from __future__ import annotations

from msgspec import Raw


class ImportFailed(Exception):
    """One line."""


class UpstreamError(Exception):
    """A declared error."""

    def __init__(self, code: str, details: Raw | None = None, retry_after_ms: int | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.details = details
        self.retry_after_ms = retry_after_ms
