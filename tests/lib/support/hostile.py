"""Servers that a test writes in a few lines, started as programs."""

from __future__ import annotations

import sys

PRELUDE = """
import json, os, signal, sys, time

def read():
    length = None
    while (line := sys.stdin.buffer.readline()).strip():
        length = int(line.removeprefix(b"Content-Length: "))
    return None if length is None else json.loads(sys.stdin.buffer.read(length))

def write(data):
    sys.stdout.buffer.write(data if isinstance(data, bytes) else frame(json.dumps(data).encode()))
    sys.stdout.buffer.flush()

def frame(text):
    return b"Content-Length: %d\\r\\n\\r\\n%b" % (len(text), text)

def reply(request, result):
    write({"jsonrpc": "2.0", "id": request["id"], "result": result})

"""


def hostile(source: str, *arguments: str) -> list[str]:
    """The command of a server that may `read` messages, `write` messages or bytes, and `reply`."""
    return [sys.executable, "-I", "-S", "-c", PRELUDE + source, *arguments]
