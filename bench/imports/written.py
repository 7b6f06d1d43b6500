"""What a daemon writes of the documents that it imports: is it valid? `python written.py [--folder DIR] [--seconds N] [NAME …]`

`discreet schema --openapi` by openapi-spec-validator, which has to be installed, and `tools/list` of MCP and `services/schema` of
every operation by the meta-schema of JSON Schema 2020-12. Says how large each is, and how long it took; N seconds is the most
that one of them may take.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import jsonschema_rs
from corpus import fetch
from daemons import Daemon, flags

META = jsonschema_rs.Draft202012Validator({"$ref": "https://json-schema.org/draft/2020-12/schema"})
MB = 1e6


def openapi(path: Path, folder: Path, seconds: float) -> tuple[int, list[str]]:
    """Bytes of the document, and what is wrong with it."""
    from openapi_spec_validator import OpenAPIV31SpecValidator

    written = folder / "openapi.json"
    command = [sys.executable, "-P", "-m", "discreet", "schema", "--openapi", "-o", str(written)]
    command += flags(folder, path, "http://127.0.0.1:9")
    done = subprocess.run(
        command,
        env={**os.environ, "XDG_CACHE_HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        return 0, [f"status {done.returncode}: {done.stderr.strip()[-200:]}"]
    wrong = []
    until = time.monotonic() + seconds
    for error in OpenAPIV31SpecValidator(json.loads(written.read_bytes())).iter_errors():
        if not error.absolute_path:
            continue  # a default that does not fit its schema: that is how the document has it
        wrong.append(f"{'/'.join(map(str, list(error.absolute_path)[-4:]))}: {error.message[:160]}")
        if len(wrong) == 3 or time.monotonic() > until:
            break
    return written.stat().st_size, wrong


def tools(path: Path, folder: Path, seconds: float) -> tuple[int, list[str]]:
    with Daemon(folder, folder, path, "http://127.0.0.1:9", "--dialect", "mcp", lines=True) as daemon:
        client = {"name": "bench", "version": "1"}
        daemon.call("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        size, wrong, cursor, until = 0, [], None, time.monotonic() + seconds
        while True:
            answer = daemon.call("tools/list", {"cursor": cursor} if cursor else {})
            size += daemon.received
            if "error" in answer:
                return size, [*wrong, json.dumps(answer["error"])[:200]]
            for tool in answer["result"]["tools"]:
                for kind in ("inputSchema", "outputSchema"):
                    wrong += _faults(f"{tool['name']} {kind}", tool.get(kind))
                if (
                    tool["inputSchema"].get("type") != "object"
                    or tool.get("outputSchema", {"type": "object"}).get("type") != "object"
                ):
                    wrong.append(f"{tool['name']}: a schema of another type than object")
            cursor = answer["result"].get("nextCursor")
            if cursor is None or time.monotonic() > until:
                return size, wrong + (["not all in time"] if cursor else [])


def schemas(path: Path, folder: Path, seconds: float) -> tuple[int, list[str]]:
    with Daemon(folder, folder, path, "http://127.0.0.1:9") as daemon:
        listed = daemon.call("services/list", {})["result"]
        names = [each["name"] for each in (listed["operations"] if isinstance(listed, dict) else listed)]
        size, wrong, until = 0, [], time.monotonic() + seconds
        for place, name in enumerate(names):
            answer = daemon.call("services/schema", {"name": name})
            size += daemon.received
            if "error" in answer:
                wrong.append(f"{name}: {json.dumps(answer['error'])[:200]}")
                continue
            found = answer["result"]
            for kind in ("inputSchema", "outputSchema"):
                wrong += _faults(f"{name} {kind}", found.get(kind))
            for error in found["errorSchemas"]:
                wrong += _faults(f"{name} {error['code']}", error.get("schema"))
            if time.monotonic() > until:
                return size, [*wrong, f"{place + 1} of {len(names)} in time"]
        return size, wrong


def _faults(where: str, schema: Any) -> Iterator[str]:
    if schema is None:
        return
    for error in META.iter_errors(schema):
        yield f"{where} /{'/'.join(map(str, error.instance_path))}: {error.message[:120]}"
        break
    for ref in set(_refs(schema)):
        if ref.startswith("#/") and not _leads(ref, schema):
            yield f"{where}: {ref} leads nowhere"


def _refs(schema: Any) -> Iterator[str]:
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if isinstance(part.get("$ref"), str):
                yield part["$ref"]
            pending += [value for keyword, value in part.items() if not keyword.startswith("x-")]
        elif isinstance(part, list):
            pending += part


def _leads(ref: str, schema: Any) -> bool:
    for token in ref.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, list):
            schema = schema[int(token)]
        elif token in schema:
            schema = schema[token]
        else:
            return False
    return True


KINDS: dict[str, Callable[[Path, Path, float], tuple[int, list[str]]]] = {
    "schema --openapi": openapi,
    "tools/list": tools,
    "services/schema": schemas,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Checks what is written of imported documents.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--folder", type=Path, default=Path(gettempdir()) / "discreet-openapi-documents")
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    print("| document | written | MB | s | wrong |\n| --- | --- | ---: | ---: | --- |")
    for name, path in fetch(options.folder, tuple(options.names)).items():
        for kind, check in KINDS.items():
            began = time.monotonic()
            with TemporaryDirectory() as folder:
                try:
                    size, wrong = check(path, Path(folder), options.seconds)
                except subprocess.TimeoutExpired:
                    size, wrong = 0, ["not in time"]
                except (RuntimeError, OSError, ValueError, KeyError) as exc:
                    size, wrong = 0, [f"{type(exc).__name__}: {str(exc)[:200]}"]
            said = f"{len(wrong)}: {'; '.join(wrong[:2])}" if wrong else "–"
            print(
                f"| {name} | {kind} | {size / MB:.2f} | {time.monotonic() - began:.1f} | {said} |".replace("\n", " "),
                flush=True,
            )


if __name__ == "__main__":
    main()
