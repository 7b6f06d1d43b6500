"""A server of MCP by stdio that does what its client asks for: it says what it has received, asks back, waits, and dies.

Runs as a script, without anything of ours.
"""

import json
import os
import subprocess
import sys
from typing import Any

seen: list[str] = []
listening: list[Any] = []
begun: list[Any] = []


def send(message: Any) -> None:
    sys.stdout.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
    sys.stdout.flush()


def handle(line: str, message: Any) -> Any:  # noqa: PLR0912 - a case for each method
    """The result of a request; None for none."""
    params = message.get("params") or {}
    match message["method"]:
        case "initialize":
            return {"protocolVersion": params["protocolVersion"], "capabilities": {}, "pid": os.getpid(), "own": [1.0]}
        case "do/say":
            return {"line": line, "pid": os.getpid()}
        case "do/seen":
            return {"lines": seen, "pid": os.getpid()}
        case "do/ask":
            send(params["request"])
            return {"line": sys.stdin.readline()}
        case "do/tell":
            send(params["message"].replace("TOKEN", json.dumps((params.get("_meta") or {}).get("progressToken"))))
            return {}
        case "do/begin":  # a task of 2025-11-25, whose progress comes with `do/go-on`
            begun.append((params.get("_meta") or {}).get("progressToken"))
            return {"task": {"taskId": "one"}}
        case "do/go-on":
            progress = {"progressToken": begun.pop(), "progress": 2}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
            return {}
        case "do/spawn":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            return {"pid": child.pid}
        case "do/die":
            os._exit(3)
        case "subscriptions/listen":
            listening.append(message["id"])
            tell(message["id"], "notifications/subscriptions/acknowledged")
        case "do/change":
            tell(listening[-1], "notifications/tools/list_changed")
            return {}
        case "do/unlisten":
            cancelled = {"requestId": listening.pop()}
            send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
            return {}
        case "do/fail":
            error = {"code": params["code"], "message": "No such thing", "data": {"why": [1.50, None]}}
            send({"jsonrpc": "2.0", "id": message["id"], "error": error})
        case _:  # it waits for ever
            return None
    return None


def tell(request_id: Any, method: str) -> None:
    meta = {"io.modelcontextprotocol/subscriptionId": request_id, "more": 1}
    send({"jsonrpc": "2.0", "method": method, "params": {"_meta": meta}})


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        seen.append(line)
        if message["method"] == "notifications/tell":
            send(message["params"]["message"])
    elif (result := handle(line, message)) is not None:
        send({"jsonrpc": "2.0", "id": message["id"], "result": result})
