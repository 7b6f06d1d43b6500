"""Programs that import OpenAPI documents, side by side: what each keeps of what they say, and what it makes of ten of them.

    python peers.py [--folder DIR] [--raw FILE] [--seconds N]

BENCH_DISCREET, BENCH_FASTMCP and BENCH_FASTAPI_MCP name interpreters: with discreet[openapi] and jsonschema; with
fastmcp; with fastapi-mcp, `mcp<2` and PyYAML. One that is not named is left out. `cases` are those of `peer_cases.py`: each is a
check that can be run again by itself. The folder keeps the documents.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any
from urllib.parse import unquote

from corpus import TEN, fetch
from probe import METHODS, raw_of

HERE = Path(__file__).resolve().parent
PROGRAMS = {"discreet": "BENCH_DISCREET", "fastmcp": "BENCH_FASTMCP", "fastapi-mcp": "BENCH_FASTAPI_MCP"}


def ask(program: str, *words: str, seconds: float) -> Any:
    interpreter = os.environ[PROGRAMS[program]]
    with TemporaryDirectory() as cache:
        try:
            done = subprocess.run(
                [interpreter, str(HERE / "peer_run.py"), program, *words],
                env={**os.environ, "XDG_CACHE_HOME": cache},
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"not in {seconds:.0f} s"}
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {"failed": f"status {done.returncode}: {done.stderr.strip()[-200:]}"}


def features(path: Path) -> dict[str, int]:
    """How often a document says what programs lose, counted without any of them."""
    raw = raw_of(path.read_bytes())
    components = raw.get("components", {})

    def followed(node: Any) -> Any:
        for _ in range(8):
            if not (isinstance(node, dict) and isinstance(node.get("$ref"), str)):
                break
            target: Any = raw
            for token in node["$ref"].split("/")[1:]:
                token = unquote(token).replace("~1", "/").replace("~0", "~")
                target = target[int(token)] if isinstance(target, list) else target.get(token, {})
            node = target
        return node

    count = dict.fromkeys(
        (
            *("error responses", "response schemas", "header params", "cookie params", "explode=false", "deepObject"),
            *("multipart", "other bodies", "no operationId", "shared params", "own servers", "HEAD, OPTIONS, TRACE"),
        ),
        0,
    )
    for item in raw.get("paths", {}).values():
        item = followed(item)
        for method, operation in item.items():
            if method not in METHODS:
                continue
            responses = operation.get("responses", {})
            count["error responses"] += sum(str(status)[0] in "345d" for status in responses)
            good = [followed(each) for status, each in responses.items() if str(status)[0] == "2"]
            count["response schemas"] += any(
                "schema" in media for each in good for media in each.get("content", {}).values()
            )
            params = [followed(each) for each in [*item.get("parameters", ()), *operation.get("parameters", ())]]
            count["header params"] += sum(each.get("in") == "header" for each in params)
            count["cookie params"] += sum(each.get("in") == "cookie" for each in params)
            count["deepObject"] += sum(each.get("style") == "deepObject" for each in params)
            count["explode=false"] += sum(_is_joined(each, followed) for each in params)
            types = followed(operation.get("requestBody", {})).get("content", {})
            count["multipart"] += any("multipart" in media for media in types)
            count["other bodies"] += any("json" not in media and "multipart" not in media for media in list(types)[:1])
            count["no operationId"] += "operationId" not in operation
            count["shared params"] += bool(item.get("parameters"))
            count["own servers"] += "servers" in operation or "servers" in item
            count["HEAD, OPTIONS, TRACE"] += method in ("head", "options", "trace")
    schemas = components.get("schemas", {})
    count["recursive types"] = sum(_reaches(name, schemas) for name in schemas)
    count["nullable"] = _nullables(raw)
    return count


def _is_joined(param: dict[str, Any], followed: Any) -> bool:
    explode = param.get("explode", param.get("in") in ("query", "cookie") and param.get("style", "form") == "form")
    return followed(param.get("schema", {})).get("type") == "array" and not explode


def _reaches(name: str, schemas: dict[str, Any]) -> bool:
    seen: set[str] = set()
    pending = [name]
    while pending:
        for other in _references(schemas.get(pending.pop())):
            if other == name:
                return True
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return False


def _references(node: Any) -> Iterable[str]:
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if isinstance(part.get("$ref"), str):
                yield part["$ref"].removeprefix("#/components/schemas/")
            pending += part.values()
        elif isinstance(part, list):
            pending += part


def _nullables(node: Any) -> int:
    found, pending = 0, [node]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            kind = part.get("type")
            found += part.get("nullable") is True or kind == "null" or (isinstance(kind, list) and "null" in kind)
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return found


def row(*cells: object) -> str:
    return f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares programs that import OpenAPI documents.")
    parser.add_argument("--folder", type=Path, default=Path(gettempdir()) / "discreet-openapi-documents")
    parser.add_argument("--raw", type=Path, help="a file for all that was found, as JSON")
    parser.add_argument("--seconds", type=float, default=120, help="the most that one import may take, tools and all")
    options = parser.parse_args()
    programs = [name for name, variable in PROGRAMS.items() if os.environ.get(variable)]
    cases = {name: ask(name, "cases", seconds=600) for name in programs}
    first = next(iter(cases.values()))
    print(row("a document says", "what is checked", *programs), row("---", "---", *["---"] * len(programs)), sep="\n")
    for place, case in enumerate(first):
        print(
            row(
                case["topic"], case["says"], *("yes" if cases[name][place]["passed"] else "**no**" for name in programs)
            )
        )
    kept = [f"{sum(case['passed'] for case in cases[name])} of {len(first)}" for name in programs]
    print(row("all", "", *kept))
    print("\nWhat was seen instead:\n")
    for name in programs:
        for case in cases[name]:
            if not case["passed"]:
                print(f"- {name}, {case['says']}: `{case['seen'][:160]}`".replace("``", "(nothing)"))
    paths = fetch(options.folder, TEN)
    counted = {name: features(path) for name, path in paths.items()}
    print("\n" + row("in the documents", *paths), row("---", *["---:"] * len(paths)), sep="\n")
    for feature in next(iter(counted.values())):
        print(row(feature, *(f"{counted[name][feature]:,}" for name in paths)))
    print(
        "\n"
        + row(
            "document",
            "program",
            "tools",
            "s (CPU)",
            "memory, MB",
            "valid inputs",
            "refs that lead somewhere",
            "results declared",
            "errors declared",
        )
    )
    print(row(*["---"] * 9), flush=True)
    found: dict[str, Any] = {"cases": cases, "features": counted, "imports": {}}
    for name, path in paths.items():
        for program in programs:
            each = ask(program, "import", str(path), seconds=options.seconds)
            found["imports"][f"{name} {program}"] = each
            if "failed" in each:
                print(
                    row(name, program, "none", "", "", "", "", "", each["failed"][:110].replace("\n", " ")), flush=True
                )
                continue
            of = f"of {each['looked']}"
            cells = [f"{each[kind]} {of}" for kind in ("valid", "whole", "outputs")]
            cost = f"{each['seconds']:.2f} ({each['cpu']:.2f})", f"{each['peak'] / 1e6:.0f}"
            print(row(name, program, each["operations"], *cost, *cells, each["errors"]), flush=True)
    if options.raw:
        options.raw.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
