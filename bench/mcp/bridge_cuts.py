"""python bench/mcp/bridge_cuts.py [CLIENTS] [--share]: clients of `discreet bridge` whose connections are cut at random points.

Prints, for each tenth of the clients, how many processes the bridge has and what it takes in memory; at the end, how many
processes are left when all sessions have ended, and when the bridge has. Status 1 where a process is left, or where the memory
has grown by more than a tenth since the first tenth of the clients.
"""

import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

SERVER = Path(__file__).parents[2] / "tests" / "lib" / "support" / "relayed_server.py"
AT_A_TIME = 16
IDLE_SECONDS = 2.0
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "cut", "version": "1"}}
MOST_GROWTH = 1.1


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(each) for each in found]


def resident(pid: int) -> float:
    """In MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def request(method: str, params: object, session: str = "", call_id: object = 1) -> bytes:
    told = {} if call_id is None else {"id": call_id}
    body = json.dumps({"jsonrpc": "2.0", **told, "method": method, "params": params}).encode()
    more = f"mcp-session-id: {session}\r\n" if session else ""
    head = (
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"accept: application/json, text/event-stream\r\n{more}content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def answer(reader: asyncio.StreamReader) -> str:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    if found := re.search(r"content-length: (\d+)", head):
        await reader.readexactly(int(found[1]))
    return head


async def cut(port: int, chance: random.Random) -> None:
    """One client, which goes away somewhere."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        await talk(reader, writer, chance)
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        if chance.random() < 0.5:
            writer.transport.abort()
        writer.close()


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chance: random.Random) -> None:
    hello = request("initialize", HELLO)
    point = chance.randrange(8)
    if point == 0:
        writer.write(hello[: chance.randrange(1, len(hello))])
        return await writer.drain()
    writer.write(hello)
    if point == 1:
        return await asyncio.sleep(chance.random() * 0.05)
    found = re.search(r"mcp-session-id: (\S+)", await answer(reader))
    if found is None:  # there are too many
        return None
    session = found[1]
    writer.write(request("notifications/initialized", {}, session, None))
    await answer(reader)
    match point:
        case 2:
            writer.write(request("do/wait", {"text": "x" * chance.randrange(100_000)}, session)[:-1])
        case 3:
            writer.write(request("do/wait", {}, session))
            await asyncio.sleep(chance.random() * 0.05)
        case 4:
            asked = {"request": '{"jsonrpc":"2.0","id":1,"method":"roots/list"}'}
            writer.write(request("do/ask", asked, session))
            await asyncio.sleep(chance.random() * 0.05)
        case 5:
            head = f"GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nmcp-session-id: {session}\r\n\r\n"
            writer.write(head.encode())
            await asyncio.sleep(chance.random() * 0.05)
        case 6:
            writer.write(request("do/die", {}, session))
            await asyncio.sleep(chance.random() * 0.05)
        case _:
            writer.write(request("do/say", {"text": "x" * chance.randrange(100_000)}, session))
            await answer(reader)
            if chance.random() < 0.5:
                head = f"DELETE /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: {session}\r\n\r\n"
                writer.write(head.encode())
    return await writer.drain()


async def run(count: int, port: int, pid: int) -> list[float]:
    chance = random.Random(1)
    sizes: list[float] = []
    done = 0
    gate = asyncio.Semaphore(AT_A_TIME)

    async def one() -> None:
        nonlocal done
        async with gate:
            await cut(port, chance)
        done += 1
        if done % (count // 10) == 0:
            sizes.append(resident(pid))
            print(f"{done:6} clients  {len(children(pid)):3} processes  {sizes[-1]:6.1f} MiB", flush=True)

    await asyncio.gather(*(one() for _ in range(count)))
    return sizes


def main() -> int:
    count = next((int(word) for word in sys.argv[1:] if word.isdigit()), 10_000)
    share = ["--share"] if "--share" in sys.argv else []
    flags = ["--isolated", "--http", "127.0.0.1:0", "--http-session-timeout", f"{IDLE_SECONDS:g}", *share]
    command = [sys.executable, "-P", "-m", "discreet", "bridge", *flags, "--log-level", "error"]
    mark = f"cut-by-{os.getpid()}"  # tells these servers from others
    command += ["--log-file", os.devnull, "--", sys.executable, "-I", "-S", str(SERVER), mark]
    port = _free_port()
    command[command.index("127.0.0.1:0")] = f"127.0.0.1:{port}"
    bridge = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    _wait_listening(port)
    started = time.monotonic()
    sizes = asyncio.run(run(count, port, bridge.pid))
    print(f"{count / (time.monotonic() - started):.0f} clients a second", flush=True)
    time.sleep(3 * IDLE_SECONDS)
    idle = children(bridge.pid)
    print(f"{len(idle)} processes once all sessions have ended, {resident(bridge.pid):.1f} MiB")
    bridge.send_signal(signal.SIGTERM)
    status = bridge.wait(30)
    left = subprocess.run(["pgrep", "-fc", mark], capture_output=True, text=True, check=False).stdout.strip()
    print(f"status {status}; {left} processes left behind it")
    return int(bool(idle) or left != "0" or status != 0 or max(sizes) > MOST_GROWTH * sizes[0])


def _wait_listening(port: int) -> None:
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
