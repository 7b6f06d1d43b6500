"""Version 2, a draft: who speaks it, what a turn is told as, and what of version 1 becomes what. Its executors are those of both."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet import Service
from discreet.acp import AcpOptions, AuthMethod, Choice, Command, ConfigOption, Diff, Editor, Mode
from discreet.agents import NotCancelable, RequestContext, TaskEvents
from discreet.daemon.operations.service import DeclarationError
from support.acp_client import (
    AcpClient,
    AcpRefused,
    Wrong,
    acp_client,
    agent_of,
    answering,
    schema,
    with_editor,
)
from support.backends import both_loops
from support.executors import ask_then_echo, echo, for_ever

from .test_acp_prompts import busy, crashes, fails, raising, rejects, replies, thinks
from .test_acp_schema import ALTERNATIVES, items_of

pytestmark = pytest.mark.anyio

BY_KEY = AuthMethod("key", "API key")
BY_TERMINAL = AuthMethod("tui", "Terminal", type="terminal", args=("login",), env={"A": "b"})
SIGNED: list[str] = []


async def sign_in(method: str) -> None:
    SIGNED.append(method)


async def sign_out() -> None:
    SIGNED.clear()


OPTIONS = AcpOptions(
    modes=(Mode("ask", "Ask"), Mode("code", "Code", "Writes files.")),
    config_options=(
        ConfigOption(id="model", name="Model", choices=(Choice("s", "Small"), Choice("l", "Large")), category="model"),
        ConfigOption(id="loud", name="Loud", default=True),
    ),
    commands=(Command("plan", "Makes a plan.", "what for"), Command("go", "Goes.")),
    auth_methods=(BY_KEY, BY_TERMINAL),
    authenticate=sign_in,
    logout=sign_out,
)
ALLOW = {"outcome": {"outcome": "selected", "optionId": "allow"}}


def draft_client(*hosted: Any, **settings: Any) -> Any:
    return acp_client(*hosted, acp_version=2, **settings)


async def refused(work: Awaitable[Any]) -> AcpRefused:
    with pytest.raises(AcpRefused) as caught:
        await work
    return caught.value


# -- who speaks it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("latest", "asked", "answered"),
    [(1, 1, 1), (1, 2, 1), (1, 3, 1), (2, 1, 1), (2, 2, 2), (2, 3, 2), (2, 0, 2), (2, 65535, 2)],
)
async def test_the_version_is_the_one_that_is_asked_for_or_the_latest(latest: int, asked: int, answered: int) -> None:
    async with acp_client(agent_of(echo), acp_version=latest) as client:
        client.version = answered
        params = {"protocolVersion": asked, "info": {"name": "x", "version": "1"}, "clientCapabilities": {}}
        said = await client.call("initialize", params)
        assert said["protocolVersion"] == answered
        assert ("info" in said, "agentInfo" in said) == (answered == 2, answered == 1)


async def test_a_connection_speaks_one_version_for_good() -> None:
    async with draft_client(agent_of(echo)) as client:
        await client.hello_in_draft()
        assert (await client.hello_in_draft(version=1))["protocolVersion"] == 2
        assert await client.prompt(await client.session()) == "end_turn"
    async with draft_client(agent_of(echo)) as client:  # version 1 without a handshake
        assert await client.prompt(await client.session()) == "end_turn"
        assert (await client.hello(version=2))["protocolVersion"] == 1


async def test_a_client_of_version_1_is_served_as_ever_and_loads_nothing_of_the_draft(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("draft", "generated.draft"):
        monkeypatch.setitem(sys.modules, f"discreet.dialects.acp.{module}", None)
    async with draft_client(agent_of(thinks, acp=OPTIONS)) as client:
        said = await client.hello()
        assert said["agentCapabilities"]["promptCapabilities"]["embeddedContext"] is True
        session = await client.session()
        assert await client.prompt(session, "Ada") == "end_turn"
        assert client.texts("agent_message_chunk") == "Hello, Ada!"
        assert (await refused(client.call("auth/login", {"methodId": "key"}))).code == -32601


async def test_the_agent_says_what_it_can_do_by_objects_and_how_to_sign_in(tmp_path: Path) -> None:
    agent = agent_of(echo, acp=OPTIONS, input_modes=["text/plain", "image/*"])
    async with draft_client(agent, store=f"sqlite:{tmp_path / 'tasks.db'}") as client:
        said = await client.hello_in_draft()
    assert said["info"] == {"name": "Tester", "version": "1.2.3"}
    can = said["capabilities"]["session"]
    assert can["prompt"] == {"image": {}, "embeddedContext": {}}
    assert (can["mcp"]["stdio"], can["delete"], can["additionalDirectories"]) == ({}, {}, {})
    assert {"list", "resume", "close"}.isdisjoint(can)
    assert said["authMethods"] == [
        {"methodId": "key", "type": "agent", "name": "API key"},
        {
            "methodId": "tui",
            "type": "terminal",
            "name": "Terminal",
            "args": ["login"],
            "env": [{"name": "A", "value": "b"}],
        },
    ]
    async with draft_client(agent_of(echo, acp=OPTIONS)) as client:
        said = await client.hello_in_draft(capabilities={"fs": {"readTextFile": True}})
        assert [each["methodId"] for each in said["authMethods"]] == ["key"]
        assert "delete" not in said["capabilities"]["session"]


async def test_a_client_says_its_name_and_what_it_can_do_by_objects() -> None:
    async with draft_client(agent_of(echo)) as client:
        client.version = 2
        for params, param in (
            ({"protocolVersion": 2}, "info"),
            ({"protocolVersion": 2, "info": {"name": "x"}}, "info.version"),
            (
                {"protocolVersion": 2, "info": {"name": "x", "version": "1"}, "capabilities": {"auth": 1}},
                "capabilities",
            ),
        ):
            assert (await refused(client.call("initialize", params))).data["param"] == param


async def test_services_hear_of_the_client_by_the_names_of_version_1() -> None:
    heard: list[Any] = []
    service = Service("shop")

    @service.initialize
    def hello(clientInfo: dict[str, Any], clientCapabilities: dict[str, Any]) -> None:  # noqa: N803
        heard.append((clientInfo["name"], clientCapabilities))

    async with draft_client(service) as client:
        await client.hello_in_draft(capabilities={"elicitation": {}})
    assert heard == [("test", {"elicitation": {}})]


@pytest.mark.parametrize("what", ["a method of the draft", "a way to sign in, and none to sign out"])
async def test_what_the_draft_does_not_allow_fails_at_the_start(what: str) -> None:
    service = Service("auth")

    @service.query
    def login() -> None:
        """Be in the way."""

    hosted = service if what == "a method of the draft" else agent_of(echo, acp=AcpOptions(auth_methods=(BY_KEY,)))
    async with acp_client(hosted) as client:
        await client.hello()
    with pytest.raises(DeclarationError):
        async with draft_client(hosted):
            pass


# -- a turn ----------------------------------------------------------------------------------------------------


@both_loops
async def test_a_prompt_is_answered_when_it_is_stored_and_everything_else_is_told_afterwards() -> None:
    async with draft_client(agent_of(thinks)) as client:
        await client.hello_in_draft()
        session = await client.session()
        del client.log[:]
        assert await client.prompt(session, "Ada") == "end_turn"
        assert client.log[0] == "answer"
        assert [each.get("state") or each["sessionUpdate"] for each in client.updates] == [
            "user_message",
            "running",
            "agent_thought",
            "agent_message",
            "idle",
        ]
        answer = await client.answer_to(await client.send_prompt(session, "Eve"))
        await client.idle(1)
        assert client.messages()[answer["messageId"]] == ("user_message", "Eve")
        assert [*client.messages().values()][:3] == [
            ("user_message", "Ada"),
            ("agent_thought", "Thinking …"),
            ("agent_message", "Hello, Ada!"),
        ]


async def streams(context: RequestContext, events: TaskEvents) -> None:
    for text in ("a", "b", "c"):
        await events.artifact(text, artifact_id="answer", append=text != "a")
    await events.artifact("other")
    if context.text == "again":
        await events.artifact("new", artifact_id="answer")
    await events.complete()


async def test_messages_are_whole_or_continued_and_have_ids_of_their_own_in_the_session() -> None:
    async with draft_client(agent_of(streams)) as client:
        await client.hello_in_draft()
        session = await client.session()
        await client.prompt(session, "first")
        await client.prompt(session, "again")
        said = [text for kind, text in client.messages().values() if kind == "agent_message"]
        assert said == ["abc", "other", "new", "other"]


@pytest.mark.parametrize(
    ("execute", "reason"),
    [(thinks, "end_turn"), (replies, "end_turn"), (rejects, "refusal"), (ask_then_echo, "end_turn")],
)
async def test_the_reason_why_a_turn_stopped_is_told_with_the_state(execute: Any, reason: str) -> None:
    async with draft_client(agent_of(execute, replies_without_task=execute is replies)) as client:
        await client.hello_in_draft()
        assert await client.prompt(await client.session()) == reason


async def test_a_task_that_asks_goes_on_with_the_next_prompt() -> None:
    async with draft_client(agent_of(ask_then_echo)) as client:
        await client.hello_in_draft()
        session = await client.session()
        await client.prompt(session, "first")
        await client.prompt(session, "second")
        assert [text for _, text in client.messages().values()] == ["first", "What else?", "second", "second"]


@pytest.mark.parametrize("limit", ["max_tokens", "max_turn_requests"])
async def test_a_limit_is_a_reason_too(limit: Any) -> None:
    async def work(editor: Editor, events: TaskEvents) -> None:
        editor.end_with(limit)

    async with draft_client(agent_of(with_editor(work, []))) as client:
        await client.hello_in_draft()
        assert await client.prompt(await client.session()) == limit


async def signs_in(context: RequestContext, events: TaskEvents) -> None:
    await events.require_auth("Sign in.")


@pytest.mark.parametrize(
    ("execute", "code", "text"),
    [
        (fails, -32010, "The press is broken."),
        (crashes, -32010, "The agent has failed."),
        (raising(7), 7, "The tray is full"),
        (signs_in, -32000, "Sign in."),
    ],
)
async def test_a_failure_behind_the_answer_is_told_with_the_state_as_version_1_answers_it(
    execute: Any, code: int, text: str
) -> None:
    async with acp_client(agent_of(execute)) as client:
        answered = await refused(client.prompt(await client.session()))
    async with draft_client(agent_of(execute)) as client:
        await client.hello_in_draft()
        session = await client.session()
        assert await client.prompt(session) == "_error"
        (idle,) = client.states("idle")
        assert idle["_meta"]["discreet/error"] == answered.args[0]
        assert (answered.code, answered.message) == (code, text)
        assert any(text in said for kind, said in client.messages().values() if kind == "agent_message")


async def test_a_prompt_that_can_not_be_taken_is_an_error_and_nothing_is_told_of_it() -> None:
    async with draft_client(agent_of(for_ever, input_modes=["text/plain"])) as client:
        await client.hello_in_draft()
        session = await client.session()
        assert (await refused(client.prompt("no such"))).code == -32002
        image = [{"type": "image", "data": "AA==", "mimeType": "image/png"}]
        assert (await refused(client.call("session/prompt", {"sessionId": session, "prompt": image}))).code == -32602
        assert (await refused(client.call("session/prompt", {"sessionId": session, "prompt": []}))).code == -32602
        unknown = [{"type": "_mine"}]
        assert (await refused(client.call("session/prompt", {"sessionId": session, "prompt": unknown}))).code == -32602
        assert client.updates == []
        await client.answer_to(await client.send_prompt(session))
        assert (await refused(client.prompt(session))).code == -32600
        await client.cancel(session)
        assert (await client.idle())["stopReason"] == "cancelled"


# -- its end ---------------------------------------------------------------------------------------------------


@both_loops
async def test_a_turn_that_is_cancelled_is_idle_behind_everything_else() -> None:
    ended = anyio.Event()
    async with draft_client(agent_of(busy(ended))) as client:
        await client.hello_in_draft()
        session = await client.session()
        await client.answer_to(await client.send_prompt(session))
        await client.until(lambda: "on" in str(client.updates))
        await client.cancel(session)
        assert (await client.idle())["stopReason"] == "cancelled"
        assert ended.is_set()
        assert client.updates[-1]["state"] == "idle"


async def test_a_prompt_that_is_cancelled_before_it_begins_is_refused_and_the_session_is_idle() -> None:
    async with draft_client(agent_of(for_ever)) as client:
        await client.hello_in_draft()
        session = await client.session()
        async with client.in_one_piece():
            prompt = await client.send_prompt(session)
            await client.cancel(session)
        try:
            await client.answer_to(prompt)
        except AcpRefused as exc:
            assert exc.code == -32800
        assert (await client.idle())["stopReason"] == "cancelled"
        assert len(client.states("idle")) == 1


async def test_a_request_that_is_cancelled_before_it_is_stored_has_one_answer_and_no_turn() -> None:
    async with draft_client(agent_of(for_ever)) as client:
        await client.hello_in_draft()
        session = await client.session()
        for steps in range(12):
            before = len(client.states("idle"))
            prompt = await client.send_prompt(session)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            await client.notify("$/cancel_request", {"requestId": prompt})
            try:
                await client.answer_to(prompt)
            except AcpRefused as exc:
                assert exc.code == -32800
                assert len(client.states("idle")) == before
            else:
                await client.cancel(session)
                await client.idle(before)


async def test_a_task_whose_executor_refuses_goes_on_unseen_also_behind_a_question() -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        if context.text == "first":
            assert context.editor is not None
            await context.editor.permit("Go on?")
        await events.complete(context.text)

    async def cancel(context: RequestContext, events: TaskEvents) -> None:
        raise NotCancelable

    asked, go_on = anyio.Event(), anyio.Event()

    async def answer(params: Any) -> Any:
        asked.set()
        await go_on.wait()
        return ALLOW

    async with draft_client(agent_of(execute, cancel)) as client:
        client.on["session/request_permission"] = answer
        await client.hello_in_draft()
        session = await client.session()
        await client.answer_to(await client.send_prompt(session, "first"))
        await asked.wait()
        await client.cancel(session)
        await client.idle()
        go_on.set()
        assert await client.prompt(session, "second") == "end_turn"
        told = [each["state"] for each in client.states()]
        assert told == ["running", "requires_action", "idle", "running", "idle"]


async def test_closing_a_session_ends_its_turn() -> None:
    async with draft_client(agent_of(for_ever)) as client:
        await client.hello_in_draft()
        session = await client.session()
        await client.answer_to(await client.send_prompt(session))
        await client.call("session/close", {"sessionId": session})
        assert (await client.idle())["stopReason"] == "cancelled"


async def test_what_was_accepted_is_finished_and_told_before_the_daemon_ends() -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        await events.complete("done")

    async with draft_client(agent_of(execute)) as client:
        await client.hello_in_draft()
        session = await client.session()
        prompt = await client.send_prompt(session)
        client.hang_up()
        await client.answer_to(prompt)
        assert (await client.idle())["stopReason"] == "end_turn"
        await client.until(lambda: client.ended)


async def test_a_turn_that_the_end_of_the_daemon_cuts_off_is_told_so() -> None:
    async with draft_client(agent_of(for_ever), drain_timeout=0.2) as client:
        await client.hello_in_draft()
        await client.answer_to(await client.send_prompt(await client.session()))
        client.hang_up()
        idle = await client.idle()
        assert (idle["stopReason"], idle["_meta"]["discreet/error"]["data"]["code"]) == ("_error", "UNAVAILABLE")


@both_loops
async def test_whenever_a_prompt_is_cancelled_its_turn_ends_once_and_the_next_one_runs() -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        assert context.editor is not None
        await events.working("on")
        async with context.editor.tool("Look"):
            await events.artifact("half")
        await context.editor.permit("Go on?")
        await events.complete("done")

    async with draft_client(agent_of(execute)) as client:
        client.on["session/request_permission"] = answering(ALLOW, [])
        await client.hello_in_draft()
        session = await client.session()
        reasons = set()
        for turns in range(30):
            del client.updates[:]
            prompt = await client.send_prompt(session)
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            await client.cancel(session)
            try:
                await client.answer_to(prompt)
            except AcpRefused as exc:
                assert exc.code == -32800
            reasons.add((await client.idle())["stopReason"])
            assert await client.prompt(session) == "end_turn"
            assert [each["state"] for each in client.states()].count("idle") == 2
        assert reasons <= {"cancelled", "end_turn"}
        assert "cancelled" in reasons


# -- what the editor shows and asks ----------------------------------------------------------------------------


async def outcome_in_draft(work: Callable[[Editor, TaskEvents], Awaitable[Any]], **on: Any) -> tuple[Any, AcpClient]:
    outcome: list[Any] = []
    async with draft_client(agent_of(with_editor(work, outcome), acp=OPTIONS)) as client:
        client.on.update({method.replace("_", "/", 1): answer for method, answer in on.items()})
        await client.hello_in_draft()
        session = await client.session()
        await client.until(lambda: client.updates)  # the commands
        del client.updates[:]
        assert await client.prompt(session) == "end_turn"
    return outcome[0], client


async def test_a_tool_call_is_created_and_changed_by_the_same_update() -> None:
    async def work(editor: Editor, events: TaskEvents) -> None:
        async with editor.tool("Edit", kind="edit", locations=["a.txt"], raw_input={"a": 1}) as tool:
            await tool.update("text", Diff("a.txt", "new\n", "old\n"), title="Edit it", raw_output=[1])

    _, client = await outcome_in_draft(work)
    calls = [each for each in client.updates if each["sessionUpdate"] == "tool_call_update"]
    first, changed, ended = calls
    assert {each["toolCallId"] for each in calls} == {first["toolCallId"]}
    assert (first["title"], first["kind"], first["status"], first["rawInput"]) == (
        "Edit",
        "edit",
        "in_progress",
        {"a": 1},
    )
    assert first["locations"] == [{"path": "/project/a.txt"}]
    text, diff = changed["content"]
    assert text == {"type": "content", "content": {"type": "text", "text": "text"}}
    assert diff["changes"] == [{"operation": "modify", "path": "/project/a.txt", "fileType": "text"}]
    assert (changed["title"], changed["rawOutput"], ended["status"]) == ("Edit it", [1], "completed")


NO_END = "\\ No newline at end of file\n"
HEAD = "diff --git /project/f /project/f\n"
NAMES = f"{HEAD}--- /project/f\n+++ /project/f\n"


@pytest.mark.parametrize(
    ("old", "new", "operation", "patch"),
    [
        ("a\nb\n", "a\nc\n", "modify", f"{NAMES}@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
        ("a", "a\n", "modify", f"{NAMES}@@ -1 +1 @@\n-a\n{NO_END}+a\n"),
        ("a\n", "a\nb", "modify", f"{NAMES}@@ -1 +1,2 @@\n a\n+b\n{NO_END}"),
        ("a\x0cb\r\n", "", "modify", f"{NAMES}@@ -1 +0,0 @@\n-a\x0cb\r\n"),
        (None, "a\n", "add", f"{HEAD}new file mode 100644\n--- /dev/null\n+++ /project/f\n@@ -0,0 +1 @@\n+a\n"),
        (None, "", "add", f"{HEAD}new file mode 100644\n"),
        ("same", "same", "modify", None),
    ],
)
async def test_a_diff_is_a_change_of_a_file_with_a_patch_of_git(
    old: str | None, new: str, operation: str, patch: str | None
) -> None:
    async def work(editor: Editor, events: TaskEvents) -> None:
        async with editor.tool("Edit", content=[Diff("f", new, old)]):
            pass

    _, client = await outcome_in_draft(work)
    ((shown,),) = [each["content"] for each in client.updates if "content" in each and "title" in each]
    assert shown["changes"] == [{"operation": operation, "path": "/project/f", "fileType": "text"}]
    assert shown.get("patch") == (None if patch is None else {"format": "git_patch", "text": patch})


async def test_a_patch_of_many_lines_replaces_them_all_and_an_odd_path_has_none() -> None:
    old, new = ("".join(f"{each} {line}\n" for line in range(3_000)) for each in "ab")

    async def work(editor: Editor, events: TaskEvents) -> None:
        async with editor.tool("Edit", content=[Diff("f", new, old), Diff('"', "a", "b")]):
            pass

    _, client = await outcome_in_draft(work)
    long, odd = next(each["content"] for each in client.updates if "content" in each and "title" in each)
    assert "@@ -1,3000 +1,3000 @@\n-a 0\n" in long["patch"]["text"]
    assert "patch" not in odd


async def test_the_user_is_asked_by_a_title_of_its_own_and_the_session_waits() -> None:
    seen: list[Any] = []

    async def work(editor: Editor, events: TaskEvents) -> Any:
        async with editor.tool("Edit", kind="edit") as tool:
            known = await editor.permit("May I?", tool=tool, content=["why"])
        await editor.permit("Really?")
        await editor.permit("Run it?", kind="execute")
        return bool(known), tool.id

    (allowed, call), client = await outcome_in_draft(work, session_request_permission=answering(ALLOW, seen))
    assert allowed
    known, bare, kind = seen
    assert (known["title"], known["subject"]["type"]) == ("May I?", "tool_call")
    why = {"type": "content", "content": {"type": "text", "text": "why"}}
    assert known["subject"]["toolCall"] == {"toolCallId": call, "content": [why]}
    assert (bare["title"], "subject" in bare) == ("Really?", False)
    assert (kind["subject"]["toolCall"]["title"], kind["subject"]["toolCall"]["kind"]) == ("Run it?", "execute")
    waits = ["requires_action", "running"]
    assert [each["state"] for each in client.states()] == ["running", *waits * 3, "idle"]


async def test_a_session_waits_until_the_last_of_several_questions_is_answered() -> None:
    asked = 0
    both = anyio.Event()

    async def answer(params: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == 2:
            both.set()
        await both.wait()
        return ALLOW

    async def work(editor: Editor, events: TaskEvents) -> None:
        async with anyio.create_task_group() as tasks:
            for title in ("a", "b"):
                tasks.start_soon(editor.permit, title)

    _, client = await outcome_in_draft(work, session_request_permission=answer)
    assert [each["state"] for each in client.states()] == ["running", "requires_action", "running", "idle"]


@pytest.mark.parametrize(
    "answer", [{"outcome": {"outcome": "cancelled"}}, Wrong({"outcome": {"outcome": "_later"}}), Wrong({})]
)
async def test_an_outcome_that_is_not_understood_is_no_approval(answer: Any) -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        return await editor.permit("May I?")

    permission, _ = await outcome_in_draft(work, session_request_permission=answering(answer, []))
    assert isinstance(permission, Exception) or not permission


async def test_forms_and_pages_are_the_same_in_both_versions() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        assert (editor.can_ask, editor.can_open) == (True, True)
        async with editor.page("https://example.org/", "Sign in there.") as agreed:
            return agreed

    agreed, client = await outcome_in_draft(work, elicitation_create=answering({"action": "accept"}, []))
    assert agreed
    assert len(client.completed) == 1
    assert [each["state"] for each in client.states()] == ["running", "requires_action", "running", "idle"]


async def test_files_and_terminals_of_the_client_are_not_there() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        assert not (editor.can_read or editor.can_write or editor.can_run)
        return await editor.read_text_file("a")

    outcome, _ = await outcome_in_draft(work)
    assert "fs.readTextFile" in str(outcome)


async def test_plans_modes_titles_and_usage_are_told() -> None:
    async def work(editor: Editor, events: TaskEvents) -> None:
        await editor.plan(["look"])
        await editor.set_mode("code")
        await editor.set_config("loud", value=False)
        await editor.set_title("T")
        await editor.usage(1, 10, cost=0.5)

    _, client = await outcome_in_draft(work)
    plan, mode, config, title, usage = [each for each in client.updates if "state" not in each][1:]
    entry = {"content": "look", "priority": "medium", "status": "pending"}
    assert plan["plan"] == {"type": "items", "planId": "plan", "entries": [entry]}
    for update, values in ((mode, ["code", "s", True]), (config, ["code", "s", False])):
        assert update["sessionUpdate"] == "config_option_update"
        assert [each["currentValue"] for each in update["configOptions"]] == values
    assert (title["title"], usage["used"], usage["cost"]["currency"]) == ("T", 1, "USD")


# -- sessions --------------------------------------------------------------------------------------------------


async def test_modes_are_an_option_and_commands_have_a_type_of_input() -> None:
    chosen: list[Any] = []

    async def work(editor: Editor, events: TaskEvents) -> None:
        chosen.append((editor.mode, dict(editor.config)))

    async with draft_client(agent_of(with_editor(work, []), acp=OPTIONS)) as client:
        await client.hello_in_draft()
        opened = await client.call("session/new", {"cwd": "/project"})
        mode, model, loud = opened["configOptions"]
        assert (mode["configId"], mode["category"], mode["currentValue"]) == ("mode", "mode", "ask")
        assert (model["configId"], model["type"], loud["type"], loud["currentValue"]) == (
            "model",
            "select",
            "boolean",
            True,
        )
        assert "modes" not in opened
        await client.until(lambda: client.updates)
        plan, go = client.updates[0]["availableCommands"]
        assert (plan["input"], "input" in go) == ({"type": "text", "hint": "what for"}, False)
        session = opened["sessionId"]

        async def set_option(config: str, value: Any, kind: str) -> Any:
            params = {"sessionId": session, "configId": config, "value": value, "type": kind}
            return await client.call("session/set_config_option", params)

        await set_option("mode", "code", "id")
        await set_option("model", "l", "id")
        shown = await set_option("loud", False, "boolean")
        assert [each["currentValue"] for each in shown["configOptions"]] == ["code", "l", False]
        for config, value, kind, param in (
            ("mode", "no", "id", "value"),
            ("mode", True, "boolean", "value"),
            ("model", "no", "id", "value"),
            ("loud", "on", "boolean", "value"),
            ("loud", 1, "id", "value"),
            ("other", "l", "id", "configId"),
            ("model", "l", "_mine", "type"),
        ):
            assert (await refused(set_option(config, value, kind))).data["param"] == param
        await client.prompt(session)
    assert chosen == [("code", {"model": "l", "loud": False})]


async def test_an_option_of_the_agents_own_named_mode_keeps_its_name() -> None:
    options = AcpOptions(modes=(Mode("a", "A"),), config_options=(ConfigOption(id="mode", name="Mine"),))
    async with draft_client(agent_of(echo, acp=options)) as client:
        await client.hello_in_draft()
        opened = await client.call("session/new", {"cwd": "/"})
    assert [each["configId"] for each in opened["configOptions"]] == ["_mode", "mode"]


async def test_mcp_servers_reach_the_executor_as_in_version_1() -> None:
    async def work(editor: Editor, events: TaskEvents) -> Any:
        return list(editor.mcp_servers)

    outcome: list[Any] = []
    servers = [
        {"type": "stdio", "name": "a", "command": "/bin/a"},
        {"type": "http", "name": "b", "url": "https://b.example/"},
    ]
    async with draft_client(agent_of(with_editor(work, outcome))) as client:
        await client.hello_in_draft()
        session = await client.session(mcpServers=servers)
        await client.prompt(session)
        for server in ({"name": "a", "command": "/a"}, {"type": "sse", "name": "a", "url": "https://a.example"}):
            assert (await refused(client.session(mcpServers=[server]))).code == -32602
    assert outcome[0] == [
        {"name": "a", "command": "/bin/a", "args": [], "env": []},
        {"type": "http", "name": "b", "url": "https://b.example/", "headers": []},
    ]


@both_loops
async def test_a_whole_session_of_a_client_of_version_2(tmp_path: Path) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        assert context.editor is not None
        await events.working("Looking …")
        async with context.editor.tool("Look", kind="read") as tool:
            await context.editor.permit("May I?", tool=tool)
        await context.editor.plan(["one"])
        await events.artifact("half ", artifact_id="a")
        await events.artifact("whole", artifact_id="a", append=True)
        await events.complete("done")

    store = f"sqlite:{tmp_path / 'tasks.db'}"
    async with draft_client(agent_of(execute, acp=OPTIONS), store=store) as client:
        client.on["session/request_permission"] = answering(ALLOW, [])
        said = await client.hello_in_draft()
        await client.call("auth/login", {"methodId": said["authMethods"][0]["methodId"]})
        assert SIGNED == ["key"]
        session = await client.session()
        assert await client.prompt(session, "Ada") == "end_turn"
        live = {key: text for key, (_, text) in client.messages().items()}
        assert [*live.values()] == ["Ada", "Looking …", "half whole", "done"]
    async with draft_client(agent_of(execute, acp=OPTIONS), store=store) as client:
        await client.hello_in_draft()
        (listed,) = (await client.call("session/list", {}))["sessions"]
        assert (listed["sessionId"], listed["title"]) == (session, "Ada")
        await client.call("session/resume", {"sessionId": session, "cwd": "/project"})
        await client.until(lambda: len(client.updates) == 2)
        assert client.kinds() == ["state_update", "available_commands_update"]
        del client.updates[:]
        resume = {"sessionId": session, "cwd": "/project", "replayFrom": {"type": "start"}}
        assert (await client.call("session/resume", resume))["configOptions"]
        assert {key: text for key, (_, text) in client.messages().items()} == live
        assert {"tool_call_update", "plan_update"} <= {*client.kinds()}
        assert [each["state"] for each in client.states()] == ["idle"]
        unknown = {**resume, "replayFrom": {"type": "_last"}}
        assert (await refused(client.call("session/resume", unknown))).data["param"] == "replayFrom.type"
        assert (await refused(client.call("session/resume", {**resume, "sessionId": "x"}))).code == -32002
        client.on["session/request_permission"] = answering(ALLOW, [])
        assert await client.prompt(session, "Bob") == "end_turn"
        await client.call("session/delete", {"sessionId": session})
        assert (await client.call("session/list", {}))["sessions"] == []
        await client.call("auth/logout", {})
        assert SIGNED == []


async def test_sessions_of_one_version_are_those_of_the_other(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'tasks.db'}"
    async with draft_client(agent_of(echo), store=store) as client:
        await client.hello_in_draft()
        session = await client.session()
        await client.prompt(session, "new")
    async with draft_client(agent_of(echo), store=store) as client:
        await client.hello()
        await client.call("session/load", {"sessionId": session, "cwd": "/project", "mcpServers": []})
        assert client.texts("user_message_chunk") == "new"


# -- the wire --------------------------------------------------------------------------------------------------


async def test_a_batch_is_answered_message_by_message_in_version_2_alone() -> None:
    batch = b'[{"jsonrpc":"2.0","id":"a","method":"session/list"},{"jsonrpc":"2.0","method":"x"},1,{"jsonrpc":"2.0","id":"b","method":"y"}]'
    for draft in (False, True):
        async with draft_client(agent_of(echo)) as client:
            await (client.hello_in_draft() if draft else client.hello())
            await client.send_line(batch)
            await client.call("session/list", {})
            codes = {key: each.get("error", {}).get("code") for key, each in client.unasked.items()}
        assert codes == ({"a": None, None: -32600, "b": -32601} if draft else {None: -32600})


GARBAGE: list[Any] = [
    None,
    [],
    [1],
    {},
    {"sessionId": 1},
    {"sessionId": "x"},
    {"sessionId": "x", "cwd": "here", "prompt": [{"type": 1}], "configId": "a", "value": {}, "type": 3, "methodId": {}},
    {"sessionId": "x", "cwd": "/", "prompt": "hi", "mcpServers": [{}], "methodId": "no", "replayFrom": 1, "cursor": 1},
    {"protocolVersion": "2", "info": 1, "capabilities": []},
    {"protocolVersion": 2, "info": {}, "_meta": 1},
]


METHODS = (
    "initialize auth/login auth/logout session/new session/list session/resume session/close session/delete session/prompt "
    "session/set_config_option session/cancel session/load session/set_mode authenticate logout session/update $/cancel_request"
).split()


@pytest.mark.parametrize("method", METHODS)
async def test_whatever_is_sent_to_a_method_gets_one_answer(method: str) -> None:
    async with draft_client(agent_of(echo, acp=OPTIONS)) as client:
        await client.hello_in_draft()
        sent = [await client.send(method, params) for params in GARBAGE]
        for call in sent:
            try:
                await client.answer_to(call)
            except AcpRefused as exc:
                assert exc.code in {-32600, -32601, -32602, -32002}
        assert client.log.count("answer") == 1 + len(sent)
        assert await client.prompt(await client.session()) == "end_turn"


# -- the schema ------------------------------------------------------------------------------------------------

WHOLE = "a_whole_session_of_a_client_of_version_2"
SAID = "the_agent_says_what_it_can_do_by_objects_and_how_to_sign_in"
ENDED = "the_reason_why_a_turn_stopped_is_told_with_the_state"
ASKED = "the_user_is_asked_by_a_title_of_its_own_and_the_session_waits"
STORED = "a_prompt_is_answered_when_it_is_stored_and_everything_else_is_told_afterwards"
TOLD = "plans_modes_titles_and_usage_are_told"
CALLED = "a_tool_call_is_created_and_changed_by_the_same_update"
CHOSEN = "modes_are_an_option_and_commands_have_a_type_of_input"
FORMS = "forms_and_pages_are_the_same_in_both_versions"
SERVERS = "mcp_servers_reach_the_executor_as_in_version_1"
CANCELLED = "a_turn_that_is_cancelled_is_idle_behind_everything_else"
DROPPED = "a_request_that_is_cancelled_before_it_is_stored_has_one_answer_and_no_turn"
DIFFS = "a_diff_is_a_change_of_a_file_with_a_patch_of_git"
TAKEN = "a_prompt_that_can_not_be_taken_is_an_error_and_nothing_is_told_of_it"
FAILED = "a_failure_behind_the_answer_is_told_with_the_state_as_version_1_answers_it"
REFUSED = "an_outcome_that_is_not_understood_is_no_approval"

SHOWN = {
    WHOLE: "method initialize, method auth/login, method auth/logout, method session/new, method session/prompt,"
    "method session/list, method session/delete, method session/resume, replay start",
    CHOSEN: "method session/set_config_option, update available_commands_update, option select, option boolean, value id,"
    "value boolean, input text",
    "closing_a_session_ends_its_turn": "method session/close",
    CANCELLED: "method session/cancel, stop reason cancelled",
    DROPPED: "method $/cancel_request, error -32800",
    ASKED: "method session/request_permission, state requires_action, subject tool_call, permission selected",
    STORED: "method session/update, update user_message, update agent_message, update agent_thought, update state_update,"
    "state running, state idle",
    "messages_are_whole_or_continued_and_have_ids_of_their_own_in_the_session": "update agent_message_chunk",
    CALLED: "update tool_call_update, tool content content, tool content diff",
    TOLD: "update plan_update, update config_option_update, update session_info_update, update usage_update, plan items",
    ENDED: "stop reason end_turn, stop reason refusal",
    "a_limit_is_a_reason_too": "stop reason max_tokens, stop reason max_turn_requests",
    SAID: "agent session.prompt.image, agent session.prompt.audio, agent session.prompt.embeddedContext,"
    "agent session.mcp.stdio, agent session.mcp.http, agent session.delete, agent session.additionalDirectories,"
    "client auth.terminal, sign-in agent, sign-in terminal",
    FORMS: "method elicitation/create, method elicitation/complete, client elicitation.form, client elicitation.url,"
    "elicitation url, answer accept",
    SERVERS: "server stdio, server http",
    REFUSED: "permission cancelled",
    DIFFS: "change add, change modify",
    TAKEN: "error -32002, error -32600, error -32602",
    FAILED: "error -32000",
    "whatever_is_sent_to_a_method_gets_one_answer": "error -32601",
}
"""Tests, and what of the schema they show."""

AS_IN_1 = (
    "method $/cancel_request, to the client|block text|block image|block audio|block resource_link|block resource|"
    "resource TextResourceContents|resource BlobResourceContents|elicitation form|answer decline|answer cancel|field string|"
    "field number|field integer|field boolean|field array|error -32603|error -32700|status pending|status in_progress|"
    "status completed|status failed|step pending|step in_progress|step completed"
).split("|")
"""What is written by the same code in both versions; test_acp_schema.py says which test shows it."""

NOT_THERE = {
    "update user_message_chunk": "a prompt is told as a whole",
    "update agent_thought_chunk": "a thought is told as a whole",
    "update tool_call_content_chunk": "what `tool.update` is given replaces the content",
    "update terminal_update": "an executor has no terminal of its own",
    "update terminal_output_chunk": "likewise",
    "tool content terminal": "likewise",
    "subject command": "an executor asks about a tool call",
    "change delete": "a `Diff` has a new text",
    "change move": "likewise",
    "change copy": "likewise",
    "status cancelled": "a tool call that is cut off has failed, as in version 1",
    "step cancelled": "plans have the words of version 1",
    "agent auth": "it is for extensions",
}
"""What the dialect does not have, and why. docs/acp.md says so, too."""

OF_THE_DRAFT = {
    "StateUpdate": "state",
    "SetSessionConfigOptionRequest": "value",
    "AvailableCommandInput": "input",
    "ReplayFrom": "replay",
    "RequestPermissionSubject": "subject",
    "PlanUpdateContent": "plan",
    "DiffChange": "change",
    "ToolCallStatus": "status",
    "PlanEntryStatus": "step",
}


def test_everything_in_the_schema_is_shown_by_a_test_or_is_said_not_to_be_there(schemas: Path) -> None:
    definitions = schema(2)["$defs"]
    found = {*items_of(definitions, {**ALTERNATIVES, **OF_THE_DRAFT})}
    shown = [item.strip() for items in SHOWN.values() for item in items.split(",")]
    assert sorted([*shown, *AS_IN_1, *NOT_THERE]) == sorted(found)
    methods = json.loads((schemas / "acp" / "v2.meta.json").read_text("utf-8"))
    assert {f"method {name}" for side in methods.values() if isinstance(side, dict) for name in side.values()} <= found


def test_the_tests_of_the_table_are_there_and_the_documentation_says_what_is_not() -> None:
    assert {f"test_{name}" for name in SHOWN} <= globals().keys()
    page = (Path(__file__).parents[3] / "docs" / "acp.md").read_text("utf-8")
    assert [item for item in NOT_THERE if f"`{item.split()[-1]}`" not in page] == []
