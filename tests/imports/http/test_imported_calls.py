"""Operations of a document, called through a daemon: params, results, errors, streams, deadlines and cancellation, end to end."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("jsonschema_rs")

from discreet import Service, from_openapi
from discreet.client import InternalError, InvalidParams, OperationFailed, OperationTimedOut, Unavailable
from discreet.testing import in_memory
from support.raw_upstream import Conversation, answering, response, serving

pytestmark = pytest.mark.anyio

PET = {"$ref": "#/components/schemas/Pet"}


def json_of(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "components": {
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        "schemas": {"Pet": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
    },
    "security": [{"key": []}],
    "paths": {
        "/pets/{id}": {
            "get": {
                "operationId": "getPet",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "tags", "in": "query", "explode": False, "schema": {"type": "array"}},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                ],
                "responses": {"200": {"description": "A pet", "content": json_of(PET)}, "429": {"description": "Slow"}},
            }
        },
        "/pets": {
            "post": {
                "operationId": "addPet",
                "requestBody": {"required": True, "content": json_of(PET)},
                "responses": {"204": {"description": "Added"}},
            }
        },
        "/changes": {
            "get": {
                "operationId": "watch",
                "responses": {"200": {"description": "Changes", "content": {"text/event-stream": {"schema": PET}}}},
            }
        },
    },
}

KEY = "k3y-0f-the-shop"


def shop(url: str, **options: Any) -> Service:
    given = {"base_url": url, "credentials": "shop", "allow_private": True, "expose": True, **options}
    return from_openapi(json.dumps(DOCUMENT).encode(), namespace="shop", **given)


def daemon(url: str, **options: Any) -> Any:
    return in_memory(shop(url, **options), credentials={"shop": KEY})


async def test_a_call_goes_out_as_the_document_says_and_its_result_comes_back() -> None:
    async with answering(response(b'{"name":"Rex"}')) as server, daemon(server.url) as peer:
        arguments = {"id": "a/b", "tags": ["x", "y,z"], "X-Trace": "t"}
        assert await peer.call("shop/getPet", arguments) == {"name": "Rex"}
        [request] = server.requests
    assert (request.method, request.target) == ("GET", "/pets/a%2Fb?tags=x,y%2Cz")
    assert (request.values("x-key"), request.values("x-trace")) == ([KEY], ["t"])


async def test_nothing_of_the_upstreams_text_reaches_the_caller_but_what_is_declared() -> None:
    async with answering() as server, daemon(server.url) as peer:
        for answer in (
            response(b'{"text": "inner"}', status=500),
            response(b"inner", content_type="text/html"),
            response(b'{"inner'),
            response(b'{"inner": 1}'),
        ):
            server.answers = [answer]
            with pytest.raises(InternalError) as caught:
                await peer.call("shop/getPet", {"id": "1"})
            assert "inner" not in repr(caught.value.__dict__) + str(caught.value)


async def test_the_deadline_of_an_operation_ends_its_request() -> None:
    async def handle(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.deserted()

    async with serving(handle) as server, daemon(server.url, timeout=0.05) as peer:
        with pytest.raises(OperationTimedOut):
            await peer.call("shop/addPet", {"body": {"name": "Rex"}})
        await server.deserted()


STREAM = {"type": "object", "properties": {"stream": {"type": "boolean"}}, "required": ["stream"]}
SAY = {"type": "object", "properties": {"say": {"type": "string"}}, "required": ["say"]}
OBJECT = {"schema": {"type": "object"}}
CHAT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Chat", "version": "1"},
    "paths": {
        "/chat": {
            "post": {
                "operationId": "chat",
                "requestBody": {
                    "required": True,
                    "content": {**json_of(STREAM), "application/x-www-form-urlencoded": {"schema": SAY}},
                },
                "responses": {
                    "200": {
                        "description": "An answer",
                        "content": {"application/json": OBJECT, "text/event-stream": OBJECT},
                    }
                },
            }
        }
    },
}


async def test_media_types_are_chosen_and_a_stream_that_comes_instead_is_collected() -> None:
    events = b'data: {"delta": "a"}\n\ndata: [DONE]\n\n'
    answers = (
        response(b"{}"),
        response(events, content_type="text/event-stream"),
        response(events, content_type="text/event-stream"),
    )
    async with answering(*answers) as server:
        service = from_openapi(CHAT, namespace="ai", base_url=server.url, expose=True, allow_private=True)
        async with in_memory(service) as peer:
            assert await peer.call("ai/chat", {"body": {"stream": False}}) == {}
            assert await peer.call("ai/chat", {"body": {"stream": True}}) == events.decode()
            chosen = {"accept": "text/event-stream", "contentType": "application/x-www-form-urlencoded"}
            assert await peer.call("ai/chat", {"body": {"say": "a b"}, **chosen}) == events.decode()
            with pytest.raises(InvalidParams) as wrong:
                await peer.call("ai/chat", {"body": {"stream": True}, "accept": "text/plain"})
            assert wrong.value.failure.accepted == ("application/json", "text/event-stream")
    first, _, third = server.requests
    assert first.values("accept") == ["application/json"]
    assert third.values("accept") == ["text/event-stream"]
    assert third.values("content-type") == ["application/x-www-form-urlencoded"]
    assert third.body == b"say=a%20b"


async def test_params_that_do_not_fit_are_sent_where_the_author_trusts_them_more_than_the_document() -> None:
    for validate in ("log", "off"):
        async with answering(response(b"{}"), response(b"{}")) as server:
            service = from_openapi(
                CHAT, namespace="ai", base_url=server.url, expose=True, allow_private=True, validate=validate
            )
            async with in_memory(service) as peer:
                assert await peer.call("ai/chat", {"body": {"stream": "yes"}}) == {}
        assert json.loads(server.requests[0].body) == {"stream": "yes"}


async def test_undeclared_errors_have_a_status_and_a_body_without_secrets_where_they_are_asked_for() -> None:
    async with answering() as server, daemon(server.url, error_bodies=True) as peer:
        document = await peer.call("services/schema", {"name": "shop/addPet"})
        assert "HTTP_UNDECLARED" in json.dumps(document)

        async def details(answer: bytes) -> Any:
            server.answers = [answer]
            with pytest.raises(OperationFailed) as caught:
                await peer.call("shop/addPet", {"body": {"name": "Rex"}})
            assert caught.value.failure.code == "HTTP_UNDECLARED"
            return caught.value.details

        said = b'{"why":"taken","password":"hunter2"}'
        for content_type in ("application/problem+json", "text/html"):
            found = await details(response(said, status=409, content_type=content_type))
            assert (found["status"], found["body"]["why"]) == (409, "taken")
            assert "hunter2" not in repr(found)
        found = await details(response(f"no key {KEY}".encode(), status=401, content_type="text/plain"))
        assert found["body"].startswith("no key ") and KEY not in repr(found)
        assert await details(response(b"x" * 100_000, status=500, content_type="text/plain")) == {"status": 500}
        assert await details(response(b"\x89PNG", status=500, content_type="image/png")) == {"status": 500}
        assert await details(response(b"", status=404)) == {"status": 404}
        for status in (302, 206):
            server.answers = [response(b'{"inner": 1}', status=status)]
            with pytest.raises(InternalError):
                await peer.call("shop/addPet", {"body": {"name": "Rex"}})
        server.answers = [response(b"later", status=503)]
        with pytest.raises(Unavailable):
            await peer.call("shop/addPet", {"body": {"name": "Rex"}})


async def test_bodies_of_undeclared_errors_come_in_streams_too() -> None:
    async with answering(response(b'{"why":"no"}', status=404)) as server:
        async with daemon(server.url, error_bodies=True) as peer, peer.subscribe("shop/watch") as events:
            with pytest.raises(OperationFailed) as caught:
                await anext(aiter(events))
        assert caught.value.details == {"status": 404, "body": {"why": "no"}}
