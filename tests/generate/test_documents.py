"""Names, texts, types and documents of any server: each gives a client that can be imported, or one error in one line."""

from __future__ import annotations

import ast
import datetime
import enum
import json
import keyword
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypedDict, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from discreet import Service
from discreet.daemon.operations.registry import Registry
from discreet.generate import SchemaError, python_client, typescript_client
from discreet.generate.python_client import docstring
from discreet.generate.text import constant_name, error_name, member_name, type_name
from discreet.schemas.documents import ErrorSchema, OperationSchema, snapshot
from discreet.testing import in_memory

KEYWORDS = frozenset(keyword.kwlist)


def operation(schema: Any, name: str = "a/b", *, text: str = "", **more: Any) -> OperationSchema:
    """An operation of any server, whose result has this schema."""
    return OperationSchema(name, "a", "query", "external", text, more.get("params", {}), schema, more.get("errors", ()))


def imported(text: str) -> Any:
    """The module of a client, run as far as an import runs it."""
    module = sys.modules["hostile_client"] = ModuleType("hostile_client")  # where annotations are looked up
    exec(compile(text, "hostile_client.py", "exec"), vars(module))
    return module


# -- names and texts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("path", "path"),
        ("mediaType", "mediaType"),
        ("größe", "größe"),
        ("from", "from_"),
        ("a-b", "a_b"),
        ("_id", "id"),
        ("__class__", "class__"),
        ("3d", "n3d"),
        ("ﬁle", "le"),
        ("", "value"),
        ("$", "value"),
    ],
)
def test_members_keep_their_names_where_they_can(wire: str, name: str) -> None:
    assert member_name(wire, KEYWORDS) == name


@given(st.text(max_size=8))
def test_any_text_makes_names(wire: str) -> None:
    member = member_name(wire, KEYWORDS)
    assert member.isidentifier() and not keyword.iskeyword(member) and not member.startswith("_")
    for name in (type_name(wire), constant_name(wire), error_name(wire)):
        assert name.isidentifier() and name[0].isupper()


TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\"'\\*/`\n\t "), max_size=120)


@given(TEXTS, TEXTS)
@example("TimeText", "TimeText")  # a name that the TypeScript module declares when a type needs it
@example("", "str")
@settings(max_examples=60)
def test_no_text_of_a_server_can_leave_the_place_that_it_has(text: str, word: str) -> None:
    error = ErrorSchema("BAD", text, text, {"properties": {"a": {"description": text}}}, 500, "INTERNAL", False)
    params = {"value": {"enum": [word]}, word: {"type": "string", "description": text, "default": word}}
    hostile = operation({"enum": [word]}, text=text, errors=(error,), params={"properties": params})
    harmless = {"properties": {"value": {"enum": ["x" * len(word)]}}}
    plain = operation({"enum": ["x" * len(word)]}, text="Plain.", errors=(error,), params=harmless)
    tree, expected = ast.parse(python_client([hostile])), ast.parse(python_client([plain]))
    # A member that is named like a builtin type hides it, so the module imports `builtins` as well.
    statements = [type(node) for node in tree.body if ast.unparse(node) != "import builtins"]
    assert statements == [type(node) for node in expected.body]
    literals = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert {word, text} <= literals
    outside = _without_comments_and_strings(typescript_client([hostile]))
    assert outside.count("export ") == _without_comments_and_strings(typescript_client([plain])).count("export ")
    assert outside.isascii()


def _without_comments_and_strings(text: str) -> str:
    """What a compiler sees as code. Quotes and comments of the fixed part are balanced."""
    kept, place = [], 0
    while place < len(text):
        if text.startswith("/*", place):
            place = text.index("*/", place) + 2
        elif text.startswith("//", place):
            place = text.index("\n", place)
        elif text[place] in "\"'`":
            end = place + 1
            while text[end] != text[place]:
                end += 2 if text[end] == "\\" else 1
            place = end + 1
        else:
            kept.append(text[place])
            place += 1
    return "".join(kept)


