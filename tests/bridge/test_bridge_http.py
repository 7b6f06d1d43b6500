"""A stdio server by Streamable HTTP: every message passes as it is, and a process ends with its session."""

from __future__ import annotations

import json
import sys
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest

from discreet.bridge import MAX_CALLS, Bridge, ServerLog
from discreet.daemon.apps import Hosted
from discreet.daemon.operations.access import StaticTokens, parse_token
from discreet.daemon.settings import Settings
from discreet.gateway.mounted import mounted
from discreet.imports.targets import Command, Url
from support.asgi_client import AsgiClient
from support.http_server import HttpRequest, http_server
from support.mcp_http import MODERN, Answer, McpHttp, begun, first, messages
from support.programs import has_ended
from support.vault import SECRET, digest
from support.waits import until

from .conftest import Bridged

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="process groups")]

ODD = '{"a":1.50,"big":12345678901234567890,"text":"\\u00e9\\u0000","_meta":{"own/x":{"n":null}},"z":[]}'
"""Params that a decoder would write in another way."""


async def pid_of(client: McpHttp) -> int:
    pid: int = (await client.post("do/say")).result["pid"]
    return pid


async def test_params_reach_the_server_byte_for_byte(client: AsgiClient) -> None:
    ours = await begun(client)
    answer = await ours.send(b'{"jsonrpc":"2.0","id":"mine","method":"do/say","params":%b}' % ODD.encode())
    assert answer.json["id"] == "mine"
    assert ODD in answer.result["line"]


async def test_results_and_errors_reach_the_client_as_they_are(client: AsgiClient) -> None:
    ours = McpHttp(client)
    assert b'"own": [1.0]' in (await ours.begin()).body
    failed = await ours.post("do/fail", {"code": -32042})
    assert b'{"why": [1.5, null]}' in failed.body
    assert (failed.status, failed.json["error"]["message"], failed.code) == (200, "No such thing", -32042)


async def test_notifications_reach_the_server_in_order_and_as_they_are(client: AsgiClient) -> None:
    ours = await begun(client)
    for number in range(3):
        assert (await ours.note("notifications/own", {"number": number})).status == 202
    lines = [json.loads(line) for line in (await ours.post("do/seen")).result["lines"]]
    assert [line["method"] for line in lines] == ["notifications/initialized", *["notifications/own"] * 3]
    assert [line["params"]["number"] for line in lines[1:]] == [0, 1, 2]


async def test_progress_comes_with_its_request_and_its_token(client: AsgiClient) -> None:
    ours = await begun(client)
    told = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":TOKEN,"progress":1,"own":{}}}'
    answer = await ours.post("do/tell", {"message": told, "_meta": {"progressToken": "mine"}})
    progress, last = streamed(answer)
    assert progress["params"] == {"progressToken": "mine", "progress": 1, "own": {}}
    assert last["result"] == {}


async def test_progress_of_a_task_goes_on_behind_the_answer_that_tells_of_it(client: AsgiClient) -> None:
    ours = await begun(client)
    assert (await ours.post("do/begin", {"_meta": {"progressToken": "mine"}})).result == {"task": {"taskId": "one"}}
    async with ours.listen() as reply:
        await ours.post("do/go-on")
        ((_, heard),) = await first(reply)
        assert heard["params"] == {"progressToken": "mine", "progress": 2}


async def test_the_log_warns_with_the_last_line_of_a_server_that_dies_at_its_start(
    bridged: Bridged, capfd: pytest.CaptureFixture[str]
) -> None:
    dying = "import sys; print('no licence, token=hunter2hunter2', file=sys.stderr); sys.exit(3)"
    server_log = ServerLog()
    async with bridged(Command((sys.executable, "-c", dying)), server_log=server_log) as client:
        assert "error" in (await McpHttp(client).post("initialize", {"protocolVersion": "2025-11-25"})).json
        await until(
            lambda: "The server has ended" in "".join(server_log.after(0)[1])
        )  # noted behind the line of the log
    (lost,) = [line for line in capfd.readouterr().err.splitlines() if "bridge.server_lost" in line]
    assert ("level=warn" in lost, "no licence" in lost, "hunter2" in lost) == (True, True, False)


def streamed(answer: Answer) -> list[Any]:
    lines = answer.body.decode().split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


