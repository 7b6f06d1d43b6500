"""Push notifications against webhooks on loopback: what they are sent, how often, in which order, and who may be one."""

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
from discreet.daemon.agents.push.delivery import CONNECTIONS_PER_HOST, REST_BYTES, Patience
from discreet.daemon.agents.push.network import SystemNetwork
from discreet.daemon.agents.push.notifier import CAP_SECONDS, FAILURES, PushNotifier, available
from discreet.daemon.agents.push.queue import MOST
from discreet.daemon.agents.push.ssrf import MALFORMED, PRIVATE
from discreet.daemon.agents.stores.interface import PushTarget
from discreet.daemon.logs import log
from discreet.errors.backoff import SYSTEM, SystemTiming
from discreet.errors.exceptions import FailureError
from discreet.errors.failures import InvalidParams
from discreet.errors.redaction import scrub
from discreet.errors.redaction.caller_secrets import MOST as MOST_GUESTS
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

ALMOST_ONE = 1 - 2**-53


class Answer(NamedTuple):
    """What a webhook sends back; `then` is "keep", "close" or "hang"."""

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
async def running(pusher: PushNotifier) -> AsyncIterator[PushNotifier]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pusher.run)
        with anyio.fail_after(DEADLINE_SECONDS):
            while pusher._tasks is None:
                await anyio.lowlevel.checkpoint()
            yield pusher
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


class Names:
    """A network in which names stand for what the test says. Every address leads to loopback; which were dialled is kept."""

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

    async def dial(self, address: str, port: int, seconds: float) -> Any:
        self.dialled.append(address)
        if address in self._dead:
            import httpcore

            raise httpcore.ConnectError
        return await SystemNetwork().dial("127.0.0.1", port, seconds)

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._cafile)


def target(
    url: str, *, config_id: str = "c", task_id: str = "t", dialect: str = "1.0", token: str | None = None,
    authentication: Authentication | None = None,
) -> PushTarget:  # fmt: skip
    return PushTarget(PushConfig(url, config_id, task_id, token, authentication), dialect)


def offer(pusher: PushNotifier, to: PushTarget, *bodies: bytes) -> None:
    for body in bodies:
        pusher.offer(to, body, last=False)


def local(timing: Any = None, **kwargs: Any) -> PushNotifier:
    return PushNotifier(allow_private=True, timing=timing or TurnedTiming(), **kwargs)


Events = Callable[[], list[tuple[str, dict[str, Any]]]]


@pytest.fixture
def events() -> Iterator[Events]:
    """What was logged since it was asked last."""
    before = log.level
    log.set_level("info")
    log.backlog.forget()

    def taken() -> list[tuple[str, dict[str, Any]]]:
        found = []
        while (event := log.backlog.get()) is not None:
            found.append((event.name, dict(event.fields)))
        return found

    yield taken
    log.backlog.forget()
    log.set_level(before)


# -- what is sent ----------------------------------------------------------------------------------------------


async def test_a_notification_of_1_0_is_sent_with_its_headers() -> None:
    async with hooked() as hook, running(local()) as pusher:
        shown = Authentication("Bearer", "credentials-of-mine")
        offer(pusher, target(hook.url + "/x?a=b", token="token-of-mine", authentication=shown), b'{"task":{}}')
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
    async with hooked() as hook, running(local()) as pusher:
        offer(pusher, target(hook.url, dialect="0.3", authentication=Authentication("Bearer")), b"{}")
        await hook.received(1)
        assert hook.requests[0].headers["content-type"] == "application/json"
        assert not {"a2a-version", "authorization", "x-a2a-notification-token"} & hook.requests[0].headers.keys()


async def test_what_was_offered_before_the_pusher_runs_is_sent_then() -> None:
    async with hooked() as hook:
        pusher = local()
        offer(pusher, target(hook.url), b"early")
        async with running(pusher):
            await hook.received(1)
            assert hook.bodies == [b"early"]


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hooked() as hook, hooked() as proxy, running(local()) as pusher:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        offer(pusher, target(hook.url), b"{}")
        await hook.received(1)
        assert (hook.bodies, proxy.connections) == ([b"{}"], 0)


