"""A client of ACP on a pipe in memory, which answers as it is told and checks what it reads against the published schema."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple  # Any: JSON

import anyio
from jsonschema import Draft202012Validator

from discreet import ClientRefused, Service
from discreet.acp import Editor, EditorUnavailableError
from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.daemon.operations.access import IdentityProvider
from discreet.framing.transports.interface import ByteTransport, PeerGone
from discreet.testing.memory import memory_daemon, settings_of

from .executors import Execute, Scripted
from .waits import DEADLINE_SECONDS

Json = dict[str, Any]
Answer = Callable[[Json], Awaitable[Any]]

EVERYTHING: Final = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "session": {"configOptions": {"boolean": {}}},
    "auth": {"terminal": True},
    "elicitation": {"form": {}, "url": {}},
}
"""The capabilities of a client that can do everything."""

EVERYTHING_IN_DRAFT: Final = {"auth": {"terminal": {}}, "elicitation": {"form": {}, "url": {}}}
"""The same in version 2."""

SCHEMAS: Final = os.environ.get("DISCREET_SCHEMAS")


class AcpRefused(Exception):
    """The agent answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(error)
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


class Wrong(NamedTuple):
    """An answer that is not what the schema says, and is sent all the same."""

    result: Any


@cache
def schema(version: int = 1) -> Any:
    return json.loads((Path(SCHEMAS or "") / "acp" / f"v{version}.json").read_text("utf-8"))


@cache
def types_of(method: str, version: int = 1) -> tuple[str, str, str | None]:
    """The side that has a method, and the definitions of its params and its result; the result is None for a notification."""
    found = {name: one for name, one in schema(version)["$defs"].items() if one.get("x-method") == method}
    params = next(name for name in found if not name.endswith("Response"))
    return found[params]["x-side"], params, next((name for name in found if name.endswith("Response")), None)


@cache
def words_of(definition: str, member: str, version: int) -> frozenset[str]:
    """The values of a member by which the alternatives of a definition are told apart. Others are allowed in version 2."""
    alternatives = schema(version)["$defs"][definition].get("anyOf") or schema(version)["$defs"][definition]["oneOf"]
    found = (each["properties"].get(member, {}) for each in alternatives)
    return frozenset(each["const"] for each in found if "const" in each)


@cache
def _validator(name: str, version: int) -> Draft202012Validator:
    return Draft202012Validator({**schema(version), "anyOf": [{"$ref": f"#/$defs/{name}"}]})


def check(name: str | None, value: Any, version: int = 1) -> None:
    """Fails where a value is not what the published schema says, if that is at hand."""
    if SCHEMAS and name is not None:
        _validator(name, version).validate(value)


