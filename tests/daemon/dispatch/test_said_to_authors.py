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


def raises(error: Exception) -> Any:
    raise error


async def coroutine() -> int:
    return 1


CYCLE: list[Any] = []
CYCLE.append(CYCLE)

Case = tuple[Any, Callable[[], Any], str]

RETURNED: dict[str, Case] = {
    "text": (int, lambda: "5", "returned str, but is annotated integer: Expected `int`, got `str`"),
    "nested": (
        list[dict[str, int]],
        lambda: [{"a": "5"}],
        "returned list, but is annotated array of object: Expected `int`, got `str` - at `$[0][...]`",
    ),
    "unencodable": (Any, object, "returned object: Encoding objects of type object is unsupported"),
    "broken": (Any, lambda: {"a": Raw(b"[1")}, "returned dict: JSON is malformed: expected ',' or ']' (byte 7)"),
    "two": (list[Any], lambda: [Raw(b"1],[2")], "returned list: JSON is malformed: trailing characters (byte 4)"),
    "none": (dict[str, float | None], lambda: {"a": math.nan, "b": None}, "returned dict: JSON can't represent nan"),
    "deep": (Any, lambda: [{"a": (Priced(math.inf), None)}], "returned list: JSON can't represent inf"),
    "number": (float, lambda: math.nan, "returned float: JSON can't represent nan"),
    "member": (
        dict[str, Any],
        lambda: {"files": [{"path": Path()}]},
        "returned dict: at $.files[0].path: Encoding objects of type PosixPath is unsupported",
    ),
    "cyclic": (Any, lambda: CYCLE, "returned list: maximum recursion depth exceeded while serializing an object"),
    "error": (int, lambda: Broken(at=1), "returned Broken, which is to be raised: write `raise Broken(…)`"),
    "forgotten": (int, coroutine, "returned a coroutine: is an `await` missing?"),
    "events": (AsyncIterator[int], lambda: "5", "yielded str, but is annotated integer: Expected `int`, got `str`"),
}
RAISED: dict[str, Case] = {
    "undeclared": (int, lambda: raises(Surprise()), "declare it: errors=[Surprise]"),
    "details": (
        int,
        lambda: raises(Broken(at="here")),  # type: ignore[arg-type]
        "the details of Broken are not what it declares: Expected `int`, got `str` - at `$.at`",
    ),
}


@pytest.mark.parametrize("name", [*RETURNED, *RAISED])
async def test_a_wrong_outcome_says_once_what_came_what_was_declared_and_where(
    serving: Serving, logged: LoggedEvents, name: str
) -> None:
    service = Service("faulty")
    annotation, make, problem = {**RETURNED, **RAISED}[name]

    def returns() -> Any:
        return make()

    async def yields() -> Any:
        yield make()

    handler, declare = (yields, service.subscription) if name == "events" else (returns, service.query)
    handler.__annotations__["return"] = annotation
    declare(name="it", errors=[Broken])(handler)
    async with serving(service) as wire:
        error = (await wire.call("faulty/it"))["error"]
        assert error.pop("data", None) == ({"code": "SURPRISE"} if name == "undeclared" else None)
        assert error == {"code": -32603, "message": "Internal error"}
    [(event, fields)] = [each for each in logged() if each[0].endswith(".failed")]
    assert (event, fields["hint" if name == "undeclared" else "problem"]) == ("handler.failed", problem)
    if name in RAISED:
        assert isinstance(fields["exc"], OperationError)
    else:
        assert fields["handler"].startswith("test_said_to_authors.py:")
        assert "exc" not in fields


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


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda ctx: ctx.credentials["gitlab"], "declares github"),
        (lambda ctx: ctx.documents["file:///a"].text, "file:///a is open"),
        (lambda ctx: ctx.log("warn", "x"), "warning"),
        (lambda ctx: ctx.time_lfet, "a context has no time_lfet; nearest: time_left"),
    ],
)
async def test_what_a_context_is_asked_wrongly_says_what_there_is(
    serving: Serving, logged: LoggedEvents, ask: Callable[[Context], Any], said: str
) -> None:
    service = Service("faulty", credentials=["github"])

    @service.query
    def wrong(ctx: Context) -> Any:
        return ask(ctx)

    async with serving(service, credentials={"github": "hidden"}) as wire:
        await wire.call("faulty/wrong")
    assert said in str(dict(logged())["handler.failed"]["exc"])


@pytest.mark.parametrize(("method", "names"), [("$/unknown", []), ("unknown", ["request.failed"])])
async def test_what_clients_may_send_to_any_server_is_no_warning(
    serving: Serving, logged: LoggedEvents, method: str, names: list[str]
) -> None:
    async with serving() as wire:
        await wire.send({"jsonrpc": "2.0", "method": method})
        await wire.nothing_more()
    assert [name for name in logged.names() if name == "request.failed"] == names


class Wrong:
    """An executor that is wrong in the way that the message names."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> Any:
        match context.text:
            case "text":
                return "done"
            case "coroutine":
                return events.complete("done")
            case "state":
                await events.status("done")  # type: ignore[arg-type]
            case "metadata":
                await events.working(metadata=5)  # type: ignore[arg-type]
            case "parts":
                await events.artifact(Part(text="x", data=1))
            case "late":
                await events.complete()
                await events.artifact("late")

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None: ...


@pytest.mark.parametrize(
    ("text", "event", "said"),
    [
        ("text", "agent.unfinished", "execute returned str, which is not sent"),
        ("coroutine", "agent.unfinished", "execute returned a coroutine: is an `await` missing?"),
        ("nothing", "agent.unfinished", "end with `await events.complete(…)`"),
        ("state", "agent.failed", "the state is a member of TaskState, such as TaskState.WORKING, not 'done'"),
        ("metadata", "agent.failed", "metadata is a dict, not int"),
        ("parts", "agent.failed", "content is text, or at least one Part, each with exactly one of text, raw, url and"),
        ("late", "agent.failed", "INVALID_STATE_TRANSITION: The task has ended and takes no more events"),
    ],
)
async def test_an_executor_that_is_wrong_is_told_what_was_meant(
    serving: Serving, logged: LoggedEvents, text: str, event: str, said: str
) -> None:
    async with serving(agent=Agent(Wrong(), name="Clerk", description="Errs.")) as wire:
        await wire.call("SendMessage", message_of(text))
        await wire.end()
    [fields] = [fields for name, fields in logged() if name in ("agent.unfinished", "agent.failed")]
    assert str(fields["hint" if event == "agent.unfinished" else "exc"]).startswith(said)


async def test_a_thread_that_outlives_its_deadline_is_said_once(serving: Serving, logged: LoggedEvents) -> None:
    service, over = Service("late"), threading.Event()

    @service.query(timeout=0.01)
    def work() -> None:
        over.wait(DEADLINE_SECONDS)

    async with serving(service) as wire:
        await wire.call("late/work")
        over.set()
        await until(lambda: wire.daemon.host.scheduler.idle)
    assert logged.names().count("handler.overdue") == 1


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
