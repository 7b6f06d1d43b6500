"""What the schema of an operation says of its params: the types and the closed lists of values. Asks nobody.

Reads what a server sent, so any JSON is taken. A schema that is not understood says nothing.
"""

from collections.abc import Iterator
from typing import Any, Final, final

import msgspec

_MAX_DEPTH: Final = 8
"""How many references and alternatives are followed into each other. A schema may refer to itself."""

_MAX_VISITED: Final = 1000
"""How many schemas of one param are read. A server may nest alternatives without end."""


@final
class ParamSchemas:
    """The params of one operation, by the `inputSchema` (JSON Schema) of its `services/schema`."""

    def __init__(self, schema: dict[str, Any]) -> None:  # Any: JSON Schema
        properties, definitions = schema.get("properties"), schema.get("$defs")
        self._properties: dict[str, Any] = properties if isinstance(properties, dict) else {}
        self._definitions: dict[str, Any] = definitions if isinstance(definitions, dict) else {}

    def names(self) -> list[str]:
        """The params, in the order of their declaration."""
        return list(self._properties)

    def values(self, name: str) -> list[str]:
        """The values of a closed list, as they are written on a command line; none where any value may come."""
        return list(dict.fromkeys(_written(value) for plain in self._plain(name) for value in _listed(plain)))

    def wants_text(self, name: str, json: bytes) -> bool:
        """Whether the param takes strings, but no value of the JSON type of this one."""
        given, taken = _TYPES.get(json[:1], "number"), set[str]()
        for plain in self._plain(name):
            types = plain.get("type")
            listed = types if isinstance(types, list) else [types] if types else map(_type_of, _listed(plain))
            taken.update("number" if kind == "integer" else str(kind) for kind in listed)
        return "string" in taken and given not in taken

    def _plain(self, name: str) -> Iterator[dict[str, Any]]:
        """The alternatives of a param that are neither references nor alternatives themselves."""
        waiting, visited = [(self._properties.get(name), 0)], 0
        while waiting and visited < _MAX_VISITED:
            schema, depth = waiting.pop(0)
            visited += 1
            if not isinstance(schema, dict) or depth > _MAX_DEPTH:
                continue
            reference, branches = schema.get("$ref"), schema.get("anyOf", schema.get("oneOf"))
            if isinstance(reference, str):
                waiting.append((self._definitions.get(reference.removeprefix("#/$defs/")), depth + 1))
            elif isinstance(branches, list):
                waiting += [(branch, depth + 1) for branch in branches[:_MAX_VISITED]]
            else:
                yield schema


_TYPES: Final = {b'"': "string", b"{": "object", b"[": "array", b"t": "boolean", b"f": "boolean", b"n": "null"}
"""The JSON type that a text has which begins so; every other text is a number."""


def _listed(schema: dict[str, Any]) -> list[Any]:
    if "const" in schema:
        return [schema["const"]]
    if schema.get("type") == "boolean":
        return [True, False]
    values = schema.get("enum")
    return values if isinstance(values, list) else []


def _type_of(value: object) -> str:
    return _TYPES.get(msgspec.json.encode(value)[:1], "number")


def _written(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
