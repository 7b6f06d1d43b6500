"""Prints which files one request passes through, in order, with the functions that are called in each.

    python -P tools/walk.py ./shop.py:shop shop/price '{"item": "lamp"}'
    python -P tools/walk.py ./shop.py:shop shop/price '{"item": "lamp"}' --http operation    # or `--http mcp`, as a tool

Starts the app's daemon twice, with four and with five requests, one after the other, and shows what the fifth one has added:
what is loaded or built with the first request is not in it. The number behind a file says how often it is come to from another
one. Needs discreet to be importable.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from itertools import pairwise
from typing import Any, Final

REQUESTS: Final = 4
MCP_META: Final[dict[str, Any]] = {"protocolVersion": "2026-07-28", "clientCapabilities": {}}

SETTLE_SECONDS: Final = 0.5
"""How long what goes on behind the last answer may take."""

RECORDED: Final = """
import functools, json, os, sys, threading
import discreet.__main__ as program
base = os.path.dirname(program.__file__)
roots = sorted({os.path.realpath(os.path.join(base, name)): name for name in ("", *os.listdir(base))}.items(), reverse=True)
calls = []
@functools.cache
def place(file):
    path = os.path.realpath(file)
    return next((os.path.join(name, path[len(root) + 1:]) for root, name in roots if path.startswith(root + os.sep)), None)
def note(frame, event, arg):
    if event == "call" and (file := place(frame.f_code.co_filename)) is not None:
        calls.append((file, frame.f_code.co_qualname))
leave = os._exit
def end(status):
    sys.setprofile(None)
    with open(os.environ["WALK_OUT"], "w") as file:
        json.dump(calls, file)
    leave(status)
os._exit = end
sys.argv = ["discreet", *sys.argv[1:]]
threading.setprofile(note)
sys.setprofile(note)
end(program.main() or 0)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("app")
    parser.add_argument("method")
    parser.add_argument("params", nargs="?", default="{}", help="JSON; %%d stands for the number of the request")
    parser.add_argument("--http", choices=("operation", "mcp"), help="ask by HTTP, and how")
    given = parser.parse_args()
    ask = partial(_ask, given.app, given.method, given.params) if given.http is None else partial(_ask_by_http, given)
    first, after = ask(REQUESTS), ask(REQUESTS + 1)
    before, counts = Counter(first), Counter(after)
    visits = _visits(after) - _visits(first)
    files: dict[str, list[str]] = {}
    for file, function in after:
        if counts[file, function] > before[file, function]:
            functions = files.setdefault(file, [])
            if function not in functions:
                functions.append(function)
    for file, functions in files.items():
        print(f"{file}, {visits[file]}: {', '.join(functions)}")
    print(f"{len(files)} files, {sum(map(len, files.values()))} functions")
    return 0


@contextmanager
def _recorded(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], list[tuple[str, str]]]]:
    """A daemon, and the calls that it has made by the end of the block."""
    calls: list[tuple[str, str]] = []
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(RECORDED)
        script.flush()
        with subprocess.Popen(
            [sys.executable, "-P", script.name, "serve", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"WALK_OUT": out.name},
        ) as daemon:
            yield daemon, calls
            time.sleep(SETTLE_SECONDS)
            assert daemon.stdin is not None
            daemon.stdin.close()
            daemon.wait()
        calls += [tuple(each) for each in json.load(out)]


def _ask(app: str, method: str, params: str, count: int) -> list[tuple[str, str]]:
    with _recorded(app) as (daemon, calls):
        assert daemon.stdin is not None
        assert daemon.stdout is not None
        for number in range(count):
            body = _request(number, method, json.loads(params.replace("%d", str(number))))
            daemon.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            daemon.stdin.flush()
            _read(daemon.stdout)
    return calls


def _ask_by_http(given: argparse.Namespace, count: int) -> list[tuple[str, str]]:
    """The same over one connection, whose requests stand alone."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    flags = ("--http", f"127.0.0.1:{port}", "--http-operations", "--http-mcp")
    with _recorded(given.app, *flags) as (_, calls):
        client = _connected(port)
        for number in range(count):
            params = json.loads(given.params.replace("%d", str(number)))
            headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
            if given.http == "operation":
                path, body = f"/operations/{given.method}", json.dumps(params).encode()
            else:
                name = given.method.replace("/", "_")
                meta = {f"io.modelcontextprotocol/{name}": value for name, value in MCP_META.items()}
                path = "/mcp"
                body = _request(number, "tools/call", {"name": name, "arguments": params, "_meta": meta})
                headers |= {
                    "mcp-protocol-version": MCP_META["protocolVersion"],
                    "mcp-method": "tools/call",
                    "mcp-name": name,
                }
            client.request("POST", path, body, headers)
            answer = client.getresponse()
            if answer.status != HTTPStatus.OK:
                sys.exit(f"{answer.status}: {answer.read().decode()}")
            answer.read()
        client.close()
    return calls


def _connected(port: int) -> http.client.HTTPConnection:
    for _ in range(100):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            client.connect()
        except ConnectionRefusedError:
            time.sleep(0.1)
        else:
            return client
    sys.exit("the daemon does not listen")


def _request(number: int, method: str, params: Any) -> bytes:  # Any: JSON
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def _visits(calls: list[tuple[str, str]]) -> Counter[str]:
    """How often each file is come to from another one."""
    files = ["", *(file for file, _ in calls)]
    return Counter(file for last, file in pairwise(files) if file != last)


def _read(stream: Any) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += stream.read(1) or sys.exit("the daemon has closed its output")
    body: bytes = stream.read(int(head.split(b":")[1].split()[0]))
    return body


if __name__ == "__main__":
    sys.exit(main())
