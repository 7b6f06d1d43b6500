"""The requests of the measurements, in each version of A2A, as JSON-RPC 2.0 texts; and what is read out of the replies."""

from __future__ import annotations

import json
from typing import Any

AT_ONCE = {"configuration": {"returnImmediately": True}}
NAMES_03 = {"SendMessage": "message/send", "SendStreamingMessage": "message/stream", "GetTask": "tasks/get"}


class Requests:
    """Makes requests of one version, with running ids."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.number = 0

    def send(self, text: str, *, context: str | None = None, stream: bool = False, wait: bool = True) -> bytes:
        """A message that begins a task. Without `wait` the reply comes at once (in version 1.0)."""
        old = self.version == "0.3"
        part = {"kind": "text", "text": text} if old else {"text": text}
        message: dict[str, Any] = {"messageId": f"message-{self.number}", "parts": [part]}
        message |= {"kind": "message", "role": "user"} if old else {"role": "ROLE_USER"}
        if context is not None:
            message["contextId"] = context
        params: dict[str, Any] = {"message": message} if wait else {"message": message, **AT_ONCE}
        return self.request("SendStreamingMessage" if stream else "SendMessage", params)

    def subscribe(self, task: str) -> bytes:
        return self.request("SubscribeToTask", {"id": task})

    def get(self, task: str) -> bytes:
        return self.request("GetTask", {"id": task})

    def list(self, **params: Any) -> bytes:
        return self.request("ListTasks", {"pageSize": 50, **params})

    def request(self, method: str, params: Any) -> bytes:
        self.number += 1
        if self.version == "0.3":
            method = NAMES_03[method]
        request = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        return json.dumps(request, separators=(",", ":")).encode()


def result(reply: bytes) -> Any:
    """What a reply holds. Raises `ValueError` for an error."""
    read = json.loads(reply)
    if "result" not in read:
        raise ValueError(f"not a result: {reply[:300]!r}")
    return read["result"]


def task_of(reply: bytes) -> Any:
    """The task that a message has begun."""
    found = result(reply)
    return found.get("task", found)


def state_of(task: Any) -> str:
    """`completed`, in whatever form the version writes it."""
    return str(task["status"]["state"]).removeprefix("TASK_STATE_").lower().replace("_", "-")


class Frames:
    """Cuts messages out of bytes with `Content-Length` headers."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        data = self._rest + data if self._rest else data
        found = []
        place = 0
        while (end := data.find(b"\r\n\r\n", place)) >= 0:
            length = int(data[data.find(b":", place) + 1 : end].split(b"\r\n")[0])
            if len(data) < end + 4 + length:
                break
            found.append(data[end + 4 : end + 4 + length])
            place = end + 4 + length
        self._rest = data[place:]
        return found


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def is_event(body: bytes) -> bool:
    return b'"method":"stream/event"' in body[:64]
