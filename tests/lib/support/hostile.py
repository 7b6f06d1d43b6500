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
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()

def frame(text):
    return b"Content-Length: %d\\r\\n\\r\\n%b" % (len(text), text)

"""


def hostile(source: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", PRELUDE + source]