async def test_a_progress_token_keeps_its_bytes_and_is_another_one_at_the_server(client: AsgiClient) -> None:
    ours = await begun(client)
    for token in ("1", "1.0", "1e0", '"1"', '"\\u0031"', '"discreet-1"', "12345678901234567890"):
        params = '{"a":1.50,"_meta":{"progressToken":%s,"own/x":[1.0]}}'
        line = (await ours.send(sent("do/say", params % token))).result["line"]
        assert params % json.loads(line)["id"] in line
        params = '{"message":%s,"_meta":{"progressToken":%s}}'
        answer = await ours.send(sent("do/tell", params % (json.dumps(PROGRESS), token)))
        assert b'"params":{"progressToken":%b,"progress":1.50}' % token.encode() in answer.body


async def test_no_token_is_the_id_of_a_request_of_another_client(bridged: Bridged) -> None:
    async with bridged(share=True, drain_timeout=0.05) as client:
        one, other = await begun(client), await begun(client)
        said = json.loads((await one.post("do/say")).result["line"])
        async with one.open("do/wait", {"_meta": {"progressToken": "t"}}, "slow") as reply:
            unreadable = '{"message":%s,"_meta":{"progressToken":%d,"io.modelcontextprotocol/logLevel":1e400}}'
            answer = await other.send(sent("do/tell", unreadable % (json.dumps(PROGRESS), said["id"] + 1)))
            assert streamed(answer)[0]["params"]["progressToken"] == said["id"] + 1
            odd = PROGRESS.replace("TOKEN", str(said["id"] + 1)).replace("1.50", '2,"_meta":null')
            async with one.listen() as listening:
                await other.post("do/tell", {"message": odd})
                ((_, told),) = await first(reply)
                assert told["params"] == {"progressToken": "t", "progress": 2, "_meta": None}
                await other.post("do/tell", {"message": CHANGED})
                ((_, told),) = await first(listening)
                assert told["method"] == "notifications/tools/list_changed"


def sent(method: str, params: str) -> bytes:
    return b'{"jsonrpc":"2.0","id":"mine","method":"%b","params":%b}' % (method.encode(), params.encode())


PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":TOKEN,"progress":1.50}}'


async def test_what_belongs_to_no_request_is_heard_by_who_listens(client: AsgiClient) -> None:
    ours = await begun(client)
    told = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    async with ours.listen() as reply:
        await ours.post("do/tell", {"message": told})
        ((_, heard),) = await first(reply)
        assert heard == json.loads(told)


async def test_the_server_asks_the_client_and_gets_the_response_as_it_is(client: AsgiClient) -> None:
    ours = await begun(client)
    asked = '{"jsonrpc":"2.0","id":"q-1","method":"own/question"}'
    async with ours.open("do/ask", {"request": asked}) as reply:
        ((_, question),) = await first(reply)
        assert (question["method"], "params" in question) == ("own/question", False)
        call_id = json.dumps(question["id"]).encode()
        assert (await ours.send(b'{"jsonrpc":"2.0","id":%b,"result":{"n":1.50}}' % call_id)).status == 202
        line = (await messages(reply))[-1]["result"]["line"]
    assert line == '{"jsonrpc":"2.0","id":"q-1","result":{"n":1.50}}\n'


async def test_a_question_may_have_the_id_and_the_method_of_an_open_request(client: AsgiClient) -> None:
    ours = await begun(client)
    said = json.loads((await ours.post("do/say")).result["line"])
    asked = {"jsonrpc": "2.0", "id": said["id"] + 1, "method": "do/ask"}
    async with ours.open("do/ask", {"request": json.dumps(asked)}) as reply:
        ((_, question),) = await first(reply)
        await ours.reply(question["id"], {"n": 1})
        line = (await messages(reply))[-1]["result"]["line"]
    assert json.loads(line) == {"jsonrpc": "2.0", "id": asked["id"], "result": {"n": 1}}


async def test_an_error_of_the_client_reaches_the_server_as_it_is(client: AsgiClient) -> None:
    ours = await begun(client)
    async with ours.open("do/ask", {"request": '{"jsonrpc":"2.0","id":0,"method":"own/question"}'}) as reply:
        ((_, question),) = await first(reply)
        call_id = json.dumps(question["id"]).encode()
        await ours.send(b'{"jsonrpc":"2.0","id":%b,"error":{"code":-1,"message":"No","data":[1.0]}}' % call_id)
        line = (await messages(reply))[-1]["result"]["line"]
    assert line == '{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"No","data":[1.0]}}\n'


