"""Measures servers of one dialect side by side: `python run.py lsp 7 "discreet=COMMAND" "pygls=COMMAND"`.

The same bytes go to every server, servers take turns, and the figures are medians over so many rounds, behind one start of each
that writes Python's byte code and is not counted. For each server: wall time and the process's CPU time from its start to the
answer of `initialize`; calls, or ACP's updates, per second and their CPU time, one after the other and without waiting; RSS at
the end. A ratio is how many times as good as the other server the first one is; for RSS, what it takes of the other's. Linux.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from raw_client import Server, results

CALLS = 2000
PROMPTS = 300
UPDATES = 10
STREAM = 5000
SESSIONS = 8
URI = "file:///notes.txt"

Figures = dict[str, float]


@contextmanager
def measured(server: Server, figures: Figures, name: str, count: int) -> Iterator[None]:
    began, ran = time.perf_counter(), server.cpu()
    yield
    figures[f"{name} /s"] = count / (time.perf_counter() - began)
    figures[f"{name} CPU µs"] = (server.cpu() - ran) / count * 1e6


def started(server: Server, params: Any) -> Figures:
    answer, _ = server.call("initialize", params)
    figures = {"start ms": (time.perf_counter() - server.began) * 1000, "start CPU ms": server.cpu() * 1000}
    assert "result" in answer, answer
    return figures


def lsp(server: Server) -> Figures:
    capabilities = {"general": {"positionEncodings": ["utf-16"]}}
    figures = started(server, {"processId": None, "rootUri": None, "capabilities": capabilities})
    server.notify("initialized", {})
    item = {"uri": URI, "languageId": "plaintext", "version": 1, "text": "one two three\n" * 200}
    server.notify("textDocument/didOpen", {"textDocument": item})

    def hover(number: int) -> Any:
        return {"textDocument": {"uri": URI}, "position": {"line": number % 200, "character": 5}}

    calls(server, figures, "textDocument/hover", hover)
    version = iter(range(2, CALLS + 2))

    def edit_and_hover(number: int) -> bytes:
        place = {"line": number % 200, "character": 13}
        change = {"range": {"start": place, "end": place}, "text": "x"}
        document = {"uri": URI, "version": next(version)}
        changed = server.frame(
            method="textDocument/didChange", params={"textDocument": document, "contentChanges": [change]}
        )
        return changed + server.frame(id=number, method="textDocument/hover", params=hover(number))

    frames = [edit_and_hover(number) for number in range(1, CALLS + 1)]
    with measured(server, figures, "edit and call, one by one", CALLS):
        for number, frame in enumerate(frames, 1):
            server.send(frame)
            answer, _ = server.answer_to(number)
    assert "two" in str(answer["result"]), answer
    figures["RSS MiB"] = server.rss()
    server.call("shutdown", None)
    server.notify("exit", None)
    return figures


def mcp(server: Server) -> Figures:
    client = {"name": "bench", "version": "1"}
    figures = started(server, {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
    server.notify("notifications/initialized", {})
    server.call("tools/list", {})
    calls(
        server, figures, "tools/call", lambda number: {"name": "look", "arguments": {"name": "pen", "number": number}}
    )
    figures["RSS MiB"] = server.rss()
    return figures


def calls(server: Server, figures: Figures, method: str, params: Callable[[int], Any]) -> None:
    frames = [server.frame(id=number, method=method, params=params(number)) for number in range(1, CALLS + 1)]
    with measured(server, figures, "one by one", CALLS):
        for number, frame in enumerate(frames, 1):
            server.send(frame)
            answer, _ = server.answer_to(number)
    assert "two" in str(answer["result"]) or "pen" in str(answer["result"]), answer
    with measured(server, figures, "pipelined", CALLS):
        answers = server.pipelined(frames, CALLS)
    found = results(answers)
    assert len(found) == CALLS, "a call was not answered"
    assert all("isError" not in result or not result["isError"] for result in found), found[0]


def acp(server: Server) -> Figures:
    figures = started(server, {"protocolVersion": 1, "clientCapabilities": {}})
    sessions = [
        server.call("session/new", {"cwd": "/", "mcpServers": []})[0]["result"]["sessionId"] for _ in range(SESSIONS)
    ]

    def prompt(number: int, updates: int) -> bytes:
        text = [{"type": "text", "text": str(updates)}]
        return server.frame(
            id=number, method="session/prompt", params={"sessionId": sessions[number % SESSIONS], "prompt": text}
        )

    def run(name: str, prompts: int, updates: int) -> None:
        with measured(server, figures, name, prompts * updates):
            for number in range(1, prompts + 1):
                server.send(prompt(number, updates))
                answer, told = server.answer_to(number)
                assert answer["result"]["stopReason"] == "end_turn", answer
                assert told == updates, told

    began = time.perf_counter()
    server.send(prompt(0, 1))  # loads what the start did not need
    server.answer_to(0)
    figures["first prompt ms"] = (time.perf_counter() - began) * 1000
    run("updates, ten a prompt", PROMPTS, UPDATES)
    run("updates of one prompt", 1, STREAM)
    together = [prompt(number, STREAM // SESSIONS) for number in range(SESSIONS)]
    with measured(server, figures, "updates of eight prompts", STREAM):
        server.pipelined(together, STREAM + SESSIONS)
    figures["RSS MiB"] = server.rss()
    return figures


DIALECTS: dict[str, tuple[Callable[[Server], Figures], bool]] = {
    "lsp": (lsp, True),
    "mcp": (mcp, False),
    "acp": (acp, False),
}


def main(dialect: str, rounds: str, *servers: str) -> None:
    measure, content_length = DIALECTS[dialect]
    commands = dict(server.split("=", 1) for server in servers)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    found: dict[str, list[Figures]] = {name: [] for name in commands}
    for number in range(int(rounds) + 1):
        for name, command in commands.items():
            server = Server(command, content_length=content_length)
            figures = measure(server)
            server.close()
            if number:
                found[name].append(figures)
    show(found)


def show(found: dict[str, list[Figures]]) -> None:
    medians = {
        name: {figure: statistics.median(one[figure] for one in rounds) for figure in rounds[0]}
        for name, rounds in found.items()
    }
    first, *others = medians
    print("| figure |", " | ".join([first, *(column for name in others for column in (name, f"by {name}"))]), "|")
    print("| --- " * (2 + 2 * len(others)) + "|")
    for figure, ours in medians[first].items():
        cells = [f"{ours:,.1f}" if ours < 1000 else f"{ours:,.0f}"]
        for name in others:
            theirs = medians[name][figure]
            ratio = ours / theirs if figure.startswith("RSS") or figure.endswith("/s") else theirs / ours
            cells += [f"{theirs:,.1f}" if theirs < 1000 else f"{theirs:,.0f}", f"{ratio:.2f}"]
        print("|", " | ".join([figure, *cells]), "|")


if __name__ == "__main__":
    main(*sys.argv[1:])
