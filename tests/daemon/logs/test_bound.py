"""What is logged while a handler runs says of which request and of which task."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from discreet import OperationError, Service
from discreet.a2a.types import new_id
from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.daemon.logs import capture_logging, capture_structlog, log, uninstall_hooks
from discreet.daemon.logs.hooks import PrintedTexts
from discreet.daemon.operations.access import Access
from discreet.daemon.operations.identity import Identity
from support.logged_events import LoggedEvents
from support.waits import until

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


class Tells:
    """An identity provider that logs, and refuses."""

    schemes = ("Bearer",)
    realm = ""

    def resolve(self, authorization: str) -> Identity | None:
        by_logging()
        return None


async def test_an_identity_provider_names_the_request_of_the_caller(serving: Any, logged: LoggedEvents) -> None:
    app = Service("app")

    @app.query(scopes=["read"])
    def read() -> None: ...

    async with serving(app, access=Access(Identity("parent", frozenset()), Tells())) as wire:
        logged()
        await wire.call("app/read", id=ID, serviceParams={"authorization": "Bearer x"})
        said = dict(logged())
    for event in ("python.log", "request.failed"):
        assert (said[event]["method"], said[event]["id"]) == ("app/read", b'"the-id"')


async def test_a_handler_that_blocks_the_loop_or_leaves_a_scope_names_its_request(
    serving: Any, logged: LoggedEvents
) -> None:
    app = Service("app")

    @app.query
    async def block() -> None:
        time.sleep(0.1)  # noqa: ASYNC251 - it blocks the loop

    @app.query
    async def leave() -> None:
        anyio.CancelScope().__enter__()

    async with serving(app, blocked_after=0.02) as wire:
        logged()
        for name in ("block", "leave"):
            await wire.call(f"app/{name}", id=ID)
        said: dict[str, Any] = {}

        def are_there() -> bool:
            said.update(logged())
            return said.keys() >= {"loop.blocked", "handler.scope_left_open"}

        await until(are_there)
    for name, event in (("block", "loop.blocked"), ("leave", "handler.scope_left_open")):
        assert (said[event]["method"], said[event]["id"]) == (f"app/{name}", b'"the-id"')


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
