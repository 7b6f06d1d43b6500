"""The client with a live daemon, in both framings, with async and without."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

import discreet
from discreet.client import (
    InternalError,
    InvalidParams,
    MethodNotFound,
    OperationFailed,
    OperationTimedOut,
    OperationTypeMismatch,
    RequestTimeout,
    blocking,
)
from discreet.errors import OperationError
from support.programs import DISCREET, environment
from support.waits import DEADLINE_SECONDS

APP = '''
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
async def steps(ctx: Context, to: int) -> str:
    for number in range(1, to + 1):
        await ctx.progress(number)
    return "done"


@app.mutation()
def change(mark: str) -> None:
    open(mark, "w").close()


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


@contextmanager
def live(folder: Path, backend: Any, *, framing: Any = "content-length", **options: Any) -> Iterator[Any]:
    command = [*DISCREET, "serve", "./app.py:app", f"--framing={framing}", "--log-level=error"]
    with blocking.connect(
        command, backend=backend, framing=framing, cwd=folder, env=environment(), stderr="collect", **options
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

        with pytest.raises(NoSuchThing) as failed:
            peer.call("app/find", {"thing": "it"})
        assert failed.value.thing == "it"
        assert isinstance(failed.value.__cause__, OperationFailed)
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
        steps: list[int] = []
        assert peer.call("app/steps", {"to": 3}, on_progress=steps.append) == "done"
        assert steps == [1, 2, 3]
        assert heard.wait(DEADLINE_SECONDS)
        assert told == [{"text": "psst"}]

        assert list(peer.subscribe("app/count", {"to": 500}, type=int)) == list(range(1, 501))
        with pytest.raises(OperationTypeMismatch):
            peer.call("services/call", {"operationId": "app/count", "input": {"to": 1}})
        with pytest.raises(OperationTypeMismatch):
            peer.call("app/count", {"to": 10**9})
        with pytest.raises(OperationTypeMismatch):
            next(peer.subscribe("services/subscribe", {"operationId": "app/find", "input": {"thing": "it"}}))
        with pytest.raises(OperationTypeMismatch) as refused:
            next(peer.subscribe("app/change", {"mark": "subscribed"}))
        assert refused.value.result is None
        assert not (folder / "subscribed").exists()
        with pytest.raises(InvalidParams) as wrong:
            next(peer.subscribe("app/count", {"to": "x"}))
        assert wrong.value.failure.param == "to"
        stream = peer.subscribe("app/count_and_fail", {"to": 2})
        assert [next(stream), next(stream)] == [1, 2]
        with pytest.raises(NoSuchThing) as cut:
            next(stream)
        assert cut.value.thing == "more"
        with pytest.raises(StopIteration):
            next(stream)

        with peer.subscribe("app/count", {"to": 10**9}) as endless:
            assert next(endless) == 1
        assert peer.call("version", type=dict[str, str]) == {"version": discreet.__version__}


MOST_AHEAD = 250
"""How many events of 10 kB a producer may be ahead: 32 in the daemon, as many in the client, those in transit
between them (pipes hold up to 1 MiB), and some for what is being read and written."""


def test_a_slow_consumer_slows_the_producer_in_the_daemon(folder: Path, anyio_backend: str) -> None:
    made = folder / "made"
    framing = {"asyncio": "content-length", "trio": "newline"}[anyio_backend]  # what is buffered is bytes of either
    ahead = []
    with live(folder, anyio_backend, framing=framing, timeout=DEADLINE_SECONDS) as peer:
        for taken, _ in enumerate(peer.subscribe("app/blocks", {"to": 500, "made": str(made)}), 1):
            peer.notify("$/nothing", {})  # time for the daemon to run ahead, if it would
            ahead.append(made.stat().st_size - taken)
    assert len(ahead) == 500
    assert max(ahead) <= MOST_AHEAD


def test_many_threads_share_one_peer(folder: Path, anyio_backend: str) -> None:
    with live(folder, anyio_backend, timeout=DEADLINE_SECONDS) as peer, ThreadPoolExecutor(16) as threads:

        def work(number: int) -> bool:
            if number % 10 == 0:
                return list(peer.subscribe("app/count", {"to": number}, type=int)) == list(range(1, number + 1))
            found = peer.call("app/move", {"point": Point(number, number)}, type=Point)
            return bool(found == Point(number + 1, number + 1))

        assert all(threads.map(work, range(200)))
