"""What an upstream raises for a declared error of its operation."""

from __future__ import annotations

from msgspec import Raw


class UpstreamError(Exception):
    """The operation failed with an error that it declares. `details` are its JSON, None where there are none."""

    def __init__(self, code: str, details: Raw | None = None, retry_after_ms: int | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.details = details
        self.retry_after_ms = retry_after_ms
