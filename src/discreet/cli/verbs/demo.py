"""`discreet demo`: starts daemons, calls them, and shows what goes over the wire and why it matters.

Runs in a temporary folder with default settings, whatever this user's settings are. Each step checks what it shows: the
exit status is 0 only if all of them succeeded.
"""

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Thread, Timer
from typing import IO, Any, Final

import msgspec

from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...errors.printable import cut, printable
from ...module_path import for_children
from ..commands import SERVE
from ..output import styled, write_stdout

STEP_SECONDS: Final = 10.0
"""The deadline of a step; each takes milliseconds."""

_MAX_SHOWN_CHARS: Final = 160
"""Characters of a message that are shown."""

_BOLD, _DIM, _RED, _GREEN, _YELLOW, _PURPLE, _CYAN = "1", "2", "31", "32", "33", "35", "36"  # ECMA-48, 8.3.117

DEMO_APP: Final = "./calculator.py:calculator"

DEMO_SOURCE: Final = '''\
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
'''


class Step(msgspec.Struct, frozen=True):
    """One thing to show: messages (as texts) or bytes that are none, and whether the answers are as they should be.

    As many answers are waited for as there are `answers`, and lines of the log that hold each of `logged`.
    """

    title: str
    sent: tuple[str | bytes, ...]
    is_right: Callable[[list[Any]], bool]
    why: str
    answers: int = 1
    logged: tuple[str, ...] = ()


def _framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


_VERSION: Final = '{"jsonrpc":"2.0","id":99,"method":"version"}'

STEPS: Final = (
    Step(
        "Initialize",
        ('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"capabilities":{}}}',),
        lambda answers: answers[0]["result"]["protocolVersion"] == "2.0",
        "No handshake is required, but editors send one. Every request gets exactly one reply.",
    ),
    Step(
        "Call an operation, which prints",
        ('{"jsonrpc":"2.0","id":2,"method":"calculator/add","params":{"a":2,"b":3}}',),
        lambda answers: answers[0]["result"] == 5,
        "Only frames reach stdout; stray text goes to the log, without secrets.",
        logged=("adding 2 3", "a child process prints"),
    ),
    Step(
        "Send a wrong param",
        ('{"jsonrpc":"2.0","id":3,"method":"calculator/add","params":{"a":2,"b":"plenty"}}',),
        lambda answers: answers[0]["error"]["code"] == -32602,
        "The error names the param, the expected type and the type that was sent, never the value.",
        logged=("request.failed",),
    ),
    Step(
        "Send bytes that are no frame",
        (b"GET / HTTP/1.1\r\nthis is no frame\r\n\r\n", _VERSION),
        lambda answers: answers[0]["error"]["code"] == -32600 and answers[1]["id"] == 99,
        "One error for the loss, and the next request is answered.",
        answers=2,
        logged=("frame.dropped",),
    ),
    Step(
        "Hide a frame in a bad body",
        (_framed(b'{"a": ' + _framed(b'{"jsonrpc":"2.0","method":"exit"}')), _VERSION),
        lambda answers: answers[0]["error"]["code"] == -32700 and answers[1]["id"] == 99,
        "A declared length is final: nothing inside the body was run.",
        answers=2,
        logged=("frame.dropped",),
    ),
    Step(
        "Cancel a request",
        (
            '{"jsonrpc":"2.0","id":4,"method":"calculator/wait"}',
            '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":4}}',
        ),
        lambda answers: answers[0]["error"]["code"] == -32800,
        "Requests run concurrently, and a cancelled one is answered, too.",
    ),
    Step(
        "Shut down",
        ('{"jsonrpc":"2.0","id":5,"method":"shutdown"}',),
        lambda answers: "error" not in answers[0],
        "Every request is answered first, and the exit status is 0.",
    ),
)
"""Shown with a daemon that hosts `DEMO_APP`."""


