"""Who calls over HTTP: tokens and API keys, asked for once a request, and tasks that belong to one caller alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from discreet import Context, Identity, Service
from discreet.a2a.methods import METHODS
from discreet.agents import ApiKey, HttpAuth, requires
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.daemon.operations.service import DeclarationError
from discreet.errors.failures import A2AVersion
from discreet.gateway.a2a.routes import ROUTES, path_of
from support.asgi_client import JSON
from support.vault import SECRET, digest

from .conftest import Serve, agent_of
from .test_jsonrpc import V1, hello

pytestmark = pytest.mark.anyio

ADA = {"authorization": f"Bearer {SECRET}"}
BOB = {"authorization": "Bearer other-token"}
TOKENS = (f"ada:{digest(SECRET)}:read", f"bob:{digest('other-token')}")
SERVED = {"tokens": TOKENS}


def keyed(location: Any, name: str = "X-Key", execute: Any = None) -> Any:
    options = {"security_schemes": {"key": ApiKey(name=name, location=location)}, "security": [requires({"key": []})]}
    return agent_of(execute, **options) if execute else agent_of(**options)


class Counting:
    """A provider that counts how often it is asked, and that may raise or give what is no identity."""

    schemes = ("bearer",)
    realm = "counted"

    def __init__(self) -> None:
        self.asked = 0

    def resolve(self, authorization: str) -> Identity | None:
        self.asked += 1
        if authorization == "Bearer broken":
            raise RuntimeError(authorization)
        if authorization == "Bearer odd":
            return authorization  # type: ignore[return-value]
        return Identity("ada") if authorization == "Bearer good" else None


EVERYTHING = {"http_operations": True, "http_metrics": True, "http_page": True, "http_mcp": True}
ENDPOINTS = {
    ("POST", "/"): 200,
    ("GET", "/tasks"): 500,
    ("POST", "/operations/shop/who"): 500,
    ("GET", "/openapi.json"): 500,
    ("GET", "/metrics"): 500,
    ("GET", "/page/requests"): 500,
    ("POST", "/mcp"): 500,
    ("GET", "/mcp"): 500,
    ("DELETE", "/mcp"): 500,
}
"""What asks who calls, and its status where that can't be found out."""


