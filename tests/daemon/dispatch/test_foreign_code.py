"""What other code of an app may raise or lack, and what its callers and the log are told of it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from discreet import CallFailed, Context, Identity, OperationError, Service
from discreet.agents import Agent, AgentCall, CallResult, RequestContext, SendRequest, Task, TaskEvents
from discreet.daemon.operations.access import PARENT, Access

pytestmark = pytest.mark.anyio

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

    agent = Agent(Executor(), name="a", description="A.")
    async with serving(app, agent=agent, access=Access(PARENT, Leaks())) as wire:
        for method in ("app/who", "app/guarded", "SendMessage", "tasks/get"):
            params = said() if method == "SendMessage" else {"id": "x"} if method == "tasks/get" else {}
            reply = await wire.call(method, params, serviceParams={"authorization": SECRET})
            assert reply["error"]["code"] == -32603, method
    for _, fields in logged():
        seen, shown = fields.get("exc"), [str(fields)]
        while isinstance(seen, BaseException):
            shown.append(str(seen))
            seen = seen.__cause__ or seen.__context__
        assert SECRET not in " ".join(shown)


class Executor:
    """It has no `cancel`."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        if context.text == "wait":
            await anyio.sleep_forever()
        await events.complete()


def said(text: str = "end", **configuration: Any) -> dict[str, Any]:
    message = {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": message, "configuration": configuration}


async def test_an_executor_that_has_no_cancel_cant_be_cancelled(serving: Any) -> None:
    async with serving(agent=Agent(Executor(), name="a", description="A.")) as wire:
        begun = await wire.call("SendMessage", said("wait", returnImmediately=True))
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
    async with serving(agent=Agent(Executor(), name="a", description="A.", interceptors=[sees])) as wire:
        task_id = (await wire.call("SendMessage", said()))["result"]["task"]["id"]
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
        agent = Agent(Executor(), name="a", description="A.", extended=extended)
        async with serving(agent=agent) as wire:
            assert (await wire.call("GetExtendedAgentCard"))["error"]["code"] == code
