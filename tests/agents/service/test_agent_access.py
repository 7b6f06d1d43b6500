"""Who may call a declared agent: the security requirements of its card are checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from discreet import Identity
from discreet.a2a.methods import METHODS
from discreet.agents import Agent, HttpAuth, RequestContext, SecurityRequirement, TaskEvents, requires
from discreet.client import AuthenticationRequired, InsufficientPermissions, VersionNotSupported
from discreet.testing import in_memory

pytestmark = pytest.mark.anyio

MESSAGE = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}


class Echo:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await events.complete()

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to clean up."""


class Badges:
    """Takes `badge NAME` for the scopes of that name."""

    schemes: Sequence[str] = ("badge",)
    realm = "house"

    def resolve(self, authorization: str) -> Identity | None:
        scopes = {"reader": frozenset({"read"}), "writer": frozenset({"read", "write"}), "guest": frozenset[str]()}
        name = authorization.removeprefix("badge ")
        return Identity(name, scopes[name]) if name in scopes else None


def agent(*alternatives: SecurityRequirement) -> Agent:
    schemes = {"badge": HttpAuth("badge")}
    return Agent(Echo(), name="echo", description="Completes.", security_schemes=schemes, security=alternatives)


async def send(peer: Any, name: str | None) -> Any:
    params = {} if name is None else {"authorization": f"badge {name}"}
    return await peer.call("SendMessage", MESSAGE, service_params=params)


async def test_one_of_the_alternatives_is_enough_and_without_any_the_caller_is_refused() -> None:
    guarded = agent(requires({"badge": ["read", "write"]}), requires({"badge": ["admin"]}))
    async with in_memory(guarded, provider=Badges()) as peer:
        assert (await send(peer, "writer"))["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        for name in ("reader", "guest"):
            with pytest.raises(InsufficientPermissions):
                await send(peer, name)
        for stranger in (None, "nobody"):
            with pytest.raises(AuthenticationRequired) as refused:
                await send(peer, stranger)
            assert refused.value.failure.schemes == ("badge",)


async def test_an_empty_requirement_admits_every_caller() -> None:
    async with in_memory(agent(requires({"badge": ["read"]}), SecurityRequirement()), provider=Badges()) as peer:
        for name in (None, "guest", "reader"):
            assert "task" in await send(peer, name)


async def test_an_agent_without_requirements_needs_an_identity() -> None:
    open_agent = Agent(Echo(), name="echo", description="Completes.")
    async with in_memory(open_agent, provider=Badges()) as peer:
        assert "task" in await send(peer, "guest")
        with pytest.raises(AuthenticationRequired):
            await send(peer, None)


async def test_the_scopes_of_the_daemons_parent_count_too() -> None:
    guarded = agent(requires({"badge": ["write"]}))
    async with in_memory(guarded, scopes=["write"]) as peer:
        assert "task" in await send(peer, None)
    async with in_memory(guarded, scopes=["read"]) as peer:
        with pytest.raises(InsufficientPermissions):
            await send(peer, None)


@pytest.mark.parametrize("method", sorted(METHODS))
async def test_access_comes_before_the_version_and_that_before_the_params(method: str) -> None:
    wrong = {"a2a-version": "9.9"}
    async with in_memory(agent(requires({"badge": ["read"]})), provider=Badges()) as peer:
        for params in (["wrong"], {"id": 7, "message": None}):
            with pytest.raises(AuthenticationRequired):
                await peer.call(method, params, service_params=wrong)
            with pytest.raises(InsufficientPermissions):
                await peer.call(method, params, service_params={**wrong, "authorization": "badge guest"})
            with pytest.raises(VersionNotSupported):
                await peer.call(method, params, service_params={**wrong, "authorization": "badge reader"})
