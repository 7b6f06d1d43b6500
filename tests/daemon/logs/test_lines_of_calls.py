"""Each line that a call causes names it: whatever the handler is, however it logs, and however its client calls."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.lowlevel
import msgspec
import pytest
import structlog

from discreet import Context, OperationError, Service
from discreet.a2a.types import new_id
from discreet.agents import Agent
from discreet.daemon.logs import capture_logging, capture_structlog, install_hooks, log, uninstall_hooks
from discreet.daemon.logs.hooks import PrintedTexts
from discreet.framing.transports.interface import asyncio_loop
from discreet.http import asgi
from support.acp_client import AcpRefused, acp_client, agent_of
from support.asgi_client import JSON, AsgiClient
from support.logged_events import LoggedEvents
from support.lsp_messages import shake_hands
from support.mcp_http import McpHttp
from support.mcp_wire import MCP, McpClient
from support.mounts import by_pipe
from support.programs import environment
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _hooks() -> Iterator[None]:
    """All of Python's ways to log end in the queue, which no writer empties."""
    log.queue.attach(lambda: None, rank=0)
    capture_logging()
    capture_structlog()
    install_hooks()
    yield
    uninstall_hooks()
    log.queue.detach()


WAYS: Final = ("logging", "structlog", "print", "unfinished line")


def say(kind: str) -> None:
    """Log in each of the ways."""
    logging.getLogger("app").warning("%s by logging", kind)
    structlog.get_logger().warning(f"{kind} by structlog")
    printed = PrintedTexts()
    for text in (f"{kind} by", " print", "\n", f"{kind} by unfinished line"):
        printed.take("stdout", text)


async def say_later(kind: str) -> None:
    await anyio.lowlevel.checkpoint()
    say(kind)


class Given(msgspec.Struct):
    """A param whose class is the app's own code."""

    kind: str = ""

    def __post_init__(self) -> None:
        if self.kind:
            say(self.kind)


NOTHING: Final = Given()


async def in_executor(kind: str) -> None:
    """asyncio's own way to a thread, which trio has not."""
    if asyncio_loop() is None:
        await anyio.to_thread.run_sync(say, kind)
    else:
        await asyncio.get_running_loop().run_in_executor(None, say, kind)


async def in_callback(kind: str) -> None:
    if asyncio_loop() is None:
        return say(kind)
    said = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.call_soon(lambda: (say(kind), said.set()))
    await said.wait()


async def in_task(kind: str) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(say_later, kind)


async def in_own_thread(kind: str) -> None:
    thread = threading.Thread(target=say, args=(kind,))
    thread.start()
    await anyio.to_thread.run_sync(thread.join)


STEPS: Final[dict[str, Callable[[str], Awaitable[None]]]] = {
    "coroutine": say_later,
    "task": in_task,
    "step in a thread": lambda kind: anyio.to_thread.run_sync(say, kind),
    "executor": in_executor,
    "callback": in_callback,
    "own thread": in_own_thread,
}
"""What a coroutine may do, be it a handler or an executor."""