def test_one_type_in_two_operations_is_declared_once_and_another_of_its_name_gets_a_number() -> None:
    one = {"title": "Same", "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    other = {"title": "Same", "type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}
    nested = {"type": "array", "items": {"$ref": "#/$defs/Same"}, "$defs": {"Same": one}}
    text = typescript_client([operation(one, "a/a"), operation(nested, "a/b"), operation(other, "a/c")])
    assert text.count("export interface Same") == 2
    assert "Promise<readonly Same[]>" in text
    assert "Promise<Same2>" in text


# -- types, as authors declare them and as other servers write them ----------------------------------------------------


class Item(msgspec.Struct):
    count: int


class Pair(NamedTuple):
    count: int
    name: str


class Open(NamedTuple):
    count: int
    name: str = ""


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


class Line(msgspec.Struct, tag=True, array_like=True):
    length: int


class Arc(msgspec.Struct, tag=True, array_like=True):
    angle: int


class Row(TypedDict):
    count: int


class Color(enum.Enum):
    RED = "red"


class Tree(msgspec.Struct):
    below: list[Tree] = []


DECLARED: dict[str, tuple[Any, list[Any]]] = {
    # the type, and values of it
    "a struct or a named tuple": (Item | Pair, [Item(1), Pair(1, "a")]),
    "a struct or a named tuple with a default": (Item | Open, [Item(1), Open(1)]),
    "a struct or a list": (Item | list[int], [Item(1), [1, 2]]),
    "a struct or a tuple": (Item | tuple[int, str], [Item(1), (1, "a")]),
    "a dict or a named tuple": (dict[str, int] | Pair, [{"a": 1}, Pair(1, "a")]),
    "a typed dict or a named tuple": (Row | Pair, [{"count": 1}, Pair(1, "a")]),
    "tagged structs": (Cat | Dog, [Cat(9), Dog("a")]),
    "tagged structs or a named tuple": (Cat | Dog | list[int], [Cat(9), Dog("a"), [1]]),
    "tagged arrays": (Line | Arc, [Line(1), Arc(2)]),
    "nested optionals": (list[list[int | None] | None], [[None, [1, None]]]),
    "items of a union": (list[Item | Pair], [[Item(1), Pair(1, "a")]]),
    "values of a union": (dict[str, Item | Pair | None], [{"a": Item(1), "b": Pair(1, "a"), "c": None}]),
    "a literal or a number": (Literal["auto"] | int, ["auto", 3]),
    "an enum or nothing": (Color | None, [Color.RED, None]),
    "a date or a number": (datetime.date | int, [datetime.date(2024, 1, 2), 3]),
    "itself or a list of it": (Tree | list[Tree], [Tree([Tree()]), [Tree()]]),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", DECLARED)
async def test_a_client_calls_with_each_member_of_a_union(case: str) -> None:
    annotation, values = DECLARED[case]
    service = Service("shop")

    def echo(value) -> None:  # type: ignore[no-untyped-def]
        return value  # type: ignore[no-any-return]

    echo.__annotations__ |= {"value": annotation, "return": annotation}
    service.query()(echo)
    client = imported(python_client(snapshot(Registry([service])).operations.values()))
    async with in_memory(service) as peer:
        shop = client.ShopClient(peer)
        for value in values:
            answer = await shop.echo(value)
            assert msgspec.json.encode(answer) == msgspec.json.encode(value)


def reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def record(title: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "title": title, "properties": properties or {"x": {"type": "integer"}}}


DEFINITIONS = {
    "One": record("One"),
    "Two": record("Two"),
    "Kind": record("Kind", kind={"enum": ["a"]}),
    "Same": record("Same", kind={"enum": ["a"]}),
    "Sort": record("Sort", sort={"enum": ["b"]}),
    "Numbered": record("Numbered", kind={"enum": [1]}),
    "Slots": {"type": "array", "title": "Slots", "prefixItems": [{"type": "integer"}]},
    "Loop": reference("Loop"),
    "Cycle": {"anyOf": [reference("Cycle"), {"type": "null"}]},
    "Choice": {"anyOf": [reference("One"), {"type": "null"}]},
}
DATE, TEXT, UUID = {"type": "string", "format": "date"}, {"type": "string"}, {"type": "string", "format": "uuid"}
INTEGERS, WORDS = {"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": TEXT}

FOREIGN: dict[str, list[dict[str, Any]]] = {
    "two records": [reference("One"), reference("Two")],
    "a record or any object": [reference("One"), {"type": "object"}],
    "two tags": [reference("Kind"), reference("Sort")],
    "one tag twice": [reference("Kind"), reference("Same")],
    "tags of two types": [reference("Kind"), reference("Numbered")],
    "a tag or none": [reference("Kind"), reference("One")],
    "a record or a positional one": [reference("One"), reference("Slots")],
    "a tag or a positional one": [reference("Kind"), reference("Slots")],
    "three of them": [reference("One"), reference("Kind"), reference("Slots")],
    "a record or an alias of it and null": [reference("Two"), reference("Choice")],
    "two arrays": [INTEGERS, WORDS],
    "an array or a positional record": [INTEGERS, reference("Slots")],
    "two maps": [{"type": "object", "additionalProperties": TEXT}, {"type": "object", "additionalProperties": DATE}],
    "a date or any text": [DATE, TEXT],
    "a date or a uuid": [DATE, UUID],
    "a date or a word": [DATE, {"enum": ["today"]}],
    "a word or any text": [{"enum": ["a"]}, TEXT],
    "bytes or a text": [{"type": "string", "contentEncoding": "base64"}, TEXT],
    "a reference to itself": [reference("Loop"), {"type": "null"}],
    "a cycle": [reference("Cycle"), TEXT],
    "an unknown type": [{"type": "nonsense"}, {"type": "null"}],
    "anything": [{}],
    "a title alone": [{"title": "Custom"}],
    "a constant": [{"const": 3}],
    "fractions": [{"enum": [1.5, 2]}],
    "no value at all": [{"enum": []}],
    "all of one": [{"allOf": [TEXT]}],
    "a document elsewhere": [{"$ref": "https://elsewhere.example/schema"}],
    "nested objects": [{"type": "object", "properties": {"inner": record("", x={"type": "integer"})}}],
    "a huge number": [{"enum": [2**70, "a"]}],
    "a huge list": [{"enum": [f"word{number}" for number in range(5000)]}],
    "a name out of Python": [record("class", **{"class": TEXT, "None": TEXT, "__init__": TEXT, "self": TEXT, "list": TEXT})],
    "a quote at the end": [{**record("Quote"), "description": 'ends in \\"'}],
    "quotes": [{**record("Quotes"), "description": '"""'}],
    "a backslash at the end": [{**record("Slash"), "description": "ends in \\"}],
}  # fmt: skip


@pytest.mark.parametrize("case", FOREIGN)
def test_a_union_of_any_server_can_be_imported_and_decoded(case: str) -> None:
    schema = {"anyOf": FOREIGN[case], "$defs": DEFINITIONS}
    params = {"type": "object", "properties": {"value": {"anyOf": FOREIGN[case]}}, "$defs": DEFINITIONS}
    made = operation(schema, params=params)
    client = imported(python_client([made]))
    for annotation in get_type_hints(client.AClient.b, vars(client)).values():
        msgspec.json.Decoder(annotation)
    assert "export class AClient" in typescript_client([made])


# -- documents of any form ---------------------------------------------------------------------------------------------


ODD_WORDS = ["", "a", "A", "B", "TimeText", "Struct", "str", "list", "from", "constructor", "self", "a/b", '"', "\\", '\\"', "*/", "${x}",
         "`", "\n", "\u2028", "é", "None", "Session", "Base64", "is", "__proto__", "x" * 40]  # fmt: skip
NAMES = st.sampled_from(ODD_WORDS) | st.text(st.characters(codec="utf-8"), max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=4,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object", "nonsense"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas whose keywords mostly have the types that they should have."""
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "$ref": st.sampled_from(["#/$defs/A", "#/$defs/B", "#/$defs/", "https://elsewhere.example/schema"]),
        "type": TYPES | st.lists(TYPES, max_size=3),
        "title": NAMES,
        "description": TEXTS,
        "default": JSON,
        "const": JSON,
        "enum": st.lists(NAMES, max_size=3)
        | st.lists(st.integers(-(2**70), 2**70), max_size=2)
        | st.lists(JSON, max_size=3),
        "anyOf": st.lists(inner, max_size=3),
        "oneOf": st.lists(inner, max_size=2),
        "properties": st.dictionaries(NAMES, inner, max_size=4),
        "required": st.lists(NAMES, max_size=3),
        "additionalProperties": inner,
        "propertyNames": inner,
        "prefixItems": st.lists(inner, max_size=3),
        "items": inner,
        "minItems": st.integers(-1, 4),
        "minimum": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
        "maxLength": st.integers(0, 9),
        "format": st.sampled_from(["date", "date-time", "decimal", "time", "uuid", "nonsense"]),
        "contentEncoding": st.just("base64"),
    }
    kinds = (
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=4)},
        {"type": st.just("array"), "prefixItems": st.lists(inner, max_size=3)},
        {"enum": st.lists(NAMES | st.integers(-(2**70), 2**70), min_size=1, max_size=1)},
        {"type": TYPES, "items": inner, "additionalProperties": inner, "format": keywords["format"]},
        {"$ref": keywords["$ref"]},
        {"anyOf": st.lists(inner, min_size=2, max_size=3)},
    )
    beside = {name: keywords[name] for name in ("title", "description", "default", "required", "minItems")}
    formed = (st.fixed_dictionaries(kind, optional=beside) for kind in kinds)
    return st.booleans() | st.one_of(*formed) | st.fixed_dictionaries({}, optional=keywords)


