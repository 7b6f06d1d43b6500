"""The client with a live daemon, in both framings, with async and without; and with hostile servers."""

from __future__ import annotations

import inspect
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import discreet
from discreet.client import (
    ClientError,
    ConnectionFailed,
    EndBounds,
    InternalError,
    InvalidParams,
    MethodNotFound,
    OperationFailed,
    OperationTimedOut,
    OperationTypeMismatch,
    Peer,
    RequestTimeout,
    RestartPolicy,
    RetryPolicy,
    blocking,
    connect,
    spawn,
)
from discreet.errors import OperationError
from support.programs import environment
from support.waits import DEADLINE_SECONDS

APP = '''
import os
from collections.abc import AsyncIterator

import anyio
import msgspec
from discreet import Context, OperationError, Service

app = Service("app")


class NoSuchThing(OperationError, code="NO_SUCH_THING", http_status=404):
    """There is no such thing."""

    thing: str


class Point(msgspec.Struct):
    x: int
    y: int


@app.query()
async def move(point: Point, by: int = 1) -> Point:
    return Point(point.x + by, point.y + by)


@app.query(errors=[NoSuchThing])
async def find(thing: str) -> str:
    raise NoSuchThing(thing=thing)


@app.query()
async def crash() -> None:
    raise ZeroDivisionError("secret")


@app.query(timeout=0.05)
async def slow() -> None:
    await anyio.sleep(3600)


@app.query(timeout=None)
async def forever() -> None:
    await anyio.sleep(3600)


@app.query()
async def ask(ctx: Context, question: str) -> str:
    return await ctx.request("client/answer", {"question": question})


@app.mutation()
async def tell(ctx: Context, text: str) -> None:
    await ctx.notify("client/told", {"text": text})


@app.query()
def die_once(mark: str) -> int:
    return die(mark)


@app.mutation()
def change_once(mark: str) -> int:
    return die(mark)


def die(mark: str) -> int:
    with open(mark, "a+") as file:
        file.write("x")
        file.seek(0)
        runs = len(file.read())
    if runs == 1:
        os.kill(os.getpid(), 9)
    return runs


@app.subscription()
async def count(to: int) -> AsyncIterator[int]:
    for number in range(1, to + 1):
        await anyio.lowlevel.checkpoint()
        yield number


@app.subscription()
async def blocks(to: int, made: str) -> AsyncIterator[str]:
    with open(made, "wb", buffering=0) as file:
        for _ in range(to):
            file.write(b".")
            yield "x" * 10_000


@app.subscription()
async def count_and_die() -> AsyncIterator[int]:
    yield 1
    yield 2
    await anyio.sleep(0.05)
    os.kill(os.getpid(), 9)


@app.subscription(errors=[NoSuchThing])
async def count_and_fail(to: int) -> AsyncIterator[int]:
    for number in range(1, to + 1):
        yield number
    raise NoSuchThing(thing="more")
'''


class NoSuchThing(OperationError, code="NO_SUCH_THING"):
    """There is no such thing."""

    thing: str


class Point(msgspec.Struct):
    x: int
    y: int


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def served(framing: str = "content-length") -> list[str]:
    return [sys.executable, "-P", "-m", "discreet", "serve", "app:app", f"--framing={framing}", "--log-level=error"]


@contextmanager
def live(folder: Path, backend: Any, *, framing: Any = "content-length", **options: Any) -> Iterator[Any]:
    with blocking.connect(
        served(framing), backend=backend, framing=framing, cwd=folder, env=environment(), stderr="collect", **options
    ) as peer:
        yield peer


# The blocking client passes everything through the async one, so that one suite holds both to their promises.


