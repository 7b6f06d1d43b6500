"""Measures the gRPC of a daemon beside that of a2a-sdk, both in one run: CPU time of the server for a request, requests a second.

DISCREET_PY names an interpreter that has discreet[grpc]; this runs with one that has a2a-sdk[grpc]:
PYTHONPATH=bench python bench/http/grpc_bench.py [--rounds N] [--count N]. `--serve PORT` is the server of a2a-sdk.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import grpc
from a2a.types import a2a_pb2 as pb
from a2a.types import a2a_pb2_grpc as services

BENCH = Path(__file__).parents[1]
AT_A_TIME = 32
DISCREET = "-P -m discreet serve ./agents_app.py:agent --no-stdio --isolated --log-level error --grpc"


async def serve(port: int) -> None:
    """Serve the agent of these measurements with a2a-sdk, as its samples do."""
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.request_handlers.grpc_handler import GrpcHandler
    from a2a.server.tasks import InMemoryTaskStore
    from agents_sdk_v1 import Worker

    card = pb.AgentCard(name="Worker", description="Does what it is told.", version="1")
    card.capabilities.streaming = True
    server = grpc.aio.server()
    services.add_A2AServiceServicer_to_server(
        GrpcHandler(DefaultRequestHandler(Worker(), InMemoryTaskStore(), card)), server
    )
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


@contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, cwd=BENCH, stdin=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(kind: str, port: int, pid: int, count: int) -> tuple[float, float]:
    """The CPU milliseconds of the server for one request, and the requests a second."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        await asyncio.wait_for(channel.channel_ready(), 60)
        stub, headers = services.A2AServiceStub(channel), (("a2a-version", "1.0"),)

        async def send() -> pb.Task:
            said = pb.Message(message_id=str(uuid4()), role=pb.ROLE_USER, parts=[pb.Part(text="do")])
            return (await stub.SendMessage(pb.SendMessageRequest(message=said), metadata=headers)).task

        task = await send()

        async def work(each: int) -> None:
            for _ in range(each):
                if kind == "send":
                    await send()
                else:
                    await stub.GetTask(pb.GetTaskRequest(id=task.id), metadata=headers)

        await work(50)
        cpu, began = cpu_seconds(pid), time.perf_counter()
        await asyncio.gather(*(work(count // AT_A_TIME) for _ in range(AT_A_TIME)))
        done = count // AT_A_TIME * AT_A_TIME
        return (cpu_seconds(pid) - cpu) / done * 1000, done / (time.perf_counter() - began)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--serve", type=int, help="serve a2a-sdk's agent at this port")
    given = parser.parse_args()
    if given.serve is not None:
        return asyncio.run(serve(given.serve))
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _ in range(given.rounds):
        for name in ("discreet", "a2a-sdk 1"):
            port = free_port()
            ours = [os.environ["DISCREET_PY"], *DISCREET.split(), f"127.0.0.1:{port}"]
            with started(ours if name == "discreet" else [sys.executable, __file__, "--serve", str(port)]) as server:
                for kind in ("send", "get"):
                    figures = asyncio.run(measure(kind, port, server.pid, given.count))
                    found.setdefault((kind, name), []).append(figures)
    print("| scenario | server | cpu ms | per s |\n| --- | --- | --- | --- |")
    for (kind, name), figures in sorted(found.items()):
        cpu, rate = (statistics.median(each) for each in zip(*figures, strict=True))
        print(f"| {kind}, memory, {AT_A_TIME} at a time | {name} | {cpu:.3g} | {rate:,.0f} |")


if __name__ == "__main__":
    main()
