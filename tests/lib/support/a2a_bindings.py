"""The two bindings of A2A 1.0 over HTTP as a client sees them (sections 9 and 11), so that one test asks both the same."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, urlencode

import msgspec
import pytest

from discreet.daemon.operations.identity import Identity

from .asgi_client import AsgiClient, Reply
from .works import v1

INFO = "type.googleapis.com/google.rpc.ErrorInfo"

PATHS = {
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "GetTask": ("GET", "/tasks/{id}"),
    "ListTasks": ("GET", "/tasks"),
    "CancelTask": ("POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": ("POST", "/tasks/{id}:subscribe"),
    "CreateTaskPushNotificationConfig": ("POST", "/tasks/{taskId}/pushNotificationConfigs"),
    "GetTaskPushNotificationConfig": ("GET", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "ListTaskPushNotificationConfigs": ("GET", "/tasks/{taskId}/pushNotificationConfigs"),
    "DeleteTaskPushNotificationConfig": ("DELETE", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "GetExtendedAgentCard": ("GET", "/extendedAgentCard"),
}
"""The table of section 5.3."""


class Said(NamedTuple):
    """What an answer says in either binding: a result, or the message and the details of an error."""

    status: int
    headers: Mapping[str, str]
    result: Any = None
    message: str = ""
    details: tuple[dict[str, Any], ...] = ()

    @property
    def reason(self) -> str:
        """That of the error; empty for a result."""
        return next((str(each["reason"]) for each in self.details if each["@type"] == INFO), "")

    @property
    def facts(self) -> dict[str, str]:
        """The metadata of the error."""
        return next((each["metadata"] for each in self.details if each["@type"] == INFO), {})


class Binding(Protocol):
    """How methods of 1.0 are called. `headers` have `_` for `-`; `a2a_version=""` leaves that header out."""

    def open(self, client: AsgiClient, method: str, params: Mapping[str, Any], **headers: str) -> Any: ...

    def read(self, status: int, headers: Mapping[str, str], body: Any) -> Said:
        """The answer, or an event of a stream."""
        ...


def _headers(given: Mapping[str, str], media_type: str) -> dict[str, str]:
    named = {"content-type": media_type, "a2a-version": "1.0"}
    named |= {name.replace("_", "-"): value for name, value in given.items()}
    return {name: value for name, value in named.items() if value or name != "a2a-version"}


class JsonRpc:
    """Section 9."""

    def open(self, client: AsgiClient, method: str, params: Mapping[str, Any], **headers: str) -> Any:
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return client.open("POST", "/", body, _headers(headers, "application/json"))

    def read(self, status: int, headers: Mapping[str, str], body: Any) -> Said:
        assert (body["jsonrpc"], body["id"]) == ("2.0", 1)
        if "result" in body:
            return Said(status, headers, body["result"])
        return Said(status, headers, None, body["error"]["message"], tuple(body["error"]["data"]))


class HttpJson:
    """Section 11."""

    def open(self, client: AsgiClient, method: str, params: Mapping[str, Any], **headers: str) -> Any:
        verb, path = PATHS[method]
        rest = dict(params)
        for name in ("id", "taskId"):
            if f"{{{name}}}" in path:
                path = path.replace(f"{{{name}}}", quote(str(rest.pop(name)), safe=""))
        if verb == "POST":
            return client.open(verb, path, msgspec.json.encode(rest), _headers(headers, "application/a2a+json"))
        query = urlencode({name: str(value).lower() if value is True else value for name, value in rest.items()})
        given = {name: value for name, value in _headers(headers, "").items() if name != "content-type"}
        return client.open(verb, f"{path}?{query}" if query else path, b"", given)

    def read(self, status: int, headers: Mapping[str, str], body: Any) -> Said:
        if [*body] != ["error"]:
            return Said(status, headers, body)
        return Said(status, headers, None, body["error"]["message"], tuple(body["error"]["details"]))


BINDINGS = [pytest.param(JsonRpc(), id="jsonrpc"), pytest.param(HttpJson(), id="http-json")]


class Caller:
    """A client of one binding. `headers` go with every call."""

    def __init__(self, binding: Binding, client: AsgiClient, **headers: str) -> None:
        self.binding = binding
        self.client = client
        self._headers = headers

    async def call(self, method: str, params: Mapping[str, Any] | None = None, **headers: str) -> Said:
        async with self._open(method, params, headers) as reply:
            return self.binding.read(reply.status, reply.headers, await reply.json())

    async def task(self, text: str, **configuration: Any) -> Any:
        """The task of a message with this text."""
        said = await self.call("SendMessage", v1(text, **configuration))
        assert said.reason == ""
        return said.result["task"]

    @asynccontextmanager
    async def stream(
        self, method: str, params: Mapping[str, Any] | None = None, **headers: str
    ) -> AsyncGenerator[AsyncGenerator[Said]]:
        """The events as they come; an error that stands for them all is the only one."""
        async with self._open(method, params, headers) as reply, aclosing(self._events(reply)) as events:
            yield events

    async def events(self, method: str, params: Mapping[str, Any] | None = None, **headers: str) -> list[Said]:
        async with self.stream(method, params, **headers) as events:
            return [each async for each in events]

    def _open(self, method: str, params: Mapping[str, Any] | None, headers: Mapping[str, str]) -> Any:
        return self.binding.open(self.client, method, params or {}, **{**self._headers, **headers})

    async def _events(self, reply: Reply) -> AsyncGenerator[Said]:
        if not reply.headers["content-type"].startswith("text/event-stream"):
            yield self.binding.read(reply.status, reply.headers, await reply.json())
            return
        async with aclosing(reply.events()) as events:
            async for _, data in events:
                yield self.binding.read(reply.status, reply.headers, data)


class Tokens:
    """An identity provider whose tokens are the names of their owners. `nobody` has no scopes but is known."""

    schemes = ("Bearer",)
    realm = "agents"

    def resolve(self, authorization: str) -> Identity | None:
        scheme, _, name = authorization.partition(" ")
        if scheme.lower() != "bearer" or name not in ("ann", "bob", "nobody"):
            return None
        return Identity(name, frozenset() if name == "nobody" else None)


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}"}
