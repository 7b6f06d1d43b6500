"""Servers that are called over TLS have to prove who they are."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.tls import TLSListener

from discreet.client.outbound.network import SystemNetwork
from discreet.errors import FailureError, Internal
from support.logged_events import LoggedEvents
from support.raw_upstream import context, opened, operation, response
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


class Names:
    """Every name is public, and loopback is connected to."""

    def __init__(self, cafile: str | None) -> None:
        self._cafile = cafile

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        return ["93.184.215.14"]

    async def connect(self, address: str, port: int) -> Any:
        return await SystemNetwork().connect("127.0.0.1", port)

    def ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._cafile)


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
        network = Names(str(certificate[0]) if trusted else None)
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
