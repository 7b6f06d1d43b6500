"""What is sent to a webhook, with which headers, in which order, and over how many connections."""

from __future__ import annotations

import re

import pytest

from discreet.a2a.types import Authentication
from discreet.agents.notifier import MAX_BODY_BYTES, MAX_CONNECTIONS_PER_HOST
from support.webhooks import HANG, Answer, enqueue, hooked, local, running, status, target

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
