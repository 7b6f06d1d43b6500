"""`context.editor`: what an executor asks of the client and shows there, in which order, and what only some clients can."""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import isawaitable
from typing import Any

import anyio
import pytest

from discreet import ClientRefused
from discreet.acp import (
    AcpOptions,
    Choice,
    ConfigOption,
    Diff,
    Editor,
    EditorUnavailableError,
    Mode,
    PermissionOption,
    PlanStep,
)
from discreet.agents import RequestContext, TaskEvents
from discreet.testing import in_memory
from support.acp_client import AcpRefused, Wrong, acp_client, agent_of, answering, never, outcome_of, with_editor

pytestmark = pytest.mark.anyio


async def test_a_caller_of_a2a_has_no_editor() -> None:
    editors: list[Editor | None] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        editors.append(context.editor)
        await events.complete()

    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    async with in_memory(agent_of(execute)) as peer:
        await peer.call("SendMessage", {"message": message})
    assert editors == [None]


@pytest.mark.parametrize(("option", "allowed", "always"), [("yes", True, False), ("never", False, True)])
async def test_the_user_is_asked_and_answers_with_one_of_the_options(option: str, allowed: bool, always: bool) -> None:
    seen: list[Any] = []
    options = [PermissionOption("yes", "Yes", "allow_once"), PermissionOption("never", "Never", "reject_always")]

    async def work(editor: Editor, events: TaskEvents) -> Any:
        return await editor.permit("Delete a.txt?", kind="delete", content=["It is empty."], options=options)

    answer = answering({"outcome": {"outcome": "selected", "optionId": option}}, seen)
    permission, _ = await outcome_of(work, {"session/request_permission": answer})
    assert (bool(permission), permission.always) == (allowed, always)
    assert seen[0]["toolCall"]["title"] == "Delete a.txt?"


async def test_what_was_published_before_a_question_is_told_before_it() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        await events.working("one")
        await events.artifact("two")
        return await editor.permit("Go on?")

    answer = answering({"outcome": {"outcome": "cancelled"}}, [])
    _, client = await outcome_of(work, {"session/request_permission": answer})
    assert client.log[-4:] == ["update", "update", "session/request_permission", "answer"]


async def test_a_client_that_never_answers_a_question_is_told_that_nobody_waits_when_the_turn_is_cancelled() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        return await editor.permit("Go on?")

    async with acp_client(agent_of(with_editor(work, []))) as client:
        client.on["session/request_permission"] = never
        session = await client.session()
        running = await client.send_prompt(session)
        await client.until(lambda: "session/request_permission" in client.log)
        await client.cancel(session)
        assert (await client.answer_to(running))["stopReason"] == "cancelled"
        await client.until(lambda: client.cancelled)


async def test_a_question_may_have_a_deadline() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        return await editor.permit("Go on?", timeout=0.01)

    outcome, _ = await outcome_of(work, {"session/request_permission": never})
    assert isinstance(outcome, TimeoutError)


async def test_files_are_read_and_written_as_the_editor_has_them() -> None:
    seen: list[Any] = []

    async def work(editor: Editor, events: TaskEvents) -> Any:
        text = await editor.read_text_file("/project/a.py", line=2, limit=1)
        await editor.write_text_file("/project/a.py", text.upper())
        return text

    on = {"fs/read_text_file": answering({"content": "unsaved"}, seen), "fs/write_text_file": answering({}, seen)}
    assert (await outcome_of(work, on))[0] == "unsaved"
    assert [each["path"] for each in seen] == ["/project/a.py", "/project/a.py"]
    assert (seen[0]["line"], seen[0]["limit"], seen[1]["content"]) == (2, 1, "UNSAVED")


async def test_what_the_client_did_not_advertise_is_not_asked_of_it() -> None:
    async def read(editor: Editor, events: TaskEvents) -> Any:
        assert not (editor.can_read or editor.can_write or editor.can_run)
        return await editor.read_text_file("/project/a.py")

    async def run(editor: Editor, events: TaskEvents) -> Any:
        return await editor.run("ls")

    for work in (read, run):
        outcome, client = await outcome_of(work, capabilities={})
        assert (type(outcome), client.log[-1]) == (EditorUnavailableError, "answer")


