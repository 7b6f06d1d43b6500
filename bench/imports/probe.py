"""One measurement of one document in a process of its own: `python probe.py cold|warm|trace|facts FILE`. Prints JSON.

`documents.py` runs it. `cold` and `warm` differ in the cache that they find: XDG_CACHE_HOME says where it is. Linux.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

TINY = {"openapi": "3.0.0", "info": {}, "paths": {"/a": {"get": {"responses": {"200": {"description": ""}}}}}}
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")


def service_of(document: Any) -> Any:
    """Imports a document. It has one credential for all schemes, and goes nowhere."""
    import discreet

    return discreet.from_openapi(
        document, namespace="x", base_url="http://127.0.0.1:9", credentials="token", allow_private=True
    )


def load_all() -> None:
    """All modules that an import loads, those of the libraries, too."""
    with TemporaryDirectory() as folder:
        for suffix in ("json", "yaml"):
            path = Path(folder) / f"tiny.{suffix}"
            path.write_text(json.dumps(TINY) if suffix == "json" else "# YAML\n" + json.dumps(TINY))
            for _ in "cold", "warm":
                service_of(str(path))


def status(word: str) -> int:
    """Bytes that `/proc` tells of this process."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(word))
    return int(line.split()[1]) * 1024


def timed(path: str) -> dict[str, Any]:
    """Seconds and memory of an import, the libraries loaded."""
    load_all()
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again
    before, began, ran = status("VmRSS"), time.perf_counter(), time.process_time()
    service = service_of(path)
    wall, cpu = time.perf_counter() - began, time.process_time() - ran
    return {
        "operations": len(service.operations),
        "seconds": wall,
        "cpu": cpu,
        "peak": status("VmHWM") - before,
        "after": status("VmRSS") - before,
    }


def traced(path: str) -> dict[str, Any]:
    """Bytes that Python allocates at the most, and has in the end."""
    load_all()
    tracemalloc.start()
    service = service_of(path)
    after, peak = tracemalloc.get_traced_memory()
    del service
    return {"peak": peak, "after": after}


def facts(path: str) -> dict[str, Any]:
    """What is in the document, counted without discreet, and what of it the import has."""
    import jsonschema_rs

    from discreet.imports.archive import pack
    from discreet.imports.openapi.reader import read_openapi

    text = Path(path).read_bytes()
    raw = raw_of(text)
    declared = declared_in(raw)
    imported = read_openapi(text, origin=Path(path).as_uri())
    data = pack(imported)
    is_valid = jsonschema_rs.Draft202012Validator(META)
    schemas = invalid = dangling = 0
    parts: list[Any] = list(imported.definitions.values())
    for operation in imported.operations:
        parts += [operation.input, operation.output, *(error.schema for error in operation.errors)]
    for part in parts:
        if part is not None:
            schemas += 1
            invalid += not is_valid.is_valid(part)
            dangling += any(name not in imported.definitions for name in references(part))
    kept = {(each.method, each.path): {error.code for error in each.errors} for each in imported.operations}
    lost = [
        (method, where, code)
        for (method, where), codes in declared.items()
        for code in codes
        if (method, where) in kept and code not in kept[method, where]
    ]
    reasons = Counter(
        _class_of(note.reason) for note in imported.notes if note.kind == "left-out" and not is_side(note.reason)
    )
    examples = {
        _class_of(note.reason): (note.pointer, note.reason) for note in imported.notes if note.kind == "left-out"
    }
    return {
        "openapi": str(raw.get("openapi")),
        "title": str(raw.get("info", {}).get("title")),
        "version": str(raw.get("info", {}).get("version")),
        "licence": str(raw.get("info", {}).get("license", {}).get("name") or ""),
        "bytes": len(text),
        "declared_operations": len(declared),
        "operations": len(imported.operations),
        "declared_errors": sum(map(len, declared.values())),
        "errors": sum(len(each.errors) for each in imported.operations),
        "lost_errors": lost[:20],
        "kinds": Counter(each.kind for each in imported.operations),
        "renamed": sum(note.kind == "renamed" for note in imported.notes),
        "changed": sum(note.kind == "changed" for note in imported.notes),
        "changed_reasons": Counter(_class_of(n.reason) for n in imported.notes if n.kind == "changed").most_common(12),
        "left_out": reasons,
        "left_out_examples": {reason: examples[reason] for reason in reasons},
        "definitions": len(imported.definitions),
        "schemas": schemas,
        "invalid_schemas": invalid,
        "dangling": dangling,
        "packed": len(data),
    }


META = {"$ref": "https://json-schema.org/draft/2020-12/schema"}


def is_side(reason: str) -> bool:
    """Whether a note is of what is no operation of the server: a callback, a webhook, a header that HTTP itself sets."""
    return "the other side calls" in reason or "is no param: it follows" in reason


def _class_of(reason: str) -> str:
    """A reason without the names in it."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|/\S+|\d+", "…", reason)


def raw_of(text: bytes) -> Any:
    if text.lstrip()[:1] == b"{":
        return json.loads(text)
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(text, loader)


def declared_in(raw: Any) -> dict[tuple[str, str], set[str]]:
    """The operations of a document by method and path, each with the errors that it declares."""
    found: dict[tuple[str, str], set[str]] = {}
    for path, item in raw.get("paths", {}).items():
        for method, operation in item.items():
            if method in METHODS and isinstance(operation, dict):
                statuses = {
                    str(each).upper() for each in operation.get("responses", {}) if not str(each).startswith("x-")
                }
                found[method.upper(), path] = {f"HTTP_{each}" for each in statuses if each[0] in "345D"}
    return found


def references(schema: Any) -> set[str]:
    names: set[str] = set()
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            ref = part.get("$ref")
            if isinstance(ref, str) and ref.startswith("#/$defs/"):
                names.add(ref.removeprefix("#/$defs/").partition("/")[0].replace("~1", "/").replace("~0", "~"))
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return names


def main() -> None:
    mode, path = sys.argv[1:3]
    measure = {"cold": timed, "warm": timed, "trace": traced, "facts": facts}[mode]
    try:
        print(json.dumps(measure(os.path.abspath(path))))
    except Exception as exc:  # noqa: BLE001 - what goes wrong with a document is what the table says of it
        print(json.dumps({"failed": f"{type(exc).__name__}: {exc}"}))


if __name__ == "__main__":
    main()
