"""The handshake and the sessions: what the agent says of itself, what is kept of a session, and what comes back of it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from discreet import Context, OperationError, Service
from discreet.acp import AcpOptions, AuthMethod, Choice, Command, ConfigOption, Mode, Terminal
from discreet.agents import NotCancelable, RequestContext, TaskEvents
from discreet.daemon.connection.session import MAX_CLIENT_BYTES
from discreet.daemon.operations.service import DeclarationError
from discreet.dialects.acp.generated.structs import McpServer
from discreet.dialects.acp.sessions import Sessions, TooManySessions
from discreet.errors.decoders import decoder_for
from support.acp_client import AcpClient, AcpRefused, acp_client, agent_of
from support.backends import both_loops
from support.executors import ask_then_echo, echo, for_ever

pytestmark = pytest.mark.anyio

OPTIONS = AcpOptions(
    modes=(Mode("ask", "Ask"), Mode("code", "Code", "Writes files.")),
    config_options=(
        ConfigOption(id="model", name="Model", choices=(Choice("s", "Small"), Choice("l", "Large")), category="model"),
        ConfigOption(id="loud", name="Loud", default=True),
    ),
    commands=(Command("plan", "Makes a plan.", "what for"),),
    auth_methods=(AuthMethod("key", "API key"),),
)
NEW = {"cwd": "/project", "mcpServers": []}


async def refused(work: Any) -> AcpRefused:
    with pytest.raises(AcpRefused) as caught:
        await work
    return caught.value


# -- the handshake ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 65535])
async def test_initialize_answers_version_1_for_any_and_what_a_prompt_may_hold_by_the_cards_input_modes(
    version: int,
) -> None:
    async with acp_client(agent_of(echo, input_modes=["text/plain", "image/*"])) as client:
        said = await client.hello(version=version)
    assert (said["protocolVersion"], said["agentInfo"]) == (1, {"name": "Tester", "version": "1.2.3"})
    prompts = said["agentCapabilities"]["promptCapabilities"]
    assert (prompts.get("image"), prompts.get("audio"), prompts["embeddedContext"]) == (True, False, True)


async def test_sessions_are_offered_for_later_only_where_the_store_outlives_the_process(tmp_path: Path) -> None:
    async with acp_client(agent_of(echo)) as client:
        said = (await client.hello())["agentCapabilities"]
        assert (said["loadSession"], {*said["sessionCapabilities"]}) == (False, {"close", "additionalDirectories"})
    async with acp_client(agent_of(echo), store=f"sqlite:{tmp_path / 'tasks.db'}") as client:
        said = (await client.hello())["agentCapabilities"]
        assert said["loadSession"] is True
        later = {"list", "resume", "delete"}
        assert {*said["sessionCapabilities"]} == {"close", "additionalDirectories", *later}


async def test_the_dialect_is_found_by_the_first_message() -> None:
    async with acp_client(agent_of(echo), dialect="auto", framing="newline") as client:
        assert (await client.hello())["protocolVersion"] == 1
        assert await client.prompt(await client.session()) == "end_turn"


async def test_services_hear_of_the_client_and_their_operations_are_extension_methods() -> None:
    service = Service("_shop")
    met: list[str] = []

    @service.initialize
    async def hello(ctx: Context, **params: Any) -> None:
        met.append(ctx.client.name)

    @service.query("_shop/price")
    def price(item: str) -> int:
        return len(item)

    async with acp_client(agent_of(echo), service) as client:
        await client.hello()
        assert await client.call("_shop/price", {"item": "tea"}) == 3
        assert (await refused(client.call("no/such", {}))).code == -32601
    assert met == ["test"]


async def test_capabilities_of_another_shape_are_refused_and_unknown_ones_are_not() -> None:
    async with acp_client(agent_of(echo)) as client:
        assert (await refused(client.hello({"fs": 1}))).code == -32602
        assert await client.hello({"future": {"x": 1}})


async def test_a_client_that_says_too_much_of_itself_is_refused() -> None:
    async with acp_client(agent_of(echo)) as client:
        large = {"_meta": {"a": "a" * MAX_CLIENT_BYTES}}
        assert (await refused(client.hello(capabilities=large))).code == -32602
        await client.hello()


async def test_signing_in_takes_a_declared_method() -> None:
    class NoKey(OperationError, code="NO_KEY"):
        """There is no key."""

    chosen: list[str] = []

    async def authenticate(method: str) -> None:
        chosen.append(method)
        if len(chosen) > 1:
            raise NoKey

    options = AcpOptions(auth_methods=(AuthMethod("key", "API key"),), authenticate=authenticate)
    async with acp_client(agent_of(echo, acp=options)) as client:
        assert (await client.hello())["authMethods"] == [{"id": "key", "name": "API key"}]
        assert await client.call("authenticate", {"methodId": "key"}) == {}
        assert (await refused(client.call("authenticate", {"methodId": "key"}))).code == -32000
        assert (await refused(client.call("authenticate", {"methodId": "other"}))).code == -32602
    assert chosen == ["key", "key"]


async def test_a_way_to_sign_in_by_a_terminal_is_told_to_clients_that_have_one() -> None:
    login = AuthMethod("login", "Log in", "In a terminal.", type="terminal", args=("--login",), env={"A": "1"})
    options = AcpOptions(auth_methods=(login, AuthMethod("key", "API key")))
    told = {"id": "login", "name": "Log in", "description": "In a terminal."}
    async with acp_client(agent_of(echo, acp=options)) as client:
        methods = (await client.hello())["authMethods"]
        assert methods[0] == {**told, "type": "terminal", "args": ["--login"], "env": {"A": "1"}}
        assert await client.call("authenticate", {"methodId": "login"}) == {}
    async with acp_client(agent_of(echo, acp=options)) as client:
        assert [each["id"] for each in (await client.hello({}))["authMethods"]] == ["key"]


async def test_signing_out_is_the_agents_own_and_offered_where_it_has_that() -> None:
    out: list[str] = []

    async def logout() -> None:
        out.append("out")

    async with acp_client(agent_of(echo, acp=AcpOptions(logout=logout))) as client:
        assert (await client.hello())["agentCapabilities"]["auth"] == {"logout": {}}
        assert await client.call("logout", {}) == {}
    async with acp_client(agent_of(echo)) as client:
        assert "auth" not in (await client.hello())["agentCapabilities"]
        assert (await refused(client.call("logout", {}))).code == -32601
    assert out == ["out"]


async def test_a_service_may_have_an_operation_logout_where_the_agent_has_none() -> None:
    async def sign_out() -> None: ...

    service = Service("")
    service.mutation(name="logout")(lambda: "own")
    async with acp_client(agent_of(echo), service) as client:
        await client.send_line(b'{"jsonrpc":"2.0","id":null,"method":"logout"}')
        assert await client.answer_to(None) == "own"
    with pytest.raises(DeclarationError, match="logout"):
        async with acp_client(agent_of(echo, acp=AcpOptions(logout=sign_out)), service):
            pass


async def test_without_an_agent_the_operations_are_commands() -> None:
    shop = Service("shop")

    @shop.query
    def price(item: str) -> int:
        """What something costs."""
        return len(item)

    async with acp_client(shop) as client:
        session = await client.session()
        await client.until(lambda: client.updates)
        assert [each["name"] for each in client.updates[0]["availableCommands"]] == ["shop/price"]
        assert await client.prompt(session, '/shop/price {"item": "tea"}') == "end_turn"
        assert client.texts("agent_message_chunk") == "3"
        for wrong in ("/shop/price {", "/shop/none", ""):
            assert (await refused(client.prompt(session, wrong))).code in (-32602, -32010)


# -- what the user chooses -------------------------------------------------------------------------------------


async def test_a_new_session_tells_modes_and_options_and_after_the_answer_the_commands() -> None:
    async with acp_client(agent_of(echo, acp=OPTIONS)) as client:
        await client.hello()
        client.log.clear()
        opened = await client.call("session/new", NEW)
        await client.until(lambda: client.updates)
        assert client.log == ["answer", "update"]
    assert opened["modes"]["currentModeId"] == "ask"
    assert [(each["id"], each["currentValue"]) for each in opened["configOptions"]] == [("model", "s"), ("loud", True)]
    assert client.updates[0]["availableCommands"][0]["name"] == "plan"


async def test_modes_and_options_reach_the_executor_and_unknown_ones_are_refused() -> None:
    seen: list[Any] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        assert context.editor is not None
        seen.append((context.editor.mode, context.editor.config))
        await events.complete()

    async with acp_client(agent_of(execute, acp=OPTIONS)) as client:
        session = await client.session()
        await client.call("session/set_mode", {"sessionId": session, "modeId": "code"})
        model = {"sessionId": session, "configId": "model", "value": "l"}
        assert (await client.call("session/set_config_option", model))["configOptions"][0]["currentValue"] == "l"
        loud = {"sessionId": session, "configId": "loud", "type": "boolean", "value": False}
        await client.call("session/set_config_option", loud)
        for wrong in ({**model, "value": "xl"}, {**model, "configId": "x"}, {**loud, "value": "yes"}):
            assert (await refused(client.call("session/set_config_option", wrong))).code == -32602
        mode = {"sessionId": session, "modeId": "x"}
        assert (await refused(client.call("session/set_mode", mode))).data["accepted"] == ["ask", "code"]
        await client.prompt(session)
    assert seen == [("code", {"model": "l", "loud": False})]


async def test_a_switch_is_a_list_for_clients_that_know_no_switches() -> None:
    async with acp_client(agent_of(echo, acp=OPTIONS)) as client:
        await client.hello({})
        opened = await client.call("session/new", NEW)
        loud = opened["configOptions"][1]
        assert (loud["type"], loud["currentValue"], [each["value"] for each in loud["options"]]) == (
            "select",
            "on",
            ["off", "on"],
        )
        params = {"sessionId": opened["sessionId"], "configId": "loud", "value": "off"}
        assert (await client.call("session/set_config_option", params))["configOptions"][1]["currentValue"] == "off"


# -- sessions of before ----------------------------------------------------------------------------------------


async def test_a_session_is_listed_loaded_and_continued_by_the_next_process(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'tasks.db'}"
    async with acp_client(agent_of(ask_then_echo), store=store) as client:
        session = await client.session()
        await client.prompt(session, "first")
    async with acp_client(agent_of(ask_then_echo), store=store) as client:
        (listed,) = (await client.call("session/list", {}))["sessions"]
        assert (listed["sessionId"], listed["cwd"], listed["title"]) == (session, "/project", "first")
        assert (await client.call("session/list", {"cwd": "/else"}))["sessions"] == []
        await client.call("session/load", {"sessionId": session, **NEW})
        assert client.log[-1] == "answer"
        assert client.texts("user_message_chunk") == "first"
        assert client.texts("agent_message_chunk") == "What else?"
        client.updates.clear()
        assert await client.prompt(session, "second") == "end_turn"
        assert client.texts("agent_message_chunk") == "second"


async def test_a_session_is_listed_once_however_many_tasks_it_has_and_resumed_without_its_history(
    tmp_path: Path,
) -> None:
    async with acp_client(agent_of(echo), store=f"sqlite:{tmp_path / 'tasks.db'}") as client:
        session = await client.session()
        await client.prompt(session, "one")
        await client.prompt(session, "two")
        assert len((await client.call("session/list", {}))["sessions"]) == 1
        client.updates.clear()
        await client.call("session/resume", {"sessionId": session, "cwd": "/other"})
        assert client.updates == []
        await client.call("session/load", {"sessionId": session, **NEW})
        assert client.texts("user_message_chunk") == "onetwo"


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_what_the_user_has_chosen_is_there_when_a_session_is_opened_again(tmp_path: Path, method: str) -> None:
    store = f"sqlite:{tmp_path / 'tasks.db'}"
    async with acp_client(agent_of(echo, acp=OPTIONS), store=store) as client:
        session = await client.session()
        await client.call("session/set_mode", {"sessionId": session, "modeId": "code"})
        for config, value in (("model", "l"), ("loud", False)):
            params = {"sessionId": session, "configId": config, "value": value}
            await client.call("session/set_config_option", params)
        await client.prompt(session, "first")
    async with acp_client(agent_of(echo, acp=OPTIONS), store=store) as client:
        await client.hello()
        opened = await client.call(method, {"sessionId": session, **NEW})
        assert opened["modes"]["currentModeId"] == "code"
        assert {each["id"]: each["currentValue"] for each in opened["configOptions"]} == {"model": "l", "loud": False}
    fewer = AcpOptions(modes=(Mode("ask", "Ask"), Mode("plan", "Plan")))
    async with acp_client(agent_of(echo, acp=fewer), store=store) as client:  # which has no such mode any more
        assert (await client.call(method, {"sessionId": session, **NEW}))["modes"]["currentModeId"] == "ask"


async def test_a_loaded_session_shows_its_tool_calls_and_plans(tmp_path: Path) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        editor = context.editor
        assert editor is not None
        await editor.plan(["look"])
        async with editor.tool("Look", kind="read", locations=["a.py"]) as tool:
            await events.working("on it")
            await tool.update("seen", raw_output={"lines": 3})
        async with editor.tool("Write", content=[Terminal("t1"), "more"]):
            await events.complete("done")

    store = f"sqlite:{tmp_path / 'tasks.db'}"
    async with acp_client(agent_of(execute), store=store) as client:
        session = await client.session()
        await client.prompt(session)
        told = [each for each in client.updates if each["sessionUpdate"] in ("plan", "tool_call", "tool_call_update")]
        assert client.texts("agent_thought_chunk") == "on it"
    async with acp_client(agent_of(execute), store=store) as client:
        await client.call("session/load", {"sessionId": session, **NEW})
        again = [each for each in client.updates if each["sessionUpdate"] in ("plan", "tool_call", "tool_call_update")]
        assert client.texts("agent_message_chunk") == "on it\n\ndone"
    plan, look, update, completed, write, end = told
    assert again[:4] == [plan, look, update, completed]
    assert again[4] == {**write, "content": write["content"][1:]}
    assert (again[5]["toolCallId"], again[5]["status"]) == (end["toolCallId"], "failed")


@pytest.mark.parametrize("is_first", [True, False])
async def test_the_title_that_the_agent_gives_a_session_is_told_and_listed(tmp_path: Path, is_first: bool) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        assert context.editor is not None
        if context.text == "name it":
            await context.editor.set_title("Tea")
        if context.text == "forget it":
            await context.editor.set_title(None)
        await events.complete()

    async def title(client: AcpClient) -> str:
        (listed,) = (await client.call("session/list", {}))["sessions"]
        return listed["title"]  # type: ignore[no-any-return]

    store = f"sqlite:{tmp_path / 'tasks.db'}"
    async with acp_client(agent_of(execute), store=store) as client:
        session = await client.session()
        await client.prompt(session, "name it")
        assert client.updates == [{"sessionUpdate": "session_info_update", "title": "Tea"}]
        if not is_first:
            await client.prompt(session, "more")
    async with acp_client(agent_of(execute), store=store) as client:
        assert await title(client) == "Tea"
        await client.call("session/resume", {"sessionId": session, **NEW})
        await client.prompt(session, "more")
        assert await title(client) == "Tea"
        await client.prompt(session, "forget it")
        assert client.updates == [{"sessionUpdate": "session_info_update", "title": None}]
        assert await title(client) == "forget it"


async def test_a_session_that_is_deleted_is_listed_and_opened_no_more(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'tasks.db'}"
    async with acp_client(agent_of(ask_then_echo), store=store) as client:
        assert "delete" in (await client.hello())["agentCapabilities"]["sessionCapabilities"]
        kept, session = await client.session(), await client.session()
        await client.prompt(kept)
        await client.prompt(session, "one")
        assert await client.call("session/delete", {"sessionId": session}) == {}
        assert (await refused(client.prompt(session))).code == -32002
        for again in (session, "never heard of"):
            assert await client.call("session/delete", {"sessionId": again}) == {}
    async with acp_client(agent_of(ask_then_echo), store=store) as client:
        assert [each["sessionId"] for each in (await client.call("session/list", {}))["sessions"]] == [kept]
        for method in ("session/load", "session/resume"):
            assert (await refused(client.call(method, {"sessionId": session, **NEW}))).code == -32002


@both_loops
async def test_deleting_a_session_cancels_what_runs_in_it() -> None:
    async with acp_client(agent_of(for_ever)) as client:
        session = await client.session()
        running = await client.send_prompt(session)
        await client.until(lambda: client.log)
        await client.call("session/delete", {"sessionId": session})
        assert (await client.answer_to(running))["stopReason"] == "cancelled"


async def test_a_session_whose_task_refuses_to_be_cancelled_is_not_deleted() -> None:
    async def cancel(context: RequestContext, events: TaskEvents) -> None:
        raise NotCancelable

    async with acp_client(agent_of(ask_then_echo, cancel)) as client:
        session = await client.session()
        await client.prompt(session, "one")
        assert (await refused(client.call("session/delete", {"sessionId": session}))).code == -32010
        assert await client.prompt(session, "two") == "end_turn"


async def test_what_is_no_session_is_not_loaded() -> None:
    async with acp_client(agent_of(echo)) as client:
        for method in ("session/load", "session/resume"):
            assert (await refused(client.call(method, {"sessionId": "x", **NEW}))).code == -32002
        assert (await refused(client.call("session/new", {"cwd": "here", "mcpServers": []}))).data["param"] == "cwd"


async def test_the_directories_of_a_session_are_listed_as_the_last_prompt_had_them() -> None:
    async with acp_client(agent_of(echo)) as client:
        session = await client.session(additionalDirectories=["/more"])
        await client.prompt(session)
        assert (await client.call("session/list", {}))["sessions"][0]["additionalDirectories"] == ["/more"]
        await client.call("session/resume", {"sessionId": session, "cwd": "/project"})
        await client.prompt(session)
        assert "additionalDirectories" not in (await client.call("session/list", {}))["sessions"][0]
        more = {"cwd": "/project", "mcpServers": [], "additionalDirectories": ["more"]}
        assert (await refused(client.call("session/new", more))).data["param"] == "additionalDirectories"


async def test_a_cursor_of_no_page_is_named() -> None:
    async with acp_client(agent_of(echo)) as client:
        assert (await refused(client.call("session/list", {"cursor": "x"}))).data["param"] == "cursor"


def test_sessions_are_handed_on_as_they_are() -> None:
    sessions = Sessions(OPTIONS)
    sessions.open("s", "/project", ["/more"], None).record.mode = "code"
    session = Sessions(OPTIONS, sessions.save()).get("s")
    assert (session.record.cwd, session.record.mode, session.record.config) == (
        "/project",
        "code",
        {"model": "s", "loud": True},
    )


def test_a_session_that_can_not_be_opened_anew_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions(OPTIONS)
    first = sessions.open("s", "/project", None, None)
    monkeypatch.setattr("discreet.dialects.acp.sessions.MAX_BYTES", first.size + 100)
    with pytest.raises(TooManySessions):
        sessions.open("s", "/project", ["/" + "x" * 200], None)
    assert sessions.get("s") is first
    assert sessions.open("s", "/other", None, None).record.cwd == "/other"


def test_what_a_session_keeps_takes_about_as_much_as_it_is_counted_for() -> None:
    sessions = Sessions(OPTIONS)
    text = b'[{"name": "a", "command": "/a", "args": [], "env": [], "_meta": {"a": [%b]}}]' % b",".join(
        [b"[]"] * 50_000
    )
    servers = decoder_for(list[McpServer])(text)
    tracemalloc.start()
    session = sessions.open("s", "/project", None, servers)
    session.note_prompt(b'"%b"' % (b"i" * 100_000))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2 * session.size


# -- content ---------------------------------------------------------------------------------------------------


async def test_every_kind_of_block_reaches_the_executor_and_comes_back() -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        assert context.message is not None
        await events.artifact(context.message.parts)
        await events.complete()

    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "look"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///a.png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a.py", "name": "a.py", "mimeType": "text/x-python"},
        {"type": "resource", "resource": {"uri": "file:///b.py", "text": "b", "mimeType": "text/x-python"}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": "aGk=", "mimeType": "application/zip"}},
    ]
    async with acp_client(agent_of(execute, input_modes=["*/*"])) as client:
        session = await client.session()
        await client.call("session/prompt", {"sessionId": session, "prompt": blocks})
        assert [each["content"] for each in client.updates] == blocks
        assert len({each["messageId"] for each in client.updates}) == 1


@pytest.mark.parametrize(
    "blocks",
    [
        [],
        [{"type": "image", "data": "?", "mimeType": "image/png"}],
        [{"type": "image", "data": "aGk=", "mimeType": "image/png"}],
        [{"type": "future"}],
    ],
)
async def test_blocks_that_the_agent_can_not_take_are_invalid_params(blocks: list[Any]) -> None:
    async with acp_client(agent_of(echo)) as client:
        session = await client.session()
        refusal = await refused(client.call("session/prompt", {"sessionId": session, "prompt": blocks}))
        assert refusal.code == -32602
        assert await client.prompt(session) == "end_turn"


# -- numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (
            "/shop/price pen",
            'Invalid params: prompt: expected /operation, then its params as JSON: {"name": "value"}, not plain text',
        ),
        ("/shop/price", "Invalid params: item: expected string, not missing"),
    ],
)
async def test_a_user_reads_what_is_wrong_with_the_params(prompt: str, message: str) -> None:
    service = Service("shop")

    @service.query
    def price(item: str) -> int:
        return 1

    async with acp_client(service) as client:
        refusal = await refused(client.prompt(await client.session(), prompt))
    assert (refusal.code, refusal.message) == (-32602, message)


async def test_a_fault_of_the_agents_own_code_is_an_internal_error() -> None:
    async def logout() -> None:
        raise RuntimeError("s3cr3t")

    async with acp_client(agent_of(echo, acp=AcpOptions(logout=logout))) as client:
        refusal = await refused(client.call("logout", {}))
    assert (refusal.code, refusal.message) == (-32603, "Internal error")


async def test_what_is_no_json_is_a_parse_error() -> None:
    async with acp_client(agent_of(echo)) as client:
        await client.send_line(b"{oops")
        with pytest.raises(AcpRefused) as caught:
            await client.answer_to(None)
        assert caught.value.code == -32700
        assert await client.session()


def test_options_are_checked_when_the_agent_is_declared() -> None:
    for wrong in (
        AcpOptions(modes=(Mode("a", "A"), Mode("a", "B"))),
        AcpOptions(modes=("a",)),  # type: ignore[arg-type]
        AcpOptions(logout="out"),  # type: ignore[arg-type]
        AcpOptions(auth_methods=(AuthMethod("a", "A", type="web"),)),  # type: ignore[arg-type]
        {},
    ):
        with pytest.raises(DeclarationError):
            agent_of(echo, acp=wrong)
