"""Every place where the daemon runs code of an app, and whatever that code may raise: one answer, one log line, no end.

A place builds a daemon in which that code raises, and says what is asked of it and what comes back.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import anyio
import msgspec
import pytest

from discreet import Context, Identity, OperationError, Service
from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.agents.agent import AgentCall
from discreet.daemon.operations.access import PARENT, Access
from discreet.errors.failures import Failure, Internal
from discreet.errors.wire import encode_error_response
from support.logged_events import LoggedEvents

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]
Fault = Callable[[], None]

INTERNAL = {"code": -32603, "message": "Internal error"}
INTERNAL_OF_A2A = msgspec.json.decode(encode_error_response(b"1", Internal(), version="1.0"))["error"]
INVALID_PARAMS = -32602
NO_ERROR: dict[str, Any] = {}
AUTHORIZED = {"serviceParams": {"authorization": "Bearer x"}}


class Own(BaseException):
    """An exception that no `except Exception` catches."""


EXCEPTIONS: dict[str, type[BaseException]] = {
    cls.__name__: cls for cls in (SystemExit, KeyboardInterrupt, GeneratorExit, RecursionError, MemoryError, Own)
}


@dataclass
class Place:
    """What a daemon is made of, the request that meets the fault, and the error that answers it."""

    service: Service
    params: dict[str, Any] | None = None
    members: dict[str, Any] = field(default_factory=dict)
    made_of: dict[str, Any] = field(default_factory=dict)
    method: str = "app/it"
    error: dict[str, Any] = field(default_factory=lambda: INTERNAL)


def plain_service() -> Service:
    app = Service("app")

    @app.query(scopes=["read"])
    async def it() -> int:
        return 1

    return app


class Provider:
    """An identity provider of which one part raises."""

    def __init__(self, part: str, fault: Fault) -> None:
        self._part = part
        self._fault = fault

    def _maybe(self, part: str) -> None:
        if part == self._part:
            self._fault()

    @property
    def schemes(self) -> Sequence[str]:
        self._maybe("schemes")
        return ("bearer",)

    @property
    def realm(self) -> str:
        self._maybe("realm")
        return "app"

    def resolve(self, authorization: str) -> Identity | None:
        self._maybe("resolve")
        return None


def provider(part: str) -> Callable[[Fault], Place]:
    def place(fault: Fault) -> Place:
        access = Access(PARENT, Provider(part, fault))
        return Place(plain_service(), members=AUTHORIZED, made_of={"access": access})

    return place


def identity_in_handler(fault: Fault) -> Place:
    app = Service("app")

    @app.query()
    async def it(ctx: Context) -> str:
        return "none" if ctx.identity is None else ctx.identity.subject

    return Place(app, members=AUTHORIZED, made_of={"access": Access(PARENT, Provider("resolve", fault))})


def listing(fault: Fault) -> Place:
    access = Access(PARENT, Provider("resolve", fault))
    return Place(plain_service(), members=AUTHORIZED, made_of={"access": access}, method="services/list")


def handler(mode: str) -> Callable[[Fault], Place]:
    def place(fault: Fault) -> Place:
        app = Service("app")

        def plain() -> None:
            fault()

        async def coroutine() -> None:
            fault()

        async def waiting() -> None:
            await anyio.lowlevel.checkpoint()
            fault()

        handlers: dict[str, Any] = {"coroutine": coroutine, "waiting": waiting}
        app.query(name="it", inline=mode == "inline")(handlers.get(mode, plain))
        return Place(app)

    return place


def params(mode: str) -> Callable[[Fault], Place]:
    def place(fault: Fault) -> Place:
        app = Service("app")

        class Checked(msgspec.Struct):
            n: int

            def __post_init__(self) -> None:
                fault()

        def plain(value: Checked) -> None: ...

        async def coroutine(value: Checked) -> None: ...

        for func in (plain, coroutine):
            func.__annotations__["value"] = Checked
        options: dict[str, Any] = {"inline": {"inline": True}, "keyed": {"keyed": "value"}}.get(mode, {})
        app.query(name="it", **options)(coroutine if mode == "coroutine" else plain)
        return Place(app, {"value": {"n": 1}})

    return place


def fact(fault: Fault) -> Place:
    class Fact(msgspec.Struct):
        n: int
        checked: bool = False

        def __post_init__(self) -> None:
            if self.checked:
                fault()

    class Refused(OperationError, code="REFUSED"):
        """Refused."""

        fact: Any

    app = Service("app")

    @app.query(errors=[Refused])
    async def it() -> None:
        made = Fact(1)
        made.checked = True
        raise Refused(fact=made)

    Refused.definition = msgspec.structs.replace(
        Refused.definition, details=msgspec.defstruct("Details", [("fact", Fact)])
    )
    return Place(app)


def error_constructor(fault: Fault) -> Place:
    class Refused(OperationError, code="REFUSED"):
        """Refused."""

        def __init__(self) -> None:
            fault()

    app = Service("app")

    @app.query(errors=[Refused])
    async def it() -> None:
        raise Refused

    return Place(app)


def unfinished_error(_: Fault) -> Place:
    class Refused(OperationError, code="REFUSED"):
        """Refused."""

        n: int

        def __init__(self) -> None:
            """Forgets its details."""

    app = Service("app")

    @app.query(errors=[Refused])
    async def it() -> None:
        raise Refused

    return Place(app)


def exception_text(part: str) -> Callable[[Fault], Place]:
    def place(fault: Fault) -> Place:
        def text(self: object) -> str:
            fault()
            return ""

        odd = type("Odd", (Exception,), {part: text})
        app = Service("app")

        @app.query()
        async def it() -> None:
            raise odd

        return Place(app)

    return place


def result_value(part: str) -> Callable[[Fault], Place]:
    """A result of a class of the app's own, whose methods raise."""

    def place(fault: Fault) -> Place:
        def run(self: object, *_: object) -> Any:
            fault()

        odd = type("Odd", (object,), {part: run})
        app = Service("app")

        @app.query()
        async def it() -> Any:
            return odd()

        return Place(app)

    return place


