"""Every place where the daemon runs code of an app, and whatever that code may raise: one answer, one log line, no end.

A place builds a daemon in which that code raises, and says what is asked of it and what comes back.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
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
from support.daemon_wire import Serving
from support.logged_events import LoggedEvents

pytestmark = pytest.mark.anyio
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


def serving_it(handler: Callable[..., Any], kind: str = "query", **options: Any) -> Service:
    app = Service("app")
    getattr(app, kind)(name="it", **options)(handler)
    return app


async def one() -> int:
    return 1


async def subject(ctx: Context) -> str:
    return "none" if ctx.identity is None else ctx.identity.subject


class AppCode:
    """An identity provider, an interceptor and an executor of which one part raises."""

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

    async def before(self, call: AgentCall) -> None:
        self._maybe("before")

    async def after(self, call: AgentCall, outcome: Failure | None) -> None:
        self._maybe("after")

    def check(self, context: RequestContext) -> None:
        self._maybe("check")

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        self._maybe("execute")
        await events.complete()

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None: ...


def provider(part: str, fault: Fault, *, handler: Callable[..., Any] = one, method: str = "app/it") -> Place:
    scopes = ["read"] if handler is one else []
    access = Access(PARENT, AppCode(part, fault))
    return Place(serving_it(handler, scopes=scopes), None, AUTHORIZED, {"access": access}, method)


def agent(part: str, fault: Fault) -> Place:
    code = AppCode(part, fault)
    made = Agent(code, name="app", description="An app.", interceptors=[code])
    error = INTERNAL_OF_A2A if part in ("before", "check") else NO_ERROR
    return Place(serving_it(one), MESSAGE, made_of={"agent": made}, method="SendMessage", error=error)


def handler(mode: str, fault: Fault) -> Place:
    def plain() -> None:
        fault()

    async def coroutine() -> None:
        if mode == "waiting":
            await anyio.lowlevel.checkpoint()
        fault()

    is_plain = mode in ("inline", "thread")
    return Place(serving_it(plain if is_plain else coroutine, inline=mode == "inline"))


def params(mode: str, fault: Fault) -> Place:
    class Checked(msgspec.Struct):
        n: int

        def __post_init__(self) -> None:
            fault()

    def plain(value: Checked) -> None: ...

    async def coroutine(value: Checked) -> None: ...

    for func in (plain, coroutine):
        func.__annotations__["value"] = Checked
    options: dict[str, Any] = {"inline": {"inline": True}, "keyed": {"keyed": "value"}}.get(mode, {})
    return Place(serving_it(coroutine if mode == "coroutine" else plain, **options), {"value": {"n": 1}})


def declared_error(how: str, fault: Fault) -> Place:
    """An error whose fact is checked when it is sent, whose constructor raises, or whose constructor forgets the fact."""

    class Fact(msgspec.Struct):
        n: int
        checked: bool = False

        def __post_init__(self) -> None:
            if self.checked:
                fault()

    class Refused(OperationError, code="REFUSED"):
        """Refused."""

        fact: Any

        def __init__(self) -> None:
            if how == "constructor":
                fault()
            elif how == "fact":
                super().__init__(fact=Fact(1))
                self.fact.checked = True

    if how == "fact":
        details = msgspec.defstruct("Details", [("fact", Fact)])
        Refused.definition = msgspec.structs.replace(Refused.definition, details=details)

    async def it() -> None:
        raise Refused

    return Place(serving_it(it, errors=[Refused]))


def odd_value(part: str, fault: Fault, *, base: type) -> Place:
    """An exception or a result of a class of the app's own, of which one method raises."""

    def run(self: object, *_: object) -> Any:
        fault()
        return ""

    odd = type("Odd", (base,), {part: run})

    async def it() -> Any:
        if base is Exception:
            raise odd
        return odd()

    return Place(serving_it(it))


def generator(where: str, fault: Fault) -> Place:
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

    return Place(serving_it(it, "subscription"))


def plain_generator(where: str, fault: Fault) -> Place:
    def it() -> Iterator[int]:
        try:
            if where == "first":
                fault()
            yield 1
            if where == "later":
                fault()
        finally:
            if where == "clean-up":
                fault()

    return Place(serving_it(it, "subscription"))


MESSAGE = {"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "go"}]}}

MAKERS: dict[str, tuple[Callable[..., Place], str]] = {
    "identity provider": (provider, "resolve schemes realm"),
    "handler": (handler, "inline thread coroutine waiting"),
    "params": (params, "inline thread coroutine keyed"),
    "error": (declared_error, "fact constructor forgotten"),
    "exception": (partial(odd_value, base=Exception), "__str__ __repr__"),
    "result": (partial(odd_value, base=object), "__iter__ __repr__ __dict__"),
    "generator": (generator, "first later clean-up"),
    "plain generator": (plain_generator, "first later clean-up"),
    "agent": (agent, "before after check execute"),
    "identity provider in a handler": (partial(provider, handler=subject), "resolve"),
    "identity provider in services/list": (partial(provider, method="services/list"), "resolve"),
}
PLACES = {f"{kind}: {part}": partial(make, part) for kind, (make, parts) in MAKERS.items() for part in parts.split()}


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