class Daemon(msgspec.Struct):
    """One running daemon, and the lines of its log that were not shown yet."""

    process: subprocess.Popen[bytes]
    stdin: IO[bytes]
    stdout: IO[bytes]
    log: SimpleQueue[str]

    def send(self, data: bytes) -> None:
        """Write some bytes. Raises `BrokenPipeError`."""
        self.stdin.write(data)
        self.stdin.flush()

    def receive(self) -> bytes:
        """Read the next message. Raises `ValueError` for bytes that are none, and at the end."""
        head = self.stdout.readline() + self.stdout.readline()
        size = head.removeprefix(b"Content-Length: ").removesuffix(b"\r\n\r\n")
        return self.stdout.read(int(size))


def run(args: argparse.Namespace) -> int:
    """Start a daemon and run every step with it. Returns 0 if all succeeded, else 1."""
    # This process's environment, without settings of the daemon, and with the modules that this process has.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DISCREET_")}
    environ["PYTHONPATH"] = for_children()
    with tempfile.TemporaryDirectory(prefix="discreet-demo-") as folder:
        with open(os.path.join(folder, "calculator.py"), "w", encoding="utf-8") as file:
            file.write(DEMO_SOURCE)
        write_stdout(styled(_BOLD, f"$ discreet serve {DEMO_APP}"))
        write_stdout(styled(_DIM, DEMO_SOURCE.rstrip()))
        with started([*SERVE, DEMO_APP], cwd=folder, env=environ) as daemon:
            failed = sum([not run_step(step, daemon) for step in STEPS])
    if daemon.process.returncode != EXIT_OK:
        _write_line(_RED, "!", f"the daemon's exit status is {daemon.process.returncode}, not {EXIT_OK}")
        failed += 1
    write_stdout("")
    write_stdout(styled(_RED, f"{failed} failed.") if failed else styled(_GREEN, "Every step succeeded."))
    return EXIT_FAILED if failed else EXIT_OK


@contextmanager
def started(
    command: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None
) -> Iterator[Daemon]:
    """Run a daemon. Leaving the block ends its input, and kills it if it does not end."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        log: SimpleQueue[str] = SimpleQueue()
        Thread(target=_collect, args=(process.stderr, log), daemon=True).start()
        killer = Timer(STEP_SECONDS, process.kill)
        try:
            yield Daemon(process, process.stdin, process.stdout, log)
            killer.start()
            with suppress(BrokenPipeError):  # it has ended before it read all
                process.stdin.close()
            process.wait()
        finally:
            killer.cancel()
            process.kill()


def _collect(stderr: IO[bytes], log: SimpleQueue[str]) -> None:
    for line in stderr:
        log.put(line.decode(errors="replace").rstrip())


def run_step(step: Step, daemon: Daemon, *, seconds: float = STEP_SECONDS) -> bool:
    """Run one step and print its messages. Returns whether it succeeded. A daemon that takes too long is killed."""
    write_stdout(f"\n{styled(_BOLD, step.title)}")
    problem = ""
    bodies: list[bytes] = []
    log: list[str] = []
    timer = Timer(seconds, daemon.process.kill)
    timer.start()
    try:
        for each in step.sent:
            _write_line(_CYAN, "→", each if isinstance(each, str) else each.decode())
            daemon.send(each if isinstance(each, bytes) else _framed(each.encode()))
        while len(bodies) < step.answers:
            bodies.append(daemon.receive())
            _write_line(_PURPLE, "←", bodies[-1].decode(errors="replace"))
        if step.is_right([msgspec.json.decode(body) for body in bodies]):
            while not all(words in "".join(log) for words in step.logged):
                log.append(daemon.log.get(timeout=seconds))
        else:
            problem = "the answer is another one than it should be"
    except (LookupError, TypeError, msgspec.DecodeError) as exc:
        problem = f"the answer has another shape than it should have: {type(exc).__name__}"
    except (OSError, ValueError, Empty):
        problem = f"no such answer came within {seconds:g} s, or before the daemon's end"
    timer.cancel()
    while not daemon.log.empty():
        log.append(daemon.log.get())
    for line in log:
        _write_line(_YELLOW, "log", line)
    if problem:
        _write_line(_RED, "!", problem)
    else:
        write_stdout(f"  {styled(_DIM, step.why)}")
    return not problem


def _write_line(colour: str, mark: str, message: str) -> None:
    write_stdout(f"  {styled(colour, mark)} {cut(printable(message), _MAX_SHOWN_CHARS)}")
