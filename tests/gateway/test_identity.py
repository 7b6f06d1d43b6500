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
from discreet.gateway.a2a.routes import ROUTES, Route, path_of
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
    """A provider that counts how often it is asked."""

    schemes = ("bearer",)
    realm = "counted"

    def __init__(self) -> None:
        self.asked = 0

    def resolve(self, authorization: str) -> Identity | None:
        self.asked += 1
        if authorization == "Bearer broken":
            raise RuntimeError(authorization)
        return Identity("ada") if authorization == "Bearer good" else None


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 401),
        ("Bearer wrong", 401),
        ("Bearer", 401),
        ("", 401),
        (f"Basic {SECRET}", 401),
        (f"ApiKey {SECRET}", 401),
        (f"Bearer {SECRET}", 200),
        (f"bearer   {SECRET}  ", 200),
    ],
)
async def test_without_an_accepted_token_the_answer_is_401_and_says_how(
    serve: Serve, authorization: str | None, status: int
) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    async with serve(**SERVED) as client, client.stream("SendMessage", hello(), **V1, **headers) as reply:
        answer = await reply.json()
        assert reply.status == status
        if status == 401:
            error = (
                ""
                if authorization is None or authorization.startswith(("Basic", "ApiKey")) or not authorization
                else ', error="invalid_token"'
            )
            assert reply.headers["www-authenticate"] == f'Bearer realm="discreet"{error}'
            assert answer["error"]["code"] == -32000


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


@pytest.mark.parametrize("method", sorted(METHODS))
async def test_access_comes_before_the_version_and_that_before_the_params(serve: Serve, method: str) -> None:
    wrong = {"a2a-version": "9.9"}
    async with serve(**SERVED) as client:
        for params in (["wrong"], {"id": 7, "message": None}):
            async with client.stream(method, params, **wrong) as reply:
                assert reply.status == 401
            async with client.stream(method, params, **wrong, **ADA) as reply:
                assert b"-32009" in await reply.body()


@pytest.mark.parametrize(("version", "route"), [(version, each) for version, rows in ROUTES.items() for each in rows])
async def test_access_comes_before_the_version_and_that_before_the_params_in_paths(
    serve: Serve, version: A2AVersion, route: Route
) -> None:
    path = path_of(route, version, tenant=False)
    body = b"{" if route.verb == "POST" else b""
    headers = {"content-type": "text/plain", "a2a-version": "9.9" if version == "1.0" else "0.3"}
    async with serve(**SERVED) as client:
        status, got, _ = await client.request(route.verb, f"{path}?id=1&id=2", body, headers)
        assert (status, "www-authenticate" in got) == (401, True)
        if version == "1.0":
            status, _, answer = await client.request(route.verb, f"{path}?id=1&id=2", body, {**headers, **ADA})
            assert (status, b"VERSION_NOT_SUPPORTED" in answer) == (400, True)


async def test_a_caller_without_the_scopes_gets_403(serve: Serve) -> None:
    agent = agent_of(security_schemes={"bearer": HttpAuth("bearer")}, security=[requires({"bearer": ["read"]})])
    async with serve(agent, **SERVED) as client:
        async with client.stream("SendMessage", hello(), **V1, **BOB) as reply:
            assert (reply.status, "www-authenticate" in reply.headers) == (403, False)
        async with client.stream("SendMessage", hello(), **V1, **ADA) as reply:
            assert reply.status == 200


@pytest.mark.parametrize(
    ("location", "headers", "query"),
    [
        ("header", {"x_key": SECRET}, ""),
        ("query", {}, f"?X-Key={SECRET}"),
        ("cookie", {"cookie": f"a=b; X-Key={SECRET}"}, ""),
        ("header", {"authorization": f"ApiKey {SECRET}"}, ""),
        ("header", {"authorization": f"Bearer {SECRET}"}, ""),
    ],
)
async def test_an_api_key_is_taken_from_where_the_card_says(
    serve: Serve, location: str, headers: dict[str, str], query: str
) -> None:
    seen: list[Identity | None] = []

    async def look(context: RequestContext, events: TaskEvents) -> None:
        seen.append(context.identity)
        await events.complete()

    async with serve(keyed(location, execute=look), **SERVED) as client:
        for each, path in ((headers, f"/{query}"), ({}, "/")):
            async with client.stream("SendMessage", hello(), path=path, **V1, **each) as reply:
                assert reply.status == (401 if path == "/" and not each else 200)
                if reply.status == 401:
                    assert 'ApiKey realm="discreet"' in reply.headers["www-authenticate"]
    assert [each and each.subject for each in seen] == ["ada"]


@pytest.mark.parametrize("place", ["header", "query", "cookie"])
async def test_an_api_key_elsewhere_than_the_card_says_is_none(serve: Serve, place: str) -> None:
    others = {"header": "query", "query": "cookie", "cookie": "header"}
    sent: dict[str, tuple[str, dict[str, str]]] = {
        "header": ("/", {"x_key": SECRET}),
        "query": (f"/?X-Key={SECRET}", {}),
        "cookie": ("/", {"cookie": f"X-Key={SECRET}"}),
    }
    path, headers = sent[place]
    async with (
        serve(keyed(others[place]), **SERVED) as client,
        client.stream("SendMessage", hello(), path=path, **V1, **headers) as reply,
    ):
        assert reply.status == 401


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
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage", "ListTasks", "GetExtendedAgentCard"])
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


async def test_a_provider_that_raises_is_an_internal_error_and_never_an_open_door(serve: Serve) -> None:
    async with serve(provider=Counting()) as client:
        answer = await client.call("SendMessage", hello(), **V1, authorization="Bearer broken")
        assert answer["error"]["code"] == -32603
        assert "broken" not in str(answer)
        assert "result" in await client.call("SendMessage", hello(), **V1, authorization="Bearer good")


class Fetching(Counting):
    """A provider that lacks its keys until they are fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched = 0

    def lacks_key(self, authorization: str) -> bool:
        return not self.fetched

    def refresh(self) -> None:
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
