"""Executions that ask: none waits for the answer, which continues behind the steps that are stored."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from discreet.a2a.types import Message, Task, TaskState
from discreet.agents import Agent, RequestContext, StepError, TaskEvents, steps
from discreet.agents.request_handler import RequestHandler
from discreet.errors import FailureError, InvalidParams
from discreet.testing import in_memory
from support.daemons import until_ended
from support.executors import ME, Scripted, request, task_of
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


def text_of(message: Message | None) -> str:
    assert message is not None
    return message.parts[0].text or ""


class Tailor:
    """Measures, asks twice, and sews. `log` has what it did, with the text of its message."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.refuses = ""

    def check(self, context: RequestContext) -> str:
        if context.text == self.refuses:
            raise FailureError(InvalidParams("message", "another text", "string"))
        return context.text.upper()

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        self.log.append(f"begins {context.text} {context.checked}")
        await events.step("measure", self.log.append, f"measures {context.text}")
        colour = text_of(await events.ask("colour", "Which colour?"))
        await events.step("cut", self.log.append, f"cuts {colour}")
        size = text_of(await events.ask("size", f"Which size of {colour}?"))
        await events.step("sew", self.log.append, f"sews {size}")
        await events.complete(f"{context.text}, {colour}, {size}")

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None: ...


DONE = [
    "begins coat COAT",
    "measures coat",
    "begins coat COAT",
    "cuts red",
    "begins coat COAT",
    "sews 38",
]


async def asked(handler: RequestHandler, text: str, task: Task | None = None) -> Task:
    told = await task_of(handler, request(text, task_id=None if task is None else task.id))
    assert told.status.state is TaskState.INPUT_REQUIRED
    return told


async def test_an_answer_continues_behind_the_stored_steps(serving, store) -> None:
    tailor = Tailor()
    async with serving(tailor, store, steps=True) as handler:
        task = await asked(handler, "coat")
        assert text_of(task.status.message) == "Which colour?"
        await until(lambda: not handler._runner.count)
        task = await asked(handler, "red", task)
        assert text_of(task.status.message) == "Which size of red?"
        task = await task_of(handler, request("38", task_id=task.id))
    assert task.status.state is TaskState.COMPLETED
    assert text_of(task.status.message) == "coat, red, 38"
    assert [text_of(message) for message in task.history] == [
        "coat",
        "Which colour?",
        "red",
        "Which size of red?",
        "38",
    ]
    assert tailor.log == DONE


async def test_daemons_that_end_between_question_and_answer_lose_nothing(daemon_on, tmp_path: Path) -> None:
    tailor, path = Tailor(), tmp_path / "tasks.db"
    async with daemon_on(path, tailor, steps=True, killed=True) as first:
        task = await asked(first, "coat")
    async with daemon_on(path, tailor, steps=True) as second:
        task = await asked(second, "red", task)
    async with daemon_on(path, tailor, steps=True) as third, daemon_on(path, tailor, steps=True):
        task = await task_of(third, request("38", task_id=task.id))
    assert text_of(task.status.message) == "coat, red, 38"
    assert tailor.log == DONE


async def test_an_answer_whose_execution_is_cut_off_is_kept(daemon_on, tmp_path: Path) -> None:
    hangs = anyio.Event()

    class Slow(Tailor):
        async def execute(self, context: RequestContext, events: TaskEvents) -> None:
            self.log.append(context.text)
            answer = await events.ask("colour", "Which colour?")
            if not hangs.is_set():
                hangs.set()
                await anyio.sleep_forever()
            await events.complete(f"{context.text} {context.checked} {text_of(answer)}")

    slow, path = Slow(), tmp_path / "tasks.db"
    async with daemon_on(path, slow, steps=True, killed=True) as first:
        task = await asked(first, "coat")
        await task_of(first, request("red", task_id=task.id, at_once=True))
        with anyio.fail_after(DEADLINE_SECONDS):
            await hangs.wait()
    async with daemon_on(path, slow, steps=True) as second:
        with anyio.fail_after(DEADLINE_SECONDS):
            await until_ended(second, 1)
        assert text_of((await second.get(task.id, ME)).status.message) == "coat COAT red"
    assert slow.log == ["coat"] * 3


async def test_a_task_that_asks_can_be_canceled_and_keeps_no_step(serving, store) -> None:
    tailor = Tailor()
    async with serving(tailor, store, steps=True) as handler:
        task = await asked(handler, "coat")
        assert (await handler.cancel(task.id, None, ME)).status.state is TaskState.CANCELED
        stored = await store.load(task.id)
        assert stored is not None
        assert not stored.waiting


async def test_the_next_message_is_the_answer_also_one_that_came_before_the_question(serving) -> None:
    came = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await came.wait()
        answer = await events.ask("question", "Well?")
        await events.complete(f"{context.text} {text_of(answer)}")

    async with serving(Scripted(execute), steps=True) as handler:
        task = await task_of(handler, request("first", at_once=True))
        await task_of(handler, request("second", task_id=task.id, at_once=True))
        came.set()
        await until_ended(handler, 1)
        assert text_of((await handler.get(task.id, ME)).status.message) == "first second"


async def test_a_first_message_that_is_refused_by_now_fails_its_task(serving) -> None:
    tailor = Tailor()
    async with serving(tailor, steps=True) as handler:
        task = await asked(handler, "coat")
        tailor.refuses = "coat"
        failed = await task_of(handler, request("red", task_id=task.id))
    assert failed.status.state is TaskState.FAILED
    assert text_of(failed.status.message) == "Invalid params"
    assert tailor.log == DONE[:2]


async def test_a_question_that_can_not_end_the_execution_is_an_error_in_the_log(
    serving, logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "PARK_SECONDS", 0)
    raised: list[BaseException] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await events.ask("question", "Well?")
            except StepError as exc:
                raised.append(exc)
                raise

    async with serving(Scripted(execute), steps=True) as handler:
        await asked(handler, "coat")
        await until(lambda: not handler._runner.count)
    assert "shielded" in str(raised[0])
    assert "agent.failed" in logged.names()


async def test_steps_of_an_execution_that_is_over_are_not_those_of_the_next(serving, store) -> None:
    done: list[str] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.step("same", done.append, context.text)
        await events.require_input("More?")

    async with serving(Scripted(execute), store, steps=True) as handler:
        task = await asked(handler, "one")
        stored = await store.load(task.id)
        await asked(handler, "two", task)
    assert done == ["one", "two"]
    assert stored is not None


async def test_callers_see_the_question_and_not_its_name() -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.ask("secret name", "Which colour?")

    agent = Agent(Scripted(execute), name="asker", description="Asks.", steps=True)
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    async with in_memory(agent) as peer:
        seen = [event async for event in peer.subscribe("SendStreamingMessage", {"message": message})]
        seen.append(await peer.call("GetTask", {"id": seen[0]["task"]["id"]}))
        seen.append(await peer.call("tasks/get", {"id": seen[0]["task"]["id"]}))
    assert "Which colour?" in f"{seen}"
    assert "secret" not in f"{seen}"