class Kinds:
    """A service with an operation of each kind, by the name that it has in `OPERATIONS`."""

    def __init__(self) -> None:
        self.answered = threading.Event()
        self.began: set[str] = set()
        """Those whose time may be over before they begin, on a busy machine, and that did begin."""
        self._pool = ThreadPoolExecutor(1)
        self.service = app = Service("app", uses=["app/called"])

        @app.query
        async def steps(kind: str) -> None:
            await STEPS[kind](kind)

        @app.query(inline=True)
        def inline() -> None:
            say("inline")

        @app.query(inline=True, serial=True)
        def queued() -> None:
            say("queued")

        @app.query
        def thread() -> None:
            say("thread")

        @app.query
        def pool() -> None:
            self._pool.submit(say, "pool").result(DEADLINE_SECONDS)

        @app.query
        async def decoded(given: Given = NOTHING) -> None: ...

        @app.query
        def decoded_in_thread(given: Given = NOTHING) -> None: ...

        @app.query(keyed="given")
        async def decoded_for_its_turn(given: Given = NOTHING) -> None: ...

        @app.query
        def answered() -> None:
            def wait() -> None:
                self.answered.wait(DEADLINE_SECONDS)
                say("answered")

            threading.Thread(target=wait).start()

        @app.subscription
        async def stream() -> AsyncIterator[int]:
            yield 1
            await say_later("stream")

        @app.query(visibility="internal")
        def called() -> None:
            say("caller")

        @app.query
        async def caller(ctx: Context) -> None:
            await ctx.call("app/called")

        @app.query(timeout=0.05)
        async def timed_out() -> None:
            self.began.add("timed_out")
            try:
                await anyio.sleep_forever()
            finally:
                say("timed_out")

        @app.query(timeout=0.05)
        def overdue() -> None:
            self.began.add("overdue")
            self.answered.wait(DEADLINE_SECONDS)
            say("overdue")

    def close(self) -> None:
        self._pool.shutdown()


DECODED: Final = ("decoded", "decoded_in_thread", "decoded_for_its_turn")
OPERATIONS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    **{kind: ("app/steps", {"kind": kind}) for kind in STEPS},
    **{kind: (f"app/{kind}", {"given": {"kind": kind}}) for kind in DECODED},
    **{
        kind: (f"app/{kind}", {})
        for kind in ("inline", "queued", "thread", "pool", "answered", "stream", "caller", "timed_out", "overdue")
    },
}
"""By kind: the operation, and its params."""

Send = Callable[[str, dict[str, Any]], Awaitable[object]]
"""Calls an operation, and returns when it is answered. The id of the request is `the-id`."""

Connect = Callable[[Any, Service], AbstractAsyncContextManager[Send]]


async def answer(wire: Any, method: str, params: object) -> None:
    await wire.send(wire.request(method, params, id="the-id"))
    while "id" not in (message := await wire.receive()) or "method" in message:
        pass


@asynccontextmanager
async def plain(serving: Any, app: Service) -> AsyncGenerator[Send]:
    async with serving(app) as wire:
        yield lambda name, params: answer(wire, name, params)


@asynccontextmanager
async def by_name(serving: Any, app: Service) -> AsyncGenerator[Send]:
    async with serving(app) as wire:

        async def send(name: str, params: dict[str, Any]) -> None:
            method = "services/subscribe" if name == "app/stream" else "services/call"
            await answer(wire, method, {"operationId": name, "input": params})

        yield send


@asynccontextmanager
async def language_client(serving: Any, app: Service) -> AsyncGenerator[Send]:
    async with serving(app, dialect="lsp", framing="content-length") as wire:
        await shake_hands(wire)
        yield lambda name, params: answer(wire, name, params)


def tool(name: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"name": name.replace("/", "_"), "arguments": params}


@asynccontextmanager
async def mcp(serving: Any, app: Service) -> AsyncGenerator[Send]:
    async with serving(app, **MCP) as wire:
        await McpClient(wire).begin()
        yield lambda name, params: answer(wire, "tools/call", tool(name, params))


@asynccontextmanager
async def mcp_by_http(_: Any, app: Service) -> AsyncGenerator[Send]:
    async with by_http(app, http_mcp=True) as http:
        client = McpHttp(http)
        await client.begin()
        yield lambda name, params: client.post("tools/call", tool(name, params), "the-id")


@asynccontextmanager
async def by_http(app: Service, **settings: Any) -> AsyncGenerator[AsgiClient]:
    served = asgi(app, isolated=True, **settings)
    async with served.lifespan():
        yield AsgiClient(served)


@asynccontextmanager
async def http_operation(_: Any, app: Service) -> AsyncGenerator[Send]:
    async with by_http(app, http_operations=True) as http:
        yield lambda name, params: http.request("POST", f"/operations/{name}", msgspec.json.encode(params), JSON)


