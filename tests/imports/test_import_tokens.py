"""Tokens of imported calls: an OAuth client as a credential, whose tokens are its own or those of the callers who ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("jsonschema_rs")
pytest.importorskip("h11")

from discreet import Context, Service, from_openapi
from discreet.client import AuthenticationRequired, InsufficientPermissions, InternalError, Unavailable
from discreet.daemon.apps import AppError
from discreet.daemon.hosting import credentials_of
from discreet.daemon.operations.access import StaticTokens, parse_token
from discreet.daemon.settings import Settings
from discreet.imports.archive import pack
from discreet.imports.from_mcp import mcp_service
from discreet.imports.mcp.model import Agreed, Listing
from discreet.imports.mcp.reading import read_listing
from discreet.imports.mcp.session import read_mcp
from discreet.imports.service import ImportOptions
from discreet.imports.targets import Url
from discreet.testing import in_memory
from support.form_server import Form, FormServer, taking_forms
from support.http_server import HttpRequest, http_server
from support.raw_upstream import answering, response
from support.vault import SECRET, digest

pytestmark = pytest.mark.anyio

ADA, BOB = {"authorization": f"Bearer {SECRET}"}, {"authorization": "Bearer other-token-of-bob"}
CALLERS = StaticTokens(
    [parse_token(f"ada:{digest(SECRET)}"), parse_token(f"bob:{digest('other-token-of-bob')}")], realm="r"
)

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "components": {"securitySchemes": {"oauth": {"type": "oauth2", "flows": {}}}},
    "security": [{"oauth": []}],
    "paths": {"/pet": {"get": {"operationId": "look", "responses": {"204": {"description": "ok"}}}}},
}


@pytest.fixture
def issuer() -> Iterator[FormServer]:
    """An authorization server. A token tells for whom it was issued."""

    def issue(form: Form) -> Any:
        whose = {SECRET: "ada", "other-token-of-bob": "bob"}.get(form.get("subject_token", ""), "client")
        return {"access_token": f"of-{whose}", "token_type": "Bearer", "expires_in": 600}

    with taking_forms(issue) as found:
        yield found


def client(issuer: FormServer, grant: str = "client-credentials") -> str:
    return f'[oauth]\ntoken-url = "{issuer.url}"\nclient-id = "c"\nclient-secret = "s3cret-of-c"\ngrant = "{grant}"\n'


def pets(url: str) -> Service:
    document = json.dumps(DOCUMENT).encode()
    return from_openapi(document, namespace="pets", base_url=url, credentials="pets", allow_private=True, expose=True)


async def test_calls_carry_the_tokens_of_the_client(issuer: FormServer) -> None:
    async with answering(response(b"", status=204)) as server:
        async with in_memory(pets(server.url), credentials={"pets": client(issuer)}) as peer:
            for _ in range(2):
                await peer.call("pets/look")
        assert [request.values("authorization") for request in server.requests] == [["Bearer of-client"]] * 2
    assert len(issuer.asked) == 1


async def test_with_a_token_exchange_calls_are_made_as_their_callers(issuer: FormServer) -> None:
    async with answering(response(b"", status=204)) as server:
        given = {"credentials": {"pets": client(issuer, "token-exchange")}, "provider": CALLERS}
        async with in_memory(pets(server.url), **given) as peer:
            for caller in (ADA, BOB, ADA):
                await peer.call("pets/look", service_params=caller)
            for caller in ({}, {"authorization": "Bearer of-nobody"}):
                with pytest.raises(AuthenticationRequired):
                    await peer.call("pets/look", service_params=caller)
        sent = [request.values("authorization") for request in server.requests]
    assert sent == [["Bearer of-ada"], ["Bearer of-bob"], ["Bearer of-ada"]]
    assert [form["subject_token"] for form in issuer.asked] == [SECRET, "other-token-of-bob"]


async def test_a_handler_that_calls_has_no_caller_to_exchange(issuer: FormServer) -> None:
    near = Service("near", uses=["pets/look"])

    @near.query
    async def relay(ctx: Context) -> Any:
        return await ctx.call("pets/look")

    async with answering(response(b"", status=204)) as server:
        given = {"credentials": {"pets": client(issuer, "token-exchange")}, "provider": CALLERS}
        async with in_memory(near, pets(server.url), **given) as peer:
            with pytest.raises(InternalError):
                await peer.call("near/relay", service_params=ADA)
        assert not server.requests
    assert not issuer.asked


@pytest.mark.parametrize(
    ("status", "error", "raised"),
    [
        (400, "invalid_grant", InsufficientPermissions),
        (400, "invalid_target", InsufficientPermissions),
        (401, "invalid_client", InternalError),
        (503, "", Unavailable),
    ],
)
async def test_an_issuer_that_gives_no_token_is_told_as_what_it_is(
    issuer: FormServer, status: int, error: str, raised: type[Exception]
) -> None:
    issuer.status, issuer.answer = status, lambda _: {"error": error, "error_description": "inner"}
    async with answering(response(b"", status=204)) as server:
        given = {"credentials": {"pets": client(issuer, "token-exchange")}, "provider": CALLERS}
        async with in_memory(pets(server.url), **given) as peer:
            with pytest.raises(raised) as caught:
                await peer.call("pets/look", service_params=ADA)
        assert not server.requests
    assert "inner" not in repr(caught.value.__dict__)


# -- MCP -----------------------------------------------------------------------------------------------------------

TOOL = {"name": "act", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
DONE = {"content": [{"type": "text", "text": "done"}]}


class Tools:
    """An MCP server with one tool."""

    def __init__(self, revision: str) -> None:
        self.revision = revision

    async def take(self, request: HttpRequest) -> None:
        method = (request.message or {}).get("method", request.verb)
        modern = self.revision == "2026-07-28"
        welcome = {"capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
        match method:
            case "server/discover" if modern:
                await request.result({**welcome, "supportedVersions": [self.revision], "resultType": "complete"})
            case "initialize" if not modern:
                await request.result({**welcome, "protocolVersion": self.revision})
            case "tools/list":
                await request.result({"tools": [TOOL]})
            case "tools/call":
                await request.result(DONE)
            case "server/discover":
                await request.answer(400, b"no session")
            case _:
                await request.answer(405 if method == "GET" else 202, b"")


def tools(url: str, revision: str) -> Service:
    data = pack(read_listing(Listing(tools=(TOOL,)), Agreed(revision)))
    options = ImportOptions(expose=True, credentials=["tools"])
    return mcp_service("tools", Url(url, allow_private=True), data, options, credential="tools")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_an_mcp_server_gets_the_tokens_of_the_client(issuer: FormServer, revision: str) -> None:
    async with http_server(Tools(revision).take) as server:
        async with in_memory(tools(server.url, revision), credentials={"tools": client(issuer)}) as peer:
            assert await peer.call("tools/act") == DONE
        assert {request.headers.get("authorization") for request in server.requests} == {"Bearer of-client"}


async def test_tools_are_called_as_their_callers_where_requests_stand_alone(issuer: FormServer) -> None:
    given = {"credentials": {"tools": client(issuer, "token-exchange")}, "provider": CALLERS}
    async with http_server(Tools("2026-07-28").take) as server:
        async with in_memory(tools(server.url, "2026-07-28"), **given) as peer:
            for caller in (ADA, BOB):
                assert await peer.call("tools/act", service_params=caller) == DONE
        sent = [(request.message["method"], request.headers["authorization"]) for request in server.requests]
    assert [who for method, who in sent if method == "tools/call"] == ["Bearer of-ada", "Bearer of-bob"]
    assert {who for method, who in sent if method != "tools/call"} == {"Bearer of-client"}


async def test_a_session_is_not_shared_by_callers(issuer: FormServer) -> None:
    given = {"credentials": {"tools": client(issuer, "token-exchange")}, "provider": CALLERS}
    async with http_server(Tools("2025-11-25").take) as server:
        async with in_memory(tools(server.url, "2025-11-25"), **given) as peer:
            with pytest.raises(InternalError):
                await peer.call("tools/act", service_params=ADA)
        assert "tools/call" not in {(request.message or {}).get("method") for request in server.requests}


async def test_an_mcp_server_is_read_with_a_token_of_the_client(issuer: FormServer) -> None:
    async with http_server(Tools("2026-07-28").take) as server:
        read = partial(read_mcp, Url(server.url, allow_private=True), "tools", token=client(issuer))
        assert [each.name for each in (await anyio.to_thread.run_sync(read)).operations] == ["act"]
        assert {request.headers.get("authorization") for request in server.requests} == {"Bearer of-client"}


# -- files ---------------------------------------------------------------------------------------------------------


def test_a_file_with_a_wrong_client_ends_the_start_in_one_line(issuer: FormServer, tmp_path: Path) -> None:
    file = tmp_path / "client.toml"
    settings = Settings(credentials=(f"pets={file}",))
    service = Service("pets", credentials=["pets"])
    file.write_text(client(issuer))
    assert credentials_of(settings, [service])["pets"] == client(issuer).strip()
    file.write_text(client(issuer, "password"))
    with pytest.raises(AppError) as refused:
        credentials_of(settings, [service])
    assert "grant: expected one of" in str(refused.value)
    assert "\n" not in str(refused.value) and "s3cret" not in str(refused.value)