# -- order and independence ------------------------------------------------------------------------------------


async def test_each_target_gets_all_in_order_and_one_at_a_time_while_another_hangs() -> None:
    async with hooked() as slow, hooked() as fast, running(local()) as pusher:
        bodies = [b"%d" % number for number in range(20)]
        stuck = target(slow.url.replace("/hook", "/gated"), config_id="slow")
        for body in bodies:
            offer(pusher, stuck, body)
            offer(pusher, target(fast.url), body)
        await fast.received(20)
        await slow.received(1)
        assert fast.bodies == bodies and slow.bodies == bodies[:1]
        slow.gate.set()
        await slow.received(20)
        assert slow.bodies == bodies
        assert (slow.most_open, fast.most_open) == (1, 1)


async def test_many_targets_on_a_dead_host_hold_up_no_other_host() -> None:
    count = 3 * CONNECTIONS_PER_HOST
    async with hooked(*[HANG] * count) as dead, hooked() as live, running(local()) as pusher:
        for number in range(count):
            offer(pusher, target(dead.url, task_id=f"dead-{number}"), b"lost")
        await dead.received(CONNECTIONS_PER_HOST)
        offer(pusher, target(live.url), b"1", b"2")
        await live.received(2)
        assert (live.bodies, dead.connections) == ([b"1", b"2"], CONNECTIONS_PER_HOST)


async def test_a_failing_notification_is_repeated_before_the_next_one_is_sent() -> None:
    async with hooked(status(503), status(503)) as hook, running(local()) as pusher:
        offer(pusher, target(hook.url), b"1", b"2")
        await hook.received(4)
        assert hook.bodies == [b"1", b"1", b"1", b"2"]


async def test_a_connection_is_used_again_and_closed_when_nothing_more_comes() -> None:
    async with hooked() as hook, running(local()) as pusher:
        offer(pusher, target(hook.url), b"1", b"2", b"3")
        await hook.received(3)
        await hook.deserted()  # the clock that is turned says at once that the connection has rested long enough
        assert hook.connections == 1
        offer(pusher, target(hook.url), b"later")
        await hook.received(4)
        assert hook.connections == 2


