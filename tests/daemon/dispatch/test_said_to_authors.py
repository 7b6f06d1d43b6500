"""What the log tells the author of a handler: what went wrong, where, and what to do. Callers are told none of it."""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest
from msgspec import Raw, Struct

from discreet import Context, OperationError, Service
from discreet.agents import Agent, Part, RequestContext, TaskEvents
from support.logged_events import LoggedEvents, logged_events
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]


class Surprise(OperationError, code="SURPRISE"):
    """Nobody declared it."""


class Broken(OperationError, code="BROKEN"):
    """It is broken."""

    at: int


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
    def number() -> float:
        return math.nan

    @service.query
    def member() -> dict[str, Any]:
        return {"files": [{"path": Path()}]}

    @service.query
    def cyclic() -> list[Any]:
        items: list[Any] = []
        items.append(items)
        return items

    @service.query(errors=[Broken])
    def error() -> int:
        return Broken(at=1)  # type: ignore[return-value]

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
        ("two", "returned list: JSON is malformed: trailing characters (byte 4)"),
        ("none", "returned dict: JSON can't represent nan"),
        ("deep", "returned list: JSON can't represent inf"),
        ("number", "returned float: JSON can't represent nan"),
        ("member", "returned dict: at $.files[0].path: Encoding objects of type PosixPath is unsupported"),
        ("cyclic", "returned list: maximum recursion depth exceeded while serializing an object"),
        ("error", "returned Broken, which is to be raised: write `raise Broken(…)`"),
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


async def test_details_of_a_wrong_type_are_one_problem_with_the_error_that_was_raised(
    serving: Serving, logged: LoggedEvents
) -> None:
    service = Service("faulty")

    @service.query(errors=[Broken])
    def details() -> None:
        raise Broken(at="here")  # type: ignore[arg-type]

    async with serving(service) as wire:
        await wire.call("faulty/details")
    failed = [fields for name, fields in logged() if name == "handler.failed"]
    assert [fields["problem"] for fields in failed] == [
        "the details of Broken are not what it declares: Expected `int`, got `str` - at `$.at`"
    ]
    assert isinstance(failed[0]["exc"], Broken)
    assert "request.failed" not in logged.names()


class Unannotated(OperationError, code="UNANNOTATED"):
    """One attribute has no type."""

    item = "x"


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: Broken(5), "write Broken(at=…)"),
        (Broken, "write Broken(at=…)"),
        (lambda: Broken(at=1, on=2), "write Broken(at=…); there is no field on"),
        (lambda: Unannotated(item="y"), "write Unannotated(); item is no field without an annotation"),
    ],
)
def test_an_error_that_is_made_wrongly_says_how_it_is_made(make: Callable[[], OperationError], line: str) -> None:
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value) == line


def test_an_error_says_what_it_carries() -> None:
    assert str(Broken(at=3)) == "BROKEN: It is broken (at=3)"
    assert str(Surprise()) == "SURPRISE: Nobody declared it"


async def test_what_a_context_is_asked_wrongly_says_what_there_is(serving: Serving, logged: LoggedEvents) -> None:
    service = Service("faulty", credentials=["github"])

    @service.query
    def credential(ctx: Context) -> str:
        return ctx.credentials["gitlab"]

    @service.query
    def document(ctx: Context) -> str:
        return ctx.documents["file:///a"].text

    @service.query
    def level(ctx: Context) -> None:
        ctx.log("warn", "x")  # type: ignore[arg-type]

    @service.query
    def unknown(ctx: Context) -> float:
        return ctx.time_lfet  # type: ignore[attr-defined, no-any-return]

    async with serving(service, credentials={"github": "hidden"}) as wire:
        for method in ("credential", "document", "level", "unknown"):
            await wire.call(f"faulty/{method}")
    said = [str(fields["exc"]) for name, fields in logged() if name == "handler.failed"]
    assert "declares github" in said[0]
    assert "file:///a is open" in said[1]
    assert "warning" in said[2]
    assert said[3] == "a context has no time_lfet; nearest: time_left"


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


class Leaving:
    """An executor that leaves its task as it is."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> Any:
        match context.text:
            case "text":
                return "done"
            case "coroutine":
                return events.complete("done")
            case _:
                return None

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None: ...


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("text", "execute returned str, which is not sent"),
        ("coroutine", "execute returned a coroutine: is an `await` missing?"),
        ("nothing", "end with `await events.complete(…)`"),
    ],
)
async def test_an_executor_that_leaves_its_task_is_told_what_it_forgot(
    serving: Serving, logged: LoggedEvents, text: str, said: str
) -> None:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}
    async with serving(agent=Agent(Leaving(), name="Clerk", description="Leaves.")) as wire:
        await wire.call("SendMessage", {"message": message})
        await wire.end()
    (hint,) = [fields["hint"] for name, fields in logged() if name == "agent.unfinished"]
    assert hint.startswith(said)


class Misusing:
    """An executor that uses its events wrongly."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        match context.text:
            case "state":
                await events.status("done")  # type: ignore[arg-type]
            case "metadata":
                await events.working(metadata=5)  # type: ignore[arg-type]
            case "parts":
                await events.artifact(Part(text="x", data=1))
            case _:
                await events.complete()
                await events.artifact("late")

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None: ...


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("state", "the state is a member of TaskState, such as TaskState.WORKING, not 'done'"),
        ("metadata", "metadata is a dict, not int"),
        ("parts", "content is text, or at least one Part, each with exactly one of text, raw, url and data"),
        ("late", "INVALID_STATE_TRANSITION: The task has ended and takes no more events"),
    ],
)
async def test_events_that_are_used_wrongly_say_what_was_meant(
    serving: Serving, logged: LoggedEvents, text: str, said: str
) -> None:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}
    async with serving(agent=Agent(Misusing(), name="Clerk", description="Errs.")) as wire:
        await wire.call("SendMessage", {"message": message})
        await wire.end()
    failed = [str(fields["exc"]) for name, fields in logged() if name == "agent.failed"]
    assert len(failed) == 1
    assert failed[0].startswith(said)


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


async def test_what_runs_on_when_the_drain_window_closes_is_named_and_answered(
    serving: Serving, logged: LoggedEvents
) -> None:
    service, begun, over = Service("late"), threading.Event(), threading.Event()

    @service.query
    def work() -> None:
        begun.set()
        over.wait(DEADLINE_SECONDS)

    async with serving(service, drain_timeout=0.1) as wire:
        await wire.send(wire.request("late/work"))
        await until(begun.is_set)
        assert await wire.end() == 0
        assert (await wire.receive())["error"]["data"]["code"] == "UNAVAILABLE"
        over.set()
    (closed,) = [fields for name, fields in logged() if name == "daemon.window_closed"]
    assert closed == {"unanswered": 1, "running": 1, "methods": ["late/work"]}
