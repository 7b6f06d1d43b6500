"""A case: what an OpenAPI document says in one operation, a call of it, and what a program did with it. Loads no library."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Seen:
    """What a program did with a case. `accepts` says whether the tool's schema takes these arguments; without a call, the result
    is None. `error` is what a caller's program can read of an error: its status and its body; `told` is all of it as text."""

    tool: dict[str, Any] | None
    accepts: Callable[[dict[str, Any]], bool]
    arrived: list[Any]
    result: Any = None
    error: dict[str, Any] | None = None
    told: str = ""

    @property
    def query(self) -> str:
        return urlsplit(self.arrived[0].target).query

    @property
    def path(self) -> str:
        return urlsplit(self.arrived[0].target).path

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return parse_qsl(self.query, keep_blank_values=True)

    def header(self, name: str) -> str | None:
        return self.arrived[0].headers.get(name)

    @property
    def text(self) -> str:
        return self.arrived[0].body.decode("utf-8", "replace")


@dataclass
class Case:
    topic: str
    says: str
    operation: dict[str, Any]
    check: Callable[[Seen], bool]
    params: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    path: str = "/a"
    method: str = "get"
    item: dict[str, Any] = field(default_factory=dict)
    components: dict[str, Any] = field(default_factory=dict)
    answer: tuple[int, str, bytes] = (200, "application/json", b"{}")
    version: str = "3.0.3"
    server: str = ""
    calls: bool = True
    operation_id: str | None = "op"

    def document(self, url: str) -> dict[str, Any]:
        operation = {"responses": {"200": OBJECT}, **self.operation}
        if self.operation_id:
            operation["operationId"] = self.operation_id
        return {
            "openapi": self.version,
            "info": {"title": "case", "version": "1"},
            "servers": [{"url": url + self.server}],
            "paths": {self.path: {**self.item, self.method: operation}},
            "components": self.components,
        }


def response(schema: Any, description: str = "", media: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {media: {"schema": schema}}}


def body(schema: Any, media: str = "application/json", **more: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {media: {"schema": schema, **more}}}}


def param(where: str, schema: Any, name: str = "ids", **more: Any) -> dict[str, Any]:
    return {"parameters": [{"in": where, "name": name, "schema": schema, "required": where == "path", **more}]}


OBJECT = response({"type": "object"})
INTEGERS = {"type": "array", "items": {"type": "integer"}}
TEXTS = {"type": "array", "items": {"type": "string"}}
MAP = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
ID = {"type": "integer"}
NODE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "next": {"$ref": "#/components/schemas/Node"}},
    "required": ["name"],
}
NODES = {"schemas": {"Node": NODE}}
PROBLEM = {"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"]}
REF = {"$ref": "#/components/schemas/Node"}


def result_fits(value: Any) -> Callable[[Seen], bool]:
    """The result is this value; an object that holds it alone will do, since results in MCP are objects."""
    return lambda seen: (
        seen.result == value or (isinstance(seen.result, dict) and list(seen.result.values()) == [value])
    )


def query_is(*texts: str) -> Callable[[Seen], bool]:
    return lambda seen: seen.query in texts


def declares_error(seen: Seen) -> bool:
    """The tool itself says which error there is, and what its body looks like."""
    return any(each["status"] == 404 and "why" in json.dumps(each["schema"]) for each in (seen.tool or {})["errors"])


def output_of(seen: Seen) -> Any:
    return (seen.tool or {}).get("output")


def multipart_values(seen: Seen) -> dict[str, str]:
    """The parts of a body by name."""
    kind = seen.header("content-type") or ""
    if "boundary=" not in kind:
        return {}
    parts = seen.text.split("--" + kind.partition("boundary=")[2].strip('"'))
    found = {}
    for part in parts[1:-1]:
        head, _, value = part.partition("\r\n\r\n")
        found[head.partition('name="')[2].partition('"')[0]] = value.removesuffix("\r\n")
    return found


WRAPS: list[Callable[[Any], dict[str, Any]]] = [lambda value: value, lambda value: {"body": value}]
