"""Forms and pages: what an executor asks of the user, and what comes of each answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import anyio
import msgspec
import pytest

from discreet import ClientRefused, OperationError
from discreet.acp import AcpOptions, Asker, AuthMethod, Editor, EditorUnavailableError
from discreet.agents import TaskEvents
from support.acp_client import (
    EVERYTHING,
    AcpRefused,
    Wrong,
    acp_client,
    agent_of,
    answering,
    never,
    outcome_of,
    with_editor,
)
from support.backends import both_loops
from support.executors import echo

pytestmark = pytest.mark.anyio


class Deploy(msgspec.Struct):
    """Where to deploy to."""

    target: Literal["staging", "production"]
    replicas: Annotated[int, msgspec.Meta(ge=1, le=9, title="Replicas", description="How many.")] = 2
    share: float = 0.5
    loud: bool = False
    checks: list[Literal["lint", "tests"]] = []
    note: str | None = None


@dataclass
class Name:
    name: str


class Words(TypedDict):
    name: str


ANSWER = {"target": "staging", "replicas": 3, "share": 1, "loud": True, "checks": ["lint"]}


async def test_a_user_fills_in_a_form_of_every_kind_of_field_and_the_value_is_typed() -> None:
    seen: list[Any] = []

    async def work(editor: Editor, events: TaskEvents) -> Any:
        async with editor.tool("Deploy") as tool:
            return await editor.ask("Where to?", Deploy, tool=tool)

    answer = answering({"action": "accept", "content": ANSWER}, seen)
    outcome, client = await outcome_of(work, {"elicitation/create": answer})
    assert bool(outcome)
    assert outcome.value == Deploy("staging", 3, 1.0, True, ["lint"])
    (asked,) = seen
    assert (asked["mode"], asked["message"], asked["toolCallId"]) == (
        "form",
        "Where to?",
        client.updates[0]["toolCallId"],
    )
    assert asked["requestedSchema"]["required"] == ["target"]
    assert asked["requestedSchema"]["properties"] == {
        "target": {"type": "string", "enum": ["production", "staging"]},
        "replicas": {
            "type": "integer",
            "minimum": 1,
            "maximum": 9,
            "title": "Replicas",
            "description": "How many.",
            "default": 2,
        },
        "share": {"type": "number", "default": 0.5},
        "loud": {"type": "boolean", "default": False},
        "checks": {"type": "array", "items": {"type": "string", "enum": ["lint", "tests"]}, "default": []},
        "note": {"type": "string"},
    }


@pytest.mark.parametrize(("form", "value"), [(Name, Name("Ada")), (Words, {"name": "Ada"})])
async def test_a_form_may_be_a_dataclass_or_a_typed_dict(form: Any, value: Any) -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        return await editor.ask("Who?", form)

    answer = answering({"action": "accept", "content": {"name": "Ada"}}, [])
    assert (await outcome_of(work, {"elicitation/create": answer}))[0].value == value


@pytest.mark.parametrize(("action", "known"), [("decline", "decline"), ("cancel", "cancel"), ("later", "cancel")])
async def test_a_user_who_does_not_answer_is_no_error(action: str, known: str) -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        return await editor.ask("Who?", Name)

    outcome, _ = await outcome_of(work, {"elicitation/create": answering({"action": action}, [])})
    assert (bool(outcome), outcome.action, outcome.value) == (False, known, None)


@pytest.mark.parametrize("content", [{"name": 5}, {}, None, {"name": {"private": 1}}])
async def test_an_answer_that_does_not_fit_the_form_is_the_clients_failure(content: Any) -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        return await editor.ask("Who?", Name)

    wrong = Wrong({"action": "accept", "content": content})
    outcome, _ = await outcome_of(work, {"elicitation/create": answering(wrong, [])})
    assert type(outcome) is ClientRefused
    assert "private" not in str(outcome)
    assert outcome.__context__ is None


@pytest.mark.parametrize("form", [str, list[str], dict[str, str], TypedDict("Deep", {"inner": Name})])
async def test_what_is_no_form_is_told(form: Any) -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        with pytest.raises(ValueError, match="form"):
            await editor.ask("Who?", form)
        return "told"

    assert (await outcome_of(work))[0] == "told"


@both_loops
@pytest.mark.parametrize(("action", "agreed"), [("accept", True), ("decline", False), ("cancel", False)])
async def test_a_page_is_opened_and_the_editor_is_told_when_it_has_served_its_purpose(
    action: str, agreed: bool
) -> None:
    seen: list[Any] = []

    async def work(editor: Editor, events: TaskEvents) -> Any:
        async with editor.page("https://login.example/a", "Sign in.") as opened:
            await events.working("waiting")
            await editor.plan(["wait"])
        return opened

    outcome, client = await outcome_of(work, {"elicitation/create": answering({"action": action}, seen)})
    assert outcome is agreed
    (asked,) = seen
    assert (asked["mode"], asked["url"], asked["message"]) == ("url", "https://login.example/a", "Sign in.")
    assert client.completed == ([asked["elicitationId"]] if agreed else [])
    assert client.log[-2:] == (["elicitation/complete", "answer"] if agreed else ["update", "answer"])


async def test_a_page_whose_block_raises_has_not_served_its_purpose() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        async with editor.page("http://localhost:1/a", "Sign in."):
            raise TimeoutError

    outcome, client = await outcome_of(work, {"elicitation/create": answering({"action": "accept"}, [])})
    assert (type(outcome), client.completed) == (TimeoutError, [])


@pytest.mark.parametrize("url", ["http://login.example", "javascript:alert(1)", "file:///etc/passwd", "login"])
async def test_an_address_that_is_not_safe_to_open_is_told(url: str) -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        with pytest.raises(ValueError, match="https://"):
            async with editor.page(url, "Sign in."):
                pass
        return "told"

    assert (await outcome_of(work))[0] == "told"


@pytest.mark.parametrize("offered", [None, {}, {"form": {}}, {"url": {}}])
async def test_only_what_the_client_offers_is_asked_of_it(offered: Any) -> None:
    async def ask(editor: Editor, events: TaskEvents) -> Any:
        assert editor.can_ask is ("form" in (offered or {}))
        return await editor.ask("Who?", Name)

    async def page(editor: Editor, events: TaskEvents) -> Any:
        assert editor.can_open is ("url" in (offered or {}))
        async with editor.page("https://login.example", "Sign in."):
            return None

    answer = answering({"action": "accept", "content": {"name": "Ada"}}, [])
    capabilities = {**EVERYTHING, "elicitation": offered}
    for work, mode in ((ask, "form"), (page, "url")):
        outcome, _ = await outcome_of(work, {"elicitation/create": answer}, capabilities=capabilities)
        if mode in (offered or {}):
            assert type(outcome) is not EditorUnavailableError
        else:
            assert outcome.ability == f"elicitation.{mode}"


@both_loops
async def test_a_form_that_nobody_fills_in_is_taken_back_when_the_turn_is_cancelled() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        return await editor.ask("Who?", Name)

    async with acp_client(agent_of(with_editor(work, []))) as client:
        client.on["elicitation/create"] = never
        await client.hello()
        session = await client.session()
        running = await client.send_prompt(session)
        await client.until(lambda: "elicitation/create" in client.log)
        await client.cancel(session)
        assert (await client.answer_to(running))["stopReason"] == "cancelled"
        await client.until(lambda: client.cancelled)
        with anyio.fail_after(5):
            assert await client.session()


@pytest.mark.parametrize(("action", "code"), [("accept", None), ("decline", -32000)])
async def test_signing_in_may_open_a_page_for_the_request_that_asks_for_it(action: str, code: int | None) -> None:
    seen: list[Any] = []

    class Refused(OperationError, code="REFUSED"):
        """The user has refused."""

    async def authenticate(method: str, user: Asker) -> None:
        async with user.page("https://login.example", f"Sign in by {method}.") as agreed:
            if not agreed:
                raise Refused

    options = AcpOptions(auth_methods=(AuthMethod("web", "Browser"),), authenticate=authenticate)
    async with acp_client(agent_of(echo, acp=options)) as client:
        client.on["elicitation/create"] = answering({"action": action}, seen)
        await client.hello()
        call = await client.send("authenticate", {"methodId": "web"})
        if code is None:
            assert await client.answer_to(call) == {}
        else:
            with pytest.raises(AcpRefused) as caught:
                await client.answer_to(call)
            assert caught.value.code == code
    (asked,) = seen
    assert (asked["requestId"], asked["message"], "sessionId" in asked) == (call, "Sign in by web.", False)
    assert client.completed == ([asked["elicitationId"]] if code is None else [])


async def test_signing_in_fails_where_the_client_opens_no_pages() -> None:
    async def authenticate(method: str, user: Asker) -> None:
        assert not user.can_open
        async with user.page("https://login.example", "Sign in."):
            pass

    options = AcpOptions(auth_methods=(AuthMethod("web", "Browser"),), authenticate=authenticate)
    async with acp_client(agent_of(echo, acp=options)) as client:
        await client.hello({})
        with pytest.raises(AcpRefused) as caught:
            await client.call("authenticate", {"methodId": "web"})
    assert caught.value.code == -32000
