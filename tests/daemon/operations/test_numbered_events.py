"""Events with numbers: the number is no part of the value, and a caller says behind which one it goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from discreet import Context, ServerEvent, Service
from discreet.schemas.documents import operation_schema
from support.daemon_wire import Serving

pytestmark = pytest.mark.anyio


def clock() -> Service:
    service = Service("clock")

    @service.subscription()
    async def ticks(ctx: Context, until: int) -> AsyncIterator[ServerEvent[str]]:
        for number in range((ctx.last_event_id or 0) + 1, until + 1):
            yield ServerEvent(f"tick {number}", id=number)

    @service.subscription()
    async def anything() -> AsyncIterator[ServerEvent]:  # type: ignore[type-arg]
        yield ServerEvent(1, id=1)

    @service.subscription()
    async def plain() -> AsyncIterator[int]:
        yield 1

    @service.subscription()
    async def wrong(number: Any) -> AsyncIterator[ServerEvent[int]]:
        yield ServerEvent(1, id=number)

    return service


def test_the_schema_is_that_of_the_value() -> None:
    specs = {spec.name.partition("/")[2]: spec for spec in clock().operations}
    assert operation_schema(specs["ticks"]).output_schema["type"] == "string"
    assert "type" not in operation_schema(specs["anything"]).output_schema
    assert {name: spec.numbered for name, spec in specs.items()} == {
        "ticks": True,
        "anything": True,
        "plain": False,
        "wrong": True,
    }


async def test_over_a_pipe_the_value_is_sent_and_a_service_parameter_says_where_to_go_on(serving: Serving) -> None:
    async with serving(clock()) as wire:
        first = await wire.call("clock/ticks", {"until": 3}, serviceParams={"last-event-id": "1"})
        second, done = await wire.receive(), await wire.receive()
        assert [first["params"]["value"], second["params"]["value"]] == ["tick 2", "tick 3"]
        assert done["result"] == {"completed": True, "events": 2}
        refused = await wire.call("clock/ticks", {"until": 3}, serviceParams={"last-event-id": "one"})
        assert refused["error"]["data"]["param"] == "Last-Event-ID"


@pytest.mark.parametrize("number", ["one", -1, True, 1.0, None])
async def test_a_number_that_is_none_is_a_fault_of_the_handler(serving: Serving, number: Any) -> None:
    async with serving(clock()) as wire:
        assert (await wire.call("clock/wrong", {"number": number}))["error"]["code"] == -32603


async def test_numbers_that_do_not_rise_are_told_once_for_each_stream(serving: Serving, logged: Any) -> None:
    service = Service("log")

    @service.subscription()
    async def lines(numbers: list[int]) -> AsyncIterator[ServerEvent[str]]:
        for number in numbers:
            yield ServerEvent("line", id=number)

    async with serving(service) as wire:
        for numbers, told in (([1, 2, 5], 0), ([2, 2, 1, 0], 1), ([3, 1], 1), ([0, 1], 0)):
            logged()
            found = await wire.call("log/lines", {"numbers": numbers})
            while "result" not in found:
                found = await wire.receive()
            assert [name for name, _ in logged()].count("events.misnumbered") == told


async def test_what_the_caller_has_is_left_out_where_the_handler_repeats_it_and_its_author_is_told(
    serving: Serving, logged: Any
) -> None:
    service = Service("log")

    @service.subscription()
    async def lines() -> AsyncIterator[ServerEvent[int]]:
        for number in range(5):
            yield ServerEvent(number, id=number)

    async with serving(service) as wire:
        for has, wanted in (("0", [1, 2, 3, 4]), ("3", [4]), ("4", []), ("9", [])):
            logged()
            values, found = [], await wire.call("log/lines", {}, serviceParams={"last-event-id": has})
            while "result" not in found:
                values.append(found["params"]["value"])
                found = await wire.receive()
            assert (values, found["result"]["events"]) == (wanted, len(wanted))
            assert [name for name, _ in logged()].count("events.repeated") == 1
