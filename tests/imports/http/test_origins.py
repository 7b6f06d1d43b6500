"""Where requests go, and what goes with them: the declared server, its credentials, and nothing anywhere else."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.tls import TLSListener

from discreet.client.outbound.network import SystemNetwork
from discreet.errors import FailureError, Internal, Unavailable
from discreet.imports.http.model import Reply, Serialization
from discreet.imports.model import UpstreamError
from support.logged_events import LoggedEvents
from support.raw_upstream import (
    HttpOperation,
    Param,
    RawServer,
    SecurityScheme,
    answering,
    context,
    opened,
    operation,
    response,
    upstream_of,
)
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

SCHEMES = {
    "token": SecurityScheme("bearer"),
    "login": SecurityScheme("basic"),
    "header": SecurityScheme("api-key", "header", "X-Key"),
    "query": SecurityScheme("api-key", "query", "key"),
    "cookie": SecurityScheme("api-key", "cookie", "key"),
    "oauth": SecurityScheme("other"),
}

SECRET = "s3cret-v4lue-0f-the-app"

SENT = {
    "token": ("authorization", f"Bearer {SECRET}"),
    "login": ("authorization", f"Basic {b64encode(f'me:{SECRET}'.encode()).decode()}"),
    "header": ("x-key", SECRET),
    "cookie": ("cookie", f"key={SECRET}"),
}


def secured(*alternatives: tuple[str, ...], **fields: Any) -> HttpOperation:
    return operation(security=alternatives, **fields)


async def call(
    url: str,
    described: HttpOperation,
    credentials: Any = "app",
    value: str = SECRET,
    arguments: Any = None,
    **options: Any,
) -> bytes:
    async with opened(described, url=url, schemes=SCHEMES, credentials=credentials, **options) as upstream:
        return bytes(await upstream.call(described, arguments or {}, context(app=value)))


def value_of(scheme: str) -> str:
    return f"me:{SECRET}" if scheme == "login" else SECRET


def holds_secret(server: RawServer) -> bool:
    encoded = b64encode(f"me:{SECRET}".encode()).decode()
    return any(SECRET in repr(request) or encoded in repr(request) for request in server.requests)


@pytest.mark.parametrize("scheme", ["token", "login", "header", "cookie", "query"])
async def test_a_credential_stands_where_its_scheme_says(scheme: str) -> None:
    async with answering(response(b"1")) as server:
        await call(server.url, secured((scheme,)), value=value_of(scheme))
        [request] = server.requests
        if scheme == "query":
            assert request.target == f"/x?key={SECRET}"
        else:
            assert request.values(SENT[scheme][0]) == [SENT[scheme][1]]


@pytest.mark.parametrize("scheme", ["token", "login", "header", "cookie", "query"])
@pytest.mark.parametrize("status", [301, 307])
async def test_a_redirect_to_another_server_is_not_followed_so_no_credential_leaves(
    scheme: str, status: int, logged: LoggedEvents
) -> None:
    async with answering(response(b"2")) as other:
        for location in (f"{other.url}/x", f"//127.0.0.1:{other.port}/x", f"https://127.0.0.1:{other.port}/"):
            async with answering(response(b"", f"Location: {location}", status=status)) as server:
                with pytest.raises(FailureError) as caught:
                    await call(server.url, secured((scheme,)), value=value_of(scheme))
                assert (caught.value.failure, len(server.requests)) == (Internal(), 1)
        assert other.connections == 0
    lines = logged()
    assert [(fields["reason"], fields["status"]) for _, fields in lines] == [("redirect", status)] * 3
    assert SECRET not in repr(lines)


@pytest.mark.parametrize("location", ["/y?a=1", "y?a=1", "?a=1", "{url}/y?a=1", "//{host}/y?a=1"])
async def test_a_redirect_within_the_server_is_followed_with_the_credential(location: str) -> None:
    async with answering() as server:
        where = location.format(url=server.url, host=server.url.removeprefix("http://"))
        server.answers = [response(b"moved", f"Location: {where}", status=302), response(b"1")]
        assert await call(server.url, secured(("token",), path="/x")) == b"1"
        assert [request.target for request in server.requests] == ["/x", "/x?a=1" if location[0] == "?" else "/y?a=1"]
        assert server.requests[1].values("authorization") == [f"Bearer {SECRET}"]
        assert server.connections == 1


@pytest.mark.parametrize(("method", "requests"), [("GET", 6), ("POST", 1)])
async def test_redirects_in_a_circle_end_and_those_of_what_may_have_an_effect_are_not_followed(
    method: str, requests: int, logged: LoggedEvents
) -> None:
    async with answering(response(b"", "Location: /x", status=307)) as server:
        with pytest.raises(FailureError) as caught:
            await call(server.url, secured(("token",), method=method))
        assert (caught.value.failure, len(server.requests)) == (Internal(), requests)
    assert [fields["reason"] for _, fields in logged()] == ["redirect"]


async def test_a_redirect_elsewhere_that_is_declared_is_its_error() -> None:
    described = secured(("token",), replies=(Reply("302", {}, "HTTP_302"),))
    async with answering(response(b"", "Location: http://other.example/", status=302)) as server:
        with pytest.raises(UpstreamError) as caught:
            await call(server.url, described)
        assert (caught.value.code, caught.value.details) == ("HTTP_302", None)


async def test_operations_of_two_servers_do_not_share_connections_or_credentials() -> None:
    async with answering(response(b"1")) as one, answering(response(b"2")) as two:
        first = secured(("token",), name="a", server=one.url)
        second = secured(("header",), name="b", server=two.url)
        async with opened(
            first, second, url="", schemes=SCHEMES, credentials={"token": "one", "header": "two"}
        ) as upstream:
            assert upstream.credentials == {"one", "two"}
            await upstream.call(first, {}, context(one=SECRET, two="0ther-v4lue"))
            await upstream.call(second, {}, context(one=SECRET, two="0ther-v4lue"))
        assert holds_secret(one) and not holds_secret(two)


async def test_no_value_of_a_caller_stands_in_for_a_credential() -> None:
    styles: dict[Any, Any] = {"query": "form", "header": "simple", "cookie": "form"}
    params = tuple(
        Param(f"{location}{index}", name, location, Serialization(style, explode=True))
        for location, style in styles.items()
        for index, name in enumerate(("key", "X-Key", "free"))
    )
    described = secured(("query", "header", "cookie"), params=params)
    arguments: dict[str, Any] = {param.name: "forged" for param in params}
    arguments |= {"query2": {"key": "forged"}, "cookie2": {"key": "forged"}, "header2": "1"}
    async with answering(response(b"1")) as server:
        await call(server.url, described, arguments=arguments)
        [request] = server.requests
    assert request.target == f"/x?X-Key=forged&key={SECRET}"
    assert request.values("x-key") == [SECRET]
    assert request.values("cookie") == [f"X-Key=forged; key={SECRET}"]


@pytest.mark.parametrize(
    ("scheme", "value"),
    [("token", "a\r\nX: y"), ("token", ""), ("token", "é"), ("login", "no\nbody"), ("header", "a\n"), ("cookie", "a;b"), ("query", "\0")],
)  # fmt: skip
async def test_a_credential_that_can_not_be_sent_is_not_sent(scheme: str, value: str, logged: LoggedEvents) -> None:
    async with answering(response(b"1")) as server:
        with pytest.raises(FailureError) as caught:
            await call(server.url, secured((scheme,)), value=value)
        assert (caught.value.failure, server.connections) == (Internal(), 0)
    assert [fields["reason"] for _, fields in logged()] == ["credential"]


# -- at the start --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alternatives", "credentials", "names"),
    [
        ((("token",), ("header",)), {"header": "h"}, {"h"}),
        ((("token", "header"), ("cookie",)), {"token": "t", "cookie": "c"}, {"c"}),
        ((("token", "header"),), {"token": "t", "header": "h"}, {"t", "h"}),
        ((("oauth",), ("token",)), "one", {"one"}),
        (((), ("token",)), "one", {"one"}),
        (((), ("token",)), {}, set()),
        ((), "one", set()),
    ],
)  # fmt: skip
def test_the_first_alternative_with_credentials_is_taken(alternatives: Any, credentials: Any, names: set[str]) -> None:
    upstream = upstream_of(secured(*alternatives), url="https://a.example", schemes=SCHEMES, credentials=credentials)
    assert upstream.credentials == names


@pytest.mark.parametrize(
    ("alternatives", "credentials", "lacking"),
    [
        ((("token",),), {}, "token"),
        ((("token", "header"),), {"token": "t"}, "header, token"),
        ((("token",), ("header",)), None, "header, token"),
        ((("oauth",),), "one", "oauth"),
        ((("unknown",),), "one", "unknown"),
    ],
)
async def test_an_operation_without_a_credential_goes_without_and_the_log_says_so(
    alternatives: Any, credentials: Any, lacking: str, logged: LoggedEvents
) -> None:
    upstream = upstream_of(secured(*alternatives), url="https://a.example", schemes=SCHEMES, credentials=credentials)
    assert upstream.credentials == set()
    async with upstream.opened():
        assert [fields["schemes"] for name, fields in logged() if name == "import.no_credential"] == [lacking]


@pytest.mark.parametrize(
    ("server", "base_url", "document_url", "origin"),
    [
        ("https://a.example/v1", "", "", ("https", "a.example", 443)),
        ("https://a.example/v1", "http://b.example:81/x/", "", ("http", "b.example", 81)),
        ("/v1", "", "https://c.example/docs/openapi.json", ("https", "c.example", 443)),
        ("", "", "https://c.example/docs/openapi.json", ("https", "c.example", 443)),
        ("//d.example", "", "https://c.example/docs/openapi.json", ("https", "d.example", 443)),
    ],
)
def test_the_server_is_the_base_url_or_the_documents(
    server: str, base_url: str, document_url: str, origin: Any
) -> None:
    described = operation(server=server)
    assert upstream_of(described, url=base_url, document_url=document_url, allow_private=False).origins == {origin}


@pytest.mark.parametrize(
    ("server", "base_url", "said"),
    [
        ("", "", "give base_url"),
        ("/v1", "", "relative"),
        ("ftp://a.example", "", "http or https"),
        ("https://me:secret@a.example/", "", "http or https"),
        ("https://a.example/?key=secret", "", "no query"),
        ("http://localhost:8000", "", "allow_private"),
        ("https://a.example", "http://127.0.0.1/", "allow_private"),
    ],
)
def test_a_server_that_can_not_be_called_ends_the_start(server: str, base_url: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        upstream_of(operation(server=server), url=base_url, allow_private=False)
    assert said in str(caught.value) and "secret" not in str(caught.value)


class Names:
    """A network whose names have the addresses of the test's choice; whatever is connected to is loopback."""

    def __init__(self, *addresses: str, cafile: str | None = None) -> None:
        self.addresses = addresses
        self._cafile = cafile
        self.dialled: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        if not self.addresses:
            raise socket.gaierror("no such name")
        return self.addresses

    async def connect(self, address: str, port: int) -> Any:
        self.dialled.append(address)
        return await SystemNetwork().connect("127.0.0.1", port)

    def ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._cafile)