@pytest.mark.parametrize(("size", "connections"), [(REST_BYTES, 1), (16 * REST_BYTES, 2)])
async def test_the_rest_of_an_answer_is_read_only_where_that_is_cheaper_than_to_connect(
    size: int, connections: int
) -> None:
    long = Answer(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
    async with hooked(long) as hook, running(local()) as pusher:
        offer(pusher, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert hook.connections == connections


# -- what is repeated ------------------------------------------------------------------------------------------


async def test_the_back_off_doubles_and_the_fifth_attempt_is_the_last(events: Events) -> None:
    timing = TurnedTiming()
    answers = [status(code) for code in (500, 503, 429, 408, 425)]
    async with hooked(*answers) as hook, running(local(timing)) as pusher:
        offer(pusher, target(hook.url), b"1", b"2")
        await hook.received(6)
        assert hook.bodies == [b"1"] * 5 + [b"2"]
        assert timing.slept[:4] == pytest.approx([0.5, 1.0, 2.0, 4.0])
        assert events() == [("push.failed", {"task": "t", "config": "c", "host": "127.0.0.1", "status": 425})]


async def test_the_jitter_takes_any_part_of_the_back_off() -> None:
    timing = TurnedTiming(0.25)
    async with hooked(status(500), status(500)) as hook, running(local(timing)) as pusher:
        offer(pusher, target(hook.url), b"1")
        await hook.received(3)
        assert timing.slept[:2] == [0.125, 0.25]


@pytest.mark.parametrize(
    ("said", "waited"),
    [
        ("7", 7.0),
        ("0", 0.5),
        ("3600", CAP_SECONDS),
        ("9" * 400, CAP_SECONDS),
        ("Thu, 01 Jan 2099 00:00:00 GMT", CAP_SECONDS),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.5),
        ("soon", 0.5),
        ("-5", 0.5),
        ("²", 0.5),
    ],
)
async def test_what_retry_after_asks_for_is_honoured_up_to_the_cap(said: str, waited: float) -> None:
    timing = TurnedTiming()
    async with hooked(status(503, f"Retry-After: {said}")) as hook, running(local(timing)) as pusher:
        offer(pusher, target(hook.url), b"1")
        await hook.received(2)
        assert timing.slept[0] == pytest.approx(waited)


async def test_no_attempt_begins_two_minutes_after_the_first(events: Events) -> None:
    async with hooked(*[status(503, "Retry-After: 30")] * 4) as hook, running(local()) as pusher:
        offer(pusher, target(hook.url), b"1", b"2")
        await hook.received(5)
        assert hook.bodies == [b"1"] * 4 + [b"2"]
        assert [name for name, _ in events()] == ["push.failed"]


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
async def test_any_2xx_is_a_success(code: int, events: Events) -> None:
    async with hooked(status(code)) as hook, running(local()) as pusher:
        offer(pusher, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert (hook.bodies, events()) == ([b"1", b"2"], [])


@pytest.mark.parametrize("code", [304, 400, 401, 404, 410, 422])
async def test_what_can_not_get_better_is_not_repeated(code: int, events: Events) -> None:
    async with hooked(status(code)) as hook, running(local()) as pusher:
        offer(pusher, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert hook.bodies == [b"1", b"2"]
        assert [(name, fields["status"]) for name, fields in events()] == [("push.failed", code)]


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_failure_and_never_followed(code: int, events: Events) -> None:
    async with hooked() as inner, hooked(status(code, f"Location: {inner.url}")) as hook, running(local()) as pusher:
        offer(pusher, target(hook.url), b"1", b"2")
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
async def test_an_answer_that_is_none_is_a_failure_that_is_repeated(
    answer: Answer, reason: str, events: Events
) -> None:
    patience = Patience(read=0.05)
    async with hooked(bad=answer) as hook, running(local(patience=patience)) as pusher:
        offer(pusher, target(hook.url), b"bad", b"good")
        await hook.received_body(b"good")
        assert hook.bodies.count(b"bad") > 1
        assert [fields["reason"] for _, fields in events()] == [reason]


async def test_an_attempt_is_bounded_as_a_whole(events: Events) -> None:
    async with hooked(bad=HANG) as hook, running(local(patience=Patience(total=0.05))) as pusher:
        offer(pusher, target(hook.url), b"bad", b"good")
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
async def test_the_status_is_the_answer_whatever_becomes_of_the_rest(answer: Answer, events: Events) -> None:
    async with hooked(answer) as hook, running(local()) as pusher:
        offer(pusher, target(hook.url), b"1", b"2")
        await hook.received(2)
        assert (hook.bodies, events()) == ([b"1", b"2"], [])


async def test_nobody_listening_is_a_failure_that_is_repeated(events: Events) -> None:
    timing = TurnedTiming()
    async with hooked() as gone:
        url = gone.url
    async with running(local(timing)) as pusher:
        offer(pusher, target(url), b"1")
        await settled(pusher)
        assert [fields["reason"] for _, fields in events()] == ["connection"]
        assert len([seconds for seconds in timing.slept if seconds < 5.0]) == 4


async def settled(pusher: PushNotifier) -> None:
    """Until nobody delivers anything, every attempt made."""
    while pusher._active:
        await anyio.lowlevel.checkpoint()


# -- when it is given up ---------------------------------------------------------------------------------------


async def test_after_ten_failures_in_a_row_a_target_is_given_up_until_it_is_set_anew(events: Events) -> None:
    async with hooked(*[status(400)] * FAILURES) as hook, running(local()) as pusher:
        to = target(hook.url)
        offer(pusher, to, *[b"lost"] * (FAILURES + 3))
        await settled(pusher)
        offer(pusher, to, b"not even tried")
        await settled(pusher)
        assert hook.bodies == [b"lost"] * FAILURES
        names = [name for name, _ in events()]
        assert names == ["push.failed"] * FAILURES + ["push.given_up"]
        pusher.renew(to)
        offer(pusher, to, b"again")
        await hook.received(FAILURES + 1)
        assert hook.bodies[-1] == b"again"


async def test_a_config_that_has_changed_is_tried_again() -> None:
    async with hooked(*[status(400)] * FAILURES) as hook, running(local()) as pusher:
        offer(pusher, target(hook.url), *[b"lost"] * FAILURES)
        await settled(pusher)
        offer(pusher, target(hook.url + "/new"), b"found")
        await hook.received(FAILURES + 1)
        assert hook.requests[-1].path == "/hook/new"


async def test_one_success_in_between_and_the_count_begins_anew(events: Events) -> None:
    answers = [status(400)] * (FAILURES - 1)
    async with hooked(*answers, OK, *answers) as hook, running(local()) as pusher:
        offer(pusher, target(hook.url), *[b"x"] * (2 * FAILURES))
        await hook.received(2 * FAILURES)
        assert {name for name, _ in events()} == {"push.failed"}


async def test_nothing_is_kept_of_a_target_whose_task_has_ended() -> None:
    async with hooked(*[status(400)] * FAILURES * 2) as hook, running(local()) as pusher:
        for task_id, count in (("given-up", FAILURES), ("failed", 1), ("delivered", 0)):
            to = target(hook.url, task_id=task_id)
            offer(pusher, to, *[b"x"] * count)
            pusher.offer(to, b"end", last=True)
            await settled(pusher)
        assert not pusher._lines


# -- bounds ----------------------------------------------------------------------------------------------------


async def test_what_finds_no_room_is_counted_and_told_once(events: Events) -> None:
    async with hooked() as hook, running(local()) as pusher:
        to = target(hook.url.replace("/hook", "/gated"))
        offer(pusher, to, b"first")
        await hook.received(1)
        offer(pusher, to, *[b"%d" % number for number in range(MOST + 4)])
        pusher.offer(to, b"end", last=True)
        hook.gate.set()
        await hook.received(MOST + 1)
        await settled(pusher)
        assert hook.bodies[1:3] == [b"5", b"6"] and hook.bodies[-1] == b"end"
        assert events() == [("push.dropped", {"task": "t", "config": "c", "host": "127.0.0.1", "notifications": 5})]


async def test_nothing_more_is_sent_by_a_config_that_is_gone() -> None:
    async with hooked() as hook, running(local()) as pusher:
        to = target(hook.url.replace("/hook", "/gated"))
        offer(pusher, to, b"1", b"2")
        await hook.received(1)
        pusher.forget("t", "c")
        pusher.forget("t", "unknown")
        await settled(pusher)
        hook.gate.set()
        offer(pusher, target(hook.url, config_id="other"), b"3")
        await hook.received(2)
        assert hook.bodies == [b"1", b"3"]


async def test_draining_sends_at_once_what_waits_for_its_next_attempt(events: Events) -> None:
    timing = EndlessTiming()
    async with hooked(status(503), status(503)) as hook, running(local(timing)) as pusher:
        offer(pusher, target(hook.url), b"1", b"2")
        await timing.sleeping.wait()
        await pusher.drain(DEADLINE_SECONDS)
        assert hook.bodies == [b"1", b"1", b"2"]
        assert [name for name, _ in events()] == ["push.failed"]


async def test_what_draining_leaves_is_counted(events: Events) -> None:
    async with hooked() as hook, running(local()) as pusher:
        offer(pusher, target(hook.url.replace("/hook", "/gated")), b"1", b"2", b"3")
        await hook.received(1)
        await pusher.drain(0.01)
        assert events() == [("push.unsent", {"targets": 1, "notifications": 3})]


async def test_draining_an_idle_pusher_takes_no_time(events: Events) -> None:
    async with running(local()) as pusher:
        await pusher.drain(float("inf"))
    assert events() == []


# -- who may be spoken to --------------------------------------------------------------------------------------


async def test_the_connection_goes_to_the_address_that_was_judged_and_says_the_name() -> None:
    names = Names(["93.184.215.14"])
    async with hooked() as hook, running(PushNotifier(timing=TurnedTiming(), network=names)) as pusher:
        offer(pusher, target(f"http://hooks.example:{hook.port}/"), b"1")
        await hook.received(1)
        assert names.dialled == ["93.184.215.14"]
        assert hook.requests[0].headers["host"] == f"hooks.example:{hook.port}"


async def test_a_name_is_judged_anew_for_every_connection(events: Events) -> None:
    names = Names(["93.184.215.14"], ["127.0.0.1"])
    closing = Answer(status(200).text, "close")
    async with hooked(closing) as hook, running(PushNotifier(timing=TurnedTiming(), network=names)) as pusher:
        offer(pusher, target(f"http://hooks.example:{hook.port}/"), b"1")
        await settled(pusher)
        offer(pusher, target(f"http://hooks.example:{hook.port}/"), b"2")
        await settled(pusher)
        assert (hook.bodies, names.dialled) == ([b"1"], ["93.184.215.14"])
        assert [fields["reason"] for _, fields in events()] == ["address"]


@pytest.mark.parametrize(
    "answer", [["127.0.0.1"], ["93.184.215.14", "10.0.0.1"], ["::ffff:169.254.169.254"], ["fe80::1%1"]]
)
async def test_a_name_that_leads_to_a_private_address_is_not_connected_to(answer: list[str], events: Events) -> None:
    names = Names(answer)
    timing = TurnedTiming()
    async with hooked() as hook, running(PushNotifier(timing=timing, network=names)) as pusher:
        offer(pusher, target(f"http://hooks.example:{hook.port}/"), b"1")
        await settled(pusher)
        assert (names.dialled, hook.connections) == ([], 0)
        assert [fields["reason"] for _, fields in events()] == ["address"]
        assert set(timing.slept) <= {5.0}


async def test_a_private_address_in_a_stored_config_is_not_connected_to(events: Events) -> None:
    async with hooked() as hook, running(PushNotifier(timing=TurnedTiming())) as pusher:
        offer(pusher, target(hook.url), b"1")
        await settled(pusher)
        assert hook.connections == 0
        assert [fields["reason"] for _, fields in events()] == ["url"]


async def test_a_name_that_is_not_found_is_looked_up_again(events: Events) -> None:
    names = Names([], [], ["93.184.215.14"])
    async with hooked() as hook, running(PushNotifier(timing=TurnedTiming(), network=names)) as pusher:
        offer(pusher, target(f"http://hooks.example:{hook.port}/"), b"1")
        await hook.received(1)
        assert events() == []


async def test_the_next_address_of_a_name_is_tried_when_one_is_dead() -> None:
    names = Names(["93.184.215.14", "93.184.215.15"], dead=["93.184.215.14"])
    async with hooked() as hook, running(PushNotifier(timing=TurnedTiming(), network=names)) as pusher:
        offer(pusher, target(f"http://hooks.example:{hook.port}/"), b"1")
        await hook.received(1)
        assert names.dialled == ["93.184.215.14", "93.184.215.15"]


async def test_the_machine_resolves_its_own_name() -> None:
    assert set(await SystemNetwork().resolve("localhost", 80)) & {"127.0.0.1", "::1"}


async def test_tls_asks_for_the_name_and_not_for_the_address() -> None:
    hello = b""

    async def listen(stream: anyio.abc.ByteStream) -> None:
        nonlocal hello
        async with stream:
            hello = await stream.receive()

    names = Names(*[["93.184.215.14"]] * 5)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, listen)
        async with running(PushNotifier(timing=TurnedTiming(), network=names)) as pusher:
            port = listener.extra(anyio.abc.SocketAttribute.local_port)
            offer(pusher, target(f"https://hooks.example:{port}/"), b"1")
            await settled(pusher)
        tasks.cancel_scope.cancel()
    assert b"hooks.example" in hello


async def test_a_handshake_that_is_broken_off_leaves_no_connection_open() -> None:
    greeted, left = anyio.Event(), anyio.Event()

    async def listen(stream: anyio.abc.ByteStream) -> None:
        async with stream:
            await stream.receive()
            greeted.set()
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await stream.receive()
            left.set()

    names = Names(["93.184.215.14"])
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, listen)
        async with running(PushNotifier(timing=TurnedTiming(), network=names)) as pusher:
            port = listener.extra(anyio.abc.SocketAttribute.local_port)
            offer(pusher, target(f"https://hooks.example:{port}/"), b"1")
            await greeted.wait()
            pusher.forget("t", "c")
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
async def test_only_a_server_that_proves_its_name_is_told_anything(
    trusted: bool, name: str, certificate: tuple[Path, Path], events: Events
) -> None:
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(*certificate)
    names = Names(*[["93.184.215.14"]] * 5, cafile=str(certificate[0]) if trusted else None)
    async with hooked(tls=serving) as hook, running(PushNotifier(timing=TurnedTiming(), network=names)) as pusher:
        offer(pusher, target(f"https://{name}:{hook.port}/"), b"1")
        await settled(pusher)
        proved = trusted and name == "hooks.example"
        assert hook.bodies == ([b"1"] if proved else [])
        assert [fields["reason"] for _, fields in events()] == ([] if proved else ["tls"])


# -- configs, secrets, time ------------------------------------------------------------------------------------

GOOD = "https://hooks.example/"


@pytest.mark.parametrize(
    ("config", "param", "expected"),
    [
        (PushConfig("ftp://hooks.example/"), "config.url", MALFORMED),
        (PushConfig("https://169.254.169.254/"), "config.url", PRIVATE),
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
def test_a_config_that_can_not_be_used_is_refused_when_it_is_set(config: PushConfig, param: str, expected: str) -> None:
    for path, said in (("config", param), ("", param.removeprefix("config."))):
        with pytest.raises(FailureError) as caught:
            PushNotifier().check(config, param=path)
        failure = caught.value.failure
        assert isinstance(failure, InvalidParams)
        assert (failure.param, failure.expected) == (said, expected)


def test_a_config_that_can_be_used_is_taken() -> None:
    usual = PushConfig(GOOD, token="", authentication=Authentication("Basic", "dXNlcjpwYXNz"))
    assert PushNotifier().check(usual, param="config") is None
    assert PushNotifier(allow_private=True).check(PushConfig("http://127.0.0.1:8080/"), param="config") is None


def test_tokens_and_credentials_are_known_to_the_scrubber() -> None:
    shown = Authentication("Custom", "first-credential-0")
    PushNotifier().check(PushConfig(GOOD, token="token of mine one", authentication=shown), param="config")
    assert "of mine" not in scrub("they said token of mine one to me")
    assert "credential" not in scrub("they said first-credential-0 to me")


def test_the_scrubber_is_not_flooded_with_tokens() -> None:
    pusher = PushNotifier()
    for number in range(MOST_GUESTS + 1):
        pusher.check(PushConfig(GOOD, token=f"plain words number {number} here"), param="config")
    assert "plain words" in scrub("x plain words number 0 here x")
    assert "plain words" not in scrub("x plain words number 1 here x")
    for number in range(MOST_GUESTS):
        pusher.check(PushConfig(GOOD, token=f"other words number {number} here"), param="config")
    assert "plain words" in scrub(f"x plain words number {MOST_GUESTS} here x")


async def test_no_part_of_a_secret_is_logged(events: Events) -> None:
    async with hooked(*[status(400)] * FAILURES) as hook, running(local()) as pusher:
        shown = Authentication("Bearer", "secretcredential")
        to = target(hook.url + "/secretpath?secretquery", token="secrettoken", authentication=shown)
        offer(pusher, to, *[b"secretbody"] * (FAILURES + 1))
        await settled(pusher)
        logged = events()
        assert len(logged) == FAILURES + 1
        assert "secret" not in repr(logged)


async def test_the_clock_of_the_system_is_the_event_loops() -> None:
    assert isinstance(SYSTEM, SystemTiming)
    assert SYSTEM.now() <= anyio.current_time() <= SYSTEM.now()
    assert 0 <= SYSTEM.jitter() < 1
    await SYSTEM.sleep(0)


def test_notifications_are_available_with_the_extra() -> None:
    assert available()