class AcpClient:
    """`updates` are those of all sessions, `log` is everything that was read, in order: `update`, `answer` or a method."""

    def __init__(self, transport: ByteTransport) -> None:
        self._transport = transport
        self._answers: dict[int | None, Json] = {}
        self._methods: dict[int, str] = {}
        self._changed = anyio.Event()
        self._last = 0
        self._held: list[bytes] | None = None
        self._tasks: anyio.abc.TaskGroup | None = None
        self.on: dict[str, Answer] = {}
        self.updates: list[Json] = []
        self.log: list[str] = []
        self.cancelled: list[Any] = []
        self.completed: list[str] = []
        self.ended = False
        self.version = 1
        """The version that is spoken, by which everything is checked."""

    # -- what a client does ------------------------------------------------------------------------------------

    async def hello(self, capabilities: Json = EVERYTHING, version: int = 1) -> Json:
        params = {"protocolVersion": version, "clientCapabilities": capabilities}
        return await self.call("initialize", {**params, "clientInfo": {"name": "test", "version": "1"}})

    async def hello_in_draft(self, capabilities: Json = EVERYTHING_IN_DRAFT, version: int = 2) -> Json:
        """Say hello as a client of version 2 does."""
        self.version = 2
        params = {"protocolVersion": version, "capabilities": capabilities, "info": {"name": "test", "version": "1"}}
        return await self.call("initialize", params)

    async def session(self, **params: Any) -> str:
        opened = await self.call("session/new", {"cwd": "/project", "mcpServers": [], **params})
        session_id: str = opened["sessionId"]
        return session_id

    async def prompt(self, session: str, text: str = "hi") -> str:
        """Why the turn stopped."""
        before = len(self.states("idle"))
        answer = await self.answer_to(await self.send_prompt(session, text))
        if self.version == 1:
            return answer["stopReason"]  # type: ignore[no-any-return]
        return (await self.idle(before))["stopReason"]  # type: ignore[no-any-return]

    async def idle(self, before: int = 0) -> Json:
        """Wait for the update of version 2 that ends a turn, after so many others."""
        await self.until(lambda: len(self.states("idle")) > before)
        return self.states("idle")[before]

    def states(self, state: str = "") -> list[Json]:
        """The updates of version 2 that tell a turn's state."""
        return [each for each in self.updates if each.get("state") == state or (not state and "state" in each)]

    def messages(self) -> dict[str, tuple[str, str]]:
        """As what and with which text a client of version 2 shows each message, by its id: the rules of its upserts."""
        shown: dict[str, tuple[str, str]] = {}
        for each in self.updates:
            kind, message = each["sessionUpdate"].removesuffix("_chunk"), each.get("messageId")
            if message is not None:
                blocks = each["content"] if kind == each["sessionUpdate"] else [each["content"]]
                text = "".join(block.get("text", block["type"]) for block in blocks)
                before = "" if kind == each["sessionUpdate"] else shown.get(message, (kind, ""))[1]
                shown[message] = kind, before + text
        return shown

    async def send_prompt(self, session: str, text: str = "hi") -> int:
        return await self.send("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    async def cancel(self, session: str) -> None:
        await self.notify("session/cancel", {"sessionId": session})

    def texts(self, kind: str) -> str:
        """The text of all chunks of this kind together."""
        return "".join(each["content"]["text"] for each in self.updates if each["sessionUpdate"] == kind)

    def kinds(self) -> list[str]:
        return [each["sessionUpdate"] for each in self.updates]

    # -- messages ----------------------------------------------------------------------------------------------

    async def call(self, method: str, params: Any) -> Json:
        return await self.answer_to(await self.send(method, params))

    async def send(self, method: str, params: Any) -> int:
        self._last += 1
        self._methods[self._last] = method
        await self._write({"id": self._last, "method": method, "params": params})
        return self._last

    async def notify(self, method: str, params: Any) -> None:
        await self._write({"method": method, "params": params})

    async def answer_to(self, call_id: int | None) -> Json:
        await self.until(lambda: call_id in self._answers)
        answer = self._answers.pop(call_id)
        if "error" in answer:
            check("Error", answer["error"], self.version)
            raise AcpRefused(answer["error"])
        result: Json = answer["result"]
        if SCHEMAS and call_id is not None and not self._methods[call_id].startswith(("$/", "_")):
            check(types_of(self._methods[call_id], self.version)[2], result, self.version)
        return result

    async def until(self, condition: Callable[[], object]) -> None:
        with anyio.fail_after(DEADLINE_SECONDS):
            while not condition():
                await self._changed.wait()

    @property
    def unasked(self) -> dict[Any, Json]:
        """The answers to what was sent as bytes, by their ids."""
        return {key: answer for key, answer in self._answers.items() if key not in self._methods}

    def hang_up(self) -> None:
        """End the daemon's input."""
        self._transport.send_eof()

    @asynccontextmanager
    async def in_one_piece(self) -> AsyncGenerator[None]:
        """What is sent in the block arrives at once."""
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            await self._transport.send(b"".join(held))

    async def _write(self, message: Json) -> None:
        await self.send_line(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def send_line(self, line: bytes) -> None:
        """Send any line, also one that is no message."""
        if self._held is None:
            with suppress(PeerGone):  # the daemon may be at its end
                await self._transport.send(line + b"\n")
        else:
            self._held.append(line + b"\n")

    async def run(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks
        rest = b""
        while data := await self._transport.receive():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._take(json.loads(line))
        self.ended = True
        self._tell()

    def _take(self, message: Json) -> None:
        method = message.get("method")
        if method is None:
            self.log.append("answer")
            self._answers[message["id"]] = message
        else:
            if SCHEMAS:
                side, params, _ = types_of(method, self.version)
                assert side != "agent"
                check(params, message["params"], self.version)
                if method == "session/update":  # version 2 allows unknown ones
                    kind = message["params"]["update"]["sessionUpdate"]
                    assert kind in words_of("SessionUpdate", "sessionUpdate", self.version)
            self.log.append("update" if method == "session/update" else method)
            if method == "session/update":
                self.updates.append(message["params"]["update"])
            elif method == "$/cancel_request":
                self.cancelled.append(message["params"]["requestId"])
            elif method == "elicitation/complete":
                self.completed.append(message["params"]["elicitationId"])
            elif self._tasks is not None:
                self._tasks.start_soon(self._answer, message)
        self._tell()

    async def _answer(self, message: Json) -> None:
        method = message["method"]
        try:
            result = await self.on[method](message["params"])
        except AcpRefused as exc:
            await self._write({"id": message["id"], "error": exc.args[0]})
        else:
            if isinstance(result, Wrong):
                result = result.result
            else:
                check(types_of(method, self.version)[2] if SCHEMAS else None, result, self.version)
            await self._write({"id": message["id"], "result": result})

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


@asynccontextmanager
async def acp_client(
    *hosted: Service | Agent, provider: IdentityProvider | None = None, **settings: Any
) -> AsyncGenerator[AcpClient]:
    """A client of a daemon that speaks ACP, in this event loop."""
    chosen = settings_of({"dialect": "acp", **settings})
    async with (
        memory_daemon(hosted, chosen, provider=provider, credentials=None) as transport,
        anyio.create_task_group() as tasks,
    ):
        client = AcpClient(transport)
        tasks.start_soon(client.run, tasks)
        yield client
        client.hang_up()
        await client.until(lambda: client.ended)
        tasks.cancel_scope.cancel()


def agent_of(execute: Execute, cancel: Execute | None = None, **options: Any) -> Agent:
    return Agent(Scripted(execute, cancel), name="Tester", description="Tests.", version="1.2.3", **options)


# -- executors that use their editor ---------------------------------------------------------------------------


Work = Callable[[Editor, TaskEvents], Awaitable[Any]]


def with_editor(work: Work, outcome: list[Any]) -> Execute:
    """An executor that does this with its editor, and keeps what comes of it."""

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        assert context.editor is not None
        try:
            outcome.append(await work(context.editor, events))
        except (ClientRefused, EditorUnavailableError, TimeoutError) as exc:
            outcome.append(exc)
        await events.complete()

    return execute


def answering(value: Any, seen: list[Any]) -> Callable[[Any], Awaitable[Any]]:
    async def answer(params: Any) -> Any:
        seen.append(params)
        if isinstance(value, AcpRefused):
            raise value
        return value

    return answer


async def never(params: Any) -> Any:
    await anyio.sleep_forever()


async def outcome_of(
    work: Work,
    on: Mapping[str, Callable[[Any], Awaitable[Any]]] = {},
    *,
    capabilities: Any = EVERYTHING,
    **session: Any,
) -> tuple[Any, AcpClient]:
    """What comes of an executor that does this with its editor, and the client that was asked, which has all of `on`."""
    outcome: list[Any] = []
    async with acp_client(agent_of(with_editor(work, outcome))) as client:
        client.on.update(on)
        await client.hello(capabilities=capabilities)
        assert await client.prompt(await client.session(**session)) == "end_turn"
    return outcome[0], client
