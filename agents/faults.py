"""What an exception of an agent's own code may tell its callers. Logs nothing: its users know the event."""

from __future__ import annotations

from typing import get_args

from ..daemon.dispatch.execution import declared
from ..errors.exceptions import FailureError, OperationError
from ..errors.failures import DomainFailure, Failure
from .editor import EditorAbility, EditorUnavailableError


def declared_failure(exc: BaseException) -> Failure | None:
    """The failure that an exception of an executor or an interceptor stands for.

    None for an exception that callers may learn nothing of, also where the facts of a declared error are not of their types.
    """
    if issubclass(type(exc), FailureError):  # `isinstance` asks the class, which may raise
        assert isinstance(exc, FailureError)
        return exc.failure
    if issubclass(type(exc), EditorUnavailableError):
        assert isinstance(exc, EditorUnavailableError)
        if exc.ability in get_args(EditorAbility):
            text = f"This needs an editor that offers {exc.ability}"
            return DomainFailure("EDITOR_UNAVAILABLE", text, http_status=501)
    if issubclass(type(exc), OperationError):
        assert isinstance(exc, OperationError)
        return declared(exc)
    return None
