"""Makes schemas that ask for as much work as they can, of every applicator of JSON Schema, and small values for them.

As a program: reads a range of seeds, imports each schema as that of a tool and of an OpenAPI document, and checks its values.
"""

from __future__ import annotations

import random
import resource
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from discreet.imports.archive import ImportArchive, pack
from discreet.imports.http.model import HttpImport, HttpOperation
from discreet.imports.mcp.model import Agreed, Listing, McpImport, McpOperation
from discreet.imports.mcp.reading import read_listing
from discreet.imports.model import ImportFailed
from discreet.imports.openapi.parsing import DocumentError
from discreet.imports.openapi.reader import read_openapi
from discreet.imports.validation import Checker
from discreet.schemas.phrases import describe_schema, schema_kinds

NAMES = ("a", "b")
PATTERNS = ("a", "b", "^[ab]$", ".")
ONE = ("additionalProperties", "propertyNames", "unevaluatedProperties", "items", "contains", "unevaluatedItems",
       "not", "if", "then", "else", "additionalItems", "$ref", "$dynamicRef", "$recursiveRef")  # fmt: skip
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
TABLES = ("properties", "patternProperties", "dependentSchemas", "dependencies")
APPLICATORS = (*ONE, *LISTS, *TABLES)

CPU_SECONDS_OF_ONE = 5
"""Of one schema with all its values, though each takes a few hundredths."""
MEMORY = 2 << 30


def hostile_schema(seed: int) -> dict[str, Any]:
    """A chain of schemas, each of which applies the next by several ways at once; its last one may begin anew."""
    rng = random.Random(seed)
    levels = rng.choice((2, 6, 14, 30, 60))
    words = rng.sample(APPLICATORS, rng.randint(1, 4))
    definitions = {}
    for at in range(levels):
        back = rng.random() < 0.1
        following = {"$ref": f"#/$defs/L{rng.randint(0, at) if back else at + 1}"}
        chosen = words if rng.random() < 0.8 else rng.sample(APPLICATORS, 2)
        definitions[f"L{at}"] = _level(rng, chosen, following)
    end = {"$ref": f"#/$defs/L{rng.randint(0, levels - 1)}"}
    ends = (
        {"type": "string"},
        {"type": "null"},
        {},
        True,
        False,
        {"enum": [[n] for n in range(300)]},
        {"items": end, "contains": end},
    )
    definitions[f"L{levels}"] = rng.choice(ends)
    root = {"type": "object", "properties": {"a": {"$ref": "#/$defs/L0"}}, "required": ["a"], "$defs": definitions}
    return root if rng.random() < 0.8 else {"$schema": "http://json-schema.org/draft-07/schema#", **root}


def _level(rng: random.Random, words: Any, following: dict[str, Any]) -> dict[str, Any]:
    level: dict[str, Any] = {}
    for word in words:
        if word in LISTS and (word not in level):
            level[word] = [following] * rng.randint(1, 3)
        elif word in TABLES:
            keys = rng.sample(PATTERNS, 3) if word == "patternProperties" else NAMES
            level[word] = dict.fromkeys(keys, following)
        elif word.endswith("Ref"):
            level[word] = "#"
        else:
            level[word] = following["$ref"] if word == "$ref" else following
    if rng.random() < 0.2:
        level["type"] = rng.choice(("object", "array", ["object", "array", "string"]))
    return level


def small_values(seed: int) -> Iterator[Any]:
    """Values of a few bytes to some hundred."""
    rng = random.Random(seed)
    yield from (1, "", [], {}, [[]], {"a": 1, "b": 1}, [1, 1], {"a": {"a": 1}})
    for depth in (3, 8, 20, 60, 300):
        value: Any = rng.choice((1, "x", [], {}))
        for _ in range(depth):
            value = rng.choice(([value], [value, value], {"a": value}, {"a": value, "b": value}, {"b": value})) if depth < 10 else (
                rng.choice(([value], {"a": value}))
            )  # fmt: skip
        yield value


def imported_documents(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schema as imports write it: of a tool, and of a document."""
    tool = {"name": "t", "inputSchema": schema, "outputSchema": schema}
    found = read_listing(Listing(tools=(tool,)), Agreed("2025-06-18"))
    packed = ImportArchive(pack(found), McpImport, McpOperation)
    yield packed.document(packed.operation(0).input)
    text = msgspec.json.encode({name: part for name, part in schema.items() if name != "$defs"})
    own = msgspec.json.decode(text.replace(b"#/$defs/", b"#/components/schemas/"))
    shared = msgspec.json.decode(msgspec.json.encode(schema["$defs"]).replace(b"#/$defs/", b"#/components/schemas/"))
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": "https://a.example"}],
        "paths": {"/t": {"post": {"requestBody": {"content": {"application/json": {"schema": own}}}}}},
        "components": {"schemas": shared},
    }
    try:
        read = read_openapi(msgspec.json.encode(document))
    except DocumentError:
        return
    of = ImportArchive(pack(read), HttpImport, HttpOperation)
    if of.entries:
        yield of.document(of.operation(0).input)


def try_seed(seed: int) -> int:
    """Check all values against the schema. Returns how many were checked; a schema that is refused has none."""
    checked = 0
    for document in imported_documents(hostile_schema(seed)):
        describe_schema(document, document)
        schema_kinds(document, document)
        try:
            checker = Checker(document)
        except ImportFailed:
            continue
        for value in small_values(seed):
            for part in (value, {"a": value}, {"body": {"a": value}}):
                checker.fault(part)
                checked += 1
    return checked


def main(first: str, last: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    checked = 0
    for seed in range(int(first), int(last)):
        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(used.ru_utime + used.ru_stime) + CPU_SECONDS_OF_ONE + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, -1))
        sys.stdout.write(f"{seed}\n")
        sys.stdout.flush()
        checked += try_seed(seed)
    sys.stdout.write(f"checked {checked}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
