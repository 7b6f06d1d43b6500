"""What OpenAPI documents say, one operation a case, and how to see whether a program that imports them keeps it.

Each case is a document of one operation, a call of it, and the response of a stub server. A check looks at what arrived there, at
what the caller got, or at the tool that was made. Loads nothing but the standard library, so that every program can run it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit


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
    return lambda seen: seen.result == value or (isinstance(seen.result, dict) and list(seen.result.values()) == [value])


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


ERROR = {"responses": {"200": OBJECT, "404": response(PROBLEM, "It is not there")}}
GONE = (404, "application/json", b'{"why":"gone"}')
BYTES = bytes(range(256))

CASES = [
    # -- errors
    Case("error responses", "the tool declares the 404 and its schema", ERROR, declares_error, calls=False),
    Case(
        "error responses",
        "a program can read the status and the body of a 404",
        ERROR,
        lambda seen: seen.error is not None and seen.error["status"] == 404 and seen.error["body"] == {"why": "gone"},
        answer=GONE,
    ),
    Case(
        "error responses",
        "text of a status that is not declared does not reach the caller",
        {},
        lambda seen: bool(seen.told) and "secret" not in seen.told,
        answer=(500, "text/plain", b"secret stack trace"),
    ),
    # -- arrays and objects in parameters
    Case("explode=false arrays", "form: ids=1,2", param("query", INTEGERS, explode=False), query_is("ids=1,2", "ids=1%2C2"), {"ids": [1, 2]}),
    Case(
        "explode=false arrays",
        "a comma in an item is not the delimiter",
        param("query", TEXTS, explode=False),
        query_is("ids=a%2Cb,c"),
        {"ids": ["a,b", "c"]},
    ),
    Case("explode=false arrays", "pipeDelimited: ids=1|2", param("query", INTEGERS, style="pipeDelimited", explode=False), query_is("ids=1|2", "ids=1%7C2"), {"ids": [1, 2]}),
    Case("explode=false arrays", "spaceDelimited: ids=1%202", param("query", INTEGERS, style="spaceDelimited", explode=False), query_is("ids=1%202", "ids=1+2"), {"ids": [1, 2]}),
    Case("explode=false arrays", "path: /a/1,2", param("path", INTEGERS), lambda seen: seen.path in ("/a/1,2", "/a/1%2C2"), {"ids": [1, 2]}, path="/a/{ids}"),
    Case("explode=false arrays", "header: ids: 1,2", param("header", INTEGERS), lambda seen: (seen.header("ids") or "").replace(" ", "") == "1,2", {"ids": [1, 2]}),
    Case("path styles", "label: /a/.1.2", param("path", INTEGERS, style="label", explode=True), lambda seen: seen.path == "/a/.1.2", {"ids": [1, 2]}, path="/a/{ids}"),
    Case("path styles", "matrix: /a/;ids=1,2", param("path", INTEGERS, style="matrix"), lambda seen: seen.path in ("/a/;ids=1,2", "/a/%3Bids=1%2C2"), {"ids": [1, 2]}, path="/a/{ids}"),
    Case("deepObject", "ids[a]=1&ids[b]=2", param("query", MAP, style="deepObject", explode=True), lambda seen: seen.pairs == [("ids[a]", "1"), ("ids[b]", "2")], {"ids": {"a": "1", "b": "2"}}),
    Case("objects in queries", "explode: a=1&b=2", param("query", MAP), lambda seen: seen.pairs == [("a", "1"), ("b", "2")], {"ids": {"a": "1", "b": "2"}}),
    Case("objects in queries", "explode=false: ids=a,1,b,2", param("query", MAP, explode=False), query_is("ids=a,1,b,2", "ids=a%2C1%2Cb%2C2"), {"ids": {"a": "1", "b": "2"}}),
    Case(
        "objects in queries",
        "content: ids is JSON text",
        {"parameters": [{"in": "query", "name": "ids", "content": {"application/json": {"schema": MAP}}}]},
        lambda seen: json.loads(parse_qs(seen.query)["ids"][0]) == {"a": "1"},
        {"ids": {"a": "1"}},
    ),
    Case("booleans", "flag=true", param("query", {"type": "boolean"}, "flag"), query_is("flag=true"), {"flag": True}),
    Case("reserved characters", "allowReserved: to=/x/y?z", param("query", {"type": "string"}, "to", allowReserved=True), query_is("to=/x/y?z"), {"to": "/x/y?z"}),
    Case("reserved characters", "a slash in a path is encoded", param("path", {"type": "string"}, "id"), lambda seen: seen.arrived[0].target.lower() == "/a/x%2fy", {"id": "x/y"}, path="/a/{id}"),
    # -- where params stand
    Case("header and cookie params", "a header", param("header", {"type": "string"}, "X-Trace"), lambda seen: seen.header("x-trace") == "t1", {"X-Trace": "t1"}),
    Case("header and cookie params", "a cookie", param("cookie", {"type": "string"}, "session"), lambda seen: "session=s1" in (seen.header("cookie") or ""), {"session": "s1"}),
    Case("shared params", "those of the path item", {}, query_is("ids=3"), {"ids": 3}, item=param("query", ID)),
    Case("shared params", "a $ref to components/parameters", {"parameters": [{"$ref": "#/components/parameters/Ids"}]}, query_is("ids=3"), {"ids": 3}, components={"parameters": {"Ids": {"in": "query", "name": "ids", "schema": ID}}}),
    Case(
        "shared params",
        "one name in the path and in the body",
        {**param("path", ID, "id"), **body({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]})},
        lambda seen: seen.path == "/a/7" and json.loads(seen.text) == {"id": "x"},
        {"id": 7},
        {"id": "x"},
        path="/a/{id}",
        method="post",
    ),
    # -- schemas of the input
    Case(
        "items of optional arrays",
        "an array or null (3.1): items are kept",
        param("query", {"anyOf": [INTEGERS, {"type": "null"}]}),
        lambda seen: seen.accepts({"ids": [1]}) and not seen.accepts({"ids": ["x"]}),
        version="3.1.0",
        calls=False,
    ),
    Case(
        "items of optional arrays",
        "an array or null (3.1): null is allowed",
        param("query", {"anyOf": [INTEGERS, {"type": "null"}]}),
        lambda seen: seen.accepts({"ids": None}),
        version="3.1.0",
        calls=False,
    ),
    Case(
        "nullable",
        "nullable of 3.0: null is allowed, and arrives",
        body({"type": "object", "properties": {"a": {"type": "string", "nullable": True}}, "required": ["a"]}),
        lambda seen: json.loads(seen.text) == {"a": None},
        {},
        {"a": None},
        method="post",
    ),
    Case(
        "3.0 keywords",
        "exclusiveMinimum: true of 3.0",
        param("query", {"type": "integer", "minimum": 1, "exclusiveMinimum": True}),
        lambda seen: seen.accepts({"ids": 2}) and not seen.accepts({"ids": 1}),
        calls=False,
    ),
    Case(
        "3.0 keywords",
        "a readOnly member need not be sent",
        body({"type": "object", "properties": {"id": {"type": "integer", "readOnly": True}, "a": {"type": "string"}}, "required": ["id", "a"]}),
        lambda seen: json.loads(seen.text) == {"a": "x"},
        {},
        {"a": "x"},
        method="post",
    ),
    Case(
        "recursive refs",
        "a tree as the body is checked at every depth",
        body(REF),
        lambda seen: (
            any(seen.accepts(wrap({"name": "a", "next": {"name": "b", "next": {"name": "c"}}})) for wrap in WRAPS)
            and not any(seen.accepts(wrap({"name": "a", "next": {"name": "b", "next": {}}})) for wrap in WRAPS)
        ),
        method="post",
        components=NODES,
        calls=False,
    ),
    Case(
        "recursive refs",
        "a tree as the body arrives",
        body(REF),
        lambda seen: json.loads(seen.text) == {"name": "a", "next": {"name": "b"}},
        {},
        {"name": "a", "next": {"name": "b"}},
        method="post",
        components=NODES,
    ),
    # -- bodies
    Case("bodies", "an array as the body", body(INTEGERS), lambda seen: json.loads(seen.text) == [1, 2], {}, [1, 2], method="post"),
    Case("bodies", "oneOf two objects", body({"oneOf": [{"type": "object", "properties": {"a": ID}, "required": ["a"]}, {"type": "object", "properties": {"b": ID}, "required": ["b"]}]}), lambda seen: json.loads(seen.text) == {"b": 1}, {}, {"b": 1}, method="post"),
    Case("bodies", "a $ref to components/requestBodies", {"requestBody": {"$ref": "#/components/requestBodies/B"}}, lambda seen: json.loads(seen.text) == {"a": "x"}, {}, {"a": "x"}, method="post", components={"requestBodies": {"B": body(MAP)["requestBody"]}}),
    Case("bodies", "a form: a=x&ids=1&ids=2", body({"type": "object", "properties": {"a": {"type": "string"}, "ids": INTEGERS}}, "application/x-www-form-urlencoded"), lambda seen: parse_qsl(seen.text) == [("a", "x"), ("ids", "1"), ("ids", "2")], {}, {"a": "x", "ids": [1, 2]}, method="post"),
    Case("bodies", "plain text", body({"type": "string"}, "text/plain"), lambda seen: seen.text == "hello" and (seen.header("content-type") or "").startswith("text/plain"), {}, "hello", method="post"),
    Case(
        "multipart",
        "a text and an object as JSON",
        body({"type": "object", "properties": {"name": {"type": "string"}, "meta": MAP}}, "multipart/form-data"),
        lambda seen: multipart_values(seen).get("name") == "x" and json.loads(multipart_values(seen)["meta"]) == {"a": "1"},
        {},
        {"name": "x", "meta": {"a": "1"}},
        method="post",
    ),
    Case(
        "multipart",
        "bytes of a file, which JSON can only carry as base64",
        body({"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}, "multipart/form-data"),
        lambda seen: b"\r\n\r\n" + BYTES + b"\r\n" in seen.arrived[0].body,
        {},
        {"file": base64.b64encode(BYTES).decode()},
        method="post",
    ),
    # -- responses
    Case("response schemas", "an array: declared", {"responses": {"200": response(INTEGERS)}}, lambda seen: '"integer"' in json.dumps(output_of(seen)), calls=False),
    Case("response schemas", "an array: the result", {"responses": {"200": response(INTEGERS)}}, result_fits([1, 2]), answer=(200, "application/json", b"[1,2]")),
    Case("response schemas", "a recursive type: declared", {"responses": {"200": response(REF)}}, lambda seen: json.dumps(output_of(seen)).count('"name"') >= 1 and "$ref" in json.dumps(output_of(seen)), components=NODES, calls=False),
    Case("response schemas", "a recursive type: the result", {"responses": {"200": response(REF)}}, result_fits({"name": "a", "next": {"name": "b"}}), components=NODES, answer=(200, "application/json", b'{"name":"a","next":{"name":"b"}}')),
    Case("response schemas", "nullable of 3.0 in a result", {"responses": {"200": response({"type": "object", "properties": {"a": {"type": "string", "nullable": True}}})}}, lambda seen: seen.result == {"a": None}, answer=(200, "application/json", b'{"a":null}')),
    Case("response schemas", "a reply that does not fit is no result", {"responses": {"200": response({"type": "object", "properties": {"a": ID}, "required": ["a"]})}}, lambda seen: bool(seen.told), answer=(200, "application/json", b'{"b":1}')),
    Case("response schemas", "204: no result, no error", {"responses": {"204": {"description": ""}}}, lambda seen: not seen.told and not seen.result, method="delete", answer=(204, "", b"")),
    Case("response schemas", "bytes come through whole", {"responses": {"200": response({"type": "string", "format": "binary"}, media="application/octet-stream")}}, lambda seen: base64.b64encode(BYTES).decode() in json.dumps(seen.result), answer=(200, "application/octet-stream", BYTES)),
    Case("response schemas", "a large number keeps its digits", {"responses": {"200": response({"type": "object"})}}, lambda seen: seen.result == {"n": 12345678901234567890}, answer=(200, "application/json", b'{"n":12345678901234567890}')),
    # -- the rest
    Case("servers", "the path of the server's URL", {}, lambda seen: seen.path == "/v2/a", server="/v2"),
    Case("operations", "HEAD", {}, lambda seen: seen.arrived[0].method == "HEAD" and not seen.told, method="head"),
    Case("operations", "no operationId", {}, lambda seen: seen.arrived[0].method == "GET", operation_id=None),
    Case(
        "response headers",
        "a declared header of the response reaches the caller",
        {"responses": {"200": {**OBJECT, "headers": {"X-Left": {"schema": ID}}}}},
        lambda seen: "X-Left" in json.dumps(output_of(seen)),
        calls=False,
    ),
    Case("operations", "deprecated is said", {"deprecated": True}, lambda seen: "deprecated" in json.dumps(seen.tool).lower(), calls=False),
    Case("operations", "query or mutation is said", {}, lambda seen: (seen.tool or {}).get("reads") is True, calls=False),
]

WRAPS: list[Callable[[Any], dict[str, Any]]] = [lambda value: value, lambda value: {"body": value}]