@pytest.mark.parametrize(
    "addresses", [("127.0.0.1",), ("93.184.215.14", "10.0.0.1"), ("::1",), ("::ffff:169.254.169.254",)]
)
async def test_a_name_with_a_private_address_is_not_connected_to(
    addresses: tuple[str, ...], logged: LoggedEvents
) -> None:
    names = Names(*addresses)
    async with answering(response(b"1")) as server:
        described = operation(server=f"http://shop.example:{server.port}")
        async with opened(described, url="", allow_private=False, network=names) as upstream:
            with pytest.raises(FailureError) as caught:
                await upstream.call(described, {}, context())
        assert (caught.value.failure, names.dialled, server.connections) == (Internal(), [], 0)
    assert [fields["reason"] for _, fields in logged()] == ["address"]


async def test_the_connection_goes_to_the_checked_address_and_the_request_names_the_host() -> None:
    names = Names("93.184.215.14")
    async with answering(response(b"1")) as server:
        described = operation(server=f"http://shop.example:{server.port}/v1/")
        async with opened(described, url="", allow_private=False, network=names) as upstream:
            await upstream.call(described, {}, context())
        assert names.dialled == ["93.184.215.14"]
        assert (server.requests[0].values("host"), server.requests[0].target) == (
            [f"shop.example:{server.port}"],
            "/v1/x",
        )


