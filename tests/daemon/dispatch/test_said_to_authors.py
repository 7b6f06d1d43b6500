"""What the log tells the author of a handler: what went wrong, where, and what to do. Callers are told none of it."""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Any

import anyio
import pytest
from msgspec import Raw, Struct

from discreet import OperationError, Service
from support.logged_events import LoggedEvents, logged_events
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]


class Surprise(OperationError, code="SURPRISE"):
    """Nobody declared it."""


class Priced(Struct):
    price: float


def faulty() -> Service:
    service = Service("faulty")

    @service.query
    def undeclared() -> None:
        raise Surprise

    @service.query
    def text() -> int:
        return "5"  # type: ignore[return-value]

    @service.query
    def nested() -> list[dict[str, int]]:
        return [{"a": "5"}]  # type: ignore[dict-item]

    @service.query
    def unencodable():  # type: ignore[no-untyped-def]  # noqa: ANN202
        return object()

    @service.query
    def broken():  # type: ignore[no-untyped-def]  # noqa: ANN202
        return {"a": Raw(b"[1")}

    @service.query
    def two() -> list[Any]:
        return [Raw(b"1],[2")]

    @service.query
    def none() -> dict[str, float | None]:
        return {"a": math.nan, "b": None}

    @service.query
    def deep() -> Any:
        return [{"a": (Priced(math.inf), None)}]

    @service.query
    def forgotten() -> int:
        async def work() -> int:
            return 1

        return work()  # type: ignore[return-value]

    @service.subscription
    async def events() -> AsyncIterator[int]:
        yield "5"  # type: ignore[misc]

    return service


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        ("text", "returned str, but is annotated integer: Expected `int`, got `str`"),
        ("nested", "returned list, but is annotated array of object: Expected `int`, got `str` - at `$[0][...]`"),
        ("unencodable", "returned object: Encoding objects of type object is unsupported"),
        ("broken", "returned dict: JSON is malformed: expected ',' or ']' (byte 7)"),
        ("two", "returned list, but is annotated array: JSON is malformed: trailing characters (byte 4)"),
        ("none", "returned dict, but is annotated object: JSON can't represent nan"),
        ("deep", "returned list: JSON can't represent inf"),
        ("forgotten", "returned a coroutine: is an `await` missing?"),
        ("events", "yielded str, but is annotated integer: Expected `int`, got `str`"),
    ],
)
async def test_a_wrong_result_says_what_came_what_was_declared_and_where(
    serving: Serving, logged: LoggedEvents, method: str, problem: str
) -> None:
    async with serving(faulty()) as wire:
        reply = await wire.call(f"faulty/{method}")
        assert reply["error"] == {"code": -32603, "message": "Internal error"}
    failed = [fields for name, fields in logged() if name == "handler.failed"]
    assert [fields["problem"] for fields in failed] == [problem]
    assert failed[0]["handler"].startswith("test_said_to_authors.py:")
    assert "exc" not in failed[0]


async def test_an_undeclared_error_says_how_to_declare_it(serving: Serving, logged: LoggedEvents) -> None:
    async with serving(faulty()) as wire:
        await wire.call("faulty/undeclared")
    hints = [fields["hint"] for name, fields in logged() if name == "handler.failed"]
    assert hints == ["declare it: errors=[Surprise]"]


@pytest.mark.parametrize("method", ["undeclared", "text", "unencodable", "events"])
async def test_a_handler_that_fails_is_told_once(serving: Serving, method: str) -> None:
    with logged_events("info") as logged:
        async with serving(faulty()) as wire:
            await wire.call(f"faulty/{method}")
        assert [name for name in logged.names() if name.endswith(".failed")] == ["handler.failed"]


@pytest.mark.parametrize(("method", "names"), [("$/unknown", []), ("unknown", ["request.failed"])])
async def test_what_clients_may_send_to_any_server_is_no_warning(
    serving: Serving, logged: LoggedEvents, method: str, names: list[str]
) -> None:
    async with serving(faulty()) as wire:
        await wire.send({"jsonrpc": "2.0", "method": method})
        await wire.nothing_more()
    assert [name for name in logged.names() if name == "request.failed"] == names


@pytest.mark.parametrize("mode", ["inline", "async"])
async def test_a_handler_that_keeps_the_loop_is_named_with_its_place(
    serving: Serving, logged: LoggedEvents, mode: str
) -> None:
    service = Service("slow")
    told: list[tuple[str, dict[str, Any]]] = []

    def heard(name: str) -> list[dict[str, Any]]:
        told.extend(event for event in logged() if event[0].startswith("loop."))
        return [fields for event, fields in told if event == name]

    def wait_until_told() -> None:
        before, ends = len(heard("loop.blocked")), monotonic() + DEADLINE_SECONDS
        while len(heard("loop.blocked")) == before and monotonic() < ends:
            threading.Event().wait(0.001)

    if mode == "async":

        @service.query
        async def block() -> None:
            await anyio.lowlevel.checkpoint()
            wait_until_told()
    else:

        @service.query(inline=True)
        def block() -> None:
            wait_until_told()

    async with serving(service, blocked_after=0.02) as wire:
        await wire.call("slow/block")
        await wire.call("slow/block")
        await until(lambda: len(heard("loop.resumed")) == 2)
    blocked = heard("loop.blocked")
    assert [fields["method"] for fields in blocked] == ["slow/block"] * 2
    assert all("wait_until_told < " in fields["at"] and fields["at"].endswith("block") for fields in blocked)


async def test_what_waits_does_not_keep_the_loop(serving: Serving, logged: LoggedEvents) -> None:
    service = Service("patient")

    @service.query
    async def wait() -> None:
        await anyio.sleep(0.1)

    async with serving(service, blocked_after=0.02) as wire:
        await wire.call("patient/wait")
    assert not [name for name in logged.names() if name.startswith("loop.")]


async def test_a_thread_that_outlives_its_deadline_is_said_once(serving: Serving, logged: LoggedEvents) -> None:
    service, over = Service("late"), threading.Event()

    @service.query(timeout=0.01)
    def work() -> None:
        over.wait(DEADLINE_SECONDS)

    names: list[str] = []
    async with serving(service) as wire:
        await wire.call("late/work")
        over.set()
        await until(lambda: wire.daemon.host.scheduler.idle)
    names += logged.names()
    assert names.count("handler.overdue") == 1
