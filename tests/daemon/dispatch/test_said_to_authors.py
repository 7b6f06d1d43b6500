"""What code of an app may get wrong, raise or lack: what the log tells its author, and the callers are not told."""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import Raw, Struct

from discreet import CallFailed, Context, Identity, OperationError, Service
from discreet.agents import Agent, AgentCall, CallResult, Part, RequestContext, SendRequest, Task, TaskEvents
from discreet.daemon.operations.access import PARENT, Access
from support.daemon_wire import Serving
from support.logged_events import LoggedEvents
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


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
    [(event, fields)] = [each for each in logged() if each[0].endswith(".failed")]
    assert (event, fields["problem"]) == ("handler.failed", problem)
    assert fields["handler"].startswith("test_said_to_authors.py:")
    assert "exc" not in fields


async def test_an_undeclared_error_says_how_to_declare_it(serving: Serving, logged: LoggedEvents) -> None:
    async with serving(faulty()) as wire:
        await wire.call("faulty/undeclared")
    [(event, fields)] = [each for each in logged() if each[0].endswith(".failed")]
    assert (event, fields["hint"]) == ("handler.failed", "declare it: errors=[Surprise]")


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


@pytest.mark.parametrize(("method", "names"), [("$/unknown", []), ("unknown", ["request.failed"])])
async def test_what_clients_may_send_to_any_server_is_no_warning(
    serving: Serving, logged: LoggedEvents, method: str, names: list[str]
) -> None:
    async with serving(faulty()) as wire:
        await wire.send({"jsonrpc": "2.0", "method": method})
        await wire.nothing_more()
    assert [name for name in logged.names() if name == "request.failed"] == names


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
    async with serving(agent=Agent(Leaving(), name="Clerk", description="Leaves.")) as wire:
        await wire.call("SendMessage", message_of(text))
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
    async with serving(agent=Agent(Misusing(), name="Clerk", description="Errs.")) as wire:
        await wire.call("SendMessage", message_of(text))
        await wire.end()
    failed = [str(fields["exc"]) for name, fields in logged() if name == "agent.failed"]
    assert len(failed) == 1
    assert failed[0].startswith(said)


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


SECRET = "Bearer willow-hollow-86-brook"


class Limited(OperationError, code="LIMITED", retryable=True):
    """There were too many."""

    limit: int


class SameFacts(Limited):
    """It is more special for its author alone."""


class MoreFacts(Limited):
    extra: str


class OwnNumber(Limited, number=-31000):
    pass


@pytest.mark.parametrize(("error", "declared"), [(SameFacts, True), (MoreFacts, False), (OwnNumber, False)])
async def test_a_subclass_without_facts_of_its_own_is_the_declared_error(
    serving: Any, error: type[OperationError], declared: bool
) -> None:
    app = Service("app")
    facts = {"limit": 3, **({"extra": "x"} if error is MoreFacts else {})}

    @app.query(errors=[Limited])
    async def fails() -> None:
        raise error(**facts)

    async with serving(app) as wire:
        found = (await wire.call("app/fails"))["error"]
    if declared:
        data = {"code": "LIMITED", "retryable": True, "details": {"limit": 3}}
        assert found == {"code": -32000, "message": "There were too many", "data": data}
    else:
        assert found["code"] == -32603


@pytest.mark.parametrize("name", ["app/other", "app/none", "other/thing"])
async def test_a_call_of_what_cant_be_called_fails_as_such(serving: Any, logged: Any, name: str) -> None:
    app = Service("app")

    @app.query
    async def other() -> None: ...

    @app.query
    async def calls(ctx: Context) -> str:
        try:
            await ctx.call(name)
        except CallFailed as exc:
            return type(exc.failure).__name__
        return "called"

    async with serving(app) as wire:
        assert (await wire.call("app/calls"))["result"] == "MethodNotFound"
    assert dict(logged())["call.undeclared"]["called"] == name


class Leaks:
    """An identity provider whose exception holds the credential."""

    schemes = ("Bearer",)
    realm = "test"

    def resolve(self, authorization: str) -> Identity:
        try:
            raise LookupError(authorization)
        except LookupError as exc:
            raise RuntimeError(authorization) from exc


async def test_no_credential_is_logged_where_the_identity_provider_raises_it(serving: Any, logged: Any) -> None:
    app = Service("app")

    @app.query(public=True)
    async def who(ctx: Context) -> str:
        return str(ctx.identity)

    @app.query(scopes=["a"])
    async def guarded() -> None: ...

    agent = Agent(Uncancellable(), name="a", description="A.")
    async with serving(app, agent=agent, access=Access(PARENT, Leaks())) as wire:
        for method in ("app/who", "app/guarded", "SendMessage", "tasks/get"):
            params = message_of() if method == "SendMessage" else {"id": "x"} if method == "tasks/get" else {}
            reply = await wire.call(method, params, serviceParams={"authorization": SECRET})
            assert reply["error"]["code"] == -32603, method
    for _, fields in logged():
        seen, shown = fields.get("exc"), [str(fields)]
        while isinstance(seen, BaseException):
            shown.append(str(seen))
            seen = seen.__cause__ or seen.__context__
        assert SECRET not in " ".join(shown)


class Uncancellable:
    """It has no `cancel`."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        if context.text == "wait":
            await anyio.sleep_forever()
        await events.complete()


def message_of(text: str = "end", **configuration: Any) -> dict[str, Any]:
    message = {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": message, "configuration": configuration}


async def test_an_executor_that_has_no_cancel_cant_be_cancelled(serving: Any) -> None:
    async with serving(agent=Agent(Uncancellable(), name="a", description="A.")) as wire:
        begun = await wire.call("SendMessage", message_of("wait", returnImmediately=True))
        refused = (await wire.call("CancelTask", {"id": begun["result"]["task"]["id"]}))["error"]
        assert refused["code"] == -32002


class Sees:
    def __init__(self) -> None:
        self.params: list[object] = []
        self.outcomes: list[object] = []

    async def before(self, call: AgentCall) -> None:
        self.params.append(call.params)

    async def after(self, call: AgentCall, outcome: object) -> None:
        self.outcomes.append(outcome)


async def test_interceptors_see_params_and_results(serving: Any) -> None:
    sees = Sees()
    async with serving(agent=Agent(Uncancellable(), name="a", description="A.", interceptors=[sees])) as wire:
        task_id = (await wire.call("SendMessage", message_of()))["result"]["task"]["id"]
        await wire.call("GetTask", {"id": task_id})
        await wire.call("GetTask", {"id": "none"})
    sent, got, missed = sees.params
    assert isinstance(sent, SendRequest)
    assert sent.message.parts[0].text == "end"
    assert [getattr(each, "task_id", "") for each in (got, missed)] == [task_id, "none"]
    results = [each.result for each in sees.outcomes if isinstance(each, CallResult)]
    assert [each.id for each in results if isinstance(each, Task)] == [task_id] * 2
    assert len(sees.outcomes) == 3


async def test_an_extended_card_that_makes_no_sense_is_an_invalid_response(serving: Any) -> None:
    def raises(*_: object) -> Any:
        raise ValueError

    for extended, code in ((lambda *_: 3, -32006), (raises, -32603)):
        agent = Agent(Uncancellable(), name="a", description="A.", extended=extended)
        async with serving(agent=agent) as wire:
            assert (await wire.call("GetExtendedAgentCard"))["error"]["code"] == code