def generator(where: str) -> Callable[[Fault], Place]:
    def place(fault: Fault) -> Place:
        app = Service("app")

        @app.subscription()
        async def it() -> AsyncIterator[int]:
            try:
                if where == "first":
                    fault()
                yield 1
                if where == "later":
                    fault()
            finally:
                if where == "clean-up":
                    fault()

        return Place(app)

    return place


class Interceptor:
    def __init__(self, part: str, fault: Fault) -> None:
        self._part = part
        self._fault = fault

    async def before(self, call: AgentCall) -> None:
        if self._part == "before":
            self._fault()

    async def after(self, call: AgentCall, outcome: Failure | None) -> None:
        if self._part == "after":
            self._fault()


class Executor:
    def __init__(self, part: str, fault: Fault) -> None:
        self._part = part
        self._fault = fault

    def check(self, context: RequestContext) -> None:
        if self._part == "check":
            self._fault()

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        if self._part == "execute":
            self._fault()
        await events.complete()

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None: ...


MESSAGE = {"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "go"}]}}


def agent(part: str, error: dict[str, Any]) -> Callable[[Fault], Place]:
    def place(fault: Fault) -> Place:
        made = Agent(Executor(part, fault), name="app", description="An app.", interceptors=[Interceptor(part, fault)])
        return Place(plain_service(), MESSAGE, made_of={"agent": made}, method="SendMessage", error=error)

    return place


PLACES: dict[str, Callable[[Fault], Place]] = {
    **{f"identity provider: {part}": provider(part) for part in ("resolve", "schemes", "realm")},
    "identity provider: in a handler": identity_in_handler,
    "identity provider: in services/list": listing,
    **{f"handler: {mode}": handler(mode) for mode in ("inline", "thread", "coroutine", "waiting")},
    **{f"params: {mode}": params(mode) for mode in ("inline", "thread", "coroutine", "keyed")},
    "a fact of an error": fact,
    "the constructor of an error": error_constructor,
    "a constructor that forgets the details": unfinished_error,
    **{f"exception: {part}": exception_text(part) for part in ("__str__", "__repr__")},
    **{f"result: {part}": result_value(part) for part in ("__iter__", "__repr__", "__dict__")},
    **{f"generator: {where}": generator(where) for where in ("first", "later", "clean-up")},
    "interceptor: before": agent("before", INTERNAL_OF_A2A),
    "interceptor: after": agent("after", NO_ERROR),
    "executor: check": agent("check", INTERNAL_OF_A2A),
    "executor: execute": agent("execute", NO_ERROR),
}


@pytest.mark.parametrize(("where", "raised"), [*itertools.product(PLACES, EXCEPTIONS)])
async def test_whatever_an_apps_code_raises_is_one_answer_and_a_log_line(
    serving: Serving, logged: LoggedEvents, where: str, raised: str
) -> None:
    def fault() -> None:
        raise EXCEPTIONS[raised]("secret")

    place = PLACES[where](fault)
    async with serving(place.service, **place.made_of) as wire:
        await wire.send(wire.request(place.method, place.params, id="it", **place.members))
        replies = [await wire.receive()]
        while replies[-1].get("id") != "it":  # events of a subscription
            replies.append(await wire.receive())
        answer = replies[-1]
        error = answer.get("error", NO_ERROR)
        if where.startswith("params") and raised == "RecursionError":
            assert error["code"] == INVALID_PARAMS  # as if the params were nested too deep
        else:
            assert error == place.error
        assert "secret" not in str(replies)
        assert set(logged.names()) - {"daemon.serving"}
        await wire.nothing_more()
        assert await wire.end() == 0