async def test_an_unknown_name_is_unavailable(logged: LoggedEvents) -> None:
    described = operation(server="http://shop.example")
    async with opened(described, url="", allow_private=False, network=Names()) as upstream:
        with pytest.raises(FailureError) as caught:
            await upstream.call(described, {}, context())
    assert (caught.value.failure, [fields["reason"] for _, fields in logged()]) == (
        Unavailable(upstream=True),
        ["unresolved"],
    )


def test_credentials_for_a_scheme_that_the_document_does_not_have_end_the_start() -> None:
    with pytest.raises(ValueError, match="'tokken'.*token"):
        upstream_of(secured(("token",)), url="https://a.example", schemes=SCHEMES, credentials={"tokken": "t"})


@pytest.mark.parametrize(("location", "name"), [("header", "Host"), ("header", "a\r\nb"), ("header", "é"), ("cookie", "a; b"), ("cookie", "")])  # fmt: skip
def test_a_key_in_a_place_where_none_can_stand_is_not_sent(location: Any, name: str) -> None:
    schemes = {"key": SecurityScheme("api-key", location, name)}
    upstream = upstream_of(secured(("key",)), url="https://a.example", schemes=schemes, credentials="one")
    assert upstream.credentials == set()


# -- servers that are called over TLS have to prove who they are --


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for shop.example that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    cert, key = folder / "cert.pem", folder / "key.pem"
    words = "req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -days 2 -subj /CN=shop.example"
    names = ["-addext", "subjectAltName=DNS:shop.example"]
    command = ["openssl", *words.split(), *names, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
@pytest.mark.parametrize(
    ("trusted", "name"), [(True, "shop.example"), (True, "other.example"), (False, "shop.example")]
)
async def test_nothing_is_sent_to_a_server_without_a_valid_certificate(
    trusted: bool, name: str, certificate: tuple[Path, Path], logged: LoggedEvents
) -> None:
    received: list[bytes] = []
    connections = 0

    async def answer(stream: anyio.abc.ByteStream) -> None:
        nonlocal connections
        connections += 1
        async with stream:
            try:
                while True:
                    received.append(await stream.receive())
                    await stream.send(response(b"1"))
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                pass

    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(*certificate)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with TLSListener(listener, serving, standard_compatible=False) as secure, anyio.create_task_group() as tasks:
        tasks.start_soon(secure.serve, answer)
        described = operation(server=f"https://{name}:{listener.extra(anyio.abc.SocketAttribute.local_port)}")
        network = Names("93.184.215.14", cafile=str(certificate[0]) if trusted else None)
        with anyio.fail_after(DEADLINE_SECONDS):
            async with opened(described, url="", allow_private=False, network=network) as upstream:
                if trusted and name == "shop.example":
                    for _ in range(2):
                        assert bytes(await upstream.call(described, {}, context())) == b"1"
                    assert (len(received), connections) == (2, 1)
                else:
                    with pytest.raises(FailureError) as caught:
                        await upstream.call(described, {}, context())
                    assert (caught.value.failure, received) == (Internal(), [])
                    assert [fields["reason"] for _, fields in logged()] == ["tls"]
        tasks.cancel_scope.cancel()
