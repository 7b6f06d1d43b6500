"""When calls are retried: the schedule on a fake clock, whose outcome is unknown, and which calls over a connection are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.client import (
    ClientError,
    ConnectionFailed,
    ConnectionLoss,
    InternalError,
    InvalidReply,
    OperationFailed,
    OperationTimedOut,
    Overloaded,
    RequestTimeout,
    RetryPolicy,
    StreamOverrun,
    Unavailable,
)
from discreet.client.errors import ERROR_CLASSES, remote_error
from discreet.client.retry import call_with_retries, outcome_is_unknown
from discreet.errors import failures as facts
from discreet.errors.backoff import SYSTEM_TIMING
from discreet.errors.wire import encode_error
from support.attempts import Log
from support.timing import ALMOST_ONE, FakeTiming

from ..conftest import Answering, FakeServer

pytestmark = pytest.mark.anyio


async def always(_: ClientError) -> bool:
    return True


def failing(
    timing: FakeTiming, error: Callable[[], ClientError], *, seconds: float = 0.0, times: int = 10**6
) -> tuple[Any, list[float | None]]:
    """An attempt that takes some seconds and fails so many times. Records the seconds left at each."""
    lefts: list[float | None] = []

    async def attempt(left: float | None) -> str:
        lefts.append(left)
        timing.time += seconds
        if len(lefts) <= times:
            raise error()
        return "done"

    return attempt, lefts


def busy(after: int | None = None) -> ClientError:
    return remote_error(encode_error(facts.Overloaded(after)))


def delays(policy: RetryPolicy, jitter: Iterator[float], error: Callable[[], ClientError] = busy) -> list[float]:
    """The delays between the attempts of a call that never succeeds."""
    timing = FakeTiming(jitter)
    attempt, _ = failing(timing, error)

    async def call() -> None:
        with pytest.raises(ClientError):
            await call_with_retries(policy, "m", attempt, always, timing=timing)

    anyio.run(call)
    return timing.slept


def test_the_back_off_doubles_up_to_its_cap() -> None:
    policy = RetryPolicy(attempts=8, initial=0.1, cap=2.0)
    assert delays(policy, cycle([ALMOST_ONE])) == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0])


def test_the_jitter_may_be_any_part_of_the_back_off() -> None:
    policy = RetryPolicy(attempts=4, initial=1.0, cap=60.0)
    assert delays(policy, iter([0.0, 0.5, 0.25, 0.0])) == [0.0, 1.0, 1.0]


def test_three_attempts_are_made_by_default() -> None:
    assert len(delays(RetryPolicy(), cycle([0.5]))) == 2


def test_the_server_is_not_asked_before_the_time_it_named() -> None:
    policy = RetryPolicy(attempts=3, initial=0.1, cap=1.0)
    assert delays(policy, cycle([ALMOST_ONE]), lambda: busy(2500)) == [2.5, 2.5]
    assert delays(policy, cycle([ALMOST_ONE]), lambda: busy(1)) == pytest.approx([0.1, 0.2])


@pytest.mark.parametrize("after", [60_000, 10**18, 2**63 - 1])
def test_a_server_that_asks_for_more_than_the_deadline_is_not_asked_again(after: int) -> None:
    assert delays(RetryPolicy(deadline=60.0), cycle([0.0]), lambda: busy(after)) == []


def test_a_server_that_names_an_absurd_time_is_asked_again_in_thirty_years() -> None:
    assert delays(RetryPolicy(attempts=2, deadline=None), cycle([0.0]), lambda: busy(10**400)) == [1e9]


def test_a_retry_time_in_the_past_means_now() -> None:
    assert delays(RetryPolicy(initial=0.0), cycle([0.5]), lambda: busy(-5)) == [0.0, 0.0]


@given(
    attempts=st.integers(1, 40),
    initial=st.floats(0, 10),
    cap=st.floats(0, 100),
    deadline=st.none() | st.floats(0.01, 100),
    jitter=st.lists(st.floats(0, ALMOST_ONE), min_size=40, max_size=40),
)
def test_every_schedule_keeps_to_its_policy(
    attempts: int, initial: float, cap: float, deadline: float | None, jitter: list[float]
) -> None:
    policy = RetryPolicy(attempts=attempts, initial=initial, cap=cap, deadline=deadline)
    slept = delays(policy, iter(jitter))
    assert len(slept) < attempts
    assert all(0 <= delay <= min(cap, initial * 2**n) for n, delay in enumerate(slept))
    assert deadline is None or not slept or sum(slept) < deadline + 1e-9


def test_many_doublings_do_not_overflow() -> None:
    assert RetryPolicy(cap=5.0).max_backoff(10**6) == 5.0


async def test_the_deadline_covers_attempts_and_delays_and_cuts_off_the_last_attempt() -> None:
    timing = FakeTiming(cycle([0.5]))
    attempt, lefts = failing(timing, busy, seconds=3.0)
    policy = RetryPolicy(attempts=10, initial=2.0, cap=2.0, deadline=10.0)
    with pytest.raises(Overloaded):
        await call_with_retries(policy, "m", attempt, always, timing=timing)
    assert (lefts, timing.slept) == ([10.0, 6.0, 2.0], [1.0, 1.0])


async def test_without_a_deadline_no_attempt_is_cut_off() -> None:
    timing = FakeTiming(cycle([0.5]))
    attempt, lefts = failing(timing, busy, seconds=1e6, times=2)
    assert await call_with_retries(RetryPolicy(deadline=None), "m", attempt, always, timing=timing) == "done"
    assert lefts == [None, None, None]


async def test_a_hook_sees_each_attempt_including_the_last() -> None:
    log, timing = Log(), FakeTiming(cycle([0.5]))
    attempt, _ = failing(timing, busy, seconds=1.0, times=2)
    policy = RetryPolicy(initial=2.0, hooks=(log, log))
    assert await call_with_retries(policy, "files/read", attempt, always, timing=timing) == "done"
    seen = [(it.method, it.number, type(it.error), it.elapsed, it.delay) for it in log.attempts[::2]]
    assert seen == [
        ("files/read", 1, Overloaded, 1.0, 1.0),
        ("files/read", 2, Overloaded, 3.0, 2.0),
        ("files/read", 3, type(None), 6.0, None),
    ]
    assert log.attempts[::2] == log.attempts[1::2]


async def test_a_hook_sees_the_error_that_ends_it() -> None:
    log, timing = Log(), FakeTiming(cycle([0.5]))
    attempt, _ = failing(timing, busy)
    with pytest.raises(Overloaded) as raised:
        await call_with_retries(RetryPolicy(attempts=2, hooks=(log,)), "m", attempt, always, timing=timing)
    assert [(it.error is raised.value, it.delay is None) for it in log.attempts] == [(False, False), (True, True)]


async def test_cancellation_ends_the_waiting_between_two_attempts() -> None:
    attempts = 0

    async def attempt(_: float | None) -> None:
        nonlocal attempts
        attempts += 1
        scope.cancel()
        raise busy(30_000)

    with anyio.fail_after(20), anyio.CancelScope() as scope:
        await call_with_retries(RetryPolicy(), "m", attempt, always, timing=SYSTEM_TIMING)
    assert (scope.cancelled_caught, attempts) == (True, 1)


UNKNOWN = {OperationTimedOut, Unavailable}


@pytest.mark.parametrize("kind", ERROR_CLASSES.values())
def test_only_two_of_the_servers_errors_leave_the_outcome_unknown(kind: type[Any]) -> None:
    assert outcome_is_unknown(kind.__new__(kind)) == (kind in UNKNOWN)


@pytest.mark.parametrize("sent", [True, False])
def test_a_request_that_was_never_sent_had_no_effect(sent: bool) -> None:
    assert outcome_is_unknown(ConnectionFailed(ConnectionLoss("gone"), sent=sent)) == sent
    assert outcome_is_unknown(RequestTimeout("m", 1.0, sent=sent)) == sent


def test_of_the_clients_own_errors_those_about_the_connection_are_retryable() -> None:
    errors = [ConnectionFailed(ConnectionLoss("gone")), RequestTimeout("m", 1.0), InvalidReply("?"), StreamOverrun("?")]
    assert [error.retryable for error in errors] == [True, True, False, False]
    assert not ConnectionFailed(ConnectionLoss("gave up", gave_up=True)).retryable


# -- calls over a connection: by their error, their kind and their options --

AT_ONCE = RetryPolicy(attempts=3, initial=0.0)

LISTING = [
    {"name": "files/read", "namespace": "files", "kind": "query", "description": ""},
    {"name": "files/write", "namespace": "files", "kind": "mutation", "description": ""},
]
SILENCE: dict[str, Any] = {}
NOT_FOUND = {"error": {"code": -32601, "message": "Method not found"}}


def error(code: str, *, retryable: bool = True, **more: Any) -> dict[str, Any]:
    return {"error": {"code": -32000, "message": "", "data": {"code": code, "retryable": retryable, **more}}}


class Scripted:
    """Answers each method with the next item of its list, and remembers the requests."""

    def __init__(self, server: Any, answers: dict[str, list[dict[str, Any]]]) -> None:
        self.server = server
        self.answers = answers
        self.asked: list[dict[str, Any]] = []

    @property
    def methods(self) -> list[str]:
        return [request["method"] for request in self.asked]

    async def run(self) -> None:
        while True:
            request = await self.server.read()
            if "id" not in request:
                continue
            self.asked.append(request)
            if answer := self.answers[request["method"]].pop(0):
                await self.server.write({"jsonrpc": "2.0", "id": request["id"], **answer})


async def outcome(
    wired: Any, method: str, answers: dict[str, list[dict[str, Any]]], *, policy: RetryPolicy = AT_ONCE, **options: Any
) -> tuple[Any, Scripted]:
    """The outcome of a call, and the methods that the server saw."""
    async with wired(retry=policy) as (peer, server), anyio.create_task_group() as tasks:
        scripted = Scripted(server, answers)
        tasks.start_soon(scripted.run)
        try:
            result = await peer.call(method, **options)
        except ClientError as exc:
            result = type(exc)
        tasks.cancel_scope.cancel()
    return result, scripted


DONE = {"result": "done"}


@pytest.mark.parametrize(
    "failure", [error("OVERLOADED"), error("TRY_LATER"), error("OVERLOADED", details={"retryAfterMs": 0})]
)
async def test_an_error_that_the_server_calls_retryable_is_retried_whatever_the_operation(
    wired: Any, failure: dict[str, Any]
) -> None:
    result, server = await outcome(wired, "shop/order", {"shop/order": [failure, failure, DONE]})
    assert (result, server.methods) == ("done", ["shop/order"] * 3)
    assert len({request["id"] for request in server.asked}) == 3


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        ({"error": {"code": -32603, "message": "Internal error"}}, InternalError),
        ({"error": {"code": -32603, "message": "", "data": {"code": "X", "retryable": True}}}, InternalError),
        ({"error": {"code": -31000, "message": "", "data": {"retryable": True}}}, InternalError),
        (error("NO_SUCH_ARTICLE", retryable=False), OperationFailed),
    ],
)
async def test_an_error_that_is_not_retryable_is_not_retried(wired: Any, failure: dict[str, Any], raised: type) -> None:
    result, server = await outcome(wired, "files/read", {"files/read": [failure, DONE]}, idempotent=True)
    assert (result, server.methods) == (raised, ["files/read"])


@pytest.mark.parametrize("code", ["TIMEOUT", "UNAVAILABLE"])
@pytest.mark.parametrize("method", ["files/read", "/files/read"])
async def test_a_query_is_retried_when_its_outcome_is_unknown(wired: Any, code: str, method: str) -> None:
    answers = {method: [error(code), error(code), DONE], "services/list": [{"result": LISTING}]}
    result, server = await outcome(wired, method, answers)
    assert (result, server.methods) == ("done", [method, "services/list", method, method])


@pytest.mark.parametrize("code", ["TIMEOUT", "UNAVAILABLE"])
@pytest.mark.parametrize("method", ["files/write", "files/unlisted"])
async def test_a_mutation_is_never_retried_when_its_outcome_is_unknown(wired: Any, code: str, method: str) -> None:
    answers = {method: [error(code), DONE], "services/list": [{"result": LISTING}]}
    result, server = await outcome(wired, method, answers)
    assert (result in UNKNOWN, server.methods) == (True, [method, "services/list"])


@pytest.mark.parametrize("listing", [NOT_FOUND, {"result": "nonsense"}, {"result": [{"kind": "query"}]}, error("BUSY")])
async def test_without_a_listing_everything_counts_as_a_mutation(wired: Any, listing: dict[str, Any]) -> None:
    answers = {"files/read": [error("TIMEOUT"), DONE], "services/list": [listing]}
    result, server = await outcome(wired, "files/read", answers)
    assert (result, server.methods) == (OperationTimedOut, ["files/read", "services/list"])


@pytest.mark.parametrize(("idempotent", "result"), [(True, "done"), (False, OperationTimedOut)])
async def test_the_callers_idempotent_overrides_the_listing(wired: Any, idempotent: bool, result: object) -> None:
    answers = {"files/read": [error("TIMEOUT"), DONE]}
    found, server = await outcome(wired, "files/read", answers, idempotent=idempotent)
    assert (found, "services/list" in server.methods) == (result, False)


async def test_the_operations_are_listed_once_and_only_when_their_kinds_matter(wired: Any) -> None:
    answers = {
        "files/read": [DONE, error("TIMEOUT"), DONE, error("TIMEOUT"), DONE],
        "services/list": [{"result": LISTING}],
    }
    async with wired(retry=AT_ONCE) as (peer, server), anyio.create_task_group() as tasks:
        scripted = Scripted(server, answers)
        tasks.start_soon(scripted.run)
        assert [await peer.call("files/read", service_params={"authorization": "x"}) for _ in range(3)] == ["done"] * 3
        tasks.cancel_scope.cancel()
    assert scripted.methods == ["files/read", "files/read", "services/list", "files/read", "files/read", "files/read"]
    assert scripted.asked[2]["serviceParams"] == {"authorization": "x"}


async def test_a_server_without_a_listing_is_asked_for_it_once(wired: Any) -> None:
    answers = {"m": [error("TIMEOUT"), error("TIMEOUT")], "services/list": [NOT_FOUND]}
    async with wired(retry=AT_ONCE) as (peer, server), anyio.create_task_group() as tasks:
        scripted = Scripted(server, answers)
        tasks.start_soon(scripted.run)
        for _ in range(2):
            with pytest.raises(OperationTimedOut):
                await peer.call("m")
        tasks.cancel_scope.cancel()
    assert scripted.methods == ["m", "services/list", "m"]


async def test_a_query_that_timed_out_is_retried_under_a_new_id(wired: Any) -> None:
    answers = {"files/read": [SILENCE, DONE]}
    result, server = await outcome(wired, "files/read", answers, idempotent=True, timeout=0.5)
    assert result == "done"
    assert server.asked[0]["id"] != server.asked[1]["id"]


async def test_the_deadline_of_the_policy_cuts_off_an_attempt(wired: Any) -> None:
    policy = RetryPolicy(attempts=3, initial=0.0, deadline=0.05)
    result, server = await outcome(wired, "m", {"m": [SILENCE]}, policy=policy, idempotent=True, timeout=None)
    assert (result, server.methods) == (RequestTimeout, ["m"])


async def test_a_call_on_a_lost_connection_without_restart_is_not_retried(answering: Answering) -> None:
    log = Log()
    policy = RetryPolicy(attempts=5, hooks=(log,))

    async def serve(server: FakeServer) -> None:
        await server.read()
        server.transport.close()

    async with answering(serve, retry=policy) as peer:
        with pytest.raises(ConnectionFailed):
            await peer.call("m", idempotent=True)
    assert len(log.attempts) == 1


async def test_without_a_policy_nothing_is_retried(wired: Any) -> None:
    async with wired() as (peer, server), anyio.create_task_group() as tasks:
        scripted = Scripted(server, {"m": [error("OVERLOADED"), DONE]})
        tasks.start_soon(scripted.run)
        with pytest.raises(Overloaded):
            await peer.call("m", idempotent=True)
        tasks.cancel_scope.cancel()
    assert scripted.methods == ["m"]