SCHEMAS = st.recursive(st.booleans() | st.fixed_dictionaries({}, optional={"type": TYPES}), schemas, max_leaves=12)
DOCUMENTS = st.fixed_dictionaries({"body": SCHEMAS, "a": SCHEMAS, "b": SCHEMAS}).map(
    lambda parts: (
        (parts["body"] if isinstance(parts["body"], dict) else {}) | {"$defs": {"A": parts["a"], "B": parts["b"]}}
    )
)
"""Documents that JSON Schema allows, for the most part."""

KEYODD_WORDS = ("$defs", "$ref", "type", "title", "description", "anyOf", "enum", "properties", "required", "prefixItems",
            "items", "minItems", "minimum", "format", "additionalProperties", "propertyNames")  # fmt: skip
ANY_DOCUMENTS = st.dictionaries(st.sampled_from(KEYODD_WORDS), JSON, max_size=4)
"""Objects whose keywords have any values."""


def operations(
    documents: st.SearchStrategy[Any], codes: tuple[str, ...], statuses: tuple[int, ...]
) -> st.SearchStrategy[Any]:
    errors = st.builds(
        ErrorSchema,
        code=st.sampled_from(codes),
        message=TEXTS,
        description=TEXTS,
        schema=st.none() | documents,
        http_status=st.sampled_from(statuses),
        grpc_status=st.just("INTERNAL"),
        retryable=st.booleans(),
    )
    operation = st.builds(
        OperationSchema,
        name=NAMES.map(lambda name: f"a/{name}") | NAMES,
        namespace=NAMES,
        kind=st.sampled_from(["query", "mutation", "subscription", "nonsense"]),
        visibility=st.just("external"),
        description=TEXTS,
        input_schema=documents,
        output_schema=documents,
        error_schemas=st.lists(errors, max_size=2).map(tuple),
    )
    return st.lists(operation, min_size=1, max_size=3, unique_by=lambda made: made.name)


