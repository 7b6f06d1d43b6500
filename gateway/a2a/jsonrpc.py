"""Reads one HTTP body as one JSON-RPC request of A2A, and writes its answers (A2A 1.0, section 9). Runs nothing."""

from __future__ import annotations

from typing import Final, final

from ...daemon.rpc import envelope
from ...daemon.rpc.envelope import NULL_ID, Call, NoJson, Refused
from ...errors.codes import row_of
from ...errors.failures import (
    A2AVersion,
    AuthenticationRequired,
    Failure,
    InsufficientPermissions,
    InvalidRequest,
    Overloaded,
    Unavailable,
)
from ...errors.wire import encode_error_response
from ..answers import TRANSPORT_STATUSES, Answer, headers_of


def read_call(body: bytes, params: dict[str, str]) -> Call | tuple[bytes, Failure]:
    """The call, with these service parameters and no others; or the id to answer to, and what is wrong.

    Every request has an answer here: one without an id is answered to the id null.
    """
    message = envelope.decode(body)
    match message:
        case Call():
            message.metadata = params
            if message.id is None:
                message.id = NULL_ID
            return message
        case Refused(call_id, failure):
            return call_id, failure
        case NoJson(parse_failure):
            return NULL_ID, parse_failure
        case _:  # a response, or a notification that is broken
            return NULL_ID, InvalidRequest("malformed-envelope")


@final
class JsonRpcWriter:
    """Answers one JSON-RPC request, in a version of A2A."""

    def __init__(self, call_id: bytes, version: A2AVersion) -> None:
        self._id = call_id
        self._version: Final[A2AVersion] = version
        self.fails_in_stream = version == "0.3"
        self.failure_event = ""
        self.completion_event = ""

    def result(self, result: bytes) -> Answer:
        return Answer(200, self.event(result))

    def failure(self, failure: Failure) -> Answer:
        return Answer(status_of_jsonrpc(failure), self.last_event(failure), headers=headers_of(failure))

    def event(self, value: bytes) -> bytes:
        return envelope.encode_result(self._id, value)

    def last_event(self, failure: Failure) -> bytes:
        return encode_error_response(self._id, failure, version=self._version)


def status_of_jsonrpc(failure: Failure) -> int:
    """The status of the response that carries a JSON-RPC error: 200, but where HTTP's own clients must act on it."""
    match failure:
        case AuthenticationRequired() | InsufficientPermissions() | Overloaded() | Unavailable():
            return row_of(failure).http_status
        case InvalidRequest(reason):
            return TRANSPORT_STATUSES.get(reason, 200)
        case _:
            return 200