async def test_a_user_whose_editor_lacks_something_reads_what() -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        assert context.editor is not None
        await context.editor.read_text_file("a.py")

    async with acp_client(agent_of(execute)) as client:
        await client.hello(capabilities={})
        with pytest.raises(AcpRefused) as caught:
            await client.prompt(await client.session())
    assert caught.value.message == "This needs an editor that offers fs.readTextFile"
    assert caught.value.data["code"] == "EDITOR_UNAVAILABLE"


@pytest.mark.parametrize(
    ("cwd", "path", "sent"),
    [
        ("/project", "src/a.py", "/project/src/a.py"),
        ("/", "a.py", "/a.py"),
        ("/project", "/etc/a", "/etc/a"),
        ("C:\\project", "a.py", "C:\\project\\a.py"),
        ("C:\\project", "D:\\a.py", "D:\\a.py"),
        ("C:/project", "a.py", "C:/project/a.py"),
    ],
)
async def test_paths_are_absolute_when_they_leave(cwd: str, path: str, sent: str) -> None:
    seen: list[Any] = []

    async def work(editor: Editor, events: TaskEvents) -> None:
        await editor.write_text_file(path, "x")
        await editor.read_text_file(path)
        async with editor.tool("t", kind="edit", locations=[path], content=[Diff(path, "x")]) as tool:
            await tool.update(Diff(path, "y"), locations=[path])

    on = {"fs/write_text_file": answering({}, seen), "fs/read_text_file": answering({"content": ""}, seen)}
    _, client = await outcome_of(work, on, cwd=cwd)
    for update in client.updates[:2]:
        seen += [*update["locations"], *update["content"]]
    assert [each["path"] for each in seen] == [sent] * 6


async def late_update(editor: Editor) -> None:
    async with editor.tool("t") as tool:
        pass
    await tool.update("more")


