"""10,000 connections that wait for their next request: what each takes of the daemon's memory.

    python -P bench/http/idle_connections.py [CONNECTIONS]

Each has had one answer. The limit of open files is raised to what the system allows. Needs discreet[http] and Linux.
"""

from __future__ import annotations

import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AGENT = """
from discreet.agents import Agent

class Worker:
    async def execute(self, context, events):
        await events.complete()

    async def cancel(self, context, events):
        await events.cancel()

agent = Agent(Worker(), name="Worker", description="Works.")
"""
CARD = b"GET /.well-known/agent-card.json HTTP/1.1\r\nhost: localhost\r\n\r\n"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    wanted = count + 200
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))  # children inherit it
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "worker.py").write_text(AGENT)
        command = [sys.executable, "-P", "-m", "discreet", "serve", "./worker.py:agent", "--isolated", "--no-stdio"]
        command += ["--http", "127.0.0.1:0", "--http-max-connections", str(count + 100), "--log-level", "info"]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE) as daemon:
            try:
                port = next(
                    int(found[1]) for line in daemon.stderr if (found := re.search(rb"url=http://[^:]+:(\d+)", line))
                )
                for _ in range(200):  # what is loaded and cached with the first requests
                    connected(port).close()
                time.sleep(0.5)
                before = resident(daemon.pid)
                began = time.perf_counter()
                held = [connected(port) for _ in range(count)]
                took = time.perf_counter() - began
                after = resident(daemon.pid)
                held[0].sendall(CARD)
                assert held[0].recv(20).startswith(b"HTTP/1.1 200")
                each_kib = (after - before) / count / 1024
                print(f"{count} connections in {took:.1f} s: {each_kib:.1f} KiB each, {after >> 20} MiB in all")
                for each in held:
                    each.close()
            finally:
                daemon.kill()


def connected(port: int) -> socket.socket:
    """A connection that has had its answer."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(CARD)
    found = b""
    while not found.endswith(b"}"):
        found += sock.recv(65536)
    return sock


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    main()