async def test_cancellation_reaches_the_server_with_the_id_that_it_knows(client: AsgiClient) -> None:
    ours = await begun(client)
    said = json.loads((await ours.post("do/say")).result["line"])
    async with ours.open("do/wait", call_id="slow"):
        cancel = {"reason": "why", "requestId": "slow", "own": 1}
        assert (await ours.note("notifications/cancelled", cancel)).status == 202
    cancelled = json.loads((await ours.post("do/seen")).result["lines"][-1])
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"] == {"reason": "why", "requestId": said["id"] + 1, "own": 1}


async def test_a_late_cancellation_of_a_question_ends_no_request_of_the_client(client: AsgiClient) -> None:
    ours = await begun(client)
    said = json.loads((await ours.post("do/say")).result["line"])
    late = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": said["id"] + 1}}
    assert (await ours.post("do/tell", {"message": json.dumps(late)})).result == {}


async def test_requests_that_wait_for_the_server_are_bounded(bridged: Bridged) -> None:
    async with bridged(http_max_requests=8192, drain_timeout=0.05) as client, AsyncExitStack() as stack:
        ours = await begun(client, "2025-03-26")
        for first_id in range(0, MAX_CALLS, 1024):
            batch = [ours.message("do/wait", call_id=f"{first_id + number}") for number in range(1024)]
            await stack.enter_async_context(ours.open_body(batch))
        refused = await ours.post("do/say")
        assert refused.json["error"]["data"]["code"] == "OVERLOADED"


async def test_callers_without_sessions_have_processes_of_their_own(bridged: Bridged) -> None:
    tokens = (f"ada:{digest(SECRET)}", f"bob:{digest('other-token')}")
    async with bridged(tokens=tokens) as client:
        ada = McpHttp(client, MODERN, authorization=f"Bearer {SECRET}")
        bob = McpHttp(client, MODERN, authorization="Bearer other-token")
        assert await pid_of(ada) != await pid_of(bob)
        assert await pid_of(ada) == await pid_of(ada)
        assert (await McpHttp(client, MODERN).post("do/say")).status == 401


async def test_each_session_has_a_process_that_ends_with_it_and_with_what_it_has_started(client: AsgiClient) -> None:
    one, other = await begun(client), await begun(client)
    pid, kept = await pid_of(one), await pid_of(other)
    grandchild = (await one.post("do/spawn")).result["pid"]
    assert pid != kept
    assert (await one.delete()).status == 204
    await until(lambda: has_ended(pid) and has_ended(grandchild))
    assert await pid_of(other) == kept
    assert (await one.post("do/say")).status == 404


async def test_an_idle_session_ends_its_process(bridged: Bridged) -> None:
    async with bridged(http_session_timeout=0.05) as client:
        ours = await begun(client)
        pid = await pid_of(ours)
        await until(lambda: has_ended(pid))
        assert (await ours.post("do/say")).status == 404


async def test_no_process_outlives_the_daemon(bridged: Bridged) -> None:
    async with bridged() as client:
        pids = [await pid_of(await begun(client)) for _ in range(3)]
        pids += [await pid_of(McpHttp(client, MODERN))]
    assert all(map(has_ended, pids))


async def test_a_server_that_dies_answers_its_open_requests_and_ends_its_session(client: AsgiClient) -> None:
    ours, other = await begun(client), await begun(client)
    async with anyio.create_task_group() as tasks:
        answers: list[Answer] = []

        async def wait() -> None:
            answers.append(await ours.post("do/wait", call_id=7))

        tasks.start_soon(wait)
        assert (await ours.post("do/die", call_id=8)).code == -32603
    assert (answers[0].json["id"], answers[0].code) == (7, -32603)
    await until(lambda: _has_gone(ours))
    assert await pid_of(other)


async def _has_gone(client: McpHttp) -> bool:
    return (await client.post("do/say")).status == 404


async def test_a_server_that_cannot_be_started_is_an_answer(bridged: Bridged) -> None:
    async with bridged(Command(("/nowhere/server",))) as client:
        answer = await McpHttp(client).begin()
        assert (answer.status, answer.json["error"]["data"]["code"]) == (503, "UNAVAILABLE")
        assert "mcp-session-id" not in answer.headers


