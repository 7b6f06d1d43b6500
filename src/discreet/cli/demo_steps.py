"""What the demo shows, step by step: what is done, what must come of it, and why it matters. Prints nothing."""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, final

import anyio
import msgspec

from ..client import ClientError, InvalidParams, OperationFailed, Peer, RemoteError, ServerProcess
from ..daemon.lifecycle import EXIT_OK
from .wiretap import Wiretap

FOLDER: Final[Mapping[str, str]] = {
    "README.md": "# A folder\n\nIt was made for this demo.\n",
    "desk.py": '''\
import os
from anyio import sleep_forever
from discreet import Service

desk = Service("desk")


@desk.query()
def add(a: int, b: int) -> int:
    """Add two numbers, and be careless with stdout."""
    print("adding", a, b)
    os.system("echo so does a child process")
    return a + b


@desk.query()
async def wait() -> None:
    """Take for ever."""
    await sleep_forever()
''',
}
"""The files that the steps rely on."""


class Unexpected(Exception):
    """The daemon did not do what the step shows."""


@final
class Heard:
    """What came from a daemon without being the answer to a call: its log lines, and errors without an id."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.errors: list[RemoteError] = []
        self._changed = anyio.Event()

    def hear_line(self, line: str) -> None:
        self.log.append(line)
        self.something()

    def hear_error(self, error: RemoteError) -> None:
        self.errors.append(error)
        self.something()

    def something(self) -> None:
        """Something came: whoever waits in `until` looks again."""
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait for it; the step's deadline bounds the wait."""
        while not happened():
            await self._changed.wait()


class Scene(msgspec.Struct, frozen=True):
    """One daemon, and what a step needs to talk to it."""

    process: ServerProcess
    peer: Peer
    wire: Wiretap
    heard: Heard


class Step(msgspec.Struct, frozen=True):
    """One thing to show. `act` raises `Unexpected` or `ClientError` when the daemon does something else."""

    title: str
    act: Callable[[Scene], Awaitable[None]]
    why: str


class Hello(msgspec.Struct, rename="camel"):
    protocol_version: str


class Method(msgspec.Struct):
    name: str


class Content(msgspec.Struct):
    content: str


async def _hello(scene: Scene) -> None:
    result = await scene.peer.call("initialize", {"processId": os.getpid(), "capabilities": {}}, type=Hello)
    _expect(result.protocol_version == "2.0", "another protocol version")


async def _methods(scene: Scene) -> None:
    result = await scene.peer.call("listMethods", type=list[Method])
    _expect(Method("fs/read") in result, "fs/read is not among them")


async def _read(scene: Scene) -> None:
    result = await scene.peer.call("fs/read", {"path": "README.md"}, type=Content)
    _expect(result.content == FOLDER["README.md"], "another content")


async def _outside(scene: Scene) -> None:
    error = await _error_of(scene.peer.call("fs/read", {"path": "../secret"}))
    _expect(isinstance(error, OperationFailed) and error.code == "OUTSIDE_ROOT", "another error")


async def _wrong_param(scene: Scene) -> None:
    error = await _error_of(scene.peer.call("fs/read", {"path": "README.md", "limit": "plenty"}))
    _expect(isinstance(error, InvalidParams) and error.failure.param == "limit", "another error")


async def _garbage(scene: Scene) -> None:
    await _send_and_expect(scene, b"GET / HTTP/1.1\r\nthis is no frame\r\n\r\n", -32600)


async def _smuggled(scene: Scene) -> None:
    body = b'{"a": Content-Length: 33\r\n\r\n{"jsonrpc":"2.0","method":"exit"}'
    await _send_and_expect(scene, b"Content-Length: %d\r\n\r\n%b" % (len(body), body), -32700)


async def _shutdown(scene: Scene) -> None:
    await scene.peer.call("shutdown")
    _expect(await scene.process.wait() == EXIT_OK, "another exit status")


async def _stray_print(scene: Scene) -> None:
    _expect(await scene.peer.call("desk/add", {"a": 2, "b": 3}, type=int) == 5, "another sum")
    await scene.heard.until(lambda: any("stdout.stray" in line for line in scene.heard.log))


async def _cancel(scene: Scene) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.peer.call, "desk/wait")
        await anyio.lowlevel.checkpoint()
        await scene.peer.call("version")
        tasks.cancel_scope.cancel()
    await scene.heard.until(lambda: b"-32800" in scene.wire.received)


async def _send_and_expect(scene: Scene, data: bytes, number: int) -> None:
    """Send bytes that deserve an error with this number, and see that the daemon is well afterwards."""
    scene.heard.errors.clear()
    await scene.peer.send_raw(data)
    await scene.heard.until(lambda: bool(scene.heard.errors))
    _expect(scene.heard.errors[0].number == number, "another error")
    await scene.peer.call("version")


async def _error_of(call: Awaitable[object]) -> ClientError:
    try:
        await call
    except ClientError as error:
        return error
    raise Unexpected("it was answered with a result")


def _expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise Unexpected(otherwise)


FILES: Final = (
    Step("Say hello", _hello, "No handshake is required, but editors send one. Every request gets exactly one reply."),
    Step("Ask what it can do", _methods, "The file service is built in; your own functions are listed the same way."),
    Step("Read a file", _read, "A query of the file service, which only reads unless --allow-write is given."),
    Step("Try to leave the root", _outside, "Nothing else is reachable. Declared errors have stable codes."),
    Step(
        "Send a wrong param", _wrong_param, "Which param, what was expected, and the type that came; never the value."
    ),
    Step("Send what is no frame", _garbage, "One error for the loss, and the next request is answered."),
    Step("Hide a frame in a bad body", _smuggled, "A declared length is final: nothing in there was run."),
    Step("Say goodbye", _shutdown, "What was asked is answered, and the exit status is 0."),
)
"""Shown with the daemon as it comes."""

DESK: Final = (
    Step("Print in a handler", _stray_print, "Only frames reach stdout; stray text goes to the log, without secrets."),
    Step("Change your mind", _cancel, "Requests run side by side, and a cancelled one is answered too."),
)
"""Shown with a daemon that hosts `desk.py`."""
