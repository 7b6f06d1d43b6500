"""What servers do where things go wrong: stray output, a handler that crashes, requests behind faulty bytes.

    PEERS_PY=…/python NODE_PATH=…/node_modules python bench/faults.py

Each trial starts a server, writes to its stdin, and prints what came back. README.md beside this file says what the trials
mean. `PEERS_PY` has pygls and mcp, `FASTMCP_PY` fastmcp, `DISCREET_PY` discreet (default: this Python); what is not named is
left out.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

SECRET = "s3cr3t-0123456789"
CRASH = f"can't open /home/ann/app.conf: token={SECRET}"

BODY = f"""
def shout(*_) -> str:
    print("printed", flush=True)
    os.system("echo from a child")
    return "well"

def crash(*_) -> str:
    raise RuntimeError("{CRASH}")

def echo(*_) -> str:
    return "well"
"""
DISCREET = f"""
import os
print("banner", flush=True)
from discreet import Service
app = Service("")
{BODY.replace("*_", "")}
for handler in (shout, crash, echo):
    app.query()(handler)
"""
PYGLS = f"""
import os
print("banner", flush=True)
from pygls.lsp.server import LanguageServer
server = LanguageServer("faults", "1")
{BODY}
for handler in (shout, crash, echo):
    server.feature(handler.__name__)(handler)
server.start_io()
"""
MCP = f"""
import os
print("banner", flush=True)
from mcp.server.mcpserver import MCPServer as Server
server = Server("faults")
{BODY.replace("*_", "")}
for handler in (shout, crash, echo):
    server.tool()(handler)
server.run()
"""
FASTMCP = MCP.replace("mcp.server.mcpserver import MCPServer", "fastmcp import FastMCP")
NODE = f"""
const rpc = require("vscode-jsonrpc/node");
const {{ spawnSync }} = require("node:child_process");
console.log("banner");
const server = rpc.createMessageConnection(
  new rpc.StreamMessageReader(process.stdin), new rpc.StreamMessageWriter(process.stdout));
server.onRequest("shout", () => {{
  console.log("printed");
  spawnSync("echo", ["from a child"], {{ stdio: "inherit" }});
  return "well";
}});
server.onRequest("crash", () => {{ throw new Error("{CRASH}"); }});
server.onRequest("echo", () => "well");
server.onClose(() => process.exit(0));
server.listen();
"""


def framed(body: str) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body.encode()), body.encode())


def line(body: str) -> bytes:
    return body.encode() + b"\n"


def request(number: int, name: str, *, tool: bool, text: str = "") -> str:
    params = {"name": name, "arguments": {}} if tool else {"text": text} if text else {}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call" if tool else name, "params": params}
    return json.dumps(message, ensure_ascii=False)


HELLO = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "faults", "version": "1"},
        },
    }
)
INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}'


def talk(command: list[str], folder: str, *, tool: bool, fault: bytes, name: str) -> tuple[str, str]:
    """stdout and stderr of a server that got a fault, then request 1 for `name`, then request 2 for `echo`."""
    encode = line if tool else framed
    server: subprocess.Popen[bytes] = subprocess.Popen(command, cwd=folder, stdin=-1, stdout=-1, stderr=-1)
    came: dict[str, bytes] = {"stdout": b"", "stderr": b""}

    def read(stream: str, file: int) -> None:
        while piece := os.read(file, 65536):
            came[stream] += piece

    readers = [
        threading.Thread(target=read, args=("stdout", server.stdout.fileno())),
        threading.Thread(target=read, args=("stderr", server.stderr.fileno())),
    ]
    for reader in readers:
        reader.start()
    opening = [encode(HELLO), encode(INITIALIZED)] if tool else []
    requests = [encode(request(number, each, tool=tool)) for number, each in ((1, name), (2, "echo"))]
    try:
        for piece in (*opening, fault, *requests):
            server.stdin.write(piece)
            server.stdin.flush()
            time.sleep(1)  # faults are told apart from what follows by silence; discreet needs a quarter of it
        time.sleep(2)
        server.stdin.close()
    except BrokenPipeError:
        pass
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.kill()
    for reader in readers:
        reader.join(5)
    return came["stdout"].decode(errors="replace"), came["stderr"].decode(errors="replace")


def answered(stdout: str, number: int) -> str:
    found = any(f'"id"{blank}:{more}{number}' in stdout for blank in ("", " ") for more in ("", " "))
    return "answered" if found else "not answered"


def seen(text: str, stdout: str, stderr: str) -> str:
    places = [place for place, came in (("stdout", stdout), ("stderr", stderr)) if text in came]
    return " and ".join(places) or "nowhere"


def row(server: Callable[..., tuple[str, str]], *, tool: bool) -> dict[str, str]:
    out, err = server(fault=b"", name="shout")
    found = {f"{text!r} appears on": seen(text, out, err) for text in ("banner", "printed", "from a child")}
    out, err = server(fault=b"", name="crash")
    found["the token of a crash appears on"] = seen(SECRET, out, err)
    out, _ = server(fault=b"a line of a log\n", name="echo")
    found["behind a line that is no message"] = answered(out, 1)
    broken = '{"a": oops'
    out, _ = server(fault=line(broken) if tool else framed(broken), name="echo")
    found["behind a body that is no JSON"] = answered(out, 1)
    if not tool:
        out, _ = server(fault=framed('{"jsonrpc":"2.0","id":3,"method":"echo"}'), name="echo")
        found["a request without params"] = answered(out, 3)
        text = request(7, "echo", tool=False, text="éééé")
        out, _ = server(fault=b"Content-Length: %d\r\n\r\n%s" % (len(text), text.encode()), name="echo")
        found["behind a length in characters"] = answered(out, 1)
        out, _ = server(fault=b"Content-Length: abc\r\n\r\n{}", name="echo")
        found["behind a length that is no number"] = answered(out, 1)
    return found


def main() -> None:
    peers = os.environ.get("PEERS_PY")
    fastmcp = os.environ.get("FASTMCP_PY")
    with tempfile.TemporaryDirectory() as folder:
        for name, source in (("app", DISCREET), ("pygls_", PYGLS), ("mcp_", MCP), ("fastmcp_", FASTMCP)):
            Path(folder, f"{name}.py").write_text(source, encoding="utf-8")
        Path(folder, "node.js").write_text(NODE, encoding="utf-8")
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        ours = os.environ.get("DISCREET_PY", sys.executable)
        servers = {"discreet": ([ours, "-P", "-m", "discreet", "serve", "app:app"], False)}
        if peers:
            servers["pygls"] = ([peers, "pygls_.py"], False)
            servers["mcp"] = ([peers, "mcp_.py"], True)
        if fastmcp:
            servers["fastmcp"] = ([fastmcp, "fastmcp_.py"], True)
        if os.environ.get("NODE_PATH"):
            servers["vscode-jsonrpc"] = (["node", "node.js"], False)
        for name, (command, tool) in servers.items():
            print(name)
            for what, how in row(
                lambda command=command, tool=tool, **trial: talk(command, folder, tool=tool, **trial), tool=tool
            ).items():
                print(f"  {what}: {how}")


if __name__ == "__main__":
    main()
