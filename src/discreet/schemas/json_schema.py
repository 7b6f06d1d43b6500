"""Types as JSON Schema 2020-12: a schema accepts the values that msgspec's decoder accepts for the type.

A schema describes values, but a decoder reads texts: a number is accepted if one of its notations is. `docs/schemas.md`
lists where a schema can't say what the decoder does. Knows nothing of operations and never sees a payload.
"""

from __future__ import annotations

import enum
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import inspect as types

from ..daemon.operations.json_types import without_metadata
from ..daemon.operations.type_phrases import ObjectLike, TupleLike, required_length, tuple_items
from ..errors.decoders import ExternalSchema, type_info
from ..errors.redaction import scrub_known
from .patterns import to_ecma

_TEXTS: Final = frozenset({"title", "description", "$comment"})
"""Keywords of which the rest of the text stays. Any other keyword with a secret in its value is left out."""


def without_known_secrets(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """These keywords of a schema without registered secrets: a default may have been read from the environment. Examples with
    a secret are left out one by one. What else an author writes into a schema is meant to be seen."""
    result: dict[str, Any] = {}
    for keyword, value in keywords.items():
        if keyword in _TEXTS and isinstance(value, str):
            result[keyword] = scrub_known(value)
        elif keyword == "examples" and isinstance(value, list | tuple):
            result[keyword] = [example for example in value if not _holds_secret(example)]
        elif not _holds_secret(value):
            result[keyword] = value
    return result


def document_without_known_secrets(document: dict[str, Any]) -> dict[str, Any]:
    """A whole schema of another program without registered secrets, wherever they stand in it."""
    text = msgspec.json.encode(document).decode()
    found = scrub_known(text)
    if found == text:
        return document
    try:
        decoded: dict[str, Any] = msgspec.json.decode(found)
    except msgspec.DecodeError:  # what stands for the secret has broken a number or an escape
        return {}
    return decoded


def _holds_secret(value: object) -> bool:
    text = value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
    return scrub_known(text) != text


JsonSchema: TypeAlias = dict[str, Any]
"""One schema as JSON."""

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

PYTHON_PATTERN: Final = "x-python-pattern"
"""Our own keyword for patterns that ECMA 262 can't express. Validators ignore it; comparisons report its changes."""

_BASE64: Final = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
DURATION: Final = (  # days to seconds, as msgspec reads and writes it; a fraction only in the last part
    r"^[+-]?[Pp](?=[\dTt])(?:\d+(?:\.\d+(?=[Dd]$))?[Dd])?"
    r"(?:[Tt](?=\d)(?:\d+(?:\.\d+(?=[Hh]$))?[Hh])?(?:\d+(?:\.\d+(?=[Mm]$))?[Mm])?(?:\d+(?:\.\d+)?[Ss])?)?$"
)
_BYTES: Final[JsonSchema] = {"type": "string", "contentEncoding": "base64", "pattern": _BASE64}
_LEAVES: Final[dict[type[types.Type], JsonSchema]] = {  # a type that is neither here nor handled below accepts anything
    types.NoneType: {"type": "null"},
    types.BoolType: {"type": "boolean"},
    types.IntType: {"type": "integer"},
    types.FloatType: {"type": "number"},
    types.DecimalType: {"type": ["string", "number"], "format": "decimal"},
    types.StrType: {"type": "string"},
    types.BytesType: _BYTES,
    types.ByteArrayType: _BYTES,
    types.MemoryViewType: _BYTES,
    types.DateType: {"type": "string", "format": "date"},
    types.TimeDeltaType: {"type": "string", "pattern": DURATION},
    types.UUIDType: {"type": "string", "format": "uuid"},
}
_FORMATS: Final[dict[type[types.Type], tuple[str, str]]] = {  # with and without time zone
    types.DateTimeType: ("date-time", "date-time-local"),
    types.TimeType: ("time", "time-local"),
}
_NUMBER_KEYS: Final[dict[type[types.Type], str]] = {
    types.IntType: r"^-?(?:0|[1-9]\d*)$",
    types.FloatType: r"^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$",
}
_BOUNDS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS: Final = {"min_length": "min{}", "max_length": "max{}"}
_HASHABLE: Final[JsonSchema] = {"type": ["string", "number", "boolean", "null"]}
_GENERATED_DOCS: Final = re.compile(
    r"An enumeration\.|\w+\(.*\)", re.DOTALL
)  # docstrings written by enum, dataclass, NamedTuple
_DICTS: Final = (types.DictType, getattr(types, "FrozenDictType", types.DictType))  # the latter since msgspec 0.21


def json_schema(tp: Any, *, extra: Any = None, titled: bool = True) -> JsonSchema:
    """The schema of a type as a document of its own: `$schema` first, `$defs` last, and no reference out of it.

    `extra` is the type of undeclared members of an object; None leaves them as the type itself has them. With
    `titled=False` the document has no `title`, for generated types whose name says nothing. Members keep their order.
    """
    if isinstance(tp, ExternalSchema):
        document = {"$schema": DIALECT, **document_without_known_secrets(tp.load())}
        return document if titled else {word: value for word, value in document.items() if word != "title"}
    writer = _Writer()
    node = type_info(tp)
    body = writer.body(node)
    if extra is not None:
        body["additionalProperties"] = writer.write(type_info(extra)) or True
    if not titled:
        body.pop("title", None)
    writer.require_tags()
    definitions = {"$defs": dict(sorted(writer.definitions.items()))} if writer.definitions else {}
    return {"$schema": DIALECT} | body | definitions


class _Writer:
    """Writes the schemas of one document, and collects its named types in `definitions`."""

    def __init__(self) -> None:
        self.definitions: dict[str, JsonSchema] = {}
        self._names: dict[Any, str] = {}
        self._tags: dict[str, str] = {}
        """The tags of the types that a union tells apart by them, by the types' names."""

    def require_tags(self) -> None:
        """Have these types require their tags, which a struct may omit where it is no member of a union. It is said of the types
        themselves, as many readers ignore what stands beside a reference."""
        for name, tag_field in self._tags.items():
            schema = self.definitions[name]
            schema["properties"][tag_field] = {"const": schema["properties"][tag_field]["enum"][0]}
            schema["required"] = [tag_field, *schema.get("required", ())]

    def write(self, node: types.Type) -> JsonSchema:
        """The schema of a type; for a named type a reference."""
        match node:
            case types.Metadata():
                return self.write(node.type) | without_known_secrets(node.extra_json_schema or {})
            case (
                types.StructType()
                | types.DataclassType()
                | types.TypedDictType()
                | types.NamedTupleType()
                | types.EnumType()
            ):
                return {"$ref": f"#/$defs/{self._define(node)}"}
            case _:
                return self.body(node)

    def body(self, node: types.Type) -> JsonSchema:
        """The schema of a type itself, without a reference to it."""
        match node:
            case types.Metadata():
                return self.body(node.type) | without_known_secrets(node.extra_json_schema or {})
            case types.UnionType():
                return self._union(node)
            case types.LiteralType():
                return {"enum": list(node.values)}
            case types.EnumType():
                return _named(node.cls) | _enum(node.cls)
            case types.StructType() if node.array_like:
                return _named(node.cls) | self._tuple(node, closed=node.forbid_unknown_fields)
            case types.NamedTupleType():
                return _named(node.cls) | self._tuple(node, closed=True)
            case types.TupleType():
                return self._tuple(node, closed=True)
            case types.StructType() | types.DataclassType() | types.TypedDictType():
                return _named(node.cls) | self._object(node)
            case types.CollectionType():
                return {"type": "array", "items": self._items(node)} | _lengths(node, "Items")
            case _ if isinstance(node, _DICTS):
                return self._dict(node)
            case _:
                return _leaf(node)

    def _define(self, node: Any) -> str:  # Any: the nodes that have a class
        """The name of a type in this document. It is assigned before the type is written, which may refer to itself."""
        if node.cls in self._names:
            return self._names[node.cls]
        own = getattr(node.cls, "__name__", None) or repr(node.cls)
        origin = getattr(node.cls, "__origin__", None)
        if origin is not None:
            own = "_".join([origin.__name__, *(getattr(arg, "__name__", str(arg)) for arg in node.cls.__args__)])
        base = name = re.sub(r"\W", "_", own, flags=re.ASCII)
        taken = set(self._names.values())
        count = 1
        while name in taken:
            count += 1
            name = f"{base}_{count}"
        self._names[node.cls] = name
        self.definitions[name] = self.body(node)
        return name

    def _union(self, union: types.UnionType) -> JsonSchema:
        """The alternatives. Structs that are told apart by their tags are one of them, if there are others."""
        tagged = [member for member in union.types if _tag_field(member)]
        if len(tagged) < 2:
            tagged = []
        written: list[JsonSchema] = [self._tagged(tagged)] if tagged else []
        if len(tagged) == len(union.types):
            return written[0]
        for member in union.types:
            if member not in tagged:
                schema = self.write(member)
                written += schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
        return {"anyOf": written}

    def _tagged(self, members: Sequence[types.Type]) -> JsonSchema:
        """Structs whose tags differ. The keyword `discriminator` is that of OpenAPI, where tags are texts."""
        written = [self.write(member) for member in members]
        plain: list[Any] = [without_metadata(member) for member in members]
        tag_field = plain[0].tag_field
        self._tags |= {self._names[each.cls]: tag_field for each in plain}
        if not all(isinstance(each.tag, str) for each in plain):
            return {"anyOf": written}
        mapping = {each.tag: f"#/$defs/{self._names[each.cls]}" for each in plain}
        return {"anyOf": written, "discriminator": {"propertyName": tag_field, "mapping": mapping}}

    def _object(self, node: ObjectLike) -> JsonSchema:
        properties: dict[str, JsonSchema] = {}
        if isinstance(node, types.StructType) and node.tag_field is not None:
            properties[node.tag_field] = {"enum": [node.tag]}
        for field in node.fields:
            properties[field.encode_name] = self.write(field.type) | _default(field)
        schema: JsonSchema = {"type": "object", "properties": properties}
        required = [field.encode_name for field in node.fields if field.required]
        if required:
            schema["required"] = required
        if isinstance(node, types.StructType) and node.forbid_unknown_fields:
            schema["additionalProperties"] = False
        return schema

    def _tuple(self, node: TupleLike, *, closed: bool) -> JsonSchema:
        items = tuple_items(node)
        fields = () if isinstance(node, types.TupleType) else node.fields
        written = [self.write(item.type) for item in items]
        for index, field in enumerate(reversed(fields), 1):  # from the end: a tag comes before the fields
            written[-index] |= _default(field)
        schema: JsonSchema = {"type": "array"}
        if written:
            schema["prefixItems"] = written
        if closed:
            schema["items"] = False
        least = required_length(items)
        return schema | ({"minItems": least} if least else {})

    def _items(self, node: types.CollectionType) -> JsonSchema | bool:
        """True is written out, since a missing `items` means that undeclared items are ignored."""
        hashed = isinstance(node, types.SetType | types.FrozenSetType)
        if hashed and isinstance(without_metadata(node.item_type), types.AnyType):
            return _HASHABLE
        return self.write(node.item_type) or True

    def _dict(self, node: Any) -> JsonSchema:  # Any: one of `_DICTS`
        keys = self._keys(node.key_type)
        names: JsonSchema = {} if keys in ({}, True) else {"propertyNames": keys}
        values = {"additionalProperties": self.write(node.value_type) or True}
        return {"type": "object"} | names | values | _lengths(node, "Properties")

    def _keys(self, node: types.Type) -> JsonSchema | bool:
        """Keys are strings; keys of another type are read as its JSON text."""
        match node:
            case types.Metadata():
                return self._keys(node.type)
            case types.UnionType():
                return {"anyOf": [self._keys(member) for member in node.types]}
            case types.IntType() | types.FloatType():
                return {"pattern": _NUMBER_KEYS[type(node)]}
            case types.BoolType() | types.NoneType():
                return False
            case types.LiteralType() | types.EnumType():
                schema = self.body(node)
                if "enum" not in schema:
                    return {}
                values = (value for value in schema["enum"] if value is not None)
                return {"enum": [v if isinstance(v, str) else str(v) for v in values]}
            case _:
                return {name: value for name, value in self.body(node).items() if name != "type"}


def _leaf(node: types.Type) -> JsonSchema:
    schema = dict(_LEAVES.get(type(node), {}))
    match node:
        case types.IntType() | types.FloatType():
            return schema | _limits(node, _BOUNDS.items())
        case types.StrType():
            return schema | _lengths(node, "Length") | _pattern(node.pattern)
        case types.BytesType() | types.ByteArrayType() | types.MemoryViewType():
            return schema | _lengths(node, "Length", of=lambda count: 4 * math.ceil(count / 3))
        case types.DateTimeType() | types.TimeType():
            zoned, local = ({"type": "string", "format": name} for name in _FORMATS[type(node)])
            return {"anyOf": [zoned, local]} if node.tz is None else zoned if node.tz else local
        case types.CustomType() if node.cls is not object:
            return {"title": node.cls.__name__}
        case _:
            return schema


def _limits(node: Any, names: Iterable[tuple[str, str]]) -> JsonSchema:  # Any: whichever node has these attributes
    given = {keyword: getattr(node, name) for name, keyword in names}
    return {keyword: limit for keyword, limit in given.items() if limit is not None}


def _lengths(node: Any, unit: str, of: Callable[[int], int] = int) -> JsonSchema:  # Any: as above
    """For a set this is exact only without duplicates: msgspec counts its distinct items."""
    limits = _limits(node, ((name, keyword.format(unit)) for name, keyword in _LENGTHS.items()))
    return {keyword: of(limit) for keyword, limit in limits.items()}


def _pattern(pattern: str | None) -> JsonSchema:
    if pattern is None:
        return {}
    portable = to_ecma(pattern)
    return {PYTHON_PATTERN: pattern} if portable is None else {"pattern": portable}


def _enum(cls: type[enum.Enum]) -> JsonSchema:
    if cls._missing_.__func__ is not enum.Enum._missing_.__func__:  # type: ignore[attr-defined]
        # The enum accepts more values than those of its members, as flags do.
        return {"type": "string" if all(isinstance(member.value, str) for member in cls) else "integer"}
    return {"enum": [member.value for member in cls]}


def _default(field: types.Field) -> JsonSchema:
    value = field.default
    if value is msgspec.NODEFAULT:
        if field.default_factory not in (list, dict, set):
            return {}
        value = field.default_factory()
    if isinstance(value, float) and not math.isfinite(value):
        return {}
    try:
        default = msgspec.to_builtins(value, str_keys=True, order="deterministic")
    except (TypeError, ValueError):  # of a type that msgspec does not encode
        return {}
    return without_known_secrets({"default": default})


def _named(cls: Any) -> JsonSchema:
    """A type's name as the title, and the first paragraph of its own docstring as the description."""
    plain = getattr(cls, "__origin__", cls)
    doc = inspect.cleandoc(plain.__dict__.get("__doc__") or "").split("\n\n")[0]
    described = {} if not doc or _GENERATED_DOCS.fullmatch(doc) else {"description": " ".join(doc.split())}
    return {"title": plain.__name__} | without_known_secrets(described)


def _tag_field(node: types.Type) -> str | None:
    plain = without_metadata(node)
    return plain.tag_field if isinstance(plain, types.StructType) and not plain.array_like else None