def skill(name: str, params: dict[str, Any]) -> dict[str, Any]:
    parts = [{"data": {"skill": name, "input": params}}]
    return {"message": {"messageId": new_id(), "role": "ROLE_USER", "parts": parts}}


@asynccontextmanager
async def a2a(serving: Any, app: Service) -> AsyncGenerator[Send]:
    async with serving(app) as wire:
        yield lambda name, params: answer(wire, "SendMessage", skill(name, params))


@asynccontextmanager
async def a2a_by_http(_: Any, app: Service) -> AsyncGenerator[Send]:
    async with by_http(app) as http:
        yield lambda name, params: http.call("SendMessage", skill(name, params), call_id="the-id", a2a_version="1.0")


@asynccontextmanager
async def a2a_by_rest(_: Any, app: Service) -> AsyncGenerator[Send]:
    async with by_http(app) as http:

        async def send(name: str, params: dict[str, Any]) -> None:
            body = msgspec.json.encode(skill(name, params))
            await http.request("POST", "/message:send", body, {**JSON, "a2a-version": "1.0"})

        yield send


@asynccontextmanager
async def mount(serving: Any, app: Service) -> AsyncGenerator[Send]:
    async with plain(serving, by_pipe(app)) as send:
        yield send


CONNECTIONS: Final[list[Connect]] = [
    plain, by_name, language_client, mcp, mcp_by_http, http_operation, a2a, a2a_by_http, a2a_by_rest, mount,
]  # fmt: skip
WITHOUT_ID: Final = (http_operation, a2a_by_rest)
"""Their requests have none."""


class Lines:
    """The lines that were said, by kind and way, as their fields."""

    def __init__(self, logged: LoggedEvents) -> None:
        self._logged = logged
        self.all: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def read(self) -> None:
        for name, fields in self._logged():
            if name in ("python.log", "stdout.stray"):
                kind, _, way = str(fields["message"] if name == "python.log" else fields["text"]).partition(" by ")
                self.all.setdefault((kind, way), []).append(fields)

    async def of(self, kind: str) -> None:
        """Wait for the lines of a kind in every way."""

        def are_there() -> bool:
            self.read()
            return all((kind, way) in self.all for way in WAYS)

        await until(are_there)

    def lacking(self, is_named: Callable[[str, dict[str, Any]], bool]) -> list[tuple[str, str, dict[str, Any]]]:
        """The lines that do not name what they should."""
        shown = ("method", "id", "task")
        return [
            (kind, way, {name: fields.get(name) for name in shown})
            for (kind, way), lines in self.all.items()
            for fields in lines
            if not is_named(kind, fields)
        ]


@pytest.mark.parametrize("connect", CONNECTIONS)
async def test_each_line_of_a_handler_names_its_request(serving: Any, logged: LoggedEvents, connect: Connect) -> None:
    kinds, lines = Kinds(), Lines(logged)
    async with connect(serving, kinds.service) as send:
        for kind, (name, params) in OPERATIONS.items():
            kinds.answered.clear()
            with anyio.fail_after(DEADLINE_SECONDS):
                await send(name, params)
                while kind in ("timed_out", "overdue") and kind not in kinds.began:
                    await send(name, params)
                kinds.answered.set()
                await lines.of(kind)
    kinds.close()

    def is_named(kind: str, fields: dict[str, Any]) -> bool:
        method = "app/called" if kind == "caller" else OPERATIONS[kind][0]
        methods = (method, "tools/call", "services/call", "SendMessage") if kind in DECODED else (method,)
        call_id = fields.get("id")
        is_id = call_id is None if connect in WITHOUT_ID else call_id == b'"the-id"'
        has_task = "task" in fields or kind in DECODED  # there is no task before the input is known to be good
        return (
            fields.get("method") in methods
            and (is_id or (connect is mount and call_id is not None))  # the other daemon's own request has another
            and (has_task if connect in (a2a, a2a_by_http, a2a_by_rest) else "task" not in fields)
        )

    assert lines.lacking(is_named) == []


