"""One program that imports documents: `python peer_run.py discreet|fastmcp|fastapi-mcp cases|import FILE`. Prints JSON.

Runs with the interpreter that has the program, and loads no other. `import` says what it makes of a document, and how long that
takes; `cases` runs those of `peer_cases.py` against a stub server.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from peer_cases import CASES
from peer_model import Case, Seen
from stub import Stub

LOOK_SECONDS = 20.0
MOST_DESCRIBED = 100
"""Operations whose schemas are asked for one by one."""


class Failed(Exception):
    """A call failed: `error` is what a program can read of it, None if there is only text."""

    def __init__(self, told: str, error: dict[str, Any] | None = None) -> None:
        super().__init__(told)
        self.error = error


class Discreet:
    """`from_openapi`, called over JSON-RPC in memory."""

    body_member = "body"

    def make(self, document: Any, url: str) -> Any:
        import discreet

        return discreet.from_openapi(
            document, namespace="x", base_url=url, expose=True, allow_private=True, credentials="token"
        )

    def count(self, service: Any) -> int:
        return len(service.operations)

    @asynccontextmanager
    async def opened(self, document: Any, url: str) -> Any:
        from discreet.testing import in_memory

        async with in_memory(
            self.make(document, url if isinstance(document, bytes) else ""),
            credentials={"token": "user:secret"},
            log_level="error",
        ) as self.peer:
            yield

    async def tools(self) -> list[dict[str, Any]]:
        found = await self.peer.call("services/list")
        listed = found["operations"] if isinstance(found, dict) else found
        names = [each["name"] for each in listed if each["name"].startswith("x/")]
        described, until = [], time.monotonic() + LOOK_SECONDS
        for name in names[:: max(1, len(names) // MOST_DESCRIBED)]:
            described.append(await self.peer.call("services/schema", {"name": name}))
            if time.monotonic() > until:
                break
        return [
            {
                "name": each["name"],
                "input": each["inputSchema"],
                "output": each.get("outputSchema"),
                "errors": [{"status": e["httpStatus"], "schema": e.get("schema")} for e in each["errorSchemas"]],
                "reads": each["kind"] == "query",
            }
            for each in described
        ]

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        import msgspec

        from discreet.client.errors import ClientError

        try:
            return await self.peer.call(name, arguments)
        except ClientError as exc:
            error = getattr(exc, "error", None)
            raw = getattr(error, "data", None)
            data = json.loads(bytes(raw)) if isinstance(raw, msgspec.Raw) else {}
            code = str(data.get("code", ""))
            known = {"status": int(code[5:]), "body": data.get("details")} if code[5:].isdigit() else None
            raise Failed(f"{error} {data}", known) from exc


class FastMCP:
    """`FastMCP.from_openapi`, called by its own client in memory."""

    body_member = ""

    def make(self, document: Any, url: str) -> Any:
        import httpx2
        from fastmcp import FastMCP as Server

        return Server.from_openapi(document, client=httpx2.AsyncClient(base_url=url))

    def count(self, server: Any) -> int:
        return len(asyncio.run(server.list_tools()))

    @asynccontextmanager
    async def opened(self, document: Any, url: str) -> Any:
        from fastmcp import Client

        # The client's base URL is the whole server: documents' own servers are not read.
        async with Client(self.make(document, url)) as self.client:
            yield

    async def tools(self) -> list[dict[str, Any]]:
        return [_tool(each.model_dump(by_alias=True)) for each in await self.client.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        try:
            result = await self.client.call_tool(name, arguments, raise_on_error=False)
        except RuntimeError as exc:  # the client does not take what the server says
            raise Failed(str(exc)) from exc
        text = "".join(getattr(each, "text", "") for each in result.content)
        if result.is_error:
            raise Failed(text, result.structured_content)
        if result.structured_content is not None:
            return result.structured_content
        return _json_or_text(text)


class FastAPIMCP:
    """The converter of `fastapi-mcp`, and how it executes a tool. It reads those of FastAPI apps alone: this hands it others."""

    body_member = ""

    def make(self, document: Any, url: str) -> Any:
        import httpx
        from fastapi import FastAPI
        from fastapi_mcp import FastApiMCP
        from fastapi_mcp.openapi.convert import convert_openapi_to_mcp_tools

        server = FastApiMCP(FastAPI(), http_client=httpx.AsyncClient(base_url=url))
        server.tools, server.operation_map = convert_openapi_to_mcp_tools(document)
        return server

    def count(self, server: Any) -> int:
        return len(server.tools)

    @asynccontextmanager
    async def opened(self, document: Any, url: str) -> Any:
        self.server = self.make(document, url)
        yield

    async def tools(self) -> list[dict[str, Any]]:
        return [_tool(each.model_dump(by_alias=True)) for each in self.server.tools]

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        server = self.server
        try:
            content = await server._execute_api_tool(
                client=server._http_client, tool_name=name, arguments=arguments, operation_map=server.operation_map
            )
        except Exception as exc:
            raise Failed(str(exc)) from exc
        return _json_or_text("".join(each.text for each in content))


def _tool(dumped: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": dumped["name"],
        "input": dumped["inputSchema"],
        "output": dumped.get("outputSchema"),
        "errors": [],  # a tool of MCP has no place for them
        "reads": (dumped.get("annotations") or {}).get("readOnlyHint"),
    }


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


PROGRAMS = {"discreet": Discreet, "fastmcp": FastMCP, "fastapi-mcp": FastAPIMCP}


async def run_case(program: Any, case: Case, stub: Stub) -> tuple[bool, str]:
    """Whether what the document says is kept, and what was seen instead."""
    stub.answer = case.answer
    stub.arrived.clear()
    async with program.opened(case.document(stub.url), stub.url):
        tool = next(iter(await program.tools()), None)
        seen = Seen(tool, lambda arguments: _accepts(tool, arguments), stub.arrived)
        if tool is None:
            return False, "no tool"
        if case.calls:
            try:
                seen.result = await program.call(tool["name"], _arguments(program, tool, case))
            except Failed as exc:
                seen.told, seen.error = str(exc), exc.error
        try:
            passed = case.check(seen)
        except Exception as exc:  # noqa: BLE001 - nothing arrived, or something else than was looked for
            return False, _seen(seen, type(exc).__name__)
        return passed, "" if passed else _seen(seen, "")


def _arguments(program: Any, tool: dict[str, Any], case: Case) -> dict[str, Any]:
    """Params and body as the program wants them: the members of a body stand among the params, unless it has a member for it."""
    if case.body is None:
        return case.params
    properties = tool["input"].get("properties", {})
    if program.body_member:
        return {**case.params, program.body_member: case.body}
    renamed = dict(case.params)
    for name, value in case.params.items():
        if f"{name}__path" in properties:  # what fastmcp calls one of two with the same name
            renamed = {f"{name}__path": value}
    if isinstance(case.body, dict) and "body" not in properties:
        return {**case.body, **renamed} if set(renamed) & set(case.body) else {**renamed, **case.body}
    return {**renamed, "body": case.body}


def _accepts(tool: dict[str, Any] | None, arguments: dict[str, Any]) -> bool:
    import jsonschema

    return tool is not None and jsonschema.Draft202012Validator(tool["input"]).is_valid(arguments)


def _seen(seen: Seen, more: str) -> str:
    arrived = "".join(
        f"{each.method} {each.target} {each.body[:80].decode(errors='replace')} " for each in seen.arrived
    )
    return " ".join(f"{more} {arrived}{seen.told or json.dumps(seen.result)}".split())[:300]


async def run_cases(program: Any) -> list[dict[str, Any]]:
    found = []
    with Stub() as stub:
        for case in CASES:
            try:
                passed, said = await asyncio.wait_for(run_case(program, case, stub), 20)
            except Exception as exc:  # noqa: BLE001 - the program can't import the document at all
                passed, said = False, f"{type(exc).__name__}: {str(exc)[:200]}"
            found.append({"topic": case.topic, "says": case.says, "passed": bool(passed), "seen": said})
    return found


def import_once(program: Any, path: str) -> dict[str, Any]:
    text = Path(path).read_bytes()
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again
    before = int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024
    began, ran = time.perf_counter(), time.process_time()
    if isinstance(program, Discreet):
        document: Any = text
    elif text.lstrip()[:1] == b"{":
        document = json.loads(text)
    else:
        import yaml

        document = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    made = program.make(document, "http://127.0.0.1:9")
    wall, cpu = time.perf_counter() - began, time.process_time() - ran
    peak = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024
    found = {"operations": program.count(made), "seconds": wall, "cpu": cpu, "peak": peak - before}
    return {**found, **asyncio.run(look_at(program, document))}


async def look_at(program: Any, document: Any) -> dict[str, Any]:
    """The tools themselves: how many schemas are valid, refer to nothing that is not there, and declare results and errors."""
    import jsonschema

    valid = whole = outputs = errors = looked = 0
    async with program.opened(document, "http://127.0.0.1:9"):
        tools = await program.tools()
    until = time.monotonic() + LOOK_SECONDS
    for place in sorted(range(len(tools)), key=lambda place: place * 7919 % len(tools)):  # far apart
        tool = tools[place]
        if time.monotonic() > until:
            break
        looked += 1
        try:
            jsonschema.Draft202012Validator.check_schema(tool["input"])
            valid += 1
        except jsonschema.SchemaError:
            pass
        whole += not _dangling(tool["input"]) and not _dangling(tool["output"])
        outputs += bool(tool["output"]) and tool["output"] != {"type": "null"}
        errors += len(tool["errors"])
    return {"tools": len(tools), "looked": looked, "valid": valid, "whole": whole, "outputs": outputs, "errors": errors}


def _dangling(schema: Any) -> bool:
    """Whether a reference in a schema leads nowhere in it."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            ref = part.get("$ref")
            if isinstance(ref, str) and not _leads(ref, schema):
                return True
            pending += [value for keyword, value in part.items() if not keyword.startswith("x-")]
        elif isinstance(part, list):
            pending += part
    return False


def _leads(ref: str, schema: Any) -> bool:
    if not ref.startswith("#"):
        return False
    for token in ref[1:].split("/")[1:]:
        token = unquote(token).replace("~1", "/").replace("~0", "~")
        if isinstance(schema, list) and token.isdigit() and int(token) < len(schema):
            schema = schema[int(token)]
        elif isinstance(schema, dict) and token in schema:
            schema = schema[token]
        else:
            return False
    return True


def main() -> None:
    logging.disable(logging.CRITICAL)
    program = PROGRAMS[sys.argv[1]]()
    try:
        if sys.argv[2] == "cases":
            found: Any = asyncio.run(run_cases(program))
        else:
            program.make(Case("", "", {}, lambda seen: True).document("http://127.0.0.1:9"), "http://127.0.0.1:9")
            found = import_once(program, sys.argv[3])
    except Exception as exc:  # noqa: BLE001 - likewise
        found = {"failed": f"{type(exc).__name__}: {str(exc)[:200]}"}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