async def test_a_caller_has_so_many_processes_and_no_more(bridged: Bridged) -> None:
    async with bridged(http_max_sessions=2) as client:
        sessions = [await begun(client) for _ in range(2)]
        pids = [await pid_of(each) for each in sessions]
        await begun(client)
        await until(lambda: has_ended(pids[0]))
        assert await pid_of(sessions[1]) == pids[1]


async def test_sessions_that_share_a_process_shake_hands_once_and_keep_their_tokens_apart(bridged: Bridged) -> None:
    async with bridged(share=True) as client:
        one, other = await begun(client), await begun(client)
        pid = await pid_of(one)
        assert await pid_of(other) == pid
        methods = [json.loads(line)["method"] for line in (await one.post("do/seen")).result["lines"]]
        assert methods == ["notifications/initialized"]
        async with one.open("do/wait", {"_meta": {"progressToken": 1}}, "slow"):
            await pid_of(one)
            told = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":TOKEN}}'
            progress, _ = streamed(await other.post("do/tell", {"message": told, "_meta": {"progressToken": 1}}))
            assert progress["params"] == {"progressToken": 1}
        await one.delete()
        assert await pid_of(other) == pid


QUESTION = '{"jsonrpc":"2.0","id":"q","method":"own/question"}'
LOGGED = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"secret"}}'


async def test_a_question_of_a_shared_server_is_put_to_no_client_that_it_may_not_be_for(bridged: Bridged) -> None:
    async with bridged(share=True, drain_timeout=0.05) as client:
        one, other = await begun(client), await begun(client)
        async with one.open("do/wait", call_id="slow"):
            await pid_of(one)
            answer = await other.post("do/ask", {"request": QUESTION})
            assert json.loads(answer.result["line"])["error"]["code"] == -32601


async def test_a_question_of_a_shared_server_is_put_to_the_only_client_with_a_request(bridged: Bridged) -> None:
    async with bridged(share=True, drain_timeout=0.05) as client:
        await begun(client)
        ours = await begun(client)
        async with ours.open("do/ask", {"request": QUESTION}) as reply:
            ((_, question),) = await first(reply)
            await ours.reply(question["id"], {"n": 1})
            assert json.loads((await messages(reply))[-1]["result"]["line"])["result"] == {"n": 1}


async def test_a_log_message_of_a_shared_server_goes_to_no_client_that_it_may_not_be_for(bridged: Bridged) -> None:
    async with bridged(share=True, drain_timeout=0.05) as client:
        one, other = await begun(client), await begun(client)
        said = json.loads((await one.post("do/say")).result["line"])
        async with one.open("do/wait", {"_meta": {"progressToken": "t"}}, "slow") as reply, one.listen() as listening:
            assert len(streamed(await other.post("do/tell", {"message": LOGGED}))) == 0
            await other.post("do/tell", {"message": PROGRESS.replace("TOKEN", str(said["id"] + 1))})
            ((_, told),) = await first(reply)
            assert told["method"] == "notifications/progress"
            await other.post("do/tell", {"message": CHANGED})
            ((_, told),) = await first(listening)
            assert told["method"] == "notifications/tools/list_changed"


CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'


async def test_a_log_message_of_a_shared_server_goes_to_the_only_client_with_a_request(bridged: Bridged) -> None:
    async with bridged(share=True, drain_timeout=0.05) as client:
        one, other = await begun(client), await begun(client)
        logged, _ = streamed(await one.post("do/tell", {"message": LOGGED}))
        assert logged == json.loads(LOGGED)
        async with one.listen() as listening:
            await other.note("notifications/tell", {"message": LOGGED})
            await other.note("notifications/tell", {"message": CHANGED})
            ((_, told),) = await first(listening)
            assert told["method"] == "notifications/tools/list_changed"


async def test_a_log_message_goes_to_a_request_that_does_not_only_listen(client: AsgiClient) -> None:
    ours = McpHttp(client, MODERN)
    listening = ours.open("subscriptions/listen", {"notifications": {}}, "mine")
    async with ours.open("do/wait", call_id="slow") as reply, listening:
        await ours.note("notifications/tell", {"message": LOGGED})
        ((_, told),) = await first(reply)
        assert told == json.loads(LOGGED)


