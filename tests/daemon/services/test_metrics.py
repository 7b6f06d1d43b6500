"""What the daemon tells of itself by `services/metrics`, and what became of requests, by declared names and codes alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import OperationError, Service
from discreet.a2a.types import new_id
from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.daemon.dispatch.metrics import MAX_CODES, MAX_RECORDED, Durations, MethodMetrics
from discreet.daemon.hosting import access_of
from discreet.daemon.settings import Settings
from discreet.gateway.figures import BOUNDS, Figures, histogram
from support.daemon_wire import Serving
from support.executors import Scripted, echo
from support.vault import vault

pytestmark = pytest.mark.anyio


async def figures(wire: Any, **members: Any) -> Figures:
    reply = await wire.call("services/metrics", **members)
    return msgspec.convert(reply["result"], Figures)


async def test_what_is_under_way_is_told_and_goes_back_to_nothing(serving: Serving) -> None:
    service, gate = Service("shop"), anyio.Event()

    @service.query()
    async def wait(text: str) -> None:
        await gate.wait()

    @service.subscription()
    async def watch() -> AsyncIterator[int]:
        await gate.wait()
        yield 1

    async with serving(service, max_concurrency=3) as wire:
        await wire.send(wire.request("shop/watch"), *(wire.request("shop/wait", {"text": "x" * 100}) for _ in range(2)))
        found = await figures(wire)
        assert (found.version, found.in_flight, found.streams, found.busy_threads) == ("1.2.3", 4, 1, 0)
        assert found.memory.used["requests"] > 200
        assert found.memory.limit == wire.daemon.host.memory.limit
        assert found.backlog.requests == 0
        gate.set()
        await wire.receive_all(4)
        found = await figures(wire)
        assert (found.in_flight, found.streams) == (1, 0)  # the one that asks
        assert {(each.method, each.code, each.count) for each in found.requests} == {
            ("shop/wait", "ok", 2),
            ("shop/watch", "ok", 1),
            ("services/metrics", "ok", 1),
        }
        assert found.bounds == list(BOUNDS)
        assert {each.method: each.durations.count for each in found.durations} == {
            "shop/wait": 2,
            "services/metrics": 1,
        }


async def test_requests_that_wait_for_their_turn_are_the_backlog(serving: Serving) -> None:
    service, gate = Service("shop"), anyio.Event()

    @service.query(serial=True)
    async def wait(text: str) -> None:
        await gate.wait()

    async with serving(service) as wire:
        await wire.send(*(wire.request("shop/wait", {"text": "x" * 100}) for _ in range(5)))
        found = await figures(wire)
        assert found.backlog.requests == 4
        assert found.backlog.bytes > 400
        gate.set()
        await wire.receive_all(5)
        assert (await figures(wire)).backlog.requests == 0


async def test_tasks_and_commits_are_those_of_the_agent(serving: Serving) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await (events.require_input("Which?") if context.text == "ask" else echo(context, events))

    agent = Agent(Scripted(execute), name="Echo", description="Says it again.")
    async with serving(agent=agent) as wire:
        assert set((await figures(wire)).tasks.values()) == {0}
        for text in ("ask", "say", "say"):
            message = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}]}
            assert "result" in await wire.call("SendMessage", {"message": message})
        found = await figures(wire)
        assert {state: count for state, count in found.tasks.items() if count} == {"input-required": 1, "completed": 2}
        assert found.store.commits.count >= 3
        assert found.store.failed_commits == 0


@pytest.mark.parametrize(("scopes", "named"), [((), False), (("watch",), False), (("metrics",), True), (None, True)])
async def test_methods_that_the_caller_may_not_call_have_no_name(
    scopes: tuple[str, ...] | None, named: bool, serving: Serving
) -> None:
    async with serving(vault(), access=access_of(Settings(scopes=scopes))) as wire:
        for _ in range(2):
            await wire.call("vault/both")
        await wire.call("vault/open_")
        found = await figures(wire)
        names = {each.method for each in found.requests}
        assert "vault/open_" in names
        assert ("vault/both" in names) is named
        hidden = sum(each.count for each in found.requests if each.method in ("vault/both", "other"))
        assert hidden == 2


async def test_it_is_described_as_a_method_of_the_daemon(serving: Serving) -> None:
    async with serving() as wire:
        described = {each["name"]: each for each in (await wire.call("describeMethods"))["result"]}
        assert described["services/metrics"]["params"] == []


LENGTHS = (0.0, 1e-9, 0.0001, 0.0009, 0.3, 1.5, 31.0, 33.0, 1e6)


class Empty(OperationError, code="EMPTY"):
    """There is none."""


class Undeclared(OperationError, code="UNDECLARED"):
    """Nobody declares it."""


def counted() -> Service:
    service = Service("shop")

    @service.query(inline=True, errors=[Empty])
    def at_once(n: int = 0) -> int:
        if n < 0:
            raise Empty
        return n

    @service.query(errors=[Empty])
    async def soon(n: int = 0) -> int:
        if n < 0:
            raise Empty
        if n > 9:
            raise Undeclared
        return n

    @service.query(errors=[Empty])
    def in_thread(n: int = 0) -> int:
        if n < 0:
            raise Empty
        return n

    @service.subscription(errors=[Empty])
    async def events(n: int = 0) -> AsyncIterator[int]:
        if n < 0:
            raise Empty
        for each in range(n):
            yield each

    @service.mutation(visibility="internal")
    async def hidden() -> None: ...

    return service


def counts(wire: Any, transport: str = "stdio") -> dict[tuple[str, str], int]:
    """What was counted, by method and code."""
    found: dict[tuple[str, str], int] = {}
    for name, method in wire.daemon.host.request_metrics[transport].methods.items():
        found |= {(name, code): count for code, count in method.codes.items()}
        if ok := method.durations.count - method.failed:
            found[name, "ok"] = found.get((name, "ok"), 0) + ok
    return found


@pytest.mark.parametrize("method", ["shop/at_once", "shop/soon", "shop/in_thread", "shop/events"])
async def test_each_way_to_run_counts_its_outcomes_by_code(method: str, serving: Serving) -> None:
    async with serving(counted()) as wire:
        for params in ({}, {"n": 0}, {"n": -1}, {"n": "no number"}):
            await wire.call(method, params)
        await wire.nothing_more()
        expected = {(method, "ok"): 2, (method, "EMPTY"): 1, (method, "INVALID_INPUT"): 1, ("listMethods", "ok"): 1}
        assert counts(wire) == expected
        timed = wire.daemon.host.request_metrics["stdio"].methods[method].durations.count
        assert timed == (0 if method == "shop/events" else 4)


async def test_a_call_by_another_name_counts_as_the_operation_itself(serving: Serving) -> None:
    async with serving(counted()) as wire:
        await wire.call("/shop/soon")
        await wire.call("services/call", {"operationId": "shop/soon", "input": {}})
        await wire.call("services/call", {"operationId": "shop/none", "input": {}})
        assert counts(wire) == {("shop/soon", "ok"): 2, ("services/call", "NOT_FOUND"): 1}


async def test_a_tool_that_fails_is_counted_with_its_code_although_its_answer_is_a_result(serving: Serving) -> None:
    async with serving(counted(), dialect="mcp", framing="content-length") as wire:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        await wire.call("initialize", hello)
        assert "result" in await wire.call("tools/call", {"name": "shop_soon", "arguments": {"n": -1}})
        assert counts(wire)["shop/soon", "EMPTY"] == 1


async def test_an_error_that_is_not_declared_counts_as_internal(serving: Serving) -> None:
    async with serving(counted()) as wire:
        await wire.call("shop/soon", {"n": 10})
        assert counts(wire) == {("shop/soon", "INTERNAL"): 1}


async def test_names_that_callers_make_up_are_not_counted_by_name(serving: Serving) -> None:
    names = [f"shop/{n}" for n in range(300)]
    names += [
        "",
        "/",
        "x" * 10_000,
        "a\nb",
        '{"le"="1"} 5',
        "é\u2028\U0001f600",
        "$/made/up",
        "shop/hidden",
        "rpc.none",
    ]
    async with serving(counted()) as wire:
        await wire.send(*(wire.request(name) for name in names))
        assert {reply["error"]["code"] for reply in await wire.receive_all(len(names))} == {-32601}
        await wire.send(*({"jsonrpc": "2.0", "method": name} for name in names if not name.startswith("$/")))
        await wire.call("version")
        assert counts(wire) == {("other", "NOT_FOUND"): 2 * len(names) - 1, ("version", "ok"): 1}


async def test_what_is_no_request_counts_as_other(serving: Serving) -> None:
    async with serving(counted()) as wire:
        await wire.send(b"{")
        await wire.receive()
        for broken in (
            b"[]",
            b'{"jsonrpc":"2.0","id":{},"method":"shop/soon"}',
            b'{"jsonrpc":"1.0","id":1,"method":"x"}',
        ):
            await wire.send(broken)
            await wire.receive()
        assert counts(wire) == {("other", "PARSE_ERROR"): 1, ("other", "INVALID_REQUEST"): 3}


async def test_what_is_refused_is_counted_by_its_operation(serving: Serving) -> None:
    service, gate = Service("shop"), anyio.Event()

    @service.query(limit=1)
    async def wait() -> None:
        await gate.wait()

    async with serving(service) as wire:
        await wire.send(wire.request("shop/wait"), wire.request("shop/wait"))
        assert (await wire.receive())["error"]["data"]["code"] == "OVERLOADED"
        wire.daemon.begin_shutdown()
        assert (await wire.call("shop/wait"))["error"]["data"]["code"] == "UNAVAILABLE"
        assert counts(wire) == {("shop/wait", "OVERLOADED"): 1, ("shop/wait", "UNAVAILABLE"): 1}
        gate.set()
        assert "result" in await wire.receive()
        assert counts(wire)["shop/wait", "ok"] == 1


async def test_a_cancelled_call_has_a_code_and_a_duration(serving: Serving) -> None:
    service = Service("shop")

    @service.query()
    async def wait() -> None:
        await anyio.sleep_forever()

    async with serving(service) as wire:
        request = wire.request("shop/wait")
        await wire.send(request, {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": request["id"]}})
        assert (await wire.receive())["error"]["code"] == -32800
        assert counts(wire) == {("shop/wait", "CANCELLED"): 1}
        assert wire.daemon.host.request_metrics["stdio"].methods["shop/wait"].durations.count == 1


def test_codes_of_one_method_are_bounded() -> None:
    method = MethodMetrics()
    for n in range(10 * MAX_CODES):
        method.count(f"CODE_{n}")
    assert len(method.codes) == MAX_CODES + 1
    assert sum(method.codes.values()) == 10 * MAX_CODES


@given(st.lists(st.floats(0, 1e6) | st.sampled_from(LENGTHS), min_size=1, max_size=2 * MAX_RECORDED))
def test_durations_that_are_sorted_in_together_are_counted_as_one_by_one(lengths: list[float]) -> None:
    one_by_one, together = Durations(), Durations()
    for each in lengths:
        one_by_one.add(each)
    together.recorded.extend(lengths)
    assert together.count == one_by_one.count == len(lengths)
    assert histogram(together).buckets == histogram(one_by_one).buckets
    assert together.seconds == pytest.approx(one_by_one.seconds)
    assert together.recorded == []


async def test_no_more_durations_are_kept_than_are_sorted_in_together(serving: Serving) -> None:
    async with serving(counted()) as wire:
        for _ in range(3):
            await wire.send(*(wire.request("shop/soon") for _ in range(100)))
            await wire.receive_all(100)
        durations = wire.daemon.host.request_metrics["stdio"].methods["shop/soon"].durations
        assert durations.count == 300
        assert len(durations.recorded) < MAX_RECORDED


async def test_calls_that_are_answered_while_they_are_read_have_the_duration_of_their_read(serving: Serving) -> None:
    async with serving(counted()) as wire:
        await wire.send(*(wire.request("shop/at_once", {"n": n - 1}) for n in range(100)))
        await wire.receive_all(100)
        method = wire.daemon.host.request_metrics["stdio"].methods["shop/at_once"]
        assert (method.durations.count, method.failed, method.codes) == (100, 1, {"EMPTY": 1})
        assert method.durations.seconds > 0
