"""`discreet demo`: starts daemons, calls them, and shows what goes over the wire and why it matters.

Runs in a temporary folder with default settings, whatever this user's settings are. Each step checks what it shows: the
exit status is 0 only if all of them succeeded.
"""

import argparse
import math
import os
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import msgspec

from ...client import ServerProcess, spawn
from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...errors.printable import cut, printable
from ...framing.channel import Channel
from ...framing.events import Frame, FrameLimits, NeedData
from ...framing.parser import parser_for
from ...framing.transports.interface import PeerGone
from ...module_path import for_children
from ..arguments import SERVE
from ..output import styled, write_stdout
from ..signals import Interrupted, run_until_signal

STEP_SECONDS: Final = 10.0
"""The deadline of a step; each takes milliseconds."""

_MAX_SHOWN_CHARS: Final = 160
"""Characters of a message that are shown."""

_MAX_MESSAGE_BYTES: Final = 1024 * 1024

_BOLD, _DIM, _RED, _GREEN, _YELLOW, _PURPLE, _CYAN = "1", "2", "31", "32", "33", "35", "36"  # ECMA-48, 8.3.117

DEMO_APP: Final = "./calculator.py:calculator"

DEMO_FILES: Final = {
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


class Step(msgspec.Struct, frozen=True):
    """One thing to show: messages (as texts) or bytes that are none, and whether the answers are as they should be.

    As many answers are waited for as there are `answers`, and a line of the log that holds `logged`.
    """

    title: str
    sent: tuple[str | bytes, ...]
    is_right: Callable[[list[Any]], bool]
    why: str
    answers: int = 1
    logged: str = ""


def _framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


_VERSION: Final = '{"jsonrpc":"2.0","id":99,"method":"version"}'

FILE_SERVICE_STEPS: Final = (
    Step(
        "Initialize",
        ('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"capabilities":{}}}',),
        lambda answers: answers[0]["result"]["protocolVersion"] == "2.0",
        "No handshake is required, but editors send one. Every request gets exactly one reply.",
    ),
    Step(
        "List the methods",
        ('{"jsonrpc":"2.0","id":2,"method":"listMethods"}',),
        lambda answers: "fs/read" in [method["name"] for method in answers[0]["result"]],
        "The file service is built in; your own functions are listed the same way.",
    ),
    Step(
        "Read a file",
        ('{"jsonrpc":"2.0","id":3,"method":"fs/read","params":{"path":"README.md"}}',),
        lambda answers: answers[0]["result"]["content"] == DEMO_FILES["README.md"],
        "A query of the file service, which only reads unless --allow-write is given.",
    ),
    Step(
        "Try to leave the root",
        ('{"jsonrpc":"2.0","id":4,"method":"fs/read","params":{"path":"../secret"}}',),
        lambda answers: answers[0]["error"]["data"]["code"] == "OUTSIDE_ROOT",
        "Nothing outside the root is reachable. Declared errors have stable codes.",
    ),
    Step(
        "Send a wrong param",
        ('{"jsonrpc":"2.0","id":5,"method":"fs/read","params":{"path":"README.md","limit":"plenty"}}',),
        lambda answers: answers[0]["error"]["code"] == -32602,
        "The error names the param, the expected type and the type that was sent, never the value.",
    ),
    Step(
        "Send bytes that are no frame",
        (b"GET / HTTP/1.1\r\nthis is no frame\r\n\r\n", _VERSION),
        lambda answers: answers[0]["error"]["code"] == -32600 and answers[1]["id"] == 99,
        "One error for the loss, and the next request is answered.",
        answers=2,
    ),
    Step(
        "Hide a frame in a bad body",
        (_framed(b'{"a": ' + _framed(b'{"jsonrpc":"2.0","method":"exit"}')), _VERSION),
        lambda answers: answers[0]["error"]["code"] == -32700 and answers[1]["id"] == 99,
        "A declared length is final: nothing inside the body was run.",
        answers=2,
    ),
    Step(
        "Shut down",
        ('{"jsonrpc":"2.0","id":6,"method":"shutdown"}',),
        lambda answers: "error" not in answers[0],
        "Every request is answered first, and the exit status is 0.",
    ),
)
"""Shown with a daemon that hosts the file service."""

APP_STEPS: Final = (
    Step(
        "Print in a handler",
        ('{"jsonrpc":"2.0","id":1,"method":"calculator/add","params":{"a":2,"b":3}}',),
        lambda answers: answers[0]["result"] == 5,
        "Only frames reach stdout; stray text goes to the log, without secrets.",
        logged="stdout.stray",
    ),
    Step(
        "Cancel a request",
        (
            '{"jsonrpc":"2.0","id":2,"method":"calculator/wait"}',
            '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":2}}',
        ),
        lambda answers: answers[0]["error"]["code"] == -32800,
        "Requests run concurrently, and a cancelled one is answered, too.",
    ),
)
"""Shown with a daemon that hosts `DEMO_APP`."""


class Daemon(msgspec.Struct):
    """One running daemon, what it has answered, and the lines of its log that were not shown yet."""

    process: ServerProcess
    channel: Channel
    log: list[str]
    logged: anyio.Event

    async def receive(self) -> bytes:
        """The next message. Raises `ConnectionError` for bytes that are none, and at the end."""
        while True:
            match self.channel.next_event():
                case Frame(body):
                    return body
                case NeedData():
                    await self.channel.receive_more()
                case other:
                    raise ConnectionError(f"{type(other).__name__} instead of a message")

    async def wait_for_log(self, text: str) -> None:
        """Wait for a line that holds the text."""
        while text not in "".join(self.log):
            self.logged = anyio.Event()
            await self.logged.wait()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(args: argparse.Namespace) -> int:
    """Run every step. Returns 0 if all succeeded, else 1."""
    with tempfile.TemporaryDirectory(prefix="discreet-demo-") as folder:
        for name, text in DEMO_FILES.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        try:
            failed = run_until_signal(_run_all, folder)
        except Interrupted as exc:
            return exc.status
    write_stdout("")
    write_stdout(styled(_RED, f"{failed} failed.") if failed else styled(_GREEN, "Every step succeeded."))
    return EXIT_FAILED if failed else EXIT_OK


async def _run_all(folder: str) -> int:
    write_stdout(styled(_BOLD, "$ discreet serve"))
    failed = await _run_steps(folder, (), FILE_SERVICE_STEPS)
    write_stdout("")
    write_stdout(styled(_BOLD, f"$ discreet serve {DEMO_APP}"))
    write_stdout(styled(_DIM, DEMO_FILES["calculator.py"].rstrip()))
    return failed + await _run_steps(folder, (DEMO_APP,), APP_STEPS)


async def _run_steps(folder: str, apps: tuple[str, ...], steps: tuple[Step, ...]) -> int:
    """Start a daemon and run the steps with it. Returns how many failed, its end included."""
    # This process's environment, without settings of the daemon, and with the modules that this process has.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DISCREET_")}
    async with started([*SERVE, *apps], cwd=folder, env={**environ, "PYTHONPATH": for_children()}) as daemon:
        failed = sum([not await run_step(step, daemon) for step in steps])
    if daemon.process.returncode != EXIT_OK:
        _write_line(_RED, "!", f"the daemon's exit status is {daemon.process.returncode}, not {EXIT_OK}")
        failed += 1
    return failed


@asynccontextmanager
async def started(command: list[str], **options: Any) -> AsyncGenerator[Daemon]:
    """Run a daemon. `options` are those of `spawn`."""
    log: list[str] = []

    def add_line(line: str) -> None:
        log.append(line)
        daemon.logged.set()

    async with spawn(command, stderr=add_line, **options) as process:
        parser = parser_for("content-length", FrameLimits(max_body=_MAX_MESSAGE_BYTES))
        daemon = Daemon(process, Channel(process, parser, frame_timeout=math.inf), log, anyio.Event())
        yield daemon


async def run_step(step: Step, daemon: Daemon, *, seconds: float = STEP_SECONDS) -> bool:
    """Run one step and print its messages. Returns whether it succeeded."""
    write_stdout("")
    write_stdout(styled(_BOLD, step.title))
    problem = ""
    bodies: list[bytes] = []
    try:
        with anyio.fail_after(seconds):
            for each in step.sent:
                _write_line(_CYAN, "→", each if isinstance(each, str) else each.decode())
                await daemon.process.send(each if isinstance(each, bytes) else _framed(each.encode()))
            while len(bodies) < step.answers:
                bodies.append(await daemon.receive())
                _write_line(_PURPLE, "←", bodies[-1].decode(errors="replace"))
            await daemon.wait_for_log(step.logged)
        if not step.is_right([msgspec.json.decode(body) for body in bodies]):
            problem = "the answer is another one than it should be"
    except (LookupError, TypeError, ValueError) as exc:  # of an answer of another shape
        problem = f"the answer has another shape than it should have: {type(exc).__name__}"
    except TimeoutError:
        problem = f"nothing happened within {seconds:g} s"
    except (ConnectionError, PeerGone) as exc:
        problem = str(exc) or "the daemon has ended"
    for line in daemon.log:
        _write_line(_YELLOW, "log", line)
    daemon.log.clear()
    if problem:
        _write_line(_RED, "!", problem)
    else:
        write_stdout(f"  {styled(_DIM, step.why)}")
    return not problem


def _write_line(colour: str, mark: str, message: str) -> None:
    write_stdout(f"  {styled(colour, mark)} {cut(printable(message), _MAX_SHOWN_CHARS)}")
