"""Which calls over a connection are retried, by their error, their kind and their options."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from discreet.client import (
    ClientError,
    ConnectionFailed,
    InternalError,
    OperationFailed,
    OperationTimedOut,
    Overloaded,
    RequestTimeout,
    RetryPolicy,
    Unavailable,
)
from support.attempts import Log

from ..conftest import Answering, FakeServer

pytestmark = pytest.mark.anyio

UNKNOWN = {OperationTimedOut, Unavailable}


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
