"""What OpenAPI documents say of responses, of servers and of operations: the other half of `peer_cases.py`."""

from __future__ import annotations

import base64
import json

from peer_model import (
    ID,
    INTEGERS,
    NODES,
    OBJECT,
    PROBLEM,
    REF,
    Case,
    output_of,
    response,
    result_fits,
)

ERROR = {"responses": {"200": OBJECT, "404": response(PROBLEM, "It is not there")}}
GONE = (404, "application/json", b'{"why":"gone"}')
BYTES = bytes(range(256))

REPLIES = [
    # -- responses
    Case(
        "response schemas",
        "an array: declared",
        {"responses": {"200": response(INTEGERS)}},
        lambda seen: '"integer"' in json.dumps(output_of(seen)),
        calls=False,
    ),
    Case(
        "response schemas",
        "an array: the result",
        {"responses": {"200": response(INTEGERS)}},
        result_fits([1, 2]),
        answer=(200, "application/json", b"[1,2]"),
    ),
    Case(
        "response schemas",
        "a recursive type: declared",
        {"responses": {"200": response(REF)}},
        lambda seen: json.dumps(output_of(seen)).count('"name"') >= 1 and "$ref" in json.dumps(output_of(seen)),
        components=NODES,
        calls=False,
    ),
    Case(
        "response schemas",
        "a recursive type: the result",
        {"responses": {"200": response(REF)}},
        result_fits({"name": "a", "next": {"name": "b"}}),
        components=NODES,
        answer=(200, "application/json", b'{"name":"a","next":{"name":"b"}}'),
    ),
    Case(
        "response schemas",
        "nullable of 3.0 in a result",
        {"responses": {"200": response({"type": "object", "properties": {"a": {"type": "string", "nullable": True}}})}},
        lambda seen: seen.result == {"a": None},
        answer=(200, "application/json", b'{"a":null}'),
    ),
    Case(
        "response schemas",
        "a reply that does not fit is no result",
        {"responses": {"200": response({"type": "object", "properties": {"a": ID}, "required": ["a"]})}},
        lambda seen: bool(seen.told),
        answer=(200, "application/json", b'{"b":1}'),
    ),
    Case(
        "response schemas",
        "204: no result, no error",
        {"responses": {"204": {"description": ""}}},
        lambda seen: not seen.told and not seen.result,
        method="delete",
        answer=(204, "", b""),
    ),
    Case(
        "response schemas",
        "bytes come through whole",
        {"responses": {"200": response({"type": "string", "format": "binary"}, media="application/octet-stream")}},
        lambda seen: base64.b64encode(BYTES).decode() in json.dumps(seen.result),
        answer=(200, "application/octet-stream", BYTES),
    ),
    Case(
        "response schemas",
        "a large number keeps its digits",
        {"responses": {"200": response({"type": "object"})}},
        lambda seen: seen.result == {"n": 12345678901234567890},
        answer=(200, "application/json", b'{"n":12345678901234567890}'),
    ),
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
    Case(
        "operations",
        "deprecated is said",
        {"deprecated": True},
        lambda seen: "deprecated" in json.dumps(seen.tool).lower(),
        calls=False,
    ),
    Case(
        "operations", "query or mutation is said", {}, lambda seen: (seen.tool or {}).get("reads") is True, calls=False
    ),
]
