"""A secret that a caller sends, at any place of a request, is in no output of the daemon but the answer to that caller."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

pytest.importorskip("opentelemetry.sdk.trace")
pytest.importorskip("prometheus_client")

from discreet import Service
from discreet.a2a.types import new_id
from discreet.daemon.logs import log
from discreet.errors.redaction import register, unregister
from support.asgi_client import JSON, AsgiClient
from support.spans import TRACEPARENT, recorded

from .conftest import Serve, agent_of

pytestmark = pytest.mark.anyio

SECRET = "ghp_" + "x7Kq9Vt2Lm4Rz8Bn3Wp6Yc1Hd5Gf0Js7Qa2U"
WORDS = "willow-hollow-86"
Request = tuple[str, str, bytes, dict[str, str]]


def post(method: str = "shop/raises", params: object = None, call_id: object = 1, **members: object) -> Request:
    message = {"jsonrpc": "2.0", "id": call_id, "method": method, "params": params or {}, **members}
    return "POST", "/", msgspec.json.encode(message), {}


def said(**members: object) -> dict[str, Any]:
    return {"message": {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": "hello"}], **members}}


def get(path: str, **headers: str) -> Request:
    return "GET", path, b"", headers


PLACES: dict[str, Request] = {
    "the name of a method": post(f"shop/{SECRET}"),
    "the name of a namespace": post(f"{SECRET}/buy"),
    "the id": post(call_id=SECRET),
    "the name of a param": post(params={SECRET: 1}),
    "the value of a param": post(params={"name": SECRET}),
    "a param of an operation": ("POST", "/operations/shop/raises", msgspec.json.encode({"name": SECRET}), {}),
    "a value of a wrong type": ("POST", "/operations/shop/double", msgspec.json.encode({"number": SECRET}), {}),
    "a member of the envelope": post(**{SECRET: 1}),
    "a body that is no JSON": ("POST", "/", f'{{"token": "{SECRET}'.encode(), {}),
    "the text of a message": post("SendMessage", said(parts=[{"text": SECRET}])),
    "the id of a message": post("SendMessage", said(messageId=SECRET)),
    "the id of a context": post("SendMessage", said(contextId=SECRET)),
    "the metadata": post("SendMessage", {**said(), "metadata": {SECRET: SECRET}}),
    "the id of a task": post("GetTask", {"id": SECRET}),
    "the path": get(f"/{SECRET}"),
    "the path of a task": get(f"/tasks/{SECRET}"),
    "the query": get(f"/tasks?pageToken={SECRET}"),
    "the name in a query": get(f"/tasks?{SECRET}=1"),
    "a bearer token": get("/tasks", authorization=f"Bearer {SECRET}"),
    "a password": get("/tasks", authorization=f"Basic {SECRET}"),
    "a cookie": get("/tasks", cookie=f"session={SECRET}"),
    "the host": get("/tasks", host=SECRET),
    "the origin": get("/tasks", origin=f"https://{SECRET}.example.org"),
    "the version": get("/tasks", **{"a2a-version": SECRET}),
    "the media type": ("POST", "/", b"{}", {"content-type": SECRET}),
    "an unknown header": get("/tasks", **{"x-api-key": SECRET}),
    "the parent of a span": get("/tasks", traceparent=SECRET),
    "the state of a trace": get("/tasks", traceparent=TRACEPARENT, tracestate=f"vendor={SECRET}"),
    "the verb": (SECRET, "/tasks", b"", {}),
}


def shop() -> Service:
    service = Service("shop")

    @service.query
    def double(number: int) -> int:
        return 2 * number

    @service.query
    async def raises(name: str = "") -> None:
        raise RuntimeError(f"no such thing: {name}")

    return service


OUTPUTS = ("/metrics", "/", "/page/requests", "/.well-known/agent-card.json", "/openapi.json", "/healthz", "/readyz")


async def read(client: AsgiClient) -> dict[str, str]:
    """The documents that anyone may read here."""
    found = {}
    for path in OUTPUTS:
        status, _, body = await client.request("GET", path, headers={"accept": "text/html, */*"} if path == "/" else {})
        assert status == 200, path
        found[path] = body.decode()
    return found


@pytest.mark.parametrize("place", PLACES)
async def test_what_a_caller_sends_is_in_no_other_output(
    serve: Serve, place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    verb, path, body, headers = PLACES[place]
    before = log.level
    log.set_level("debug")
    try:
        with recorded() as spans:
            async with serve(
                agent_of(), shop(), otel=True, http_page=True, http_metrics=True, http_operations=True
            ) as client:
                async with client.open(verb, path, body, {**JSON, "a2a-version": "1.0", **headers}) as reply:
                    await reply.body()
                outputs = await read(client)
            outputs["spans"] = spans.text()
        outputs["log"] = capfd.readouterr().err
    finally:
        log.set_level(before)
    assert outputs["spans"] != "[]"
    assert place != "a param of an operation" or "no such thing: <redacted>" in outputs["log"]
    assert [name for name, output in outputs.items() if SECRET.lower() in output.lower()] == []


async def test_a_registered_secret_in_a_declaration_is_in_no_published_document(serve: Serve) -> None:
    service = Service("shop", description=f"Sells by {WORDS}.")

    @service.query(description=f"Prices of {WORDS}.")
    def price(name: str = WORDS) -> str:
        return name

    register(WORDS)
    try:
        async with serve(
            agent_of(skills=[]), service, http_page=True, http_metrics=True, http_operations=True
        ) as client:
            outputs = await read(client)
            outputs["discovery"] = repr(await client.call("services/list"))
    finally:
        unregister(WORDS)
    assert [name for name, output in outputs.items() if WORDS in output] == []
