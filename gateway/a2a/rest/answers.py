"""How outcomes are written for clients of HTTP+JSON: results as they are, failures as google.rpc.Status (A2A 1.0, 11.6)."""

from __future__ import annotations

from typing import Final, final

from ....errors.failures import A2AVersion, Failure
from ....errors.wire import encode_status
from ...answers import JSON, Answer, headers_of, status_of

A2A_JSON: Final = "application/a2a+json"


@final
class RestWriter:
    """Answers one request, in a version of A2A, as the type that the header `Accept` asks for."""

    def __init__(self, version: A2AVersion, accept: str | None) -> None:
        self.fails_in_stream = False
        self.failure_event = "error"  # the events are the values themselves: only its name tells a failure from them
        self.completion_event = ""
        self._version: Final[A2AVersion] = version
        self._media_type = JSON if version == "0.3" or (accept and _prefers_json(accept)) else A2A_JSON

    def result(self, result: bytes) -> Answer:
        return Answer(200, result, self._media_type)

    def failure(self, failure: Failure) -> Answer:
        status = status_of(failure)
        return Answer(status, self._status(failure, status), self._media_type, headers_of(failure))

    def not_allowed(self, failure: Failure, allowed: tuple[str, ...]) -> Answer:
        """The answer to a verb that the path does not take."""
        return Answer(405, self._status(failure, 405), self._media_type, {"allow": ", ".join(allowed)})

    def event(self, value: bytes) -> bytes:
        return value

    def last_event(self, failure: Failure) -> bytes:
        return self._status(failure, status_of(failure))

    def _status(self, failure: Failure, status: int) -> bytes:
        return encode_status(failure, status, self._version)


def _prefers_json(accept: str) -> bool:
    """Whether the client would rather have `application/json` than A2A's own type (RFC 9110, section 12.5.1)."""
    weights: dict[str, float] = {}
    for given in accept.lower().split(","):
        media_type, *params = (part.strip() for part in given.split(";"))
        weights[media_type] = next((_weight(each[2:]) for each in params if each.startswith("q=")), 1.0)
    others = weights.get("application/*", weights.get("*/*", 0.0))
    return weights.get(JSON, others) > weights.get(A2A_JSON, others)


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
