"""How outcomes of operations are written: results as they are, failures as one error object with the status of each."""

from __future__ import annotations

from typing import Final, final

from ...errors.failures import Failure, OperationTypeMismatch
from ...errors.wire import encode_call_error
from ..answers import Answer, headers_of, status_of

COMPLETED: Final = "completed"
"""The event that tells that a subscription has ended by itself: without it the connection was lost."""

NO_CONTENT: Final = Answer(204, media_type="")


@final
class OperationWriter:
    """Answers calls of one operation. `has_result` is false where its result is always null."""

    def __init__(self, *, has_result: bool = True) -> None:
        self.fails_in_stream = False
        self.failure_event = "error"
        self.completion_event = COMPLETED
        self._has_result = has_result

    def result(self, result: bytes) -> Answer:
        return Answer(200, result) if self._has_result else NO_CONTENT

    def failure(self, failure: Failure) -> Answer:
        return Answer(status_of(failure), encode_call_error(failure), headers=headers_of(failure))

    def event(self, value: bytes) -> bytes:
        return value

    def last_event(self, failure: Failure) -> bytes:
        return encode_call_error(failure)


def not_allowed(allowed: str, hint: str = "") -> Answer:
    """The answer to a verb that the operation does not take."""
    failure = OperationTypeMismatch(hint or f"the path takes {allowed}")
    return Answer(405, encode_call_error(failure), headers={"allow": allowed})