@pytest.mark.parametrize("framing", ["content-length", "newline"])
def test_every_kind_of_request_to_a_daemon(folder: Path, anyio_backend: str, framing: str) -> None:
    told: list[object] = []
    heard = threading.Event()
    with live(folder, anyio_backend, framing=framing, errors=[NoSuchThing], timeout=DEADLINE_SECONDS) as peer:
        assert peer.call("app/move", {"point": Point(1, 2)}, type=Point) == Point(2, 3)
        assert peer.call("app/move", [Point(1, 2), 5], type=Point) == Point(6, 7)

        with pytest.raises(OperationFailed) as failed:
            peer.call("app/find", {"thing": "it"})
        assert failed.value.details == NoSuchThing.definition.details(thing="it")
        with pytest.raises(InvalidParams) as wrong:
            peer.call("app/move", {"point": {"x": 1, "y": "two"}})
        assert wrong.value.failure.param == "point.y"
        for method, error in {
            "app/crash": InternalError,
            "app/slow": OperationTimedOut,
            "app/none": MethodNotFound,
        }.items():
            with pytest.raises(error):
                peer.call(method)
        with pytest.raises(RequestTimeout):
            peer.call("app/forever", timeout=0.05)

        peer.on_request("client/answer", lambda params: params["question"] + peer.call("version", type=dict)["version"])
        assert peer.call("app/ask", {"question": "which? "}) == f"which? {discreet.__version__}"
        peer.on_notification("client/told", lambda params: (told.append(params), heard.set()))
        peer.call("app/tell", {"text": "psst"})
        assert heard.wait(DEADLINE_SECONDS)
        assert told == [{"text": "psst"}]

        assert list(peer.subscribe("app/count", {"to": 500}, type=int)) == list(range(1, 501))
        with pytest.raises(OperationTypeMismatch):
            peer.call("services/call", {"operationId": "app/count", "input": {"to": 1}})
        with pytest.raises(OperationTypeMismatch):
            peer.call("app/count", {"to": 10**9})
        with pytest.raises(OperationTypeMismatch):
            next(peer.subscribe("services/subscribe", {"operationId": "app/find", "input": {"thing": "it"}}))
        stream = peer.subscribe("app/count_and_fail", {"to": 2})
        assert [next(stream), next(stream)] == [1, 2]
        with pytest.raises(OperationFailed) as cut:
            next(stream)
        assert cut.value.details == NoSuchThing.definition.details(thing="more")
        with pytest.raises(StopIteration):
            next(stream)

        with peer.subscribe("app/count", {"to": 10**9}) as endless:
            assert next(endless) == 1
        assert peer.call("version", type=dict[str, str]) == {"version": discreet.__version__}


def test_a_query_survives_the_death_of_a_daemon_and_a_mutation_does_not(folder: Path, anyio_backend: str) -> None:
    policies: dict[str, Any] = {"retry": RetryPolicy(initial=0.0), "restart": RestartPolicy(limit=9, initial=0.0)}
    with live(folder, anyio_backend, timeout=DEADLINE_SECONDS, **policies) as peer:
        assert peer.call("app/die_once", {"mark": "query"}) == 2
        with pytest.raises(ConnectionFailed) as raised:
            peer.call("app/change_once", {"mark": "mutation"})
        assert (raised.value.sent, raised.value.loss.status) == (True, -9)
        assert peer.call("app/change_once", {"mark": "sure"}, idempotent=True) == 2
        events = []
        with pytest.raises(ConnectionFailed) as cut:
            for event in peer.subscribe("app/count_and_die"):
                events.append(event)  # noqa: PERF402 - the loop raises
        assert (events, cut.value.last_seq) == ([1, 2], 2)
        assert peer.call("app/move", {"point": Point(0, 0)}, type=Point) == Point(1, 1)
    assert (folder / "mutation").read_text() == "x"


MOST_AHEAD = 250
"""How many events of 10 kB a producer may be ahead: 32 in the daemon, as many in the client, those in transit
between them (pipes hold up to 1 MiB), and some for what is being read and written."""


@pytest.mark.parametrize("framing", ["content-length", "newline"])
def test_a_slow_consumer_slows_the_producer_in_the_daemon(folder: Path, anyio_backend: str, framing: str) -> None:
    made = folder / "made"
    ahead = []
    with live(folder, anyio_backend, framing=framing, timeout=DEADLINE_SECONDS) as peer:
        for taken, _ in enumerate(peer.subscribe("app/blocks", {"to": 1000, "made": str(made)}), 1):
            peer.notify("$/nothing", {})  # time for the daemon to run ahead, if it would
            ahead.append(made.stat().st_size - taken)
    assert len(ahead) == 1000
    assert max(ahead) <= MOST_AHEAD


def test_a_logger_takes_the_lines_of_stderr(anyio_backend: Any, caplog: pytest.LogCaptureFixture) -> None:
    source = "sys.stderr.write('100 %s\\n' * 3); sys.stderr.flush(); read()"
    with (
        caplog.at_level(logging.INFO, "server"),
        blocking.connect(hostile(source), backend=anyio_backend, stderr=logging.getLogger("server").info),
    ):
        pass
    assert [record.getMessage() for record in caplog.records if record.name == "server"] == ["100 %s"] * 3


