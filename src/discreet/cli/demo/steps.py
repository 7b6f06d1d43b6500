"""The steps of the demo: what each does, what it expects, and why that matters. Prints nothing."""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, final

import anyio
import msgspec

from ...client import ClientError, InvalidParams, OperationFailed, Peer, RemoteError, ServerProcess
from ...daemon.lifecycle import EXIT_OK
from .capture import CapturingTransport

DEMO_APP: Final = "./calculator.py:calculator"

DEMO_FILES: Final[Mapping[str, str]] = {
    "README.md": "# A folder\n\nIt was made for this demo.\n",
    "calculator.py": '''\
import os
from anyio import sleep_forever
from discreet import Service

calculator = Service("calculator")


@calculator.query()
def add(a: int, b: int) -> int:
    """Add two numbers, and carelessly print to stdout."""
    print("adding", a, b)
    os.system("echo a child process prints, too")
    return a + b


@calculator.query()
async def wait() -> None:
    """Never return."""
    await sleep_forever()
''',
}
"""The files that the steps need in the daemon's working directory."""


class StepFailed(Exception):
    """The daemon did not do what the step shows."""


@final
class ServerOutput:
    """What a daemon sent that answers no call: its log lines, and errors that name no request."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.errors: list[RemoteError] = []
        self._changed = anyio.Event()

    def add_log_line(self, line: str) -> None:
        self.log.append(line)
        self.notify()

    def add_error(self, error: RemoteError) -> None:
        self.errors.append(error)
        self.notify()

    def notify(self) -> None:
        """Make every `wait_until` check its condition again."""
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Return once the condition is true. The step's deadline bounds the wait."""
        while not condition():
            await self._changed.wait()


class DemoDaemon(msgspec.Struct, frozen=True):
    """One running daemon, and what a step needs to talk to it."""

    process: ServerProcess
    peer: Peer
    transport: CapturingTransport
    output: ServerOutput


class DemoStep(msgspec.Struct, frozen=True):
    """One thing to show. `act` raises `StepFailed` or `ClientError` if the daemon does something else."""

    title: str
    act: Callable[[DemoDaemon], Awaitable[None]]
    why: str


class _InitializeResult(msgspec.Struct, rename="camel"):
    protocol_version: str


class _Method(msgspec.Struct):
    name: str


class _FileContent(msgspec.Struct):
    content: str


async def _initialize(daemon: DemoDaemon) -> None:
    result = await daemon.peer.call(
        "initialize", {"processId": os.getpid(), "capabilities": {}}, type=_InitializeResult
    )
    _expect(result.protocol_version == "2.0", "the protocol version is not 2.0")


async def _list_methods(daemon: DemoDaemon) -> None:
    result = await daemon.peer.call("listMethods", type=list[_Method])
    _expect(_Method("fs/read") in result, "fs/read is not in the list")


async def _read_file(daemon: DemoDaemon) -> None:
    result = await daemon.peer.call("fs/read", {"path": "README.md"}, type=_FileContent)
    _expect(result.content == DEMO_FILES["README.md"], "the content is not that of the file")


async def _leave_root(daemon: DemoDaemon) -> None:
    error = await _error_of(daemon.peer.call("fs/read", {"path": "../secret"}))
    _expect(isinstance(error, OperationFailed) and error.code == "OUTSIDE_ROOT", "the error is not OUTSIDE_ROOT")


async def _send_wrong_param(daemon: DemoDaemon) -> None:
    error = await _error_of(daemon.peer.call("fs/read", {"path": "README.md", "limit": "plenty"}))
    _expect(isinstance(error, InvalidParams) and error.failure.param == "limit", "the error does not name the param")


async def _send_garbage(daemon: DemoDaemon) -> None:
    await _send_and_expect(daemon, b"GET / HTTP/1.1\r\nthis is no frame\r\n\r\n", -32600)


async def _smuggle_frame(daemon: DemoDaemon) -> None:
    body = b'{"a": Content-Length: 33\r\n\r\n{"jsonrpc":"2.0","method":"exit"}'
    await _send_and_expect(daemon, b"Content-Length: %d\r\n\r\n%b" % (len(body), body), -32700)


async def _shut_down(daemon: DemoDaemon) -> None:
    await daemon.peer.call("shutdown")
    _expect(await daemon.process.wait() == EXIT_OK, "the exit status is not 0")


async def _print_in_handler(daemon: DemoDaemon) -> None:
    _expect(await daemon.peer.call("calculator/add", {"a": 2, "b": 3}, type=int) == 5, "the sum is not 5")
    await daemon.output.wait_until(lambda: any("stdout.stray" in line for line in daemon.output.log))


async def _cancel_request(daemon: DemoDaemon) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(daemon.peer.call, "calculator/wait")
        await anyio.lowlevel.checkpoint()
        await daemon.peer.call("version")
        tasks.cancel_scope.cancel()
    await daemon.output.wait_until(lambda: b"-32800" in daemon.transport.received)


async def _send_and_expect(daemon: DemoDaemon, data: bytes, number: int) -> None:
    """Send raw bytes, expect an error with this number, and check that the daemon still answers."""
    daemon.output.errors.clear()
    await daemon.peer.send_raw(data)
    await daemon.output.wait_until(lambda: bool(daemon.output.errors))
    _expect(daemon.output.errors[0].number == number, f"the error's number is not {number}")
    await daemon.peer.call("version")


async def _error_of(call: Awaitable[object]) -> ClientError:
    try:
        await call
    except ClientError as error:
        return error
    raise StepFailed("the answer is a result, not an error")


def _expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise StepFailed(otherwise)


FILE_SERVICE_STEPS: Final = (
    DemoStep(
        "Initialize",
        _initialize,
        "No handshake is required, but editors send one. Every request gets exactly one reply.",
    ),
    DemoStep(
        "List the methods", _list_methods, "The file service is built in; your own functions are listed the same way."
    ),
    DemoStep("Read a file", _read_file, "A query of the file service, which only reads unless --allow-write is given."),
    DemoStep(
        "Try to leave the root",
        _leave_root,
        "Nothing outside the root is reachable. Declared errors have stable codes.",
    ),
    DemoStep(
        "Send a wrong param",
        _send_wrong_param,
        "The error names the param, the expected type and the type that was sent, never the value.",
    ),
    DemoStep(
        "Send bytes that are no frame", _send_garbage, "One error for the loss, and the next request is answered."
    ),
    DemoStep(
        "Hide a frame in a bad body", _smuggle_frame, "A declared length is final: nothing inside the body was run."
    ),
    DemoStep("Shut down", _shut_down, "Every request is answered first, and the exit status is 0."),
)
"""Shown with a daemon that hosts the file service."""

APP_STEPS: Final = (
    DemoStep(
        "Print in a handler",
        _print_in_handler,
        "Only frames reach stdout; stray text goes to the log, without secrets.",
    ),
    DemoStep("Cancel a request", _cancel_request, "Requests run concurrently, and a cancelled one is answered, too."),
)
"""Shown with a daemon that hosts `DEMO_APP`."""
