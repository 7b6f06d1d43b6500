"""A server of MCP by stdio, of the legacy era, that misbehaves as it is told: by its arguments, and by those of its tool `act`.

Runs as a script, without anything of ours.
"""

import json
import os
import sys
from typing import Any

HUGE = 11 * 1024 * 1024


TYPED = {
    "name": "typed tool",
    "title": "A typed tool",
    "annotations": {"title": "Typed", "destructiveHint": False, "idempotentHint": True, "ownHint": 1},
    "inputSchema": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"tree": {"$ref": "#/definitions/Tree"}, "pair": {"items": [{"type": "integer"}]}},
        "required": ["tree"],
        "definitions": {
            "Tree": {
                "type": "object",
                "properties": {
                    "leaf": {"$ref": "#/definitions/Leaf"},
                    "inner": {"type": "array", "items": {"$ref": "#/definitions/Tree"}},
                },
                "additionalProperties": False,
            },
            "Leaf": {"type": "string", "minLength": 2},
        },
    },
    "outputSchema": {
        "type": "object",
        "properties": {"self": {"$ref": "#"}, "number": {"type": "integer"}},
        "required": ["number"],
    },
}


OFFERS: dict[str, Any] = {
    "resources/list": {},
    "resources/read": {},
    "resources/subscribe": {},
    "resources/unsubscribe": {},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "odd://of/{name}", "name": "of"}]},
    "prompts/list": {
        "prompts": [{"name": "greet", "title": "Greet", "arguments": [{"name": "who", "required": True}]}]
    },
    "prompts/get": {},
    "completion/complete": {},
}


def send(message: Any) -> None:
    sys.stdout.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
    sys.stdout.flush()


def answer(request: Any, result: Any) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def refuse(request: Any, code: int, message: str = "no") -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}})


def notify(method: str, params: Any = None) -> None:
    send({"jsonrpc": "2.0", "method": method, "params": params or {}})


def text(said: str) -> Any:
    return {"content": [{"type": "text", "text": said}]}


