"""Measures servers of one dialect side by side: `python run.py lsp "discreet=COMMAND" "pygls=COMMAND"`.

Prints medians over the rounds, which take turns: milliseconds from the start to the answer of `initialize`, calls per second one
after the other, and RSS in MiB after them. The same bytes go to every server.
"""

from __future__ import annotations

import json
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROUNDS = 7
CALLS = 2000
URI = "file:///notes.txt"


class Server:
    def __init__(self, command: str, framing: str) -> None:
        self.began = time.perf_counter()
        self.framing = framing
        self.process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        head = b"Content-Length: %d\r\n\r\n" % len(body) if self.framing == "content-length" else b""
        self.process.stdin.write(head + body + (b"" if head else b"\n"))
        self.process.stdin.flush()

    def receive(self, wanted: int) -> dict[str, Any]:
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit("the server ended")
            if self.framing == "newline":
                message = json.loads(line)
            else:
                size = int(line.split(b":")[1])
                while self.process.stdout.readline() != b"\r\n":
                    pass
                message = json.loads(self.process.stdout.read(size))
            if message.get("id") == wanted and "method" not in message:
                return dict(message)

    def rss(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


def lsp(server: Server) -> tuple[float, float, float]:
    capabilities = {"general": {"positionEncodings": ["utf-16"]}}
    server.send(id=0, method="initialize", params={"processId": None, "rootUri": None, "capabilities": capabilities})
    server.receive(0)
    start = (time.perf_counter() - server.began) * 1000
    server.send(method="initialized", params={})
    item = {"uri": URI, "languageId": "plaintext", "version": 1, "text": "one two three\n" * 200}
    server.send(method="textDocument/didOpen", params={"textDocument": item})
    began = time.perf_counter()
    for number in range(1, CALLS + 1):
        place = {"textDocument": {"uri": URI}, "position": {"line": number % 200, "character": 5}}
        server.send(id=number, method="textDocument/hover", params=place)
        answer = server.receive(number)
    assert answer["result"]["contents"] == "two", answer
    rate = CALLS / (time.perf_counter() - began)
    rss = server.rss()
    server.send(id=-1, method="shutdown")
    server.receive(-1)
    server.send(method="exit")
    return start, rate, rss


DIALECTS = {"lsp": (lsp, "content-length")}


def main(dialect: str, *servers: str) -> None:
    measure, framing = DIALECTS[dialect]
    commands = dict(server.split("=", 1) for server in servers)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            server = Server(command, framing)
            found[name].append(measure(server))
            server.process.wait(10)
    print(f"{'server':12} {'start ms':>9} {'calls/s':>9} {'RSS MiB':>9}")
    for name, rounds in found.items():
        start, rate, rss = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"{name:12} {start:9.1f} {rate:9.0f} {rss:9.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