def call_of(verb: str, authorization: str | None) -> tuple[bytes, dict[str, str]]:
    """A body that any endpoint may take for one of its own, and headers."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "no"}}
    headers = {**JSON, "a2a-version": "1.0"} | ({} if authorization is None else {"authorization": authorization})
    return json.dumps(body).encode() if verb == "POST" else b"", headers


@pytest.mark.parametrize(
    ("authorization", "error"),
    [
        (None, ""),
        ("", ""),
        ("Bearer wrong", ', error="invalid_token"'),
        ("Bearer", ', error="invalid_token"'),
        (f"Basic {SECRET}", ""),
        (f"ApiKey {SECRET}", ""),
    ],
)
async def test_every_endpoint_refuses_callers_that_are_not_known_and_says_how_they_become_so(
    serve: Serve, authorization: str | None, error: str
) -> None:
    async with serve(agent_of(), shop(), **SERVED, **EVERYTHING) as client:
        for verb, path in ENDPOINTS:
            status, told, answer = await client.request(verb, path, *call_of(verb, authorization))
            assert (path, status, told["www-authenticate"]) == (path, 401, f'Bearer realm="discreet"{error}')
            assert b"discreet_" not in answer and b"requests" not in answer


@pytest.mark.parametrize("authorization", [f"Bearer {SECRET}", f"bearer   {SECRET}  "])
async def test_every_endpoint_takes_an_accepted_token(serve: Serve, authorization: str) -> None:
    async with serve(agent_of(), shop(), **SERVED, **EVERYTHING) as client:
        for verb, path in ENDPOINTS:
            assert (await client.request(verb, path, *call_of(verb, authorization)))[0] not in (401, 403)


@pytest.mark.parametrize("credentials", ["Bearer broken", "Bearer odd"])
async def test_a_provider_that_fails_is_an_internal_error_and_never_an_open_door(
    serve: Serve, credentials: str
) -> None:
    async with serve(agent_of(), shop(), provider=Counting(), **EVERYTHING) as client:
        for (verb, path), expected in ENDPOINTS.items():
            status, _, answer = await client.request(verb, path, *call_of(verb, credentials))
            assert (path, status, credentials[7:] in answer.decode()) == (path, expected, False)
            assert b"-32603" in answer or expected == 500
        assert "result" in await client.call("SendMessage", hello(), **V1, authorization="Bearer good")


async def test_the_log_and_the_metrics_say_why_credentials_were_refused_and_nothing_of_them(
    serve: Serve, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = "wrong-token-4711"
    async with serve(**SERVED, http_metrics=True, log_level="info") as client:
        for given in (None, f"Bearer {secret}", f"Basic {secret}", f"Bearer {secret}"):
            headers = {} if given is None else {"authorization": given}
            async with client.stream("SendMessage", hello(), **V1, **headers) as reply:
                assert reply.status == 401
        _, _, figures = await client.request("GET", "/metrics", headers=ADA)
    counted = [line for line in figures.decode().splitlines() if line.startswith("discreet_credentials_refused_total")]
    assert sorted(counted) == [
        'discreet_credentials_refused_total{reason="scheme"} 1.0',
        'discreet_credentials_refused_total{reason="unknown token"} 2.0',
    ]
    said = capfd.readouterr().err
    failed = [line for line in said.splitlines() if "event=request.failed" in line]
    reasons = [re.search(r'reason=("[^"]+"|\S+)', line) for line in failed]
    assert [found and found[1] for found in reasons] == [None, '"unknown token"', "scheme", '"unknown token"']
    assert secret not in said


async def test_access_comes_before_the_version_and_that_before_the_params(serve: Serve) -> None:
    wrong = {"a2a-version": "9.9"}
    async with serve(**SERVED) as client:
        for method in METHODS:
            for params in (["wrong"], {"id": 7, "message": None}):
                async with client.stream(method, params, **wrong) as reply:
                    assert reply.status == 401
                async with client.stream(method, params, **wrong, **ADA) as reply:
                    assert b"-32009" in await reply.body()


@pytest.mark.parametrize(("version", "wrong"), [("1.0", "9.9"), ("0.3", "0.3")])
async def test_access_comes_before_the_version_and_that_before_the_params_in_paths(
    serve: Serve, version: A2AVersion, wrong: str
) -> None:
    headers = {"content-type": "text/plain", "a2a-version": wrong}
    async with serve(**SERVED) as client:
        for route in ROUTES[version]:
            path = f"{path_of(route, version, tenant=False)}?id=1&id=2"
            body = b"{" if route.verb == "POST" else b""
            status, got, _ = await client.request(route.verb, path, body, headers)
            assert (status, "www-authenticate" in got) == (401, True)
            if version == "1.0":
                status, _, answer = await client.request(route.verb, path, body, {**headers, **ADA})
                assert (status, b"VERSION_NOT_SUPPORTED" in answer) == (400, True)


async def test_a_caller_without_the_scopes_gets_403(serve: Serve) -> None:
    agent = agent_of(security_schemes={"bearer": HttpAuth("bearer")}, security=[requires({"bearer": ["read"]})])
    async with serve(agent, **SERVED) as client:
        async with client.stream("SendMessage", hello(), **V1, **BOB) as reply:
            assert (reply.status, "www-authenticate" in reply.headers) == (403, False)
        async with client.stream("SendMessage", hello(), **V1, **ADA) as reply:
            assert reply.status == 200


KEYS: dict[str, tuple[str, dict[str, str]]] = {
    "header": ("/", {"x_key": SECRET}),
    "query": (f"/?X-Key={SECRET}", {}),
    "cookie": ("/", {"cookie": f"a=b; X-Key={SECRET}"}),
    "nowhere": ("/", {}),
}


@pytest.mark.parametrize("location", ["header", "query", "cookie"])
async def test_an_api_key_is_taken_from_where_the_card_says_and_from_nowhere_else(serve: Serve, location: str) -> None:
    seen: list[Identity | None] = []

    async def look(context: RequestContext, events: TaskEvents) -> None:
        seen.append(context.identity)
        await events.complete()

    authorized = {
        f"{scheme} {SECRET}": ("/", {"authorization": f"{scheme} {SECRET}"}) for scheme in ("ApiKey", "Bearer")
    }
    async with serve(keyed(location, execute=look), **SERVED) as client:
        for place, (path, headers) in {**KEYS, **authorized}.items():
            accepted = place == location or place in authorized
            async with client.stream("SendMessage", hello(), path=path, **V1, **headers) as reply:
                assert (place, reply.status) == (place, 200 if accepted else 401)
                assert accepted or 'ApiKey realm="discreet"' in reply.headers["www-authenticate"]
    assert [each and each.subject for each in seen] == ["ada"] * 3


async def test_tasks_of_anonymous_callers_are_not_those_of_a_known_one(serve: Serve) -> None:
    agent = agent_of(security_schemes={"bearer": HttpAuth("bearer")}, security=[requires({})])
    async with serve(agent, **SERVED) as client:
        theirs = (await client.call("SendMessage", hello(), **V1, **ADA))["result"]["task"]["id"]
        assert (await client.call("GetTask", {"id": theirs}, **V1))["error"]["code"] == -32001


def shop() -> Service:
    service = Service("shop")

    @service.query()
    async def who(ctx: Context) -> list[str | None]:
        return [ctx.identity and ctx.identity.subject for _ in range(3)]

    @service.query(scopes=[])
    async def again(ctx: Context) -> str | None:
        return ctx.identity and ctx.identity.subject

    return service


async def looking(context: RequestContext, events: TaskEvents) -> None:
    await events.complete(str([context.identity and context.identity.subject] * 3))


@pytest.mark.parametrize("hosted", [shop, lambda: agent_of(looking)])
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage", "ListTasks"])
async def test_the_provider_is_asked_once_a_request(serve: Serve, hosted: Callable[[], Any], method: str) -> None:
    provider = Counting()
    params: dict[str, Any] = {}
    if method.startswith("Send"):
        part = {"data": {"skill": "shop/who"}} if hosted is shop else {"text": "x"}
        params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [part]}}
    async with serve(hosted(), provider=provider) as client:
        for asked in (1, 2):
            async with client.stream(method, params, **V1, authorization="Bearer good") as reply:
                body = await reply.body()
                assert reply.status == 200
                assert hosted is not shop or not params or b"ada" in body
            assert provider.asked == asked


class Fetching(Counting):
    """A provider that lacks its keys until they are fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched = 0

    def lacks_key(self, authorization: str) -> bool:
        return not self.fetched

    def refresh(self, lacking: object) -> None:
        self.fetched += 1

    def resolve(self, authorization: str) -> Identity | None:
        return Identity("ada") if self.fetched else None


