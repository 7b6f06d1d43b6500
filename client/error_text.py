"""Describes a server's error beyond its code and message, in a phrase for people. Raises nothing, decides nothing."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, UnsetType

from ..errors import failures
from ..errors.codes import row_of
from ..errors.printable import cut, printable
from ..errors.wire import NO_CODE, ErrorObject, error_object

SHOWN_CHARACTERS: Final = 1000
"""How much of each text of a server's error is shown; `RemoteError` has all of it."""


def describe(failure: failures.Failure, error: ErrorObject) -> str:
    """The facts of one of the daemon's errors; the number and the data of any other. Empty when there is nothing to say."""
    version: failures.A2AVersion | None = "1.0" if isinstance(decode_json(error.data), list) else None
    own = error_object(failure, version=version)
    if own.code == error.code and decode_json(own.data) == decode_json(error.data):
        return cut(_facts(failure), SHOWN_CHARACTERS)
    number = "" if error.code in (row_of(failure).code, NO_CODE) else str(error.code)
    data = "" if isinstance(error.data, UnsetType) else bytes(error.data).decode(errors="replace")
    return ", ".join(filter(None, (number, cut(data, SHOWN_CHARACTERS))))


def shown(line: str) -> str:
    """A line that a server wrote, for a message of one's own: without secrets, on one line, and not too long."""
    from ..errors.redaction import scrub  # late: only failures need it

    return printable(cut(scrub(line), SHOWN_CHARACTERS))


def decode_json(raw: Raw | UnsetType | None) -> Any:  # JSON
    """The value of a JSON text; None when there is no text, or no value can be read from it."""
    try:
        return None if raw is None or isinstance(raw, UnsetType) else msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _facts(failure: failures.Failure) -> str:
    match failure:
        case failures.ParseFailure(reason) | failures.InvalidRequest(reason):
            return reason
        case failures.InvalidParams(param, expected, received, accepted):
            listed = (
                value if isinstance(value, str) else msgspec.json.encode(value).decode() for value in accepted or ()
            )
            wanted = f"{expected} {', '.join(listed)}" if accepted else expected
            return f"{param}: expected {wanted}, received {received}"
        case failures.DomainFailure(details=details) if details is not None:
            return bytes(details).decode(errors="replace")
        case failures.Internal(str(code)):
            return code
        case failures.Overloaded(int(after)) | failures.Unavailable(int(after)):
            return f"retry after {after} ms"
        case failures.AgentFailure():
            at = (failure.task_id, failure.current_state, failure.completed_at)
            return ", ".join(filter(None, (*at, failure.reason, failure.suggestion, *failure.accepted)))
        case _:  # the others have no facts
            return ""
