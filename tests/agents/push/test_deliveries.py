"""What is sent to a webhook and in which order, to which addresses, and when deliveries end: given up, a full queue, a deleted config, a drain."""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.abc
import pytest

from discreet.a2a.types import Authentication
from discreet.agents.notifier import (
    MAX_BODY_BYTES,
    MAX_CONNECTIONS_PER_HOST,
    MAX_FAILURES,
    MAX_NOTIFICATIONS,
    PushNotifier,
)
from discreet.client.outbound.network import SystemNetwork
from discreet.daemon.memory import MemoryBudget
from support.logged_events import LoggedEvents
from support.timing import FakeTiming
from support.waits import DEADLINE_SECONDS, until
from support.webhooks import HANG, OK, Answer, EndlessTiming, enqueue, hooked, local, running, settled, status, target

pytestmark = pytest.mark.anyio


async def test_a_notification_of_1_0_is_sent_with_its_headers() -> None:
    async with hooked() as hook, running(local()) as notifier:
        shown = Authentication("Bearer", "credentials-of-mine")
        enqueue(notifier, target(hook.url + "/x?a=b", token="token-of-mine", authentication=shown), b'{"task":{}}')
        await hook.received(1)
        request = hook.requests[0]
        assert (request.path, request.body) == ("/hook/x?a=b", b'{"task":{}}')
        assert re.fullmatch(r"discreet/\d+\.\d+.*", request.headers.pop("user-agent"))
        assert request.headers == {
            "host": f"127.0.0.1:{hook.port}",
            "content-type": "application/a2a+json",
            "content-length": "11",
            "a2a-version": "1.0",
            "x-a2a-notification-token": "token-of-mine",
            "authorization": "Bearer credentials-of-mine",
        }


async def test_a_notification_of_0_3_is_plain_json_without_a_version() -> None:
    async with hooked() as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url, version="0.3", authentication=Authentication("Bearer")), b"{}")
        await hook.received(1)
        assert hook.requests[0].headers["content-type"] == "application/json"
        assert not {"a2a-version", "authorization", "x-a2a-notification-token"} & hook.requests[0].headers.keys()


async def test_notifications_queued_before_run_are_sent_by_it() -> None:
    async with hooked() as hook:
        notifier = local()
        enqueue(notifier, target(hook.url), b"early")
        async with running(notifier):
            await hook.received(1)
            assert hook.bodies == [b"early"]


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hooked() as hook, hooked() as proxy, running(local()) as notifier:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        enqueue(notifier, target(hook.url), b"{}")
        await hook.received(1)
        assert (hook.bodies, proxy.connections) == ([b"{}"], 0)


async def test_each_target_is_sent_everything_in_order_while_another_hangs() -> None:
    async with hooked() as slow, hooked() as fast, running(local()) as notifier:
        bodies = [b"%d" % number for number in range(20)]
        stuck = target(slow.url.replace("/hook", "/gated"), config_id="slow")
        for body in bodies:
            enqueue(notifier, stuck, body)
            enqueue(notifier, target(fast.url), body)
        await fast.received(20)
        await slow.received(1)
        assert fast.bodies == bodies and slow.bodies == bodies[:1]
        slow.gate.set()
        await slow.received(20)
        assert slow.bodies == bodies
        assert (slow.most_open, fast.most_open) == (1, 1)


async def test_many_targets_on_a_dead_host_hold_up_no_other_host() -> None:
    count = 3 * MAX_CONNECTIONS_PER_HOST
    async with hooked(*[HANG] * count) as dead, hooked() as live, running(local()) as notifier:
        for number in range(count):
            enqueue(notifier, target(dead.url, task_id=f"dead-{number}"), b"lost")
        await dead.received(MAX_CONNECTIONS_PER_HOST)
        enqueue(notifier, target(live.url), b"1", b"2")
        await live.received(2)
        assert (live.bodies, dead.connections) == ([b"1", b"2"], MAX_CONNECTIONS_PER_HOST)


async def test_a_failed_notification_is_retried_before_the_next_one_is_sent() -> None:
    async with hooked(status(503), status(503)) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(4)
        assert hook.bodies == [b"1", b"1", b"1", b"2"]


async def test_a_connection_is_reused_and_closed_when_idle() -> None:
    async with hooked() as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2", b"3")
        await hook.received(3)
        await hook.deserted()  # the clock that is turned says at once that the connection has rested long enough
        assert hook.connections == 1
        enqueue(notifier, target(hook.url), b"later")
        await hook.received(4)
        assert hook.connections == 2


