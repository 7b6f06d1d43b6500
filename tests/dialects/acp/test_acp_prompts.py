"""A prompt: what is told of it, why it stops, and what becomes of it when it is cancelled in any state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet import OperationError
from discreet.agents import NotCancelable, RequestContext, TaskEvents
from discreet.agents.editor import Limit
from support.acp_client import AcpRefused, acp_client, agent_of
from support.backends import both_loops
from support.executors import Execute, ask_then_echo, echo, for_ever

pytestmark = pytest.mark.anyio


def busy(ended: anyio.Event) -> Execute:
    """Work that says `on`, and then goes on until it is cancelled."""

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        try:
            await events.working("on")
            await anyio.sleep_forever()
        finally:
            ended.set()

    return execute


async def thinks(context: RequestContext, events: TaskEvents) -> None:
    await events.working("Thinking …")
    await events.artifact(f"Hello, {context.text}!")
    await events.complete()


async def in_parts(context: RequestContext, events: TaskEvents) -> None:
    one = await events.artifact("a")
    await events.artifact("b", artifact_id=one, append=True)
    await events.complete("done")


async def replies(context: RequestContext, events: TaskEvents) -> None:
    await events.reply("pong")


async def rejects(context: RequestContext, events: TaskEvents) -> None:
    await events.reject("Not mine.")


@pytest.mark.parametrize(
    ("execute", "reason", "thought", "said"),
    [
        (thinks, "end_turn", "Thinking …", "Hello, Ada!"),
        (in_parts, "end_turn", "", "ab\n\ndone"),
        (replies, "end_turn", "", "pong"),
        (rejects, "refusal", "", "Not mine."),
    ],
)
async def test_what_an_unchanged_executor_says_is_told_before_the_answer_which_says_why_the_turn_ended(
    execute: Execute, reason: str, thought: str, said: str
) -> None:
    async with acp_client(agent_of(execute, replies_without_task=execute is replies)) as client:
        await client.hello()
        assert await client.prompt(await client.session(), "Ada") == reason
        assert (client.texts("agent_thought_chunk"), client.texts("agent_message_chunk")) == (thought, said)
        assert client.log[-2:] == ["update", "answer"]


@pytest.mark.parametrize("limit", ["max_tokens", "max_turn_requests"])
async def test_an_executor_that_stops_at_a_limit_ends_its_turn_so_and_no_later_one(limit: Limit) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        assert context.editor is not None
        if context.text == "long":
            context.editor.end_with(limit)
        await events.require_input("And so on")

    async with acp_client(agent_of(execute)) as client:
        session = await client.session()
        assert await client.prompt(session, "long") == limit
        assert client.texts("agent_message_chunk") == "And so on"
        assert await client.prompt(session, "short") == "end_turn"


async def test_a_limit_does_not_hide_a_refusal() -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        assert context.editor is not None
        context.editor.end_with("max_tokens")
        await events.reject()

    async with acp_client(agent_of(execute)) as client:
        assert await client.prompt(await client.session()) == "refusal"


def raising(number: int | None) -> Execute:
    class Full(OperationError, code="FULL", number=number, retryable=True):
        """The tray is full."""

        sheets: int

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        raise Full(sheets=3)

    return execute


async def fails(context: RequestContext, events: TaskEvents) -> None:
    await events.fail("The press is broken.")


async def crashes(context: RequestContext, events: TaskEvents) -> None:
    raise RuntimeError("s3cr3t")


FULL = {"code": "FULL", "retryable": True, "details": {"sheets": 3}}


@pytest.mark.parametrize(
    ("execute", "code", "message", "data"),
    [
        (fails, -32010, "The press is broken.", {"code": "TASK_FAILED", "retryable": False}),
        (crashes, -32010, "The agent has failed.", {"code": "TASK_FAILED", "retryable": False}),
        (raising(None), -32010, "The tray is full", FULL),
        *((raising(number), number, "The tray is full", FULL) for number in (*range(-32009, -32000), -32803, 7)),
        *((raising(number), -32010, "The tray is full", FULL) for number in (-32000, -32800)),  # ACP's own
    ],
)
async def test_a_task_that_fails_is_an_error_with_what_is_declared(
    execute: Execute, code: int, message: str, data: dict[str, Any]
) -> None:
    async with acp_client(agent_of(execute)) as client:
        with pytest.raises(AcpRefused) as caught:
            await client.prompt(await client.session())
    assert (caught.value.code, caught.value.message, caught.value.data) == (code, message, data)
    assert "s3cr3t" not in str(caught.value.args)


async def test_a_task_that_asks_ends_the_turn_and_the_next_prompt_goes_on_with_it() -> None:
    async with acp_client(agent_of(ask_then_echo)) as client:
        session = await client.session()
        assert await client.prompt(session, "first") == "end_turn"
        assert client.texts("agent_message_chunk") == "What else?"
        assert await client.prompt(session, "second") == "end_turn"
        assert client.texts("agent_message_chunk").endswith("second")


async def test_a_task_that_needs_its_user_to_sign_in_is_answered_with_32000_and_goes_on_afterwards() -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        if len(context.task.history) == 1:
            await events.require_auth("Sign in first.")
        else:
            await events.complete("Welcome.")

    async with acp_client(agent_of(execute)) as client:
        session = await client.session()
        with pytest.raises(AcpRefused) as caught:
            await client.prompt(session)
        assert (caught.value.code, caught.value.message) == (-32000, "Sign in first.")
        assert await client.prompt(session) == "end_turn"


async def test_a_second_prompt_in_a_session_is_refused_and_one_in_another_session_runs() -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await (for_ever if context.text == "wait" else echo)(context, events)

    async with acp_client(agent_of(execute)) as client:
        first, second = await client.session(), await client.session()
        running = await client.send_prompt(first, "wait")
        with pytest.raises(AcpRefused) as caught:
            await client.prompt(first, "again")
        assert caught.value.code == -32600
        assert await client.prompt(second, "here") == "end_turn"
        await client.cancel(first)
        assert (await client.answer_to(running))["stopReason"] == "cancelled"


async def test_an_unknown_session_is_no_resource() -> None:
    async with acp_client(agent_of(echo)) as client:
        with pytest.raises(AcpRefused) as caught:
            await client.prompt("nowhere")
        assert caught.value.code == -32002
        await client.cancel("nowhere")
        assert await client.session()


# -- cancellation ----------------------------------------------------------------------------------------------


async def test_a_running_prompt_is_cancelled_with_its_task_and_with_what_the_executor_says_last() -> None:
    ended = anyio.Event()

    async def cancel(context: RequestContext, events: TaskEvents) -> None:
        await events.cancel("Stopped.")

    async with acp_client(agent_of(busy(ended), cancel)) as client:
        session = await client.session()
        running = await client.send_prompt(session)
        await client.until(lambda: client.updates)
        await client.cancel(session)
        assert (await client.answer_to(running))["stopReason"] == "cancelled"
        assert client.texts("agent_message_chunk") == "Stopped."
        await ended.wait()


async def test_a_cancellation_holds_for_every_prompt_that_was_read_before_it_and_none_reaches_the_executor() -> None:
    executed: list[str] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        executed.append(context.text)
        await events.complete()

    async with acp_client(agent_of(execute)) as client:
        session = await client.session()
        async with client.in_one_piece():
            prompts = [await client.send_prompt(session) for _ in range(3)]
            await client.cancel(session)
        assert [(await client.answer_to(each))["stopReason"] for each in prompts] == ["cancelled"] * 3
        assert await client.prompt(session, "next") == "end_turn"
    assert executed == ["next"]


async def test_a_cancellation_without_a_prompt_does_not_touch_the_next_one() -> None:
    async with acp_client(agent_of(echo)) as client:
        session = await client.session()
        await client.cancel(session)
        assert await client.prompt(session) == "end_turn"
        await client.cancel(session)
        assert await client.prompt(session) == "end_turn"


async def test_a_task_whose_executor_refuses_is_left_alone_and_the_turn_is_cancelled() -> None:
    go_on = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        if context.text == "first":
            await events.working("on")
            await go_on.wait()
            await events.require_input("?")
        else:
            await events.complete(context.text)

    async def cancel(context: RequestContext, events: TaskEvents) -> None:
        raise NotCancelable

    async with acp_client(agent_of(execute, cancel)) as client:
        session = await client.session()
        running = await client.send_prompt(session, "first")
        await client.until(lambda: client.updates)
        await client.cancel(session)
        assert (await client.answer_to(running))["stopReason"] == "cancelled"
        assert await client.prompt(session, "second") == "end_turn"
        assert client.texts("agent_message_chunk") == "second"
        go_on.set()


async def test_a_failure_after_the_cancellation_is_no_error() -> None:
    async def cancel(context: RequestContext, events: TaskEvents) -> None:
        await events.fail("too late")

    async with acp_client(agent_of(for_ever, cancel)) as client:
        session = await client.session()
        running = await client.send_prompt(session)
        await client.cancel(session)
        assert (await client.answer_to(running))["stopReason"] == "cancelled"


async def test_a_request_that_is_cancelled_by_its_id_is_answered_so_and_ends_its_task() -> None:
    ended = anyio.Event()
    async with acp_client(agent_of(busy(ended))) as client:
        session = await client.session()
        running = await client.send_prompt(session)
        await client.until(lambda: client.updates)
        await client.notify("$/cancel_request", {"requestId": running})
        with pytest.raises(AcpRefused) as caught:
            await client.answer_to(running)
        assert caught.value.code == -32800
        await ended.wait()


async def test_closing_a_session_cancels_what_runs_in_it() -> None:
    async with acp_client(agent_of(for_ever)) as client:
        session = await client.session()
        running = await client.send_prompt(session)
        await client.call("session/close", {"sessionId": session})
        assert (await client.answer_to(running))["stopReason"] == "cancelled"
        with pytest.raises(AcpRefused):
            await client.prompt(session)


async def test_a_client_that_hangs_up_in_the_middle_of_a_prompt_ends_the_daemon() -> None:
    async with acp_client(agent_of(for_ever), drain_timeout=0.2) as client:
        await client.send_prompt(await client.session())
        client.hang_up()
        await client.until(lambda: client.ended)


@both_loops
@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_whenever_a_prompt_is_cancelled_it_has_one_answer_and_the_next_one_runs(
    store: str, tmp_path: Path
) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        assert context.editor is not None
        await events.working("on")
        async with context.editor.tool("Look"):
            await events.artifact("half")
            await anyio.lowlevel.checkpoint()
        await context.editor.permit("Go on?")
        await events.complete("done")

    async def allow(params: Any) -> Any:
        return {"outcome": {"outcome": "selected", "optionId": "allow"}}

    where = "memory" if store == "memory" else f"sqlite:{tmp_path / 'tasks.db'}"
    async with acp_client(agent_of(execute), store=where) as client:
        client.on["session/request_permission"] = allow
        session = await client.session()
        reasons = set()
        for turns in range(40):
            running = await client.send_prompt(session)
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            await client.cancel(session)
            reasons.add((await client.answer_to(running))["stopReason"])
            assert await client.prompt(session) == "end_turn"
            shown = [each.get("status") for each in client.updates if "toolCallId" in each]
            assert shown.count("in_progress") == shown.count("completed") + shown.count("failed")
        assert "cancelled" in reasons
        assert reasons <= {"cancelled", "end_turn"}
