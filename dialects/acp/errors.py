"""The errors of ACP's own methods, and what authors may not declare there: its methods and its numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...daemon.operations.service import DeclarationError
from ...daemon.operations.spec import OperationSpec
from ...errors.codes import ACP_RESERVED
from ...errors.exceptions import OperationError

AUTHENTICATION_REQUIRED: Final = -32000

OWN_METHODS: Final = frozenset(
    {
        "initialize",
        "authenticate",
        "session/new",
        "session/load",
        "session/resume",
        "session/close",
        "session/list",
        "session/set_mode",
        "session/set_config_option",
        "session/prompt",
        "session/cancel",
    }
)
"""Methods that the dialect answers itself."""


def check_declarations(specs: Iterable[OperationSpec]) -> None:
    """Raises `DeclarationError` for an operation that ACP does not allow."""
    for spec in specs:
        if spec.name in OWN_METHODS:
            raise DeclarationError(f"operation {spec.name}: ACP's session answers it; choose another name")
        for error in spec.errors:
            if error.definition.number in ACP_RESERVED:
                raise DeclarationError(
                    f"operation {spec.name}: {error.__name__} has the number {error.definition.number}, whose"
                    " meaning ACP fixes; choose another"
                )


class SessionNotFound(OperationError, code="SESSION_NOT_FOUND", number=-32002, http_status=404):
    """There is no such session."""


class TooManySessions(OperationError, code="TOO_MANY_SESSIONS", http_status=429):
    """Too many sessions are open: close some."""


class AuthenticationFailed(
    OperationError, code="AUTHENTICATION_FAILED", number=AUTHENTICATION_REQUIRED, http_status=401
):
    """Signing in has failed."""
