"""Every verb that talks to a server, with servers that do their worst: a line and a status, in bounded memory."""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec
import pytest

from discreet.cli.commands import verbs
from support.hostile import hostile
from support.programs import environment
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of address space are POSIX's")

ADDRESS_SPACE: Final = 1024**3
"""Bytes, for the verb and for each of its children. The program alone needs about a quarter of it."""

READ_BYTES: Final = 1_000_000
"""How much of the verb's stdout is read before it is closed."""

SERVER_SECONDS: Final = 1
"""After which a server ends that does not end with its input: otherwise each would take as long as its end is waited for."""

MAX_LINES: Final = 15
MAX_LINE_CHARACTERS: Final = 10_000

REPLY: Final = 'read(); write(frame(b\'{"jsonrpc":"2.0","id":1,\'+%s+b\'}\')); sys.stdin.read()'

# More servers that fail a connection are in tests/client/test_hostile_servers.py: to a verb they are as these.
SERVERS: Final = {
    "ends at once": "sys.exit(3)",
    "writes bytes without end": "read()\nwhile True: write(b'x' * 65536)",
    "writes a frame of 200 MB": "read(); write(b'Content-Length: 200000000\\r\\n\\r\\n')\nfor _ in range(200): write(b'[' * 10**6)",
    "writes to stderr without end": "read()\nwhile True: os.write(2, b'\\x1b[31m' * 10000)",
    "nests a result deep": REPLY % "b'\"result\":' + b'[' * 900 + b']' * 900",
    "sends a huge result": REPLY % "b'\"result\":\"' + b'x' * 60_000_000 + b'\"'",
    "sends a huge error": REPLY % 'b\'"error":{"code":-32000,"message":"\' + b\'x\' * 60_000_000 + b\'"}\'',
    "sends a huge code": REPLY
    % 'b\'"error":{"code":-32000,"message":"no","data":{"retryable":false,"code":"\' + b\'x\' * 60_000_000 + b\'"}}\'',
    "sends a huge number": REPLY % 'b\'"error":{"message":"no","code":\' + b\'9\' * 10_000 + b\'}\'',
    "sends escapes": REPLY
    % 'b\'"error":{"code":1,"message":"\\\\u001b]0;x\\\\u0007\\\\u009b31m\\\\u202e\\\\n\\\\r","data":"\\xc2\\x9b31m"}\'',
    "asks without end": (
        'read()\nwhile True: write(frame(b\'{"jsonrpc":"2.0","id":"\' + b\'i\' * 1000 + b\'","method":"x","params":["\' + b\'x\' * (4 * 10**6) + b\'"]}\'))'
    ),
    "notifies without end": 'read()\nwhile True: write(frame(b\'{"jsonrpc":"2.0","method":"x","params":[1]}\') * 1000)',
    "objects without end": (
        'read()\nwhile True: write(frame(b\'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no"}}\') * 1000)'
    ),
    "sends padded events without end": (
        'read()\nfor n in range(1, 10**4): write(frame(b\'{"jsonrpc":"2.0","pad":"\' + b\'x\' * 10**6 + b\'","method":"stream/event",'
        '"params":{"id":1,"seq":%d,"value":1}}\' % n))'
    ),
    "sends a huge event number": (
        'read(); write(frame(b\'{"jsonrpc":"2.0","method":"stream/event","params":{"id":1,"value":1,"seq":\' + b\'9\' * 10**4 + b\'}}\')); sys.stdin.read()'
    ),
    "lists too much": (
        'while r := read(): write(frame(b\'{"jsonrpc":"2.0","id":%d,"result":[\' % r.get(\'id\', 0) + b\'{"name":"x"},\' * 10**6 + b\'{"name":"x"}]}\'))'
    ),
    "describes itself without end": (
        'while r := read(): write(frame(b\'{"jsonrpc":"2.0","id":%d,"result":\' % r.get(\'id\', 0) + ('
        "b'[' + b'{\"name\":\"x\"},' * 999 + b'{\"name\":\"x\"}]' if r['method'] == 'services/list' else"
        " b'{\"name\":\"x\",\"pad\":\"' + b'x' * 10**7 + b'\"}') + b'}'))"
    ),
    "describes itself deeply": (
        'while r := read(): write(frame(b\'{"jsonrpc":"2.0","id":%d,"result":\' % r.get(\'id\', 0) + ('
        "b'[{\"name\":\"x\"}]' if r['method'] == 'services/list' else"
        ' b\'{"name":"x","kind":"query","inputSchema":\' + b\'{"items":\' * 400 + b\'{}\' + b\'}\' * 400'
        " + b',\"outputSchema\":' + b'{\"items\":' * 400 + b'{}' + b'}' * 400 + b'}') + b'}'))"
    ),
}

