"""The blocking client: the methods of the async one, and what threads and interrupts do to it."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from discreet.client import ConnectionFailed, EndBounds, Peer, RequestTimeout, blocking, connect
from support.hostile import hostile
from support.programs import environment
from support.waits import DEADLINE_SECONDS

QUICK = EndBounds(eof=0.02, terminate=0.02, kill=10.0)


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


INTERRUPTED = """
import signal, sys, threading, time
from anyio.from_thread import BlockingPortal
from discreet.client import EndBounds
from discreet.client.blocking import connect

def heard(line):
    if line == "m":
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    print(line, flush=True)

early, backend, *server = sys.argv[1:]
with connect(server, backend=backend, stderr=heard, bounds=EndBounds(eof=60)) as peer:
    start = BlockingPortal.start_task_soon
    def slow(portal, *args, **options):
        future = start(portal, *args, **options)
        if early and threading.current_thread() is threading.main_thread():
            BlockingPortal.start_task_soon = start
            time.sleep(60)  # until the interrupt
        return future
    BlockingPortal.start_task_soon = slow
    try:
        peer.call("m", timeout=None)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("early", ["", "early"])
def test_an_interrupted_call_is_cancelled_on_the_server(anyio_backend: str, early: str) -> None:
    told = "while request := read(): print(request['method'], file=sys.stderr, flush=True)"
    command: Sequence[str] = [sys.executable, "-P", "-c", INTERRUPTED, early, anyio_backend, *hostile(told)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment(), check=False
    )
    # Two processes print there: their words may stand in one line, but no letter is missing and none is too many.
    printed = "".join(done.stdout.split())
    assert (sorted(printed), done.returncode) == (sorted("$/cancelRequest" + "interrupted" + "m"), 0), done.stderr


FORKED = """
import os, sys
from discreet.client.blocking import connect

with connect(sys.argv[1:]) as peer:
    child = os.fork()
    if not child:
        try:
            peer.call("m")
        except RuntimeError as exc:
            print("refused", "connects anew" in str(exc), flush=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    print(peer.call("m", [1]), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_forked_child_is_refused() -> None:
    command: Sequence[str] = [sys.executable, "-W", "ignore", "-P", "-c", FORKED, *hostile(ECHO)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE_SECONDS, env=environment(), check=False
    )
    assert (done.stdout.split("\n"), done.returncode) == (["refused True", "0", "[1]", ""], 0), done.stderr
