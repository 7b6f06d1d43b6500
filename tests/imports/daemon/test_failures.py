"""What a failed call of another daemon means for who called here."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from msgspec import Raw

from discreet.client.errors import ConnectionFailed, ConnectionLoss, InvalidReply, StreamOverrun
from discreet.errors import failures
from discreet.errors.exceptions import FailureError
from discreet.errors.failures import Failure
from discreet.errors.wire import CallError, encode_call_error, failure_of_call_error
from discreet.imports.daemon.calls import LONGEST_TEXT, raised_for, raised_for_failure
from discreet.imports.daemon.contracts import DaemonOperation
from discreet.imports.model import UpstreamError
from support.logged_events import logged_events

OPERATION = DaemonOperation(name="a", method="s/a", kind="query", input={"type": "object"}, codes={-32050: "RPC_X"})
PARAMS = failures.InvalidParams("limit", "integer >= 1", "string", (1, 2))

TOLD: list[tuple[Failure, Failure]] = [
    (PARAMS, PARAMS),
    (failures.InvalidParams("$", "", ""), failures.InvalidParams("$", "params that the server accepts", "object")),
    (failures.TimedOut(), failures.TimedOut()),
    (failures.Overloaded(250), failures.Overloaded(250)),
    (failures.Unavailable(), failures.Unavailable(upstream=True)),
    (failures.InvalidRequest("oversize"), failures.InvalidRequest("oversize")),
    (failures.Internal("HIDDEN"), failures.Internal("HIDDEN")),
    (failures.Internal("no code of an error"), failures.Internal()),
    (failures.Internal(), failures.Internal()),
    (failures.AuthenticationRequired(("bearer",), "there"), failures.Internal()),
    (failures.InsufficientPermissions(), failures.Internal()),
    (failures.MethodNotFound(), failures.Internal()),
    (failures.OperationTypeMismatch(), failures.Internal()),
    (failures.Cancelled(), failures.Internal()),
    (failures.ParseFailure("invalid-json"), failures.Internal()),
    (failures.InvalidRequest("duplicate-id"), failures.Internal()),
    *((cls(), failures.Internal()) for cls in get_args(Failure) if issubclass(cls, failures.AgentFailure)),
]


@pytest.mark.parametrize(("there", "here"), TOLD)
def test_each_failure_has_its_meaning_here(there: Failure, here: Failure) -> None:
    found = raised_for_failure(there, OPERATION, "inner")
    assert isinstance(found, FailureError)
    assert found.failure == here


def test_every_failure_is_in_the_table() -> None:
    assert {type(there) for there, _ in TOLD} | {failures.DomainFailure} == set(get_args(Failure))


def test_an_error_that_a_server_tells_by_its_number_has_the_code_of_the_document() -> None:
    found = raised_for_failure(failures.Internal(), OPERATION, "inner", number=-32050, data=Raw(b'"why"'))
    assert isinstance(found, UpstreamError)
    assert (found.code, found.details) == ("RPC_X", Raw(b'"why"'))


def test_what_is_said_of_params_is_bounded() -> None:
    found = raised_for_failure(failures.InvalidParams("x" * 10**6, "y" * 10**6, "z"), OPERATION, "inner")
    assert isinstance(found, FailureError) and isinstance(found.failure, failures.InvalidParams)
    assert len(found.failure.param) + len(found.failure.expected) < 2 * LONGEST_TEXT + 100


def test_what_the_operator_must_know_is_logged_and_the_caller_learns_nothing_of_it() -> None:
    with logged_events("warn") as logged:
        refused = raised_for_failure(failures.InsufficientPermissions(), OPERATION, "inner")
        lost = raised_for(ConnectionFailed(ConnectionLoss("the server exited with status 3")), OPERATION, "inner")
        garbage = raised_for(InvalidReply("no JSON"), OPERATION, "inner")
        slow = raised_for(StreamOverrun("too much"), OPERATION, "inner")
        assert [(name, fields["import_"], fields["operation"]) for name, fields in logged()] == [
            ("import.refused", "inner", "s/a"),
            ("import.unavailable", "inner", "s/a"),
            ("import.invalid_reply", "inner", "s/a"),
            ("import.stream_overrun", "inner", "s/a"),
        ]
    told = [each.failure for each in (refused, lost, garbage, slow) if isinstance(each, FailureError)]
    assert told == [
        failures.Internal(),
        failures.Unavailable(upstream=True),
        failures.Internal(),
        failures.Overloaded(),
    ]


TELLABLE = [there for there, _ in TOLD if not isinstance(there, failures.AgentFailure)]


@pytest.mark.parametrize(
    "failure", [*TELLABLE, *(failures.DomainFailure("GONE", "x", True, each) for each in (Raw(b"{}"), None))]
)
def test_the_object_of_an_error_is_read_as_the_failure_that_it_was_made_of(failure: Failure) -> None:
    assert failure_of_call_error(msgspec.json.decode(encode_call_error(failure), type=CallError)) == failure


@pytest.mark.parametrize(
    "code", ["INVALID_INPUT", "INTERNAL", "OVERLOADED", "FORBIDDEN", "INVALID_REQUEST", "", "ANYTHING"]
)
def test_details_of_another_shape_are_no_fault(code: str) -> None:
    assert type(failure_of_call_error(CallError(code, "", True, Raw(b"[1]")))) in get_args(Failure)
