"""Values that fit JSON Schema 2020-12, as small as they can be. They are made by guessing; who uses one checks it."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

MAX_DEPTH = 24


def sample(schema: Any, root: dict[str, Any] | None = None, depth: int = 0) -> Any:
    """A value that is likely to fit a schema. References lead into `root`."""
    root = schema if root is None and isinstance(schema, dict) else root or {}
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return {} if depth == 0 else None
    for word in ("const", "default"):
        if word in schema and schema[word] is not None:
            return schema[word]
    if "const" in schema:
        return None
    if schema.get("enum"):
        return next((each for each in schema["enum"] if each is not None), None)
    merged = _merged(schema, root, depth)
    for word in ("oneOf", "anyOf"):
        for branch in merged.get(word) or ():
            rest = {key: value for key, value in merged.items() if key != word}
            if _merged(branch, root, depth).get("type") != "null":
                return sample(_joined(rest, _merged(branch, root, depth)), root, depth + 1)
    if merged.get("enum") or "const" in merged:
        return sample({key: merged[key] for key in ("const", "enum") if key in merged}, root, depth)
    return _by_type(merged, root, depth)


def _by_type(schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    if kind is None:
        kind = "object" if "properties" in schema or "required" in schema else "array" if "items" in schema else ""
    match kind:
        case "object" | "":
            properties = schema.get("properties", {})
            made = {name: sample(properties.get(name, {}), root, depth + 1) for name in schema.get("required", ())}
            missing = max(0, schema.get("minProperties", 0) - len(made))
            return made | {
                f"x{n}": sample(schema.get("additionalProperties", {}), root, depth + 1) for n in range(missing)
            }
        case "array":
            first = [sample(each, root, depth + 1) for each in schema.get("prefixItems", ())]
            more = max(0, schema.get("minItems", 0) - len(first))
            return first + [sample(schema.get("items", {}), root, depth + 1) for _ in range(min(more, 100))]
        case "string":
            return _text(schema)
        case "integer" | "number":
            low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in schema))
            low = max(low, 0) if "maximum" not in schema else min(max(low, 0), schema["maximum"])
            step = schema.get("multipleOf", 1)
            return -(-low // step) * step
        case "boolean":
            return True
    return None


FORMATS = {"date-time": "2020-01-01T00:00:00Z", "date": "2020-01-01", "uuid": "00000000-0000-4000-8000-000000000000"}


def _text(schema: dict[str, Any]) -> str:
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]]
    if schema.get("examples"):
        return str(schema["examples"][0])
    return "a" * max(1, schema.get("minLength", 1))


def _merged(schema: Any, root: dict[str, Any], depth: int) -> dict[str, Any]:
    """The schema with what it refers to, and all that it is all of."""
    result: dict[str, Any] = dict(schema) if isinstance(schema, dict) else {}
    for _ in range(MAX_DEPTH):
        if "$ref" in result:
            result = _joined({k: v for k, v in result.items() if k != "$ref"}, at(result["$ref"], root))
        elif "allOf" in result:
            parts = result.pop("allOf")
            for part in parts:
                result = _joined(result, _merged(part, root, depth + 1) if depth < MAX_DEPTH else {})
        else:
            break
    return result


def _joined(one: dict[str, Any], other: Any) -> dict[str, Any]:
    if not isinstance(other, dict):
        return one
    joined = {**other, **one}
    for word in ("properties",):
        if word in one and word in other:
            joined[word] = {**other[word], **one[word]}
    if "required" in one and "required" in other:
        joined["required"] = list(dict.fromkeys([*one["required"], *other["required"]]))
    if "allOf" in one and "allOf" in other:
        joined["allOf"] = [*one["allOf"], *other["allOf"]]
    return joined


def at(ref: str, root: dict[str, Any]) -> Any:
    """What a reference leads to."""
    part: Any = root
    for token in unquote(ref.removeprefix("#")).split("/")[1:]:
        part = part.get(token.replace("~1", "/").replace("~0", "~"), {}) if isinstance(part, dict) else {}
    return part
