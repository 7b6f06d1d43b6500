"""Push notifications to webhooks on loopback: what is sent, how often, in which order, and to which addresses."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import anyio.abc
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSListener

from discreet.daemon.agents.model.types import Authentication, PushConfig
from discreet.daemon.agents.push.delivery import MAX_BODY_BYTES, MAX_CONNECTIONS_PER_HOST, Timeouts
from discreet.daemon.agents.push.network import SystemNetwork
from discreet.daemon.agents.push.notifier import MAX_BACKOFF_SECONDS, MAX_FAILURES, PushNotifier, is_push_available
from discreet.daemon.agents.push.queue import MAX_NOTIFICATIONS
from discreet.daemon.agents.push.ssrf import EXPECTED_PUBLIC_URL, EXPECTED_URL
from discreet.daemon.agents.stores.interface import PushTarget
from discreet.daemon.logs import log
from discreet.errors.backoff import SYSTEM_TIMING, SystemTiming
from discreet.errors.exceptions import FailureError
from discreet.errors.failures import InvalidParams
from discreet.errors.redaction import scrub
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

ALMOST_ONE = 1 - 2**-53


class Answer(NamedTuple):
    """A response of a webhook; `then` is "keep", "close" or "hang"."""

    text: bytes
    then: str = "keep"


def status(code: int, *fields: str) -> Answer:
    lines = [f"HTTP/1.1 {code} Something", "Content-Length: 0", *fields, "", ""]
    return Answer("\r\n".join(lines).encode())


OK = status(200)
HANG = Answer(b"", "hang")


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class Hook:
    """A webhook: keeps what it was sent, and answers from `script` as long as there is something, then 200.

    The body "bad" is always answered with `bad`.
    """

    def __init__(self, script: Sequence[Answer], bad: Answer) -> None:
        self.script = list(script)
        self.bad = bad
        self.requests: list[Received] = []
        self.connections = 0
        self.connected = 0
        self.open = 0
        self.most_open = 0
        self.gate = anyio.Event()
        """Whoever asks for `/gated` is answered when it is set."""
        self.port = 0
        self._news = anyio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def bodies(self) -> list[bytes]:
        return [request.body for request in self.requests]

    async def received(self, count: int) -> None:
        while len(self.requests) < count:
            await self._news.wait()

    async def received_body(self, body: bytes) -> None:
        while body not in self.bodies:
            await self._news.wait()

    async def deserted(self) -> None:
        """Until nobody is connected."""
        while self.connected:
            await self._news.wait()

    async def serve(self, stream: anyio.abc.ByteStream) -> None:
        self.connections += 1
        self.connected += 1
        async with stream:
            try:
                received = BufferedByteReceiveStream(stream)
                while await self._exchange(received, stream):
                    pass
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass
            finally:
                self.connected -= 1
                self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def _exchange(self, received: BufferedByteReceiveStream, stream: anyio.abc.ByteStream) -> bool:
        head = (await received.receive_until(b"\r\n\r\n", 65536)).decode()
        first, *lines = head.split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await received.receive_exactly(int(fields["content-length"]))
        method, path, _ = first.split(" ")
        assert method == "POST"
        answer = self.bad if body == b"bad" else self.script.pop(0) if self.script else OK
        self.requests.append(Received(path, fields, body))
        self._tell()
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            if path == "/gated":
                await self.gate.wait()
            await stream.send(answer.text)
            if answer.then == "hang":
                await anyio.sleep_forever()
        finally:
            self.open -= 1
        return answer.then == "keep"


@asynccontextmanager
async def hooked(*script: Answer, bad: Answer = OK, tls: ssl.SSLContext | None = None) -> AsyncIterator[Hook]:
    hook = Hook(script, bad)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    hook.port = listener.extra(anyio.abc.SocketAttribute.local_port)
    serving: Any = listener if tls is None else TLSListener(listener, tls, standard_compatible=False)
    async with serving, anyio.create_task_group() as tasks:
        tasks.start_soon(serving.serve, hook.serve)
        with anyio.fail_after(DEADLINE_SECONDS):
            yield hook
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def running(notifier: PushNotifier) -> AsyncIterator[PushNotifier]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notifier.run)
        with anyio.fail_after(DEADLINE_SECONDS):
            while notifier._tasks is None:
                await anyio.lowlevel.checkpoint()
            yield notifier
        tasks.cancel_scope.cancel()


class TurnedTiming:
    """A clock that only sleeping moves on."""

    def __init__(self, jitter: float = ALMOST_ONE) -> None:
        self.time = 1000.0
        self.slept: list[float] = []
        self._jitter = jitter

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await anyio.lowlevel.checkpoint()

    def jitter(self) -> float:
        return self._jitter


class EndlessTiming:
    """A clock on which no back-off ever ends by itself."""

    def __init__(self) -> None:
        self.sleeping = anyio.Event()

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.sleeping.set()
        await anyio.sleep_forever()

    def jitter(self) -> float:
        return 0.5


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

    async def connect(self, address: str, port: int, timeout: float) -> Any:
        self.dialled.append(address)
        if address in self._dead:
            import httpcore

            raise httpcore.ConnectError
        return await SystemNetwork().connect("127.0.0.1", port, timeout)

    def ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._cafile)


def target(
    url: str, *, config_id: str = "c", task_id: str = "t", version: str = "1.0", token: str | None = None,
    authentication: Authentication | None = None,
) -> PushTarget:  # fmt: skip
    return PushTarget(PushConfig(url, config_id, task_id, token, authentication), version)


def enqueue(notifier: PushNotifier, to: PushTarget, *bodies: bytes) -> None:
    for body in bodies:
        notifier.enqueue(to, body, final=False)


def local(timing: Any = None, **kwargs: Any) -> PushNotifier:
    return PushNotifier(allow_private=True, timing=timing or TurnedTiming(), **kwargs)


Events = Callable[[], list[tuple[str, dict[str, Any]]]]


@pytest.fixture
def events() -> Iterator[Events]:
    """The events logged since the last call."""
    before = log.level
    log.set_level("info")
    log.queue.clear()

    def taken() -> list[tuple[str, dict[str, Any]]]:
        found = []
        while (event := log.queue.get()) is not None:
            found.append((event.name, dict(event.fields)))
        return found

    yield taken
    log.queue.clear()
    log.set_level(before)


# -- what is sent ----------------------------------------------------------------------------------------------


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


# -- order and independence ------------------------------------------------------------------------------------


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


# -- what is repeated ------------------------------------------------------------------------------------------


async def test_the_back_off_doubles_and_the_fifth_attempt_is_the_last(events: Events) -> None:
    timing = TurnedTiming()
    answers = [status(code) for code in (500, 503, 429, 408, 425)]
    async with hooked(*answers) as hook, running(local(timing)) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(6)
        assert hook.bodies == [b"1"] * 5 + [b"2"]
        assert timing.slept[:4] == pytest.approx([0.5, 1.0, 2.0, 4.0])
        assert events() == [("push.failed", {"task": "t", "config": "c", "host": "127.0.0.1", "status": 425})]


async def test_jitter_shortens_the_back_off() -> None:
    timing = TurnedTiming(0.25)
    async with hooked(status(500), status(500)) as hook, running(local(timing)) as notifier:
        enqueue(notifier, target(hook.url), b"1")
        await hook.received(3)
        assert timing.slept[:2] == [0.125, 0.25]


@pytest.mark.parametrize(
    ("said", "waited"),
    [
        ("7", 7.0),
        ("0", 0.5),
        ("3600", MAX_BACKOFF_SECONDS),
        ("9" * 400, MAX_BACKOFF_SECONDS),
        ("Thu, 01 Jan 2099 00:00:00 GMT", MAX_BACKOFF_SECONDS),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.5),
        ("soon", 0.5),
        ("-5", 0.5),
        ("²", 0.5),
    ],
)
async def test_retry_after_is_honoured_up_to_the_maximum(said: str, waited: float) -> None:
    timing = TurnedTiming()
    async with hooked(status(503, f"Retry-After: {said}")) as hook, running(local(timing)) as notifier:
        enqueue(notifier, target(hook.url), b"1")
        await hook.received(2)
        assert timing.slept[0] == pytest.approx(waited)


async def test_no_attempt_begins_two_minutes_after_the_first(events: Events) -> None:
    async with hooked(*[status(503, "Retry-After: 30")] * 4) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(5)
        assert hook.bodies == [b"1"] * 4 + [b"2"]
        assert [name for name, _ in events()] == ["push.failed"]


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
async def test_any_2xx_is_a_success(code: int, events: Events) -> None:
    async with hooked(status(code)) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert (hook.bodies, events()) == ([b"1", b"2"], [])


@pytest.mark.parametrize("code", [304, 400, 401, 404, 410, 422])
async def test_other_client_errors_are_not_retried(code: int, events: Events) -> None:
    async with hooked(status(code)) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert hook.bodies == [b"1", b"2"]
        assert [(name, fields["status"]) for name, fields in events()] == [("push.failed", code)]


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_failure_and_never_followed(code: int, events: Events) -> None:
    async with hooked() as inner, hooked(status(code, f"Location: {inner.url}")) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert (hook.bodies, inner.connections) == ([b"1", b"2"], 0)
        assert [fields["status"] for _, fields in events()] == [code]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(b"", "close"), "protocol"),
        (Answer(b"HTTP/1.1 200", "close"), "protocol"),
        (Answer(b"\x16\x03\x01 rubbish\r\n\r\n", "close"), "protocol"),
        (Answer(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 30_000, "close"), "protocol"),
        (HANG, "timeout"),
        (Answer(b"HTTP/1.1 200 OK\r\n", "hang"), "timeout"),
    ],
)
async def test_an_invalid_response_is_a_failure_that_is_retried(answer: Answer, reason: str, events: Events) -> None:
    timeouts = Timeouts(read=0.05)
    async with hooked(bad=answer) as hook, running(local(timeouts=timeouts)) as notifier:
        enqueue(notifier, target(hook.url), b"bad", b"good")
        await hook.received_body(b"good")
        assert hook.bodies.count(b"bad") > 1
        assert [fields["reason"] for _, fields in events()] == [reason]


async def test_an_attempt_as_a_whole_has_a_timeout(events: Events) -> None:
    async with hooked(bad=HANG) as hook, running(local(timeouts=Timeouts(total=0.05))) as notifier:
        enqueue(notifier, target(hook.url), b"bad", b"good")
        await hook.received_body(b"good")
        assert [fields["reason"] for _, fields in events()] == ["timeout"]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "close"),
        Answer(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 500_000, "hang"),
        Answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nrubbish", "hang"),
    ],
)
async def test_the_status_counts_whatever_happens_to_the_body(answer: Answer, events: Events) -> None:
    async with hooked(answer) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert (hook.bodies, events()) == ([b"1", b"2"], [])


async def test_a_refused_connection_is_a_failure_that_is_retried(events: Events) -> None:
    timing = TurnedTiming()
    async with hooked() as gone:
        url = gone.url
    async with running(local(timing)) as notifier:
        enqueue(notifier, target(url), b"1")
        await settled(notifier)
        assert [fields["reason"] for _, fields in events()] == ["connection"]
        assert len([seconds for seconds in timing.slept if seconds < 5.0]) == 4


async def settled(notifier: PushNotifier) -> None:
    """Wait until no delivery is under way."""
    while notifier._active:
        await anyio.lowlevel.checkpoint()


# -- when it is given up ---------------------------------------------------------------------------------------


async def test_after_ten_consecutive_failures_a_target_is_given_up_until_it_is_set_again(events: Events) -> None:
    async with hooked(*[status(400)] * MAX_FAILURES) as hook, running(local()) as notifier:
        to = target(hook.url)
        enqueue(notifier, to, *[b"lost"] * (MAX_FAILURES + 3))
        await settled(notifier)
        enqueue(notifier, to, b"not even tried")
        await settled(notifier)
        assert hook.bodies == [b"lost"] * MAX_FAILURES
        names = [name for name, _ in events()]
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


async def test_a_success_resets_the_count_of_failures(events: Events) -> None:
    answers = [status(400)] * (MAX_FAILURES - 1)
    async with hooked(*answers, OK, *answers) as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url), *[b"x"] * (2 * MAX_FAILURES))
        await hook.received(2 * MAX_FAILURES)
        assert {name for name, _ in events()} == {"push.failed"}


async def test_the_queue_of_a_task_that_has_ended_is_deleted() -> None:
    async with hooked(*[status(400)] * MAX_FAILURES * 2) as hook, running(local()) as notifier:
        for task_id, count in (("given-up", MAX_FAILURES), ("failed", 1), ("delivered", 0)):
            to = target(hook.url, task_id=task_id)
            enqueue(notifier, to, *[b"x"] * count)
            notifier.enqueue(to, b"end", final=True)
            await settled(notifier)
        assert not notifier._queues


# -- bounds ----------------------------------------------------------------------------------------------------


async def test_dropped_notifications_are_counted_and_logged_once(events: Events) -> None:
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
        assert events() == [("push.dropped", {"task": "t", "config": "c", "host": "127.0.0.1", "notifications": 5})]


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


async def test_draining_retries_waiting_notifications_at_once(events: Events) -> None:
    timing = EndlessTiming()
    async with hooked(status(503), status(503)) as hook, running(local(timing)) as notifier:
        enqueue(notifier, target(hook.url), b"1", b"2")
        await timing.sleeping.wait()
        await notifier.drain(DEADLINE_SECONDS)
        assert hook.bodies == [b"1", b"1", b"2"]
        assert [name for name, _ in events()] == ["push.failed"]


async def test_notifications_left_after_draining_are_logged(events: Events) -> None:
    async with hooked() as hook, running(local()) as notifier:
        enqueue(notifier, target(hook.url.replace("/hook", "/gated")), b"1", b"2", b"3")
        await hook.received(1)
        await notifier.drain(0.01)
        assert events() == [("push.unsent", {"targets": 1, "notifications": 3})]


async def test_draining_an_idle_pusher_takes_no_time(events: Events) -> None:
    async with running(local()) as notifier:
        await notifier.drain(float("inf"))
    assert events() == []


# -- who may be spoken to --------------------------------------------------------------------------------------


async def test_the_connection_goes_to_the_checked_address_and_the_request_names_the_host() -> None:
    names = FakeNetwork(["93.184.215.14"])
    async with hooked() as hook, running(PushNotifier(timing=TurnedTiming(), network=names)) as notifier:
        enqueue(notifier, target(f"http://hooks.example:{hook.port}/"), b"1")
        await hook.received(1)
        assert names.dialled == ["93.184.215.14"]
        assert hook.requests[0].headers["host"] == f"hooks.example:{hook.port}"


async def test_a_name_is_resolved_and_checked_for_every_connection(events: Events) -> None:
    names = FakeNetwork(["93.184.215.14"], ["127.0.0.1"])
    closing = Answer(status(200).text, "close")
    async with hooked(closing) as hook, running(PushNotifier(timing=TurnedTiming(), network=names)) as notifier:
        enqueue(notifier, target(f"http://hooks.example:{hook.port}/"), b"1")
        await settled(notifier)
        enqueue(notifier, target(f"http://hooks.example:{hook.port}/"), b"2")
        await settled(notifier)
        assert (hook.bodies, names.dialled) == ([b"1"], ["93.184.215.14"])
        assert [fields["reason"] for _, fields in events()] == ["address"]


@pytest.mark.parametrize(
    "answer", [["127.0.0.1"], ["93.184.215.14", "10.0.0.1"], ["::ffff:169.254.169.254"], ["fe80::1%1"]]
)
async def test_a_name_with_a_private_address_is_not_connected_to(answer: list[str], events: Events) -> None:
    names = FakeNetwork(answer)
    timing = TurnedTiming()
    async with hooked() as hook, running(PushNotifier(timing=timing, network=names)) as notifier:
        enqueue(notifier, target(f"http://hooks.example:{hook.port}/"), b"1")
        await settled(notifier)
        assert (names.dialled, hook.connections) == ([], 0)
        assert [fields["reason"] for _, fields in events()] == ["address"]
        assert set(timing.slept) <= {5.0}


async def test_a_private_address_in_a_stored_config_is_not_connected_to(events: Events) -> None:
    async with hooked() as hook, running(PushNotifier(timing=TurnedTiming())) as notifier:
        enqueue(notifier, target(hook.url), b"1")
        await settled(notifier)
        assert hook.connections == 0
        assert [fields["reason"] for _, fields in events()] == ["url"]


async def test_an_unresolved_name_is_retried(events: Events) -> None:
    names = FakeNetwork([], [], ["93.184.215.14"])
    async with hooked() as hook, running(PushNotifier(timing=TurnedTiming(), network=names)) as notifier:
        enqueue(notifier, target(f"http://hooks.example:{hook.port}/"), b"1")
        await hook.received(1)
        assert events() == []


async def test_the_next_address_of_a_name_is_tried_when_one_is_dead() -> None:
    names = FakeNetwork(["93.184.215.14", "93.184.215.15"], dead=["93.184.215.14"])
    async with hooked() as hook, running(PushNotifier(timing=TurnedTiming(), network=names)) as notifier:
        enqueue(notifier, target(f"http://hooks.example:{hook.port}/"), b"1")
        await hook.received(1)
        assert names.dialled == ["93.184.215.14", "93.184.215.15"]


async def test_the_system_resolves_localhost() -> None:
    assert set(await SystemNetwork().resolve("localhost", 80)) & {"127.0.0.1", "::1"}


async def test_tls_verifies_the_name_and_not_the_address() -> None:
    hello = b""

    async def listen(stream: anyio.abc.ByteStream) -> None:
        nonlocal hello
        async with stream:
            hello = await stream.receive()

    names = FakeNetwork(*[["93.184.215.14"]] * 5)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, listen)
        async with running(PushNotifier(timing=TurnedTiming(), network=names)) as notifier:
            port = listener.extra(anyio.abc.SocketAttribute.local_port)
            enqueue(notifier, target(f"https://hooks.example:{port}/"), b"1")
            await settled(notifier)
        tasks.cancel_scope.cancel()
    assert b"hooks.example" in hello


async def test_a_cancelled_handshake_leaves_no_connection_open() -> None:
    greeted, left = anyio.Event(), anyio.Event()

    async def listen(stream: anyio.abc.ByteStream) -> None:
        async with stream:
            await stream.receive()
            greeted.set()
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await stream.receive()
            left.set()

    names = FakeNetwork(["93.184.215.14"])
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, listen)
        async with running(PushNotifier(timing=TurnedTiming(), network=names)) as notifier:
            port = listener.extra(anyio.abc.SocketAttribute.local_port)
            enqueue(notifier, target(f"https://hooks.example:{port}/"), b"1")
            await greeted.wait()
            notifier.remove_target("t", "c")
            await left.wait()
        tasks.cancel_scope.cancel()
    assert left.is_set()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for hooks.example that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    cert, key = folder / "cert.pem", folder / "key.pem"
    words = "req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -days 2 -subj /CN=hooks.example"
    names = ["-addext", "subjectAltName=DNS:hooks.example"]
    command = ["openssl", *words.split(), *names, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
@pytest.mark.parametrize(
    ("trusted", "name"), [(True, "hooks.example"), (True, "other.example"), (False, "hooks.example")]
)
async def test_nothing_is_sent_to_a_server_without_a_valid_certificate(
    trusted: bool, name: str, certificate: tuple[Path, Path], events: Events
) -> None:
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(*certificate)
    names = FakeNetwork(*[["93.184.215.14"]] * 5, cafile=str(certificate[0]) if trusted else None)
    async with hooked(tls=serving) as hook, running(PushNotifier(timing=TurnedTiming(), network=names)) as notifier:
        enqueue(notifier, target(f"https://{name}:{hook.port}/"), b"1")
        await settled(notifier)
        proved = trusted and name == "hooks.example"
        assert hook.bodies == ([b"1"] if proved else [])
        assert [fields["reason"] for _, fields in events()] == ([] if proved else ["tls"])


# -- configs, secrets, time ------------------------------------------------------------------------------------

GOOD = "https://hooks.example/"


@pytest.mark.parametrize(
    ("config", "param", "expected"),
    [
        (PushConfig("ftp://hooks.example/"), "config.url", EXPECTED_URL),
        (PushConfig("https://169.254.169.254/"), "config.url", EXPECTED_PUBLIC_URL),
        (PushConfig(GOOD, token="a\r\nX-Other: b"), "config.token", "string of visible ASCII"),
        (PushConfig(GOOD, token="tökens"), "config.token", "string of visible ASCII"),
        (PushConfig(GOOD, token=" padded "), "config.token", "string of visible ASCII"),
        (
            PushConfig(GOOD, authentication=Authentication("Bea rer", "x")),
            "config.authentication",
            "name of an HTTP authentication scheme",
        ),
        (
            PushConfig(GOOD, authentication=Authentication("Bearer", "a\nb")),
            "config.authentication",
            "credentials in visible ASCII",
        ),
    ],
)
def test_an_unusable_config_is_refused_when_it_is_set(config: PushConfig, param: str, expected: str) -> None:
    for path, said in (("config", param), ("", param.removeprefix("config."))):
        with pytest.raises(FailureError) as caught:
            PushNotifier().check_config(config, param=path)
        failure = caught.value.failure
        assert isinstance(failure, InvalidParams)
        assert (failure.param, failure.expected) == (said, expected)


def test_a_usable_config_is_accepted() -> None:
    usual = PushConfig(GOOD, token="", authentication=Authentication("Basic", "dXNlcjpwYXNz"))
    assert PushNotifier().check_config(usual, param="config") is None
    assert PushNotifier(allow_private=True).check_config(PushConfig("http://127.0.0.1:8080/"), param="config") is None


def test_secrets_that_look_random_are_known_to_the_scrubber_once_their_config_is_accepted() -> None:
    shown = Authentication("Custom", "Kx7-pQ2zM9wT4vBn-8Lc")
    config = PushConfig(GOOD, "c", "t", token="request.failed", authentication=shown)
    notifier = PushNotifier()
    notifier.check_config(config, param="config")
    said = "request.failed, they said Kx7-pQ2zM9wT4vBn-8Lc to me"
    assert scrub(said) == said
    notifier.update_target(PushTarget(config, "1.0"))
    assert scrub(said) == "request.failed, they said <redacted> to me"


async def test_no_part_of_a_secret_is_logged(events: Events) -> None:
    async with hooked(*[status(400)] * MAX_FAILURES) as hook, running(local()) as notifier:
        shown = Authentication("Bearer", "secretcredential")
        to = target(hook.url + "/secretpath?secretquery", token="secrettoken", authentication=shown)
        enqueue(notifier, to, *[b"secretbody"] * (MAX_FAILURES + 1))
        await settled(notifier)
        logged = events()
        assert len(logged) == MAX_FAILURES + 1
        assert "secret" not in repr(logged)


async def test_the_clock_of_the_system_is_the_event_loops() -> None:
    assert isinstance(SYSTEM_TIMING, SystemTiming)
    assert SYSTEM_TIMING.now() <= anyio.current_time() <= SYSTEM_TIMING.now()
    assert 0 <= SYSTEM_TIMING.jitter() < 1
    await SYSTEM_TIMING.sleep(0)


def test_notifications_are_available_with_the_extra() -> None:
    assert is_push_available()