async def test_a_request_waits_for_the_keys_that_its_credentials_need(serve: Serve) -> None:
    provider = Fetching()
    async with serve(provider=provider) as client:
        answers: list[Any] = []

        async def call() -> None:
            answers.append(await client.call("SendMessage", hello(), **V1, authorization="Bearer any"))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(call)
    assert provider.fetched == 1
    assert ["result" in answer for answer in answers] == [True] * 5


async def test_skills_that_are_operations_are_for_known_callers_alone(serve: Serve) -> None:
    service = Service("shop")

    @service.query
    async def closed() -> int:
        return 1

    @service.query(public=True)
    async def opened() -> int:
        return 2

    part = {"data": {"skill": "shop/closed"}}
    params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [part]}}
    async with serve(service, **SERVED) as client:
        for method, given in (("SendMessage", params), ("ListTasks", {}), ("GetTask", {"id": "x"})):
            async with client.stream(method, given, **V1) as reply:
                assert (reply.status, reply.headers["www-authenticate"]) == (401, 'Bearer realm="discreet"')
        assert "result" in await client.call("SendMessage", params, **V1, **BOB)
        _, _, text = await client.request("GET", "/.well-known/agent-card.json", headers={"a2a-version": "1.0"})
        card = json.loads(text)
        assert [skill["id"] for skill in card["skills"]] == ["shop/opened"]
        assert card["securityRequirements"] == [{"schemes": {"bearer": {}}}]
        extended = (await client.call("GetExtendedAgentCard", {}, **V1, **BOB))["result"]
        assert [skill["id"] for skill in extended["skills"]] == ["shop/closed", "shop/opened"]


@pytest.mark.parametrize("options", [{"scopes": ["a"]}, {"any_scope": ["a"]}])
def test_what_is_public_can_not_ask_for_scopes(options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match="public"):
        Service("shop").query(name="x", public=True, **options)(lambda: None)


@pytest.mark.parametrize("security", [[{"key": []}], [{"schemes": {}}], [{}]])
def test_requirements_in_another_form_are_refused(security: Any) -> None:
    with pytest.raises(DeclarationError, match="requires"):
        agent_of(security=security)
