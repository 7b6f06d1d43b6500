"""Tokens of a real authorization server, oidc-provider: the clients of MCP's own SDK get them as the specification says, and so do
discreet's own.

`DISCREET_OIDC_PROVIDER` names a folder `node_modules` with oidc-provider. `DISCREET_INTEROP_PYTHON` is as for the other sessions.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.gateways import http_daemon
from support.requirements import interop_python, missing
from support.waits import DEADLINE_SECONDS

from .test_interop_clients import said

Place = Any

pytest.importorskip("httptools")
pytest.importorskip("jwt")
pytest.importorskip("cryptography")

APP = """
from discreet import Context, Service

shop = Service("shop")

@shop.query
async def look(ctx: Context) -> str:
    return ctx.identity.subject

@shop.mutation(scopes=["shop:write"])
async def order() -> str:
    return "ordered"

@shop.mutation(scopes=["shop:admin"])
async def close() -> str:
    return "closed"
"""


@contextmanager
def issuer(kind: str, resource: str) -> Iterator[str]:
    """The address of an authorization server whose access tokens are of this kind, for this resource."""
    modules = os.environ.get("DISCREET_OIDC_PROVIDER") or missing("DISCREET_OIDC_PROVIDER names no folder")
    node = shutil.which("node") or missing("node is not installed")
    script = Path(__file__).parent / "server_oidc.mjs"
    with subprocess.Popen(
        [node, script, kind, resource, "shop:write shop:admin"],
        env={**os.environ, "DISCREET_OIDC_PROVIDER": modules},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            assert address, "the authorization server did not start"
            yield address
        finally:
            server.kill()
            server.wait(DEADLINE_SECONDS)


@pytest.fixture(scope="module", params=["jwt", "opaque"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, str]]:
    """The kind of tokens, the address of the endpoint, and that of its issuer."""
    kind, folder = request.param, tmp_path_factory.mktemp("oauth")
    (folder / "shop.py").write_text(APP)
    (folder / "client").write_text("daemon:s3cret-of-the-daemon")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    url = f"http://{address}/mcp"
    with issuer(kind, url) as at:
        flags = ["--http-mcp", "--isolated", f"--jwt-issuer={at}", f"--jwt-audience={url}"]
        if kind == "jwt":
            flags += [f"--jwt-jwks={at}/jwks"]
        else:
            flags += [f"--auth-introspect={at}/token/introspection", "--auth-client=client"]
        with http_daemon(folder, "./shop.py:shop", *flags, address=address):
            yield kind, url, at


def test_mcps_own_client_signs_in_asks_for_more_when_a_tool_needs_it_and_comes_by_itself(
    place: Place, served: tuple[str, str, str]
) -> None:
    kind, url, at = served
    done = place.run([interop_python("mcp", 2), "-P", "session_mcp_oauth.py", url, at])
    assert said(done) == {
        "user lists": "['shop_look', 'shop_order']",
        "user shop_look": "ada",
        "user shop_order": "ordered",
        "user shop_close": "closed",
        "asked": "2",
        "robot lists": "['shop_close', 'shop_look', 'shop_order']",
        "robot shop_look": "robot" if kind == "jwt" else "client:robot",
        "robot shop_order": "ordered",
    }, done.stderr


def test_an_import_comes_with_credentials_of_its_own(served: tuple[str, str, str]) -> None:
    pytest.importorskip("jsonschema_rs")
    from discreet.imports.mcp.session import read_mcp
    from discreet.imports.targets import Url

    _, url, at = served
    text = (
        f'[oauth]\ntoken-url = "{at}/token"\nclient-id = "robot"\nclient-secret = "s3cret-of-the-robot"\n'
        f'scope = "shop:write"\nresource = "{url}"\n'
    )
    found = read_mcp(Url(url, allow_private=True), "shop", token=text)
    assert [operation.name for operation in found.operations] == ["shop_look", "shop_order"]