OPERATIONS = operations(DOCUMENTS, ("NOT_THERE", "BUSY"), (404, 599))
ANY_OPERATIONS = operations(ANY_DOCUMENTS, ("NOT_THERE", "INTERNAL", "bad", ""), (404, 200))


def as_from_a_server(operations: list[OperationSchema]) -> list[OperationSchema]:
    return msgspec.json.decode(msgspec.json.encode(operations), type=list[OperationSchema])


@given(OPERATIONS | ANY_OPERATIONS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_document_gives_a_client_that_compiles_or_one_line(operations: list[OperationSchema]) -> None:
    for generate in (python_client, typescript_client):
        try:
            text = generate(as_from_a_server(operations))
        except SchemaError as exc:
            assert len(str(exc)) < 1000
        else:
            text.encode()
            if generate is python_client:
                imported(text)


@given(TEXTS)
@example('\\"')
@example('ends with \\\\"')
@example('""""')
@example("\\")
def test_no_text_can_end_a_docstring(text: str) -> None:
    lines = docstring(text, depth=0)
    source = "\n".join(lines)
    (statement,) = ast.parse(source).body if lines else [None]
    if statement is not None:
        assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        shown = "".join(char if char.isprintable() else " " for char in text)
        assert str(statement.value.value).split() == shown.split()


def test_a_value_that_is_named_like_a_text_type_declares_no_such_type() -> None:
    text = typescript_client([operation({"enum": ["TimeText"]})])
    assert '"TimeText"' in text
    assert "type TimeText" not in text
    assert "type TimeText" in typescript_client([operation({"type": "string", "format": "time"})])


def broken(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}}