class Server:
    """`modes` are the program's arguments."""

    def __init__(self, modes: list[str]) -> None:
        self.modes = modes
        self.tools = ["act"]
        self.resources = ["odd://a", "urn:odd:b", "file:///c"]
        self.waiting: list[Any] = []
        self.heard: list[str] = []
        self.held, self.holding = os.pipe()

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            self.heard.append(message.get("method", "answer"))
            if "id" in message and "method" in message:
                self.take(message)
            elif "method" not in message:
                self.heard[-1] = json.dumps(message.get("result", message.get("error", {}).get("code")))
        if "stubborn" in self.modes:
            while True:
                sys.stdin.read()
                os.sched_yield()

    def take(self, request: Any) -> None:
        method = request["method"]
        if method == "server/discover":
            self.discover(request)
        elif method == "initialize":
            self.initialize(request)
        elif method == "tools/list":
            self.list_tools(request)
        elif method == "tools/call" and request["params"]["name"] == "typed tool":
            self.call_typed(request, request["params"]["arguments"])
        elif "offers" in self.modes and method in OFFERS:
            self.offer(method, request)
        elif method == "tools/call":
            self.call(request, request["params"].get("arguments", {}))
        else:
            refuse(request, -32601)

    def discover(self, request: Any) -> None:
        if "silent" in self.modes:
            return
        if "dies" in self.modes:
            sys.exit(3)
        refuse(request, -32602 if "python" in self.modes else -32601)

    def initialize(self, request: Any) -> None:
        if "mute" in self.modes:
            return
        revision = next((mode for mode in self.modes if mode.startswith("20")), request["params"]["protocolVersion"])
        capabilities: Any = {"tools": {"listChanged": True}}
        if "offers" in self.modes:
            capabilities |= {"resources": {"subscribe": True, "listChanged": True}, "prompts": {}, "completions": {}}
        welcome = {"protocolVersion": revision, "capabilities": capabilities}
        answer(request, {**welcome, "serverInfo": {"name": "odd", "version": "1"}})

    def list_tools(self, request: Any) -> None:
        cursor = request["params"].get("cursor")
        schema = {"type": "object"}
        if "endless" in self.modes:
            number = int(cursor or 0) + 1
            answer(request, {"tools": [{"name": f"t{number}", "inputSchema": schema}], "nextCursor": str(number)})
        elif "circle" in self.modes:
            answer(request, {"tools": [], "nextCursor": "again"})
        elif "list-refused" in self.modes:
            refuse(request, -32000)
        elif "no-list" in self.modes:
            answer(request, {"tools": "none"})
        else:
            tools = [{"name": name, "inputSchema": schema} for name in self.tools]
            answer(request, {"tools": [*tools, *([TYPED] if "typed" in self.modes else [])]})

    def offer(self, method: str, request: Any) -> None:
        params = request["params"]
        if params.get("uri") == "odd://refused":
            refuse(request, -32002, "Resource not found")
        elif method == "resources/read":
            answer(request, {"contents": [{"uri": params["uri"], "text": f"read {params['uri']}"}]})
        elif method == "resources/list":
            resources = [{"uri": uri, "name": "one", "unknown": 1} for uri in self.resources]
            answer(request, {"resources": [*resources, {"uri": "odd://without-name"}]})
        elif method == "prompts/get":
            embedded = {"type": "resource", "resource": {"uri": "odd://a", "text": "a"}}
            answer(request, {"messages": [{"role": "user", "content": embedded}]})
        elif method == "completion/complete":
            answer(request, {"completion": {"values": [json.dumps(params["ref"]), params["argument"]["value"]]}})
        else:
            answer(request, OFFERS[method])

    def call_typed(self, request: Any, given: Any) -> None:
        """`leaf` says which content stands beside the structured content."""
        result = {"number": "no"} if given.get("pair") else {"number": 1, "self": {"number": 2}}
        said = {
            "image": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}, *text("a pixel")["content"]],
            "other": [{"type": "hologram", "x": 1.0}],
            "nothing": [],
        }.get(given["tree"].get("leaf"), text(json.dumps(result))["content"])
        answer(request, {"content": said, **({} if given.get("tree") == {} else {"structuredContent": result})})

    def call(self, request: Any, given: Any) -> None:  # noqa: PLR0912, PLR0915 - a case for each way to misbehave
        do = given.get("do", "")
        match do:
            case "die":
                print("dying now", file=sys.stderr, flush=True)
                os._exit(7)
            case "deaf":
                while True:
                    os.read(self.held, 1)
            case "never":
                self.waiting.append(request)
            case "huge":
                answer(request, text("x" * HUGE))
            case "huge-hidden":
                send({"result": text("x" * HUGE), "id": request["id"], "jsonrpc": "2.0"})
            case "neither":
                send({"jsonrpc": "2.0", "id": request["id"]})
            case "no-result":
                answer(request, [1])
            case "error":
                answer(request, {**text("it went wrong"), "isError": True})
            case "refuse":
                refuse(request, -32603, "not today")
            case "storm":
                for _ in range(given["count"]):
                    notify("notifications/tools/list_changed")
                answer(request, text("changed"))
            case "add":
                self.tools.append(given["name"])
                notify("notifications/tools/list_changed")
                answer(request, text("added"))
            case "drop":
                self.tools.remove(given["name"])
                notify("notifications/tools/list_changed")
                answer(request, text("dropped"))
            case "touch":
                notify("notifications/resources/updated", {"uri": given["uri"]})
                answer(request, text("touched"))
            case "found":
                self.resources.append(given["uri"])
                notify("notifications/resources/list_changed")
                answer(request, text("found"))
            case "link":
                links = [
                    {"type": "resource_link", "name": "l", "uri": uri} for uri in ("odd://a", "https://a.example/b")
                ]
                answer(request, {"content": links})
            case "ask":
                for number, method in enumerate(("ping", "roots/list", "sampling/createMessage", "elicitation/create")):
                    send({"jsonrpc": "2.0", "id": f"s{number}", "method": method, "params": {}})
                answer(request, text("asked"))
            case "progress":
                token = request["params"].get("_meta", {}).get("progressToken")
                notify("notifications/progress", {"progressToken": token, "progress": 1, "total": 2, "message": "half"})
                notify("notifications/progress", {"progressToken": "nobody's", "progress": 1})
                notify("notifications/progress", {"progressToken": token, "progress": 2, "total": 2})
                answer(request, text("done"))
            case "log":
                notify("notifications/message", {"level": "error", "data": "my token is " + given["secret"]})
                print("a line of stderr", file=sys.stderr, flush=True)
                answer(request, text("logged"))
            case "heard":
                answer(request, text(" ".join(self.heard)))
            case "meta":
                answer(request, text(json.dumps(request["params"].get("_meta"))))
            case "pid":
                answer(request, text(str(os.getpid())))
            case _:
                answer(request, text(json.dumps(given)))


if __name__ == "__main__":
    Server(sys.argv[1:]).run()
