"""The errors of ACP's own methods, and the numbers that authors may not use there."""

from __future__ import annotations

from typing import Final

from ....errors.exceptions import OperationError

AUTHENTICATION_REQUIRED: Final = -32000
RESERVED: Final = frozenset({AUTHENTICATION_REQUIRED, -32800})
"""What these numbers mean is fixed by ACP: the user must sign in, and the request was cancelled."""


class SessionNotFound(OperationError, code="SESSION_NOT_FOUND", number=-32002, http_status=404):
    """There is no such session."""


class TooManySessions(OperationError, code="TOO_MANY_SESSIONS", http_status=429):
    """Too many sessions are open: close some."""


class AuthenticationFailed(OperationError, code="AUTHENTICATION_FAILED", number=-32000, http_status=401):
    """Signing in has failed."""