VERBS: Final = {
    "call": (["call", "m", "--timeout=20", "--server=SERVER"], verbs()["call"].all_statuses, frozenset(SERVERS)),
    "call and repeat": (
        ["call", "m", "--timeout=20", "--retry=1", "--idempotent", "--server=SERVER"],
        verbs()["call"].all_statuses,
        {"ends at once", "sends a huge error"},
    ),
    "call and stream": (
        ["call", "m", "--timeout=20", "--stream", "--server=SERVER"],
        verbs()["call"].all_statuses,
        {"sends padded events without end", "sends a huge event number"},
    ),
    "generate": (
        ["generate", "python", "--timeout=20", "--server=SERVER"],
        {0: "", 1: ""},
        {"lists too much", "describes itself without end", "describes itself deeply", "sends escapes"},
    ),
    "replay": (
        ["replay", "recording.jsonl", "--timeout=20", "--", "SERVER"],
        verbs()["replay"].all_statuses,
        {"ends at once", "writes bytes without end", "notifies without end", "nests a result deep", "sends escapes"},
    ),
}

RECORDING: Final = b"""\
{"type":"start","ms":0,"version":1,"framing":"content-length","command":["x"]}
{"type":"message","ms":1,"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"m"}}
{"type":"message","ms":2,"from":"server","message":{"jsonrpc":"2.0","id":1,"result":1}}
{"type":"closed","ms":3,"from":"client"}
{"type":"end","ms":4,"status":0}
"""


class Outcome(msgspec.Struct):
    """How a verb ended: `lines` are its own on stderr; `stderr` is everything there."""

    status: int
    lines: list[str]
    stderr: str


def run(folder: Path, words: list[str], server: str) -> Outcome:
    command = hostile(f"signal.alarm({SERVER_SECONDS})\n{SERVERS[server]}")
    argv = [word.replace("=SERVER", f"={shlex.join(command)}") for word in words]
    if argv[-1] == "SERVER":
        argv[-1:] = command
    path = folder / server.replace(" ", "-")
    loud = "stderr" in server  # what it writes is the terminal's, not the verb's
    with open(os.devnull if loud else path, "wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "discreet", *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=folder,
            env=environment(),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)),  # noqa: PLW1509 - POSIX
        )
        assert process.stdout is not None
        with process.stdout:
            process.stdout.read(READ_BYTES)
        status = process.wait(DEADLINE_SECONDS)
    said = "" if loud else path.read_text("utf-8")
    return Outcome(status, [line for line in said.splitlines() if line.startswith("discreet: ")], said)


@pytest.mark.parametrize("verb", VERBS)
def test_a_hostile_server_costs_a_verb_a_line_and_a_status(tmp_path: Path, verb: str) -> None:
    (tmp_path / "recording.jsonl").write_bytes(RECORDING)
    words, statuses, names = VERBS[verb]
    with ThreadPoolExecutor(12) as pool:  # most of them wait
        outcomes = dict(zip(names, pool.map(lambda name: run(tmp_path, words, name), names), strict=True))
    wrong = {
        server: outcome
        for server, outcome in outcomes.items()
        if not is_proper(outcome, {int(status) for status in statuses})
    }
    assert wrong == {}


def is_proper(outcome: Outcome, statuses: set[int]) -> bool:
    return (
        outcome.status in statuses
        and "Traceback" not in outcome.stderr
        and len(outcome.stderr.splitlines()) <= MAX_LINES
        and all(len(line) <= MAX_LINE_CHARACTERS and line.isprintable() for line in outcome.lines)
        and not any("room for the program" in line for line in outcome.lines)
    )
