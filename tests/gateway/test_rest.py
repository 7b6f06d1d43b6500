"""What section 11 of A2A 1.0 demands of HTTP+JSON. A test's name begins with its section."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.a2a.methods import V03_METHODS, V10_METHODS
from discreet.errors.failures import A2AVersion
from discreet.gateway.a2a.routes import ROUTES, Found, NotAllowed, find_route
from support.a2a_bindings import Tokens
from support.asgi_client import JSON, AsgiClient
from support.works import UNKNOWN, Works, v1
from support.works import replying as agent

from .conftest import Serve

pytestmark = pytest.mark.anyio

A2A_JSON = {"content-type": "application/a2a+json"}
V1 = {"a2a-version": "1.0"}
POST = {**A2A_JSON, **V1}


async def ask(
    client: AsgiClient, verb: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], Any]:
    encoded = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
    status, got, answer = await client.request(verb, path, encoded, {**(POST if encoded else V1), **(headers or {})})
    return status, got, msgspec.json.decode(answer)


@pytest.fixture
async def client(serve: Serve) -> AsyncGenerator[AsgiClient]:
    async with serve(agent()) as found:
        yield found


def reason_of(body: Any) -> str:
    return str(body["error"]["details"][0]["reason"])


def suggestion_of(body: Any) -> str:
    return str(body["error"]["details"][0]["metadata"]["suggestion"])


async def task_of(client: AsgiClient, text: str = "ask") -> Any:
    return (await ask(client, "POST", "/message:send", v1(text)))[2]["task"]


# -- 11.1 the protocol --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("application/json", "application/json"),
        ("application/json, */*;q=0.5", "application/json"),
        ("Application/JSON;q=0.9, application/a2a+json;q=0.1", "application/json"),
        ("application/json, application/a2a+json", "application/a2a+json"),
        ("application/json;q=x", "application/a2a+json"),
        ("*/*", "application/a2a+json"),
        (",;;q=", "application/a2a+json"),
    ],
)
async def test_11_1_answers_and_errors_are_of_the_type_that_is_asked_for(
    client: AsgiClient, accept: str, wanted: str
) -> None:
    for verb, path, body in (
        ("GET", "/tasks", None), ("GET", f"/tasks/{UNKNOWN}", None), ("GET", "/nowhere", None), ("PUT", "/tasks", None),
        ("GET", "/tasks?pageSize=x", None), ("POST", "/message:send", b"{"), ("POST", "/message:send", v1("end")),
    ):  # fmt: skip
        status, headers, _ = await ask(client, verb, path, body, {"accept": accept})
        assert (path, status, headers["content-type"]) == (path, status, wanted)


async def test_11_1_a_post_that_needs_no_body_needs_no_content_type(client: AsgiClient) -> None:
    task = await task_of(client)
    assert (await ask(client, "POST", f"/tasks/{task['id']}:cancel"))[0] == 200
    assert (await client.request("POST", "/message:send", b"", V1))[0] == 415
    assert (await ask(client, "POST", "/message:send", b"", A2A_JSON))[0] == 400


# -- 11.2 service parameters --------------------------------------------------------------------------------------------


async def test_11_2_service_parameters_are_headers_of_any_case(serve: Serve) -> None:
    async with serve(agent(), provider=Tokens()) as client:
        status, _, body = await ask(client, "GET", "/tasks", headers={"AUTHORIZATION": "Bearer ann"})
        assert (status, body["tasks"]) == (200, [])
        params = {**v1("end"), "serviceParams": {"authorization": "Bearer ann"}}
        status, headers, body = await ask(client, "POST", "/message:send", params)
        assert (status, headers["www-authenticate"], reason_of(body)) == (401, 'Bearer realm="agents"', "FORBIDDEN")


async def test_3_6_1_the_version_may_be_a_request_parameter(client: AsgiClient) -> None:
    status, _, _ = await client.request("GET", "/tasks?A2A-Version=1.0&pageSize=1")
    assert status == 200
    status, _, body = await client.request("GET", "/tasks?A2A-Version=")
    assert (status, reason_of(msgspec.json.decode(body))) == (400, "VERSION_NOT_SUPPORTED")


# -- 11.3 paths ---------------------------------------------------------------------------------------------------------


def test_11_3_every_method_has_a_path_in_its_version() -> None:
    assert {route.method for route in ROUTES["1.0"]} == {*V10_METHODS}
    assert {route.method for route in ROUTES["0.3"]} == {*V03_METHODS}


@given(st.sampled_from(["GET", "POST", "DELETE", "PUT", ""]), st.text() | st.from_regex("[:/a-z%]*"))
def test_11_3_any_path_has_a_meaning_or_none(verb: str, path: str) -> None:
    for version in ROUTES:
        assert isinstance(find_route(verb, path, version), Found | NotAllowed | None)


@pytest.mark.parametrize(
    ("verb", "path", "version", "method", "params"),
    [
        ("POST", "message:send", "1.0", "SendMessage", {}),
        ("POST", "acme/message:send", "1.0", "SendMessage", {"tenant": "acme"}),
        ("GET", "tasks", "1.0", "ListTasks", {}),
        ("GET", "tasks/tasks", "1.0", "GetTask", {"id": "tasks"}),
        ("GET", "tasks/tasks/tasks", "1.0", "GetTask", {"tenant": "tasks", "id": "tasks"}),
        ("GET", "a%2Fb/tasks/c%3Ad%2Fe", "1.0", "GetTask", {"tenant": "a/b", "id": "c:d/e"}),
        ("POST", "tasks/a:b:cancel", "1.0", "CancelTask", {"id": "a:b"}),
        ("GET", "tasks/a:b", "1.0", "GetTask", {"id": "a:b"}),
        ("GET", "tasks/:cancel", "1.0", "GetTask", {"id": ":cancel"}),
        ("GET", "v1/tasks/a", "1.0", "GetTask", {"tenant": "v1", "id": "a"}),
        ("GET", "v1/tasks/a", "0.3", "tasks/get", {"id": "a"}),
        ("GET", "v1/card", "0.3", "agent/getAuthenticatedExtendedCard", {}),
        ("GET", "acme/tasks/a", "0.3", "GetTask", {"tenant": "acme", "id": "a"}),
    ],
)
def test_11_3_a_path_means_a_method_and_some_of_its_params(
    verb: str, path: str, version: A2AVersion, method: str, params: dict[str, str]
) -> None:
    found = find_route(verb, path, version)
    assert isinstance(found, Found)
    assert (found.route.method, found.params) == (method, params)


@pytest.mark.parametrize(
    "path", ["/nothing", "/tasks/", "/a//tasks", "/a/b/tasks", "/tasks/a/b", "/message:send/x", "/v2/card"]
)
async def test_11_3_a_path_of_nobody_is_not_found(client: AsgiClient, path: str) -> None:
    status, headers, body = await ask(client, "GET", path)
    assert (status, headers["content-type"], reason_of(body)) == (404, "application/a2a+json", "METHOD_NOT_FOUND")
    assert (body["error"]["code"], body["error"]["status"]) == (404, "UNIMPLEMENTED")


@pytest.mark.parametrize(
    ("verb", "path", "allowed"),
    [
        ("GET", "/message:send", "POST"),
        ("DELETE", "/tasks", "GET"),
        ("PUT", "/acme/tasks/a", "GET"),
        ("DELETE", "/tasks/a:subscribe", "POST, GET"),
        ("GET", "/", "POST"),
        ("POST", "/.well-known/agent-card.json", "GET, HEAD"),
    ],
)
async def test_11_3_a_verb_that_a_path_does_not_take_is_told_which_it_takes(
    client: AsgiClient, verb: str, path: str, allowed: str
) -> None:
    status, headers, body = await ask(client, verb, path)
    assert (status, headers["allow"], body["error"]["code"]) == (405, allowed, 405)
    assert allowed.partition(",")[0] in suggestion_of(body)


async def test_11_3_a_tenant_stands_before_the_path_and_is_kept(serve: Serve) -> None:
    async with serve(agent(push_notifications=True)) as client:
        task = (await ask(client, "POST", "/acme/message:send", v1("ask")))[2]["task"]
        config = {"id": "c", "url": "https://example.com/hook", "tenant": "another"}
        made = (await ask(client, "POST", f"/acme/tasks/{task['id']}/pushNotificationConfigs", config))[2]
        assert (made["tenant"], made["taskId"]) == ("acme", task["id"])


async def test_11_3_what_the_path_says_counts_and_not_what_the_body_says(client: AsgiClient) -> None:
    task = await task_of(client)
    for other in ({"id": UNKNOWN}, {"metadata": {"a": 1}}):
        status, _, _ = await ask(client, "POST", f"/tasks/{task['id']}:cancel", other)
        assert status == (200 if "id" in other else 400)  # canceled by the first


async def test_11_3_2_a_subscription_is_a_get_as_well_as_a_post(serve: Serve) -> None:
    works = Works()
    async with serve(agent(works)) as client:
        params = v1("wait end", returnImmediately=True)
        task = (await ask(client, "POST", "/message:send", params))[2]["task"]
        async with client.open("GET", f"/tasks/{task['id']}:subscribe", headers=V1) as reply:
            events = reply.events()
            assert [*(await anext(events))[1]] == ["task"]
            works.go.set()
            assert [next(iter(data)) async for _, data in events] == ["statusUpdate"]


# -- 11.4 bodies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("body", "received"), [(b"[]", "array"), (b"7", "number")])
async def test_11_4_a_body_must_be_an_object_of_json(client: AsgiClient, body: bytes, received: str) -> None:
    status, _, said = await ask(client, "POST", "/acme/message:stream", body)
    assert (status, reason_of(said)) == (400, "INVALID_PARAMS")
    assert said["error"]["details"][0]["metadata"] == {"param": "$", "expected": "object", "received": received}


# -- 11.5 queries -------------------------------------------------------------------------------------------------------


async def test_11_5_every_type_of_param_has_its_form_in_a_query(client: AsgiClient) -> None:
    task = await task_of(client, "say end")
    query = (
        f"contextId={task['contextId']}&status=TASK_STATE_COMPLETED&pageSize=5&historyLength=1&includeArtifacts=true"
        "&statusTimestampAfter=2020-01-01T00%3A00%3A00Z&pageToken="
    )
    _, _, listed = await ask(client, "GET", f"/tasks?{query}")
    assert listed["tasks"] == [task]
    assert (await ask(client, "GET", "/tasks?includeArtifacts=false"))[2]["tasks"][0].get("artifacts") is None
    assert (await ask(client, "GET", "/tasks?status=TASK_STATE_FAILED"))[2]["tasks"] == []
    assert (await ask(client, "GET", "/tasks?contextId=a%26b%2Bc+d"))[2]["tasks"] == []
    assert "history" not in (await ask(client, "GET", f"/tasks/{task['id']}?historyLength=0"))[2]


@pytest.mark.parametrize(
    ("query", "param", "expected"),
    [
        ("pageSize=many", "pageSize", "integer"),
        ("pageSize=1&pageSize=2", "pageSize", "one value"),
        ("historyLength=-1", "historyLength", "integer >= 0"),
        ("includeArtifacts=True", "includeArtifacts", "boolean"),
        ("status=working", "status", "one of"),
    ],
)
async def test_11_5_a_wrong_param_of_a_query_is_named(
    client: AsgiClient, query: str, param: str, expected: str
) -> None:
    status, _, body = await ask(client, "GET", f"/tasks?{query}")
    info, bad_request = body["error"]["details"]
    assert (status, info["reason"], info["metadata"]["param"]) == (400, "INVALID_PARAMS", param)
    assert info["metadata"]["expected"].startswith(expected)
    assert bad_request["fieldViolations"][0]["field"] == param


async def test_11_5_names_are_in_camel_case_and_others_are_ignored(client: AsgiClient) -> None:
    assert (await ask(client, "GET", "/tasks?page_size=1&colour=green"))[2]["pageSize"] == 50


# -- 11.6 errors --------------------------------------------------------------------------------------------------------


async def test_11_6_an_error_is_a_status_with_an_error_info(client: AsgiClient) -> None:
    task = await task_of(client, "end")
    status, _, body = await ask(client, "POST", f"/tasks/{task['id']}:cancel")
    (info,) = body["error"].pop("details")
    assert status == 400
    assert body["error"] == {"code": 400, "status": "FAILED_PRECONDITION", "message": "Task cannot be canceled"}
    assert (info["@type"], info["reason"]) == ("type.googleapis.com/google.rpc.ErrorInfo", "TASK_NOT_CANCELABLE")
    assert (info["domain"], info["metadata"]["taskId"]) == ("a2a-protocol.org", task["id"])


# -- 11.7 streams -------------------------------------------------------------------------------------------------------


async def test_11_7_an_error_before_the_first_event_is_a_response(client: AsgiClient) -> None:
    status, headers, body = await ask(client, "POST", "/message:stream", v1("end", UNKNOWN))
    assert (status, headers["content-type"], reason_of(body)) == (404, "application/a2a+json", "TASK_NOT_FOUND")
    status, _, body = await ask(client, "GET", f"/tasks/{UNKNOWN}:subscribe")
    assert (status, reason_of(body)) == (404, "TASK_NOT_FOUND")


async def test_11_7_a_later_error_is_the_last_event_and_its_name_tells_it(serve: Serve) -> None:
    works = Works()
    received: list[bytes] = []

    async def read(client: AsgiClient) -> None:
        async with client.open("POST", "/message:stream", msgspec.json.encode(v1("work wait")), POST) as reply:
            received.append(await reply.body())

    async with anyio.create_task_group() as tasks, serve(agent(works), drain_timeout=0.05) as client:
        tasks.start_soon(read, client)
        while not works.waiting:
            await anyio.lowlevel.checkpoint()
    *_, last = received[0].decode().split("\n\n")[:-1]
    name, data = last.split("\n")
    assert name == "event: error"
    assert reason_of(msgspec.json.decode(data.removeprefix("data: "))) == "UNAVAILABLE"


# -- What a client is told that asks for a path of nobody's --


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/message/send", "POST /message:send"),
        ("/messages:send", "POST /message:send"),
        ("/message:stream/", "POST /message:stream"),
        (f"/task/{UNKNOWN}", "GET /tasks/{id}"),
        (f"/tasks/{UNKNOWN}/cancel", "POST /tasks/{id}:cancel"),
        ("/SendMessage", "POST /message:send"),
        ("/agent-card.json", "GET /.well-known/agent-card.json"),
        ("/.well-known/agent-card", "GET /.well-known/agent-card.json"),
        ("/v1/message/send", "POST /v1/message:send"),
        ("/rpc", "POST /,"),
        ("/chat/" + "x" * 5000, "POST /,"),
    ],
)
async def test_a_path_of_nobody_is_told_which_is_near(client: AsgiClient, path: str, meant: str) -> None:
    status, _, answer = await client.request("POST", path, headers={} if "v1" in path else V1)
    suggestion = suggestion_of(msgspec.json.decode(answer))
    assert (status, meant in f"{suggestion},") == (404, True), suggestion
    assert "xxx" not in suggestion


@pytest.mark.parametrize(
    ("method", "path", "setting"),
    [
        ("POST", "/operations/shop/look", "http-operations"),
        ("GET", "/openapi.json", "http-operations"),
        ("POST", "/mcp", "http-mcp"),
        ("GET", "/metrics", "http-metrics"),
        ("GET", "/docs", "GET /openapi.json is served with --http-operations"),
        ("GET", "/", "--http-page"),
        ("GET", "/page/requests", "http-page"),
    ],
)
async def test_a_path_that_a_setting_would_serve_names_it(
    client: AsgiClient, method: str, path: str, setting: str
) -> None:
    status, _, answer = await client.request(method, path, headers=V1)
    assert (status, setting in suggestion_of(msgspec.json.decode(answer))) == (405 if path == "/" else 404, True)


@pytest.mark.parametrize("path", ["/redoc", "/swagger/index.html", "/openapi.yaml"])
async def test_where_others_have_their_documents_the_own_one_is_named(serve: Serve, path: str) -> None:
    async with serve(agent(), http_operations=True) as client:
        status, _, answer = await client.request("GET", path, headers=V1)
    assert (status, "GET /openapi.json" in suggestion_of(msgspec.json.decode(answer))) == (404, True)


@pytest.mark.parametrize("http_page", [False, True])
async def test_a_second_slash_is_tolerated_as_clients_join_paths_so(serve: Serve, http_page: bool) -> None:
    async with serve(agent(), http_page=http_page) as client:
        body = msgspec.json.encode(v1("end"))
        for method, path, given in (
            ("POST", "//message:send", body), ("GET", "//tasks", b""), ("GET", "///.well-known/agent-card.json", b""),
        ):  # fmt: skip
            status, _, answer = await client.request(method, path, given, {**V1, **JSON} if given else V1)
            assert status == 200, answer
