"""Calls tools through nginx at three daemons that are restarted one by one, and checks every answer.

replicas.py [--calls N] [--users N] [--every SECONDS] [--sessions]
replicas.py --conformance NODE_MODULES [--every SECONDS]

Each request goes to the next daemon (2026-07-28), or, with --sessions (2025-11-25), to the one that nginx chooses by the session.
Every tenth call asks the user. Each call has a number, which the tool writes to a file: exit status 1 where an answer was missing
or wrong, or a number was written twice or not at all. Needs nginx and an importable discreet[http].

With --conformance the calls are those of the protocol's conformance suite, for both revisions. The folder has node and
@modelcontextprotocol/conformance. The daemons share a store, and are restarted only with
--every. Exit status 1 where a required scenario fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from run import Connection

APP = """
import os
from typing import Annotated
from discreet import Service, mcp

app = Service("")
done = os.open(os.environ["DONE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

@app.mutation
async def note(number: int) -> int:
    os.write(done, b"%d\\n" % number)
    return number

@app.mutation
async def confirm(number: int, sure: Annotated[bool, mcp.Ask("Sure?")]) -> int:
    os.write(done, b"%d\\n" % number)
    return number if sure else -1
"""
NGINX = """
worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    map $http_mcp_session_id $by {{ "" $request_id; default $http_mcp_session_id; }}
    upstream daemons {{ {balance} {servers} }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://daemons; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
            proxy_set_header Host $http_host; proxy_next_upstream error timeout;
        }}
    }}
}}
"""
EVERYTHING = Path(__file__).parents[2] / "tests" / "lib" / "support" / "mcp_everything.py"
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
YES = {"sure": {"action": "accept", "content": {"sure": True}}}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def started(folder: Path, port: int, store: str) -> subprocess.Popen[bytes]:
    flags = ["--http", f"127.0.0.1:{port}", "--http-mcp", "--no-stdio", "--mcp-key", "key", "--log-level", "warn"]
    daemon = subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-m",
            "discreet",
            "serve",
            "./app.py:app",
            *flags,
            "--store",
            store,
            "--drain-timeout",
            "10",
        ],
        cwd=folder,
        env=os.environ | {"DONE": str(folder / "done")},
        stderr=(folder / f"log.{port}").open("ab"),
    )
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return daemon
        time.sleep(0.02)


class User:
    """One client, which makes one call after the other."""

    def __init__(self, port: int, session: bool, failures: Counter[str]) -> None:
        self._port = port
        self._session = session
        self._head = b""
        self._failures = failures
        self._connection: Any = None

    async def post(self, method: str, params: dict[str, Any], message_id: int | None = 1) -> dict[str, Any]:
        told = {"id": message_id} if message_id is not None else {}
        head = self._head
        if not self._session:
            params |= {
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": MODERN,
                    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
                }
            }
            head = f"mcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\nmcp-name: {params['name']}\r\n".encode()
        body = json.dumps({"jsonrpc": "2.0", **told, "method": method, "params": params}).encode()
        return await self._send(head, body)

    async def _send(self, head: bytes, body: bytes) -> dict[str, Any]:
        if self._connection is None:
            loop = asyncio.get_running_loop()
            self._transport, self._connection = await loop.create_connection(Connection, "127.0.0.1", self._port)
        answer: bytes = await self._connection.send(b"POST", body, head)
        first, _, text = answer.partition(b"\r\n\r\n")
        for line in first.split(b"\r\n"):
            if line.lower().startswith(b"mcp-session-id:"):
                self._head = line + b"\r\nmcp-protocol-version: " + LEGACY.encode() + b"\r\n"
        if b"connection: close" in first.lower():
            self._transport.close()
            self._connection = None
        status = first.split(b" ", 2)[1].decode()
        if status not in ("200", "202"):
            raise ValueError(f"status {status}: {text[:200]!r}")
        return json.loads(text) if text.strip() else {}

    async def call(self, number: int) -> None:
        asks = number % 10 == 0 and not self._session
        call = {"name": "confirm" if asks else "note", "arguments": {"number": number}}
        if self._session and not self._head:
            client = {"name": "replicas", "version": "1"}
            hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client}
            await self.post("initialize", hello)
            await self.post("notifications/initialized", {}, None)
        found = await self.post("tools/call", dict(call))
        if asks:
            state = found["result"]["requestState"]
            found = await self.post("tools/call", call | {"requestState": state, "inputResponses": YES})
        if found["result"]["structuredContent"] != {"result": number}:
            raise ValueError(f"not the answer to {number}: {found}")

    async def use(self, numbers: Any) -> None:
        for number in numbers:
            try:
                await self.call(number)
            except (OSError, ValueError, KeyError) as exc:
                self._failures[f"{type(exc).__name__}: {exc}"[:300]] += 1
                self._connection = None


def proxied(folder: Path, ports: list[int], *, sessions: bool) -> tuple[subprocess.Popen[bytes], int]:
    """nginx in front of these ports, and its own."""
    port = free_port()
    servers = " ".join(f"server 127.0.0.1:{each} max_fails=0;" for each in ports)
    balance = "hash $by consistent;" if sessions else ""
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, servers=servers, balance=balance))
    return subprocess.Popen(["nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder)]), port


class Replicas:
    """Three daemons behind nginx, at `port`."""

    def __init__(self, folder: Path, stack: ExitStack, *, sessions: bool, store: str = "memory") -> None:
        self._folder = folder
        self._store = store
        (folder / "key").write_text(secrets.token_hex(32))
        self._ports = [free_port() for _ in range(3)]
        self._daemons = [started(folder, port, store) for port in self._ports]
        stack.callback(self.end)
        proxy, self.port = proxied(folder, self._ports, sessions=sessions)
        stack.callback(proxy.terminate)
        self.restarts = 0

    def end(self) -> None:
        for daemon in self._daemons:
            daemon.kill()
            daemon.wait()

    async def restart_while(self, working: asyncio.Future[Any], every: float | None) -> None:
        """Restart one daemon after the other until the work is done."""
        while not working.done():
            await asyncio.wait([working], timeout=every)
            if not working.done():
                place = self.restarts % 3
                self.restarts += 1
                self._daemons[place].send_signal(signal.SIGTERM)
                await asyncio.to_thread(self._daemons[place].wait)
                self._daemons[place] = await asyncio.to_thread(started, self._folder, self._ports[place], self._store)


async def run(options: argparse.Namespace, folder: Path, stack: ExitStack) -> int:
    (folder / "app.py").write_text(APP)
    replicas = Replicas(folder, stack, sessions=options.sessions)
    await asyncio.sleep(0.5)
    failures: Counter[str] = Counter()
    numbers = iter(range(options.calls))
    began = time.perf_counter()
    users = [User(replicas.port, options.sessions, failures) for _ in range(options.users)]
    await replicas.restart_while(asyncio.gather(*(user.use(numbers) for user in users)), options.every)
    seconds = time.perf_counter() - began
    written = Counter((folder / "done").read_text().split())
    twice = sum(1 for count in written.values() if count > 1)
    print(
        f"{options.calls} calls, {options.users} users, {replicas.restarts} restarts, {options.calls / seconds:.0f} calls/s"
    )
    print(f"failed {sum(failures.values())}, executed twice {twice}, never {options.calls - len(written)}")
    for text, count in failures.most_common(5):
        print(f"  {count} x {text}")
    return 1 if failures or twice or len(written) != options.calls else 0


async def conform(options: argparse.Namespace, folder: Path, stack: ExitStack) -> int:
    """Run the protocol's conformance suite through nginx."""
    (folder / "app.py").write_text(f"{EVERYTHING.read_text()}\n\napp = server\n")
    modules = options.conformance
    suite = [
        modules / ".bin" / "node",
        modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js",
        "server",
    ]
    status = 0
    for revision in (LEGACY, MODERN):
        replicas = Replicas(folder, stack, sessions=revision == LEGACY, store="sqlite:tasks.db")
        await asyncio.sleep(0.5)
        to_it = ["--url", f"http://127.0.0.1:{replicas.port}/mcp", "--requirements", revision]
        child = await asyncio.create_subprocess_exec(*suite, *to_it, stdout=subprocess.PIPE, cwd=folder)
        working = asyncio.ensure_future(child.communicate())
        await replicas.restart_while(working, options.every)
        said = working.result()[0].decode()
        print(f"{revision}: status {child.returncode}, {replicas.restarts} restarts")
        print("\n".join(line for line in said.splitlines() if re.match("✗|✓|Total:", line)))
        status = status or int(child.returncode or 0)
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--users", type=int, default=32)
    parser.add_argument("--every", type=float, help="seconds from one restart to the next; 2 for calls, else none")
    parser.add_argument("--sessions", action="store_true", help="2025-11-25, with sessions")
    parser.add_argument("--conformance", type=Path, help="run the suite in this folder")
    options = parser.parse_args()
    work = run if options.conformance is None else conform
    if options.every is None and work is run:
        options.every = 2.0
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        return asyncio.run(work(options, Path(folder), stack))


if __name__ == "__main__":
    sys.exit(main())
