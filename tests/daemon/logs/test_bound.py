"""What is logged while a handler runs says of which request and of which task."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest
import structlog

from discreet import Context, OperationError, Service
from discreet.a2a.types import new_id
from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.daemon.logs import capture_logging, capture_structlog, log, uninstall_hooks
from discreet.daemon.logs.hooks import PrintedTexts
from support.logged_events import LoggedEvents

pytestmark = pytest.mark.anyio

ID = "the-id"


@pytest.fixture(autouse=True)
def _hooks() -> Any:
    capture_logging()
    capture_structlog()
    yield
    uninstall_hooks()


def by_logging() -> None:
    logging.getLogger("app").warning("said")


def by_structlog() -> None:
    structlog.get_logger().warning("said")


def by_print() -> None:
    taken = PrintedTexts()
    for text in ("sa", "id", "\n"):
        assert taken.take("stdout", text)


def unfinished_line() -> None:
    assert PrintedTexts().take("stdout", "said")  # logged when the handler's variables go


SAYS = [by_logging, by_structlog, by_print, unfinished_line]


def said(logged: LoggedEvents) -> list[dict[str, Any]]:
    return [fields for name, fields in logged() if name in ("python.log", "stdout.stray")]


@pytest.mark.parametrize("say", SAYS)
@pytest.mark.parametrize("kind", ["inline", "queued", "thread", "coroutine", "task", "stream", "inner"])
async def test_a_handler_names_its_request(
    serving: Any, logged: LoggedEvents, say: Callable[[], None], kind: str
) -> None:
    app = Service("app", uses=["app/coroutine"])

    @app.query(inline=True)
    def inline() -> None:
        say()

    @app.query(inline=True, serial=True)
    def queued() -> None:
        say()

    @app.query
    def thread() -> None:
        say()

    @app.query
    async def coroutine() -> None:
        await anyio.lowlevel.checkpoint()
        say()

    async def say_later() -> None:
        await anyio.lowlevel.checkpoint()
        say()

    @app.query
    async def task() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(say_later)

    @app.subscription
    async def stream() -> AsyncIterator[int]:
        say()
        yield 1

    @app.query
    async def inner(ctx: Context) -> None:
        await ctx.call("app/coroutine")

    async with serving(app) as wire:
        logged()
        await wire.send({"jsonrpc": "2.0", "id": ID, "method": f"app/{kind}"})
        while (await wire.receive()).get("method") == "stream/event":
            pass
        await wire.call("version")
    [fields] = said(logged)
    method = "app/coroutine" if kind == "inner" else f"app/{kind}"
    assert (fields["method"], fields["id"]) == (method, b'"the-id"')


async def test_code_of_the_daemon_itself_names_none(serving: Any, logged: LoggedEvents) -> None:
    app = Service("app")

    @app.query(inline=True)
    def inline() -> None: ...

    async with serving(app) as wire:
        await wire.call("app/inline")
        logged()
        log.warning("daemon.fault")
        assert logged() == [("daemon.fault", {})]
    assert not PrintedTexts().take("stdout", "x")


class Refused(OperationError, code="REFUSED"):
    """It is refused."""


class Executor:
    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await anyio.lowlevel.checkpoint()
        self._work()


def raise_crash() -> None:
    raise ValueError


def raise_declared() -> None:
    raise Refused


def message(**part: Any) -> dict[str, Any]:
    return {"message": {"messageId": new_id(), "role": "ROLE_USER", "parts": [part]}}


@pytest.mark.parametrize(
    ("work", "event"), [(by_logging, "python.log"), (raise_crash, "agent.failed"), (raise_declared, "task.failed")]
)
async def test_an_executor_names_its_task_and_the_request(
    serving: Any, logged: LoggedEvents, work: Callable[[], None], event: str
) -> None:
    async with serving(agent=Agent(Executor(work), name="a", description="A.")) as wire:
        reply = await wire.call("SendMessage", message(text="go"), id=ID)
        fields = dict(logged())[event]
    assert fields["task"] == reply["result"]["task"]["id"]
    assert (fields["method"], fields["id"]) == ("SendMessage", b'"the-id"')


@pytest.mark.parametrize("raised", [ValueError, Refused])
async def test_a_skill_names_its_task_and_the_request(
    serving: Any, logged: LoggedEvents, raised: type[Exception]
) -> None:
    app = Service("app")

    @app.query(errors=[Refused])
    async def crash() -> None:
        raise raised

    async with serving(app) as wire:
        reply = await wire.call("SendMessage", message(data={"skill": "app/crash"}), id=ID)
        fields = dict(logged())["handler.failed" if raised is ValueError else "task.failed"]
    assert fields["task"] == reply["result"]["task"]["id"]
    assert fields["id"] == b'"the-id"'


async def test_a_request_that_fails_names_the_task_that_it_is_about(serving: Any, logged: LoggedEvents) -> None:
    async with serving(agent=Agent(Executor(by_logging), name="a", description="A.")) as wire:
        sent = await wire.call("SendMessage", message(text="go"))
        task_id = sent["result"]["task"]["id"]
        assert (await wire.call("CancelTask", {"id": task_id}))["error"]["code"] == -32002
        assert dict(logged())["request.failed"]["task"] == task_id
