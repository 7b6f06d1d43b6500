"""What a server's error knows beyond its code and its text, in a phrase for people. Raises nothing, decides nothing."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, UnsetType

from ..errors import failures as facts
from ..errors.codes import row_of
from ..errors.wire import NO_CODE, ErrorObject, error_object

SHOWN_CHARACTERS: Final = 1000
"""Of a foreign error's data; the rest is in `RemoteError.data`."""


def phrase(failure: facts.Failure, error: ErrorObject) -> str:
    """The facts of one of the daemon's errors; of any other its number and its data. Empty where there is nothing."""
    own = error_object(failure)
    if own.code == error.code and json_of(own.data) == json_of(error.data):
        return _facts(failure)
    number = "" if error.code in (row_of(failure).code, NO_CODE) else str(error.code)
    data = "" if isinstance(error.data, UnsetType) else bytes(error.data).decode(errors="replace")
    return ", ".join(filter(None, (number, data if len(data) <= SHOWN_CHARACTERS else f"{data[:SHOWN_CHARACTERS]}…")))


def json_of(raw: Raw | UnsetType | None) -> Any:  # JSON
    """The value of a text; None where there is none, or nothing that can be read."""
    try:
        return None if raw is None or isinstance(raw, UnsetType) else msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _facts(failure: facts.Failure) -> str:
    match failure:
        case facts.ParseFailure(reason) | facts.InvalidRequest(reason):
            return reason
        case facts.InvalidParams(param, expected, received, accepted):
            wanted = f"{expected} {', '.join(accepted)}" if accepted else expected
            return f"{param}: expected {wanted}, received {received}"
        case facts.DomainFailure(details=details) if details is not None:
            return bytes(details).decode(errors="replace")
        case facts.Internal(str(code)):
            return code
        case facts.Overloaded(int(after)):
            return f"retry after {after} ms"
        case facts.AgentFailure():
            known = (failure.task_id, failure.current_state, failure.reason, failure.suggestion, *failure.accepted)
            return ", ".join(filter(None, known))
        case _:  # the rest have no facts
            return ""