def test_many_threads_share_one_peer(folder: Path, anyio_backend: str) -> None:
    with live(folder, anyio_backend, timeout=DEADLINE_SECONDS) as peer, ThreadPoolExecutor(16) as threads:

        def work(number: int) -> bool:
            if number % 10 == 0:
                return list(peer.subscribe("app/count", {"to": number}, type=int)) == list(range(1, number + 1))
            found = peer.call("app/move", {"point": Point(number, number)}, type=Point)
            return bool(found == Point(number + 1, number + 1))

        assert all(threads.map(work, range(200)))


# -- hostile servers --------------------------------------------------------------------------------------------------

PRELUDE = """
import json, os, signal, sys, time

def read():
    length = None
    while (line := sys.stdin.buffer.readline()).strip():
        length = int(line.removeprefix(b"Content-Length: "))
    return None if length is None else json.loads(sys.stdin.buffer.read(length))

def write(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()

def frame(text):
    return b"Content-Length: %d\\r\\n\\r\\n%b" % (len(text), text)

"""

HOSTILE = {
    "ends at once": "sys.exit(0)",
    "dies of a signal": "read(); os.kill(os.getpid(), signal.SIGSEGV)",
    "ends within a frame": "read(); write(b'Content-Length: 9\\r\\n\\r\\n{')",
    "writes no frame": "while read(): write(b'Traceback (most recent call last):\\n')",
    "writes no JSON": "while read(): write(frame(b'{]'))",
    "writes no UTF-8": "while read(): write(frame(b'\\xff\\xfe'))",
    "writes no message": "while read(): write(frame(b'42'))",
    "writes neither result nor error": 'while r := read(): write(frame(b\'{"jsonrpc":"2.0","id":%d}\' % r[\'id\']))',
    "announces what never comes": "while read(): write(b'Content-Length: 99999999999999999999\\r\\n\\r\\n')",
    "never ends its header": "read()\nwhile True: write(b'x' * 65536)",
    "answers other questions": 'while read(): write(frame(b\'{"jsonrpc":"2.0","id":999,"result":1}\'))',
    "says nothing": "while read(): pass",
    "reads nothing": "time.sleep(60)",
    "closes its stdout": "read(); os.close(1); time.sleep(60)",
    "closes its stdin": "read(); os.close(0); time.sleep(60)",
    "nests too deep": "read(); write(frame(b'[' * 10**6)); time.sleep(60)",
    "asks without end": 'read()\nfor n in range(5000): write(frame(b\'{"jsonrpc":"2.0","id":%d,"method":"x"}\' % n))',
    "fills stderr": "read()\nfor _ in range(20000): sys.stderr.write('x' * 99 + '\\n')",
    "does not want to die": "signal.signal(signal.SIGTERM, signal.SIG_IGN); read(); write(b'junk\\n'); time.sleep(60)",
}


QUICK = EndBounds(eof=0.02, terminate=0.02, kill=10.0)