@pytest.mark.parametrize(("size", "connections"), [(MAX_BODY_BYTES, 1), (16 * MAX_BODY_BYTES, 2)])
async def test_the_body_of_a_response_is_read_up_to_a_limit(size: int, connections: int) -> None:
    long = Answer(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
    async with hooked(long) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert hook.connections == connections


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


async def test_after_ten_consecutive_failures_a_target_is_given_up_until_it_is_set_again(logged: LoggedEvents) -> None:
    async with hooked(*[status(400)] * MAX_FAILURES) as hook, running(local()) as notifier:
        to = target(hook.url)
        enqueue(notifier, to, *[b"lost"] * (MAX_FAILURES + 3))
        await settled(notifier)
        enqueue(notifier, to, b"not even tried")
        await settled(notifier)
        assert hook.bodies == [b"lost"] * MAX_FAILURES
        names = logged.names()
        assert names == ["push.failed"] * MAX_FAILURES + ["push.given_up"]
        notifier.update_target(to)
        enqueue(notifier, to, b"again")
        await hook.received(MAX_FAILURES + 1)
        assert hook.bodies[-1] == b"again"


async def test_a_changed_config_is_tried_again() -> None:
    async with hooked(*[status(400)] * MAX_FAILURES) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), *[b"lost"] * MAX_FAILURES)
        await settled(notifier)
        enqueue(notifier, target(hook.url + "/new"), b"found")
        await hook.received(MAX_FAILURES + 1)
        assert hook.requests[-1].path == "/hook/new"


async def test_a_success_resets_the_count_of_failures(logged: LoggedEvents) -> None:
    answers = [status(400)] * (MAX_FAILURES - 1)
    async with hooked(*answers, OK, *answers) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), *[b"x"] * (2 * MAX_FAILURES))
        await hook.received(2 * MAX_FAILURES)
        assert set(logged.names()) == {"push.failed"}


async def test_the_queue_of_a_task_that_has_ended_is_deleted() -> None:
    async with hooked(*[status(400)] * MAX_FAILURES * 2) as hook, running(local()) as notifier:
        for task_id, count in (("given-up", MAX_FAILURES), ("failed", 1), ("delivered", 0)):
            to = target(hook.url, task_id=task_id)
            enqueue(notifier, to, *[b"x"] * count)
            notifier.enqueue(to, b"end", final=True)
            await settled(notifier)
        assert notifier.counts() == {"targets": 0, "notifications": 0}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the length of the queue is the same on each loop
async def test_dropped_notifications_are_counted_and_logged_once(logged: LoggedEvents) -> None:
    async with hooked() as hook, running(local()) as notifier:
        to = target(hook.url.replace("/hook", "/gated"))
        enqueue(notifier, to, b"first")
        await hook.received(1)
        enqueue(notifier, to, *[b"%d" % number for number in range(MAX_NOTIFICATIONS + 4)])
        notifier.enqueue(to, b"end", final=True)
        hook.gate.set()
        await hook.received(MAX_NOTIFICATIONS + 1)
        await settled(notifier)
        assert hook.bodies[1:3] == [b"5", b"6"] and hook.bodies[-1] == b"end"
        assert logged() == [("push.dropped", {"task": "t", "config": "c", "host": "127.0.0.1", "notifications": 5})]


async def test_nothing_more_is_sent_to_a_removed_target() -> None:
    async with hooked() as hook, running(local()) as notifier:
        to = target(hook.url.replace("/hook", "/gated"))
        enqueue(notifier, to, b"1", b"2")
        await hook.received(1)
        notifier.remove_target("t", "c")
        notifier.remove_target("t", "unknown")
        await settled(notifier)
        hook.gate.set()
        enqueue(notifier, target(hook.url, config_id="other"), b"3")
        await hook.received(2)
        assert hook.bodies == [b"1", b"3"]


async def test_draining_retries_waiting_notifications_at_once(logged: LoggedEvents) -> None:
    timing = EndlessTiming()
    async with hooked(status(503), status(503)) as hook, running(local(timing)) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await timing.sleeping.wait()
        await notifier.drain(DEADLINE_SECONDS)
        assert hook.bodies == [b"1", b"1", b"2"]
        assert logged.names() == ["push.failed"]


async def test_notifications_left_after_draining_are_logged(logged: LoggedEvents) -> None:
    async with hooked() as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url.replace("/hook", "/gated")), b"1", b"2", b"3")
        await hook.received(1)
        await notifier.drain(0.01)
        assert logged() == [("push.unsent", {"targets": 1, "notifications": 3})]


async def test_all_targets_together_stay_within_their_share_of_the_budget(logged: LoggedEvents) -> None:
    budget = MemoryBudget(80_000)
    async with hooked() as hook, running(local(budget=budget)) as notifier:
        for name in ("a", "b", "c", "d"):
            for _ in range(2):
                enqueue(notifier, target(hook.url, config_id=name), bytes(2_000))
                assert budget.held("notifications") <= 10_000
        await settled(notifier)
        assert len(hook.requests) == 5
        assert budget.held("notifications") == 0
        dropped = [fields["notifications"] for name, fields in logged() if name == "push.dropped"]
        assert sum(dropped) == 3


async def test_the_end_of_a_task_that_does_not_fit_is_dropped_too(logged: LoggedEvents) -> None:
    budget = MemoryBudget(80_000)
    async with hooked() as hook, running(local(budget=budget)) as notifier:
        notifier.enqueue(target(hook.url), bytes(20_000), final=True)
        assert budget.held("notifications") == 0
        await until(lambda: not notifier.counts()["targets"])
        assert hook.requests == []
        assert logged.names() == ["push.dropped"]
