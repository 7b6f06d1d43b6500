"""Operations of a document, called through a daemon: params, results, errors, streams, deadlines and cancellation, end to end."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("jsonschema_rs")

from discreet import Service, from_openapi
from discreet.client import InternalError, InvalidParams, OperationFailed, OperationTimedOut, Unavailable
from discreet.daemon.operations.service import DeclarationError
from discreet.testing import in_memory
from support.raw_upstream import Conversation, answering, response, serving

pytestmark = pytest.mark.anyio

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "components": {
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        "schemas": {
            "Pet": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            "Problem": {"type": "object", "properties": {"why": {"type": "string"}}},
        },
    },
    "security": [{"key": []}],
    "paths": {
        "/pets/{id}": {
            "get": {
                "operationId": "getPet",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
                    {
                        "name": "tags",
                        "in": "query",
                        "explode": False,
                        "schema": {"type": "array", "items": {"type": "string"}},
                    },
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                ],
                "responses": {
                    "200": {
                        "description": "A pet",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                    },
                    "4XX": {
                        "description": "No",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
                    },
                    "429": {"description": "Slow down"},
                },
            }
        },
        "/pets": {
            "post": {
                "operationId": "addPet",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                },
                "responses": {"204": {"description": "Added"}},
            }
        },
        "/changes": {
            "get": {
                "operationId": "watch",
                "responses": {
                    "200": {
                        "description": "Changes",
                        "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                    }
                },
            }
        },
    },
}

KEY = "k3y-0f-the-shop"


def shop(url: str, **options: Any) -> Service:
    return from_openapi(
        json.dumps(DOCUMENT).encode(),
        namespace="shop",
        base_url=url,
        credentials="shop",
        allow_private=True,
        expose=True,
        **options,
    )


def daemon(url: str, **options: Any) -> Any:
    return in_memory(shop(url, **options), credentials={"shop": KEY})


async def test_a_call_goes_out_as_the_document_says_and_its_result_comes_back() -> None:
    async with answering(response(b'{"name":"Rex"}')) as server, daemon(server.url) as peer:
        arguments = {"id": "a/b", "tags": ["x", "y,z"], "X-Trace": "t"}
        assert await peer.call("shop/getPet", arguments) == {"name": "Rex"}
        [request] = server.requests
    assert (request.method, request.target) == ("GET", "/pets/a%2Fb?tags=x,y%2Cz")
    assert (request.values("x-key"), request.values("x-trace")) == ([KEY], ["t"])


async def test_a_body_goes_out_and_no_content_is_null() -> None:
    async with answering(b"HTTP/1.1 204 No Content\r\n\r\n") as server, daemon(server.url) as peer:
        assert await peer.call("shop/addPet", {"body": {"name": "Rex"}}) is None
        [request] = server.requests
    assert (request.method, request.target, json.loads(request.body)) == ("POST", "/pets", {"name": "Rex"})


async def test_declared_errors_arrive_with_their_details_and_the_time_to_wait() -> None:
    async with answering() as server, daemon(server.url) as peer:
        server.answers = [response(b'{"why":"gone"}', status=404)]
        with pytest.raises(OperationFailed) as caught:
            await peer.call("shop/getPet", {"id": "1"})
        assert (caught.value.failure.code, caught.value.details) == ("HTTP_4XX", {"why": "gone"})
        server.answers = [response(b"", "Retry-After: 0", status=429, content_type="text/html")]
        with pytest.raises(OperationFailed) as limited:
            await peer.call("shop/getPet", {"id": "1"})
        assert (limited.value.failure.code, limited.value.failure.retry_after_ms) == ("HTTP_429", 0)


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


async def test_a_stream_is_a_subscription_whose_end_closes_the_connection() -> None:
    async def handle(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        await conversation.send(b'data: {"name":"Rex"}\n\n' * 3)
        await conversation.deserted()

    async with serving(handle) as server, daemon(server.url) as peer:
        async with peer.subscribe("shop/watch") as events:
            assert [await anext(events) for _ in range(3)] == [{"name": "Rex"}] * 3
        await server.deserted()


async def test_an_upstream_that_is_gone_is_not_the_daemon_shutting_down() -> None:
    async with answering(response(b"{}")) as server:
        url = server.url
    async with daemon(url) as peer:
        with pytest.raises(Unavailable) as caught:
            await peer.call("shop/addPet", {"body": {"name": "Rex"}})
    assert caught.value.error.message == "Upstream unavailable"


async def test_the_deadline_of_an_operation_ends_its_request() -> None:
    async def handle(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.deserted()

    async with serving(handle) as server, daemon(server.url, timeout=0.05) as peer:
        with pytest.raises(OperationTimedOut):
            await peer.call("shop/addPet", {"body": {"name": "Rex"}})
        await server.deserted()


async def test_what_the_request_can_not_hold_is_the_callers_mistake() -> None:
    async with answering(response(b"{}")) as server, daemon(server.url) as peer:
        for arguments, param in (({"id": ".."}, "id"), ({"id": "1", "X-Trace": "a\nb"}, "X-Trace")):
            with pytest.raises(InvalidParams) as caught:
                await peer.call("shop/getPet", arguments)
            assert caught.value.failure.param == param
        assert server.connections == 0


def test_what_can_not_be_called_ends_the_start_in_one_line_that_names_the_document() -> None:
    for options in ({"base_url": ""}, {"credentials": {"kee": "shop"}}, {"allow_private": False}):
        given: dict[str, Any] = {
            "base_url": "http://127.0.0.1:1",
            "credentials": "shop",
            "allow_private": True,
            **options,
        }
        with pytest.raises(DeclarationError) as caught:
            from_openapi(json.dumps(DOCUMENT).encode(), namespace="shop", **given)
        assert str(caught.value).startswith("the OpenAPI document: ") and "\n" not in str(caught.value)


CHAT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Chat", "version": "1"},
    "paths": {
        "/chat": {
            "post": {
                "operationId": "chat",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "properties": {"stream": {"type": "boolean"}},
                                "required": ["stream"],
                            }
                        },
                        "application/x-www-form-urlencoded": {
                            "schema": {"type": "object", "properties": {"say": {"type": "string"}}, "required": ["say"]}
                        },
                        "application/x-chess-pgn": {"schema": {"type": "string", "format": "binary"}},
                    },
                },
                "responses": {
                    "200": {
                        "description": "An answer",
                        "content": {
                            "application/json": {"schema": {"type": "object"}},
                            "text/event-stream": {"schema": {"type": "object"}},
                        },
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