async def test_a_shared_server_that_dies_ends_all_its_sessions_and_a_new_one_begins_another(bridged: Bridged) -> None:
    async with bridged(share=True) as client:
        one, other = await begun(client), await begun(client)
        await one.post("do/die")
        await until(lambda: _has_gone(other))
        assert await pid_of(await begun(client))


async def test_requests_without_a_session_share_a_process(client: AsgiClient) -> None:
    one, other = McpHttp(client, MODERN), McpHttp(client, MODERN)
    assert await pid_of(one) == await pid_of(other)
    failed = await one.post("do/fail", {"code": -32601})
    assert (failed.status, failed.code) == (404, -32601)
    assert (await one.post("do/fail", {"code": -32000})).status == 200


async def test_a_process_without_sessions_ends_when_nobody_uses_it_and_begins_anew(bridged: Bridged) -> None:
    async with bridged(http_session_timeout=0.05) as client:
        ours = McpHttp(client, MODERN)
        pid = await pid_of(ours)
        await until(lambda: has_ended(pid))
        assert await pid_of(ours) != pid


async def test_a_process_without_sessions_that_dies_begins_anew_with_the_next_request(client: AsgiClient) -> None:
    ours = McpHttp(client, MODERN)
    pid = await pid_of(ours)
    assert (await ours.post("do/die")).code == -32603
    assert await pid_of(ours) != pid


async def test_a_request_without_a_session_that_listens_is_told_by_its_own_id(client: AsgiClient) -> None:
    ours = McpHttp(client, MODERN)
    async with ours.open("subscriptions/listen", {"notifications": {}}, "mine") as reply:
        wanted = {"io.modelcontextprotocol/subscriptionId": "mine", "more": 1}
        for method in ("notifications/subscriptions/acknowledged", "notifications/tools/list_changed"):
            ((_, told),) = await first(reply)
            assert (told["method"], told["params"]["_meta"]) == (method, wanted)
            await ours.post("do/change" if "acknowledged" in method else "do/unlisten")
        (last,) = await messages(reply)
        assert last["params"] == {"requestId": "mine"}


async def test_a_client_that_goes_away_cancels_its_request_without_a_session(client: AsgiClient) -> None:
    ours = McpHttp(client, MODERN)
    said = json.loads((await ours.post("do/say")).result["line"])
    async with ours.open("do/wait", call_id="slow"):
        await pid_of(ours)
    (line,) = (await ours.post("do/seen")).result["lines"]
    cancelled = {"method": "notifications/cancelled", "params": {"requestId": said["id"] + 1}}
    assert json.loads(line) == {"jsonrpc": "2.0"} | cancelled


async def test_nothing_but_mcp_and_health_is_served(client: AsgiClient) -> None:
    assert (await client.request("GET", "/healthz", b"", {}))[0] == 200
    assert (await client.request("GET", "/.well-known/agent-card.json", b"", {}))[0] == 404


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_server_by_http_gets_each_message_with_the_headers_for_its_caller(revision: str) -> None:
    async def take(request: HttpRequest) -> None:
        if (request.message or {}).get("id") is None:
            await request.answer(405 if request.verb == "GET" else 202, b"")
        else:
            await request.result({"protocolVersion": revision, "capabilities": {}, "serverInfo": {"name": "t"}})

    async def headers(caller: str) -> dict[str, str]:
        return {"authorization": f"Bearer for-{caller}"}

    callers = {"ada": SECRET, "bob": "other-token-of-bob"}
    provider = StaticTokens([parse_token(f"{name}:{digest(token)}") for name, token in callers.items()])
    async with http_server(take) as server:
        bridge = Bridge(Url(server.url, allow_private=True), headers=headers)
        app = mounted(Hosted([], bridge=bridge), Settings(http_mcp=True, dialect="mcp"), provider, {})
        async with app.lifespan():
            for token in callers.values():
                ours = McpHttp(AsgiClient(app), revision, authorization=f"Bearer {token}")
                if revision != MODERN:
                    await ours.begin()
                assert (await ours.post("do/say")).status == 200
    sent = [(request.headers["authorization"], (request.message or {}).get("method")) for request in server.requests]
    assert [who for who, method in sent if method == "do/say"] == [f"Bearer for-{token}" for token in callers.values()]
    assert {who for who, _ in sent} == {f"Bearer for-{token}" for token in callers.values()}
