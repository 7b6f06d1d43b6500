"""Runs language servers for Python in turns: python run_ports.py ROUNDS REQUESTS NAME=COMMAND …

For each: the time from the start to the first hover, also as CPU time, and both for a hover and for the symbols of a document.
Medians of the rounds.
"""

from __future__ import annotations

import statistics
import sys
import time

from raw_client import Server

TEXT = """import json


def area(width: int, height: int) -> int:
    'Return the area.'
    return width * height


print(area(2, 3), json.dumps([]))
"""
DOCUMENT = {"uri": "file:///tmp/ported.py"}
HELLO = {"processId": None, "rootUri": "file:///tmp", "capabilities": {}}
REQUESTS = {
    "hover": ("textDocument/hover", {"textDocument": DOCUMENT, "position": {"line": 8, "character": 8}}),
    "symbols": ("textDocument/documentSymbol", {"textDocument": DOCUMENT}),
}


def measure(command: str, requests: int) -> dict[str, float]:
    server = Server(command, content_length=True)
    server.call("initialize", HELLO)
    server.notify("initialized", {})
    item = {**DOCUMENT, "languageId": "python", "version": 1, "text": TEXT}
    server.notify("textDocument/didOpen", {"textDocument": item})
    answer, _ = server.call(*REQUESTS["hover"])
    assert "area" in str(answer["result"]), answer
    found = {"first hover, s": time.perf_counter() - server.began, "first hover, CPU s": server.cpu()}
    for name, (method, params) in REQUESTS.items():
        assert server.call(method, params)[0]["result"]
        before, begun = server.cpu(), time.perf_counter()
        for number in range(requests):
            server.call(method, params, number)
        found[f"{name}, ms"] = (time.perf_counter() - begun) / requests * 1000
        found[f"{name}, CPU ms"] = (server.cpu() - before) / requests * 1000
    found["RSS, MiB"] = server.rss()
    server.call("shutdown", None)
    server.notify("exit", None)
    server.process.wait()
    return found


def main(rounds: str, requests: str, *named: str) -> None:
    servers = dict(each.split("=", 1) for each in named)
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in servers}
    for _ in range(int(rounds)):
        for name, command in servers.items():
            rows[name].append(measure(command, int(requests)))
    for what in next(iter(rows.values()))[0]:
        medians = (f"{name} {statistics.median(row[what] for row in found):.3f}" for name, found in rows.items())
        print(f"{what:20}", *medians, sep="  ")


if __name__ == "__main__":
    main(*sys.argv[1:])