@asynccontextmanager
async def sent_by_a2a(serving: Any, agent: Agent) -> AsyncGenerator[Callable[[str], Awaitable[object]]]:
    async with serving(agent=agent) as wire:

        async def send(text: str) -> None:
            said = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}]}
            await answer(wire, "SendMessage", {"message": said})

        yield send


@asynccontextmanager
async def sent_by_acp(_: Any, agent: Agent) -> AsyncGenerator[Callable[[str], Awaitable[object]]]:
    async with acp_client(agent) as client:
        await client.hello()
        session = await client.session()
        yield lambda text: client.prompt(session, text)


@pytest.mark.parametrize(("connect", "method"), [(sent_by_a2a, "SendMessage"), (sent_by_acp, "session/prompt")])
async def test_each_line_of_an_executor_names_its_task_and_the_request(
    serving: Any, logged: LoggedEvents, connect: Any, method: str
) -> None:
    async def execute(context: Any, events: Any) -> None:
        await events.working()
        await STEPS[context.text](context.text)
        await events.complete()

    lines = Lines(logged)
    async with connect(serving, agent_of(execute)) as send:
        for kind in STEPS:
            with anyio.fail_after(DEADLINE_SECONDS):
                await send(kind)
                await lines.of(kind)

    def is_named(kind: str, fields: dict[str, Any]) -> bool:
        return fields.get("method") == method and fields.get("id") is not None and fields.get("task") is not None

    assert lines.lacking(is_named) == []


class Refused(OperationError, code="REFUSED", number=-32050):
    """It is refused."""


async def refuse(events: Any) -> None:
    raise Refused


async def crash(events: Any) -> None:
    raise ValueError


async def give_up(events: Any) -> None:
    await events.fail("It can't.")


@pytest.mark.parametrize("connect", [sent_by_a2a, sent_by_acp])
@pytest.mark.parametrize(
    ("work", "event", "code"), [(refuse, "task.failed", -32050), (crash, "agent.failed", None), (give_up, None, None)]
)
async def test_the_failure_of_a_task_is_one_line_and_a_declared_one_has_its_code(
    serving: Any, logged: LoggedEvents, connect: Any, work: Any, event: str | None, code: int | None
) -> None:
    async def execute(context: Any, events: Any) -> None:
        await work(events)

    async with connect(serving, agent_of(execute)) as send:
        logged()
        with suppress(AcpRefused):
            await send("go")
        found = [(name, fields) for name, fields in logged() if "failed" in name]
    if event is None:  # what the executor tells its caller is a failure of the request, where there is one
        event = "request.failed" if connect is sent_by_acp else None
    assert [name for name, _ in found] == [event] * (event is not None)
    for _, fields in found:
        assert fields["task"]
        assert fields.get("code") in (code, -32010)


def test_a_program_whose_first_executor_is_asyncios_own_names_each_request(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import asyncio\n"
        "from discreet import Service\n"
        "app = Service('app')\n"
        "@app.query\n"
        "async def ask() -> None:\n"
        "    await asyncio.get_running_loop().run_in_executor(None, print, 'asked')\n"
    )
    calls = "".join(f'{{"jsonrpc":"2.0","id":{number},"method":"app/ask"}}\n' for number in range(1, 4))
    serve = [sys.executable, "-P", "-m", "discreet", "serve", "./app.py:app", "--framing", "newline"]
    done = subprocess.run(
        [*serve, "--log-format", "json"],
        cwd=tmp_path,
        env=environment(),
        input=calls,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=True,
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert sorted(line.get("id") for line in lines if line.get("text") == "asked") == [1, 2, 3]
