"""What OpenAPI documents say, one operation a case, and how to see whether a program that imports them keeps it.

Each case is a document of one operation, a call of it, and the response of a stub server. A check looks at what arrived there, at
what the caller got, or at the tool that was made. Loads nothing but the standard library, so that every program can run it.
"""

from __future__ import annotations

import base64
import json
from urllib.parse import parse_qs, parse_qsl

from peer_model import (
    ID,
    INTEGERS,
    MAP,
    NODES,
    OBJECT,
    PROBLEM,
    REF,
    TEXTS,
    WRAPS,
    Case,
    body,
    declares_error,
    multipart_values,
    param,
    query_is,
    response,
)
from peer_replies import REPLIES

ERROR = {"responses": {"200": OBJECT, "404": response(PROBLEM, "It is not there")}}
GONE = (404, "application/json", b'{"why":"gone"}')
BYTES = bytes(range(256))

REQUESTS = [
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
    Case(
        "explode=false arrays",
        "form: ids=1,2",
        param("query", INTEGERS, explode=False),
        query_is("ids=1,2", "ids=1%2C2"),
        {"ids": [1, 2]},
    ),
    Case(
        "explode=false arrays",
        "a comma in an item is not the delimiter",
        param("query", TEXTS, explode=False),
        query_is("ids=a%2Cb,c"),
        {"ids": ["a,b", "c"]},
    ),
    Case(
        "explode=false arrays",
        "pipeDelimited: ids=1|2",
        param("query", INTEGERS, style="pipeDelimited", explode=False),
        query_is("ids=1|2", "ids=1%7C2"),
        {"ids": [1, 2]},
    ),
    Case(
        "explode=false arrays",
        "spaceDelimited: ids=1%202",
        param("query", INTEGERS, style="spaceDelimited", explode=False),
        query_is("ids=1%202", "ids=1+2"),
        {"ids": [1, 2]},
    ),
    Case(
        "explode=false arrays",
        "path: /a/1,2",
        param("path", INTEGERS),
        lambda seen: seen.path in ("/a/1,2", "/a/1%2C2"),
        {"ids": [1, 2]},
        path="/a/{ids}",
    ),
    Case(
        "explode=false arrays",
        "header: ids: 1,2",
        param("header", INTEGERS),
        lambda seen: (seen.header("ids") or "").replace(" ", "") == "1,2",
        {"ids": [1, 2]},
    ),
    Case(
        "path styles",
        "label: /a/.1.2",
        param("path", INTEGERS, style="label", explode=True),
        lambda seen: seen.path == "/a/.1.2",
        {"ids": [1, 2]},
        path="/a/{ids}",
    ),
    Case(
        "path styles",
        "matrix: /a/;ids=1,2",
        param("path", INTEGERS, style="matrix"),
        lambda seen: seen.path in ("/a/;ids=1,2", "/a/%3Bids=1%2C2"),
        {"ids": [1, 2]},
        path="/a/{ids}",
    ),
    Case(
        "deepObject",
        "ids[a]=1&ids[b]=2",
        param("query", MAP, style="deepObject", explode=True),
        lambda seen: seen.pairs == [("ids[a]", "1"), ("ids[b]", "2")],
        {"ids": {"a": "1", "b": "2"}},
    ),
    Case(
        "objects in queries",
        "explode: a=1&b=2",
        param("query", MAP),
        lambda seen: seen.pairs == [("a", "1"), ("b", "2")],
        {"ids": {"a": "1", "b": "2"}},
    ),
    Case(
        "objects in queries",
        "explode=false: ids=a,1,b,2",
        param("query", MAP, explode=False),
        query_is("ids=a,1,b,2", "ids=a%2C1%2Cb%2C2"),
        {"ids": {"a": "1", "b": "2"}},
    ),
    Case(
        "objects in queries",
        "content: ids is JSON text",
        {"parameters": [{"in": "query", "name": "ids", "content": {"application/json": {"schema": MAP}}}]},
        lambda seen: json.loads(parse_qs(seen.query)["ids"][0]) == {"a": "1"},
        {"ids": {"a": "1"}},
    ),
    Case("booleans", "flag=true", param("query", {"type": "boolean"}, "flag"), query_is("flag=true"), {"flag": True}),
    Case(
        "reserved characters",
        "allowReserved: to=/x/y?z",
        param("query", {"type": "string"}, "to", allowReserved=True),
        query_is("to=/x/y?z"),
        {"to": "/x/y?z"},
    ),
    Case(
        "reserved characters",
        "a slash in a path is encoded",
        param("path", {"type": "string"}, "id"),
        lambda seen: seen.arrived[0].target.lower() == "/a/x%2fy",
        {"id": "x/y"},
        path="/a/{id}",
    ),
    # -- where params stand
    Case(
        "header and cookie params",
        "a header",
        param("header", {"type": "string"}, "X-Trace"),
        lambda seen: seen.header("x-trace") == "t1",
        {"X-Trace": "t1"},
    ),
    Case(
        "header and cookie params",
        "a cookie",
        param("cookie", {"type": "string"}, "session"),
        lambda seen: "session=s1" in (seen.header("cookie") or ""),
        {"session": "s1"},
    ),
    Case("shared params", "those of the path item", {}, query_is("ids=3"), {"ids": 3}, item=param("query", ID)),
    Case(
        "shared params",
        "a $ref to components/parameters",
        {"parameters": [{"$ref": "#/components/parameters/Ids"}]},
        query_is("ids=3"),
        {"ids": 3},
        components={"parameters": {"Ids": {"in": "query", "name": "ids", "schema": ID}}},
    ),
    Case(
        "shared params",
        "one name in the path and in the body",
        {
            **param("path", ID, "id"),
            **body({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}),
        },
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
        body(
            {
                "type": "object",
                "properties": {"id": {"type": "integer", "readOnly": True}, "a": {"type": "string"}},
                "required": ["id", "a"],
            }
        ),
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
    Case(
        "bodies",
        "an array as the body",
        body(INTEGERS),
        lambda seen: json.loads(seen.text) == [1, 2],
        {},
        [1, 2],
        method="post",
    ),
    Case(
        "bodies",
        "oneOf two objects",
        body(
            {
                "oneOf": [
                    {"type": "object", "properties": {"a": ID}, "required": ["a"]},
                    {"type": "object", "properties": {"b": ID}, "required": ["b"]},
                ]
            }
        ),
        lambda seen: json.loads(seen.text) == {"b": 1},
        {},
        {"b": 1},
        method="post",
    ),
    Case(
        "bodies",
        "a $ref to components/requestBodies",
        {"requestBody": {"$ref": "#/components/requestBodies/B"}},
        lambda seen: json.loads(seen.text) == {"a": "x"},
        {},
        {"a": "x"},
        method="post",
        components={"requestBodies": {"B": body(MAP)["requestBody"]}},
    ),
    Case(
        "bodies",
        "a form: a=x&ids=1&ids=2",
        body(
            {"type": "object", "properties": {"a": {"type": "string"}, "ids": INTEGERS}},
            "application/x-www-form-urlencoded",
        ),
        lambda seen: parse_qsl(seen.text) == [("a", "x"), ("ids", "1"), ("ids", "2")],
        {},
        {"a": "x", "ids": [1, 2]},
        method="post",
    ),
    Case(
        "bodies",
        "plain text",
        body({"type": "string"}, "text/plain"),
        lambda seen: seen.text == "hello" and (seen.header("content-type") or "").startswith("text/plain"),
        {},
        "hello",
        method="post",
    ),
    Case(
        "multipart",
        "a text and an object as JSON",
        body({"type": "object", "properties": {"name": {"type": "string"}, "meta": MAP}}, "multipart/form-data"),
        lambda seen: (
            multipart_values(seen).get("name") == "x" and json.loads(multipart_values(seen)["meta"]) == {"a": "1"}
        ),
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
]

CASES = [*REQUESTS, *REPLIES]