MISTAKES: dict[str, tuple[Callable[[Editor], Any], str]] = {
    "a kind of tool call": (
        lambda editor: editor.tool("t", kind="editing"),  # type: ignore[arg-type]
        "the kind of a tool call must be one of read, edit, .*, other, not 'editing'; nearest: edit",
    ),
    "a kind in a question": (
        lambda editor: editor.permit("May I?", kind="writing"),  # type: ignore[arg-type]
        "the kind of a tool call must be one of .* not 'writing'",
    ),
    "a status of a step": (
        lambda editor: editor.plan([PlanStep("a", status="done")]),  # type: ignore[arg-type]
        "the status of a step must be one of pending, in_progress, completed, not 'done'",
    ),
    "a kind of permission": (
        lambda editor: PermissionOption("a", "A", "allow"),  # type: ignore[arg-type]
        "the kind of a permission must be one of allow_once, .* not 'allow'; nearest: allow_",
    ),
    "a limit": (
        lambda editor: editor.end_with("tokens"),  # type: ignore[arg-type]
        "the limit must be one of max_tokens, max_turn_requests, not 'tokens'; nearest: max_tokens",
    ),
    "an update behind its block": (late_update, "the tool call has ended with its block: update it there"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_a_mistake_with_the_editor_is_told(mistake: str) -> None:
    make, words = MISTAKES[mistake]

    async def work(editor: Editor, events: TaskEvents) -> str:
        with pytest.raises((ValueError, RuntimeError), match=words):
            made = make(editor)
            if isawaitable(made):
                await made
        return "told"

    assert (await outcome_of(work))[0] == "told"


async def test_the_clients_own_error_is_raised() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        return await editor.read_text_file("/project/none")

    answer = answering(AcpRefused({"code": -32002, "message": "no such file"}), [])
    outcome, _ = await outcome_of(work, {"fs/read_text_file": answer})
    assert (outcome.code, outcome.message) == (-32002, "no such file")


@pytest.mark.parametrize("method", ["fs/read_text_file", "session/request_permission", "terminal/create"])
async def test_an_answer_of_another_type_is_the_clients_failure(method: str) -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        match method:
            case "fs/read_text_file":
                return await editor.read_text_file("/project/a")
            case "terminal/create":
                return await editor.run("make")
            case _:
                return await editor.permit("Go on?")

    wrong = Wrong({"content": 5, "terminalId": 5, "outcome": "private text"})
    outcome, _ = await outcome_of(work, {method: answering(wrong, [])})
    assert type(outcome) is ClientRefused
    assert "private" not in str(outcome)
    assert outcome.__context__ is None


TERMINAL = {
    "terminal/create": answering({"terminalId": "t1"}, []),
    "terminal/wait_for_exit": answering({"exitCode": 3}, []),
    "terminal/output": answering({"output": "made", "truncated": True}, []),
    "terminal/release": answering({}, []),
}


async def test_a_command_runs_in_a_terminal_that_is_given_back() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        async with editor.tool("make", kind="execute") as tool:
            return await editor.run("make", "all", env={"A": "1"}, tool=tool)

    outcome, client = await outcome_of(work, TERMINAL)
    assert client.updates[1]["content"] == [{"type": "terminal", "terminalId": "t1"}]
    assert (outcome.output, outcome.exit_code, outcome.truncated) == ("made", 3, True)
    assert [each for each in client.log if each.startswith("terminal")] == [*TERMINAL]


async def test_a_command_that_is_cancelled_gives_its_terminal_back() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        return await editor.run("sleep")

    async with acp_client(agent_of(with_editor(work, []))) as client:
        client.on.update({**TERMINAL, "terminal/wait_for_exit": never})
        await client.hello()
        session = await client.session()
        running = await client.send_prompt(session)
        await client.until(lambda: "terminal/wait_for_exit" in client.log)
        await client.cancel(session)
        assert (await client.answer_to(running))["stopReason"] == "cancelled"
        await client.until(lambda: "terminal/release" in client.log)
        await client.session()  # the answer has gone out


async def test_a_tool_call_is_shown_from_its_beginning_to_its_end() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        async with editor.tool("Edit", kind="edit", locations=["/project/a"], raw_input={"a": 1}) as tool:
            await tool.update(Diff("/project/a", "new", "old"), title="Edited")

    first, changed, last = (await outcome_of(work))[1].updates
    assert (first["sessionUpdate"], first["status"], first["kind"]) == ("tool_call", "in_progress", "edit")
    assert (changed["title"], changed["content"][0]["type"]) == ("Edited", "diff")
    assert (last["status"], last["toolCallId"]) == ("completed", first["toolCallId"])


async def test_a_tool_call_whose_block_raises_has_failed() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        async with editor.tool("Break"):
            raise TimeoutError

    assert (await outcome_of(work))[1].updates[-1]["status"] == "failed"


async def test_a_tool_call_of_a_cancelled_turn_has_failed_before_the_answer() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        async with editor.tool("Wait"):
            await anyio.sleep_forever()

    async with acp_client(agent_of(with_editor(work, []))) as client:
        session = await client.session()
        running = await client.send_prompt(session)
        await client.until(lambda: client.updates)
        await client.cancel(session)
        assert (await client.answer_to(running))["stopReason"] == "cancelled"
        assert [each.get("status") for each in client.updates] == ["in_progress", "failed"]
        assert client.log[-1] == "answer"


async def test_nothing_is_told_once_the_turn_has_ended() -> None:
    outcome: list[Any] = []
    late = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        editor = context.editor
        assert editor is not None
        await events.complete()
        await late.wait()
        try:
            await editor.plan(["too late"])
        except EditorUnavailableError as exc:
            outcome.append(exc)

    async with acp_client(agent_of(execute)) as client:
        session = await client.session()
        assert await client.prompt(session) == "end_turn"
        late.set()
        await client.session()
        assert client.updates == []
    assert len(outcome) == 1


async def test_a_command_that_goes_on_is_watched_and_killed() -> None:
    outputs = [
        {"output": "half", "truncated": False},
        {"output": "end", "truncated": False, "exitStatus": {"signal": "9"}},
    ]

    async def output(params: Any) -> Any:
        return outputs.pop(0)

    async def work(editor: Editor, events: TaskEvents) -> Any:
        async with editor.start("serve", cwd="sub") as running:
            first = await running.output()
            await running.kill()
            return first, await running.output()

    on = {**TERMINAL, "terminal/output": output, "terminal/kill": answering({}, [])}
    (first, last), client = await outcome_of(work, on)
    assert (first.output, first.exit_code, first.signal) == ("half", None, None)
    assert (last.output, last.signal) == ("end", "9")
    assert [each for each in client.log if each.startswith("terminal")] == [
        "terminal/create",
        "terminal/output",
        "terminal/kill",
        "terminal/output",
        "terminal/release",
    ]


async def test_usage_is_told_and_negative_numbers_are_mistakes() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        await editor.usage(1200, 200_000, cost=0.25)
        await editor.usage(1300, 200_000)
        for wrong in (-1, 1, None), (1, -1, None), (1, 1, -0.1), (1, 1, math.nan):
            with pytest.raises(ValueError, match="numbers from 0 on"):
                await editor.usage(wrong[0], wrong[1], cost=wrong[2])

    _, client = await outcome_of(work)
    first = {"sessionUpdate": "usage_update", "used": 1200, "size": 200_000}
    assert client.updates == [{**first, "cost": {"amount": 0.25, "currency": "USD"}}, {**first, "used": 1300}]


@pytest.mark.parametrize(("boolean", "shown"), [({"boolean": {}}, False), ({}, "off")])
async def test_options_that_the_agent_changes_are_told_as_the_client_shows_them(boolean: Any, shown: Any) -> None:
    outcome: list[Any] = []

    async def work(editor: Editor, events: TaskEvents) -> Any:
        await editor.set_config("loud", False)
        for wrong in ("loud", "yes"), ("model", "x"), ("quiet", True):
            with pytest.raises(ValueError, match="declares no option"):
                await editor.set_config(*wrong)
        return editor.config

    switch = ConfigOption(id="loud", name="Loud", default=True)
    model = ConfigOption(id="model", name="Model", choices=(Choice("s", "Small"),))
    options = AcpOptions(config_options=(switch, model))
    async with acp_client(agent_of(with_editor(work, outcome), acp=options)) as client:
        await client.hello({"session": {"configOptions": boolean}})
        await client.prompt(await client.session())
        assert client.kinds() == ["config_option_update"]
        assert [each["currentValue"] for each in client.updates[0]["configOptions"]] == [shown, "s"]
    assert outcome == [{"loud": False, "model": "s"}]


async def test_plans_and_modes_are_told() -> None:
    outcome: list[Any] = []

    async def work(editor: Editor, events: TaskEvents) -> Any:
        await editor.plan(["look", PlanStep("write", "in_progress", "high")])
        await editor.set_mode("code")
        return editor.mode

    options = AcpOptions(modes=(Mode("ask", "Ask"), Mode("code", "Code")))
    async with acp_client(agent_of(with_editor(work, outcome), acp=options)) as client:
        await client.prompt(await client.session())
        assert client.kinds() == ["plan", "current_mode_update"]
    assert outcome == ["code"]


async def test_the_editor_knows_its_session() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        servers = [dict(server) for server in editor.mcp_servers]
        return editor.cwd, list(editor.additional_directories), servers[0]["command"], editor.client.name

    server = {"name": "files", "command": "/bin/files", "args": [], "env": []}
    outcome, _ = await outcome_of(work, mcpServers=[server], additionalDirectories=["/more"])
    assert outcome == ("/project", ["/more"], "/bin/files", "test")