def hostile(source: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", PRELUDE + source]


@pytest.mark.anyio
async def test_a_hostile_server_fails_the_calls_and_nothing_else() -> None:
    failed: dict[str, int] = {}

    async def try_out(name: str) -> None:
        async with connect(
            hostile(HOSTILE[name]),
            timeout=0.5,
            bounds=QUICK,
            retry=RetryPolicy(attempts=2, initial=0.0),
            restart=RestartPolicy(limit=1, initial=0.0),
            stderr=lambda _: None,
        ) as peer:
            for use in (
                lambda: peer.call("m", ["x" * 100_000]),
                lambda: peer.call("m", idempotent=True),
                lambda: anext(peer.subscribe("s", timeout=0.5)),
            ):
                try:
                    await use()
                except ClientError:
                    failed[name] = failed.get(name, 0) + 1

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for name in HOSTILE:
                tasks.start_soon(try_out, name)
    assert failed == dict.fromkeys(HOSTILE, 3)


# -- the blocking client ----------------------------------------------------------------------------------------------

ECHO = """
while request := read():
    write(frame(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": request.get("params")}).encode()))
"""


def test_the_options_are_those_of_the_async_client() -> None:
    taken = {name for name, it in inspect.signature(connect).parameters.items() if it.kind is it.KEYWORD_ONLY}
    assert taken == blocking.ConnectOptions.__optional_keys__


def test_each_method_of_the_async_peer_has_a_blocking_one_with_the_same_options() -> None:
    def named(peer: type) -> set[str]:
        return {name for name in vars(peer) if not name.startswith("_")}

    def taken(method: Any) -> set[str]:
        return {name for name, it in inspect.signature(method).parameters.items() if it.kind is it.KEYWORD_ONLY}

    assert named(blocking.BlockingPeer) == named(Peer)
    assert taken(Peer.call) == {"type", *blocking.CallOptions.__optional_keys__}
    assert taken(Peer.subscribe) == {"type", *blocking.SubscribeOptions.__optional_keys__}


def test_after_the_block_every_method_fails_at_once(anyio_backend: Any) -> None:
    with blocking.connect(hostile(ECHO), backend=anyio_backend) as peer:
        stream = peer.subscribe("s")
        assert peer.call("echo", [1]) == [1]
    for use in (
        lambda: peer.call("echo"),
        lambda: peer.notify("x"),
        lambda: next(stream),
        lambda: next(peer.subscribe("s")),
    ):
        with pytest.raises(ConnectionFailed) as raised:
            use()
        assert not raised.value.sent
    with stream:
        pass


def test_leaving_the_block_ends_the_calls_of_other_threads(anyio_backend: Any) -> None:
    begun = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        with blocking.connect(
            hostile("r = read(); print('here', file=sys.stderr, flush=True); read()"),
            backend=anyio_backend,
            stderr=lambda _: begun.set(),
        ) as peer:
            waiting = threads.submit(peer.call, "m", timeout=None)
            assert begun.wait(DEADLINE_SECONDS)
        with pytest.raises(ConnectionFailed):
            waiting.result(DEADLINE_SECONDS)


def test_an_exception_of_the_block_is_raised_unwrapped(anyio_backend: Any) -> None:
    with pytest.raises(KeyError), blocking.connect(hostile(ECHO), backend=anyio_backend):
        raise KeyError


def test_a_command_that_can_not_be_run_is_a_failed_connection(anyio_backend: Any) -> None:
    with pytest.raises(ConnectionFailed), blocking.connect(["/no/such/program"], backend=anyio_backend):
        pass


def test_a_notification_handler_that_uses_the_peer_is_refused(anyio_backend: Any) -> None:
    source = 'read(); write(frame(b\'{"jsonrpc":"2.0","method":"told"}\')); time.sleep(60)'
    told: list[BaseException] = []
    came = threading.Event()

    def handler(_: object) -> None:
        try:
            peer.notify("x")
        except RuntimeError as exc:
            told.append(exc)
        came.set()

    with blocking.connect(hostile(source), backend=anyio_backend, bounds=QUICK) as peer:
        peer.on_notification("told", handler)
        with pytest.raises(RequestTimeout):
            peer.call("m", timeout=0.5)
        assert came.wait(DEADLINE_SECONDS)
    assert "a thread of your own" in str(told[0])


def test_a_forgotten_with_is_explained() -> None:
    with pytest.raises(AttributeError, match="with connect"):
        blocking.connect(hostile(ECHO)).call("m")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


INTERRUPTED = """
import signal, sys, threading
from discreet.client.blocking import connect

def heard(line):
    if line == "m":
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    print(line, flush=True)

with connect(sys.argv[2:], backend=sys.argv[1], stderr=heard) as peer:
    try:
        peer.call("m", timeout=None)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupted_call_is_cancelled_on_the_server(anyio_backend: str) -> None:
    told = "while request := read(): print(request['method'], file=sys.stderr, flush=True)"
    command: Sequence[str] = [sys.executable, "-P", "-c", INTERRUPTED, anyio_backend, *hostile(told)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment(), check=False
    )
    # Two processes print there: their words may stand in one line, but no letter is missing and none is too many.
    printed = "".join(done.stdout.split())
    assert (sorted(printed), done.returncode) == (sorted("$/cancelRequest" + "interrupted" + "m"), 0), done.stderr


# -- what is left behind ----------------------------------------------------------------------------------------------

ROUNDS = 500
"""On each of two event loops."""


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform == "win32", reason="processes are not reaped there")
async def test_a_thousand_servers_leave_no_zombie_and_no_descriptor() -> None:
    async with spawn(["cat"]):
        pass
    before = os.listdir("/dev/fd")
    pids: list[int] = []
    for _ in range(ROUNDS):
        async with spawn(["cat"]) as process:
            pids.append(process.pid)
    assert os.listdir("/dev/fd") == before
    assert [pid for pid in pids if is_there(pid)] == []


def is_there(pid: int) -> bool:
    """Whether the process with this id is a child of this one, dead or alive."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return False
    return True