@pytest.mark.parametrize(
    "schema",
    [
        broken(required=5),
        broken(properties=[]),
        broken(anyOf=3),
        broken(anyOf=[3]),
        broken(description=1),
        broken(minItems="1"),
        broken(enum=None),
        {"$defs": []},
        {"title": 3},
    ],
)
def test_a_keyword_of_the_wrong_type_is_named_with_its_operation(schema: dict[str, Any]) -> None:
    for generate in (python_client, typescript_client):
        with pytest.raises(SchemaError, match=r"^a/b: Expected .* - at `\$"):
            generate([operation(schema)])


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(2000):
        schema = {"type": "array", "items": schema}
    with pytest.raises(SchemaError, match="nested too deeply"):
        python_client([operation(schema)])


def test_two_operations_of_one_name_are_refused() -> None:
    with pytest.raises(SchemaError, match="two operations"):
        python_client([operation({}), operation({"type": "string"})])


@pytest.mark.parametrize(("code", "http_status"), [("lower", 500), ("INTERNAL", 500), ("FINE", 200)])
def test_an_error_that_no_operation_can_declare_is_refused(code: str, http_status: int) -> None:
    error = ErrorSchema(code, "", "", None, http_status, "INTERNAL", False)
    with pytest.raises(SchemaError, match="a/b: error"):
        python_client([operation({}, errors=(error,))])


@pytest.mark.parametrize(
    "definitions",
    [
        {"A": {"$ref": "#/$defs/A"}},
        {"A": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/A"}}]}},
        {"A": {"type": "array", "items": {"$ref": "#/$defs/B"}}, "B": {"type": "array", "items": {"$ref": "#/$defs/A"}}},
        {
            "A": {"anyOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/C"}, {"type": "null"}]},
            "B": {"type": "object", "properties": {"c": {"$ref": "#/$defs/C"}}},
            "C": {"type": "array", "items": {"$ref": "#/$defs/A"}},
        },
        {"A": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]}, "B": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}},
    ],
)  # fmt: skip
def test_types_that_refer_to_themselves_are_declared_in_an_order_that_can_be_imported(
    definitions: dict[str, Any],
) -> None:
    imported(python_client([operation({"$ref": "#/$defs/A", "$defs": definitions})]))


def test_a_member_whose_name_msgspec_refuses_makes_its_object_a_dictionary() -> None:
    text = python_client([operation({"title": "Odd", "type": "object", "properties": {'a"b': {"type": "integer"}}})])
    imported(text)
    assert "Odd: TypeAlias = dict[str, Any]" in text


@settings(max_examples=50, database=None, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(OPERATIONS)
def _write_typescript(folder: Path, operations: list[OperationSchema]) -> None:
    try:
        text = typescript_client(as_from_a_server(operations))
    except SchemaError:
        return
    (folder / f"client{len(list(folder.glob('*.ts')))}.ts").write_text(text, encoding="utf-8")


def test_the_compiler_takes_every_typescript_client(node_modules: Path, tmp_path: Path) -> None:
    _write_typescript(tmp_path)
    (tmp_path / "node_modules").symlink_to(node_modules, target_is_directory=True)
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    options = {
        "strict": True,
        "target": "es2022",
        "module": "nodenext",
        "types": [],
        "noEmit": True,
        "noUnusedLocals": True,
    }
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": options}), encoding="utf-8")
    done = subprocess.run(
        ["node", str(node_modules / "typescript" / "bin" / "tsc")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert len(list(tmp_path.glob("*.ts"))) > 30
    assert (done.stdout, done.returncode) == ("", 0)
