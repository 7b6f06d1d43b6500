"""To which addresses a notifier connects, and to whom it speaks over TLS."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.abc
import pytest

from discreet.agents.notifier import PushNotifier
from discreet.client.outbound.network import SystemNetwork
from support.logged_events import LoggedEvents
from support.timing import FakeTiming
from support.webhooks import Answer, enqueue, hooked, running, settled, status, target

pytestmark = pytest.mark.anyio


class FakeNetwork:
    """A network with names of the test's choice. Every connection goes to loopback; `dialled` holds the addresses."""

    def __init__(self, *answers: Sequence[str], cafile: str | None = None, dead: Sequence[str] = ()) -> None:
        self.answers = list(answers)
        self.dialled: list[str] = []
        self._cafile = cafile
        self._dead = dead

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        answer = self.answers.pop(0) if self.answers else ()
        if not answer:
            import socket

            raise socket.gaierror("no such name")
        return answer

    async def connect(self, address: str, port: int) -> Any:
        self.dialled.append(address)
        if address in self._dead:
            raise ConnectionRefusedError
        return await SystemNetwork().connect("127.0.0.1", port)

    def ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._cafile)


async def test_the_connection_goes_to_the_checked_address_and_the_request_names_the_host() -> None:
    names = FakeNetwork(["93.184.215.14"])
    async with hooked() as hook, running(PushNotifier(timing=FakeTiming(), network=names)) as notifier:
        enqueue(notifier, target(f"http://hooks.example:{hook.port}/"), b"1")
        await hook.received(1)
        assert names.dialled == ["93.184.215.14"]
        assert hook.requests[0].headers["host"] == f"hooks.example:{hook.port}"


async def test_a_name_is_resolved_and_checked_for_every_connection(logged: LoggedEvents) -> None:
    names = FakeNetwork(["93.184.215.14"], ["127.0.0.1"])
    closing = Answer(status(200).text, "close")
    async with hooked(closing) as hook, running(PushNotifier(timing=FakeTiming(), network=names)) as notifier:
        enqueue(notifier, target(f"http://hooks.example:{hook.port}/"), b"1")
        await settled(notifier)
        enqueue(notifier, target(f"http://hooks.example:{hook.port}/"), b"2")
        await settled(notifier)
        assert (hook.bodies, names.dialled) == ([b"1"], ["93.184.215.14"])
        assert [fields["reason"] for _, fields in logged()] == ["address"]


@pytest.mark.parametrize(
    "answer", [["127.0.0.1"], ["93.184.215.14", "10.0.0.1"], ["::ffff:169.254.169.254"], ["fe80::1%1"]]
)
async def test_a_name_with_a_private_address_is_not_connected_to(answer: list[str], logged: LoggedEvents) -> None:
    names = FakeNetwork(answer)
    timing = FakeTiming()
    async with hooked() as hook, running(PushNotifier(timing=timing, network=names)) as notifier:
        enqueue(notifier, target(f"http://hooks.example:{hook.port}/"), b"1")
        await settled(notifier)
        assert (names.dialled, hook.connections) == ([], 0)
        assert [fields["reason"] for _, fields in logged()] == ["address"]
        assert set(timing.slept) <= {5.0}


async def test_a_private_address_in_a_stored_config_is_not_connected_to(logged: LoggedEvents) -> None:
    async with hooked() as hook, running(PushNotifier(timing=FakeTiming())) as notifier:
        enqueue(notifier, target(hook.url), b"1")
        await settled(notifier)
        assert hook.connections == 0
        assert [fields["reason"] for _, fields in logged()] == ["url"]


async def test_an_unresolved_name_is_retried(logged: LoggedEvents) -> None:
    names = FakeNetwork([], [], ["93.184.215.14"])
    async with hooked() as hook, running(PushNotifier(timing=FakeTiming(), network=names)) as notifier:
        enqueue(notifier, target(f"http://hooks.example:{hook.port}/"), b"1")
        await hook.received(1)
        assert logged() == []


async def test_the_next_address_of_a_name_is_tried_when_one_is_dead() -> None:
    names = FakeNetwork(["93.184.215.14", "93.184.215.15"], dead=["93.184.215.14"])
    async with hooked() as hook, running(PushNotifier(timing=FakeTiming(), network=names)) as notifier:
        enqueue(notifier, target(f"http://hooks.example:{hook.port}/"), b"1")
        await hook.received(1)
        assert names.dialled == ["93.184.215.14", "93.184.215.15"]


async def test_tls_verifies_the_name_and_not_the_address() -> None:
    hello = b""

    async def listen(stream: anyio.abc.ByteStream) -> None:
        nonlocal hello
        async with stream:
            hello = await stream.receive()

    names = FakeNetwork(*[["93.184.215.14"]] * 5)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, listen)
        async with running(PushNotifier(timing=FakeTiming(), network=names)) as notifier:
            port = listener.extra(anyio.abc.SocketAttribute.local_port)
            enqueue(notifier, target(f"https://hooks.example:{port}/"), b"1")
            await settled(notifier)
        tasks.cancel_scope.cancel()
    assert b"hooks.example" in hello
