"""Reads one HTTP body as one JSON-RPC request of A2A (A2A 1.0, section 9). Runs nothing."""

from __future__ import annotations

from ...errors.failures import Failure, InvalidRequest
from ..rpc import envelope
from ..rpc.envelope import NULL_ID, Call, NoJson, Refused


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
