"""Documents of any server: each gives a client that compiles, or one error in one line."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from discreet.generate import SchemaError, python_client, typescript_client
from discreet.generate.python_client import docstring
from discreet.schemas.documents import ErrorSchema, OperationSchema

WORDS = ["", "a", "A", "B", "TimeText", "Struct", "str", "list", "from", "constructor", "self", "a/b", '"', "\\", '\\"', "*/", "${x}",
         "`", "\n", "\u2028", "é", "None", "Session", "Base64", "is", "__proto__", "x" * 40]  # fmt: skip
NAMES = st.sampled_from(WORDS) | st.text(st.characters(codec="utf-8"), max_size=6)
TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\"'\\*/`\n\t "), max_size=60)
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

KEYWORDS = ("$defs", "$ref", "type", "title", "description", "anyOf", "enum", "properties", "required", "prefixItems",
            "items", "minItems", "minimum", "format", "additionalProperties", "propertyNames")  # fmt: skip
ANY_DOCUMENTS = st.dictionaries(st.sampled_from(KEYWORDS), JSON, max_size=4)
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


def assert_compiles(text: str) -> None:
    """The module compiles, and runs as far as an import runs it."""
    module = sys.modules["hostile_client"] = types.ModuleType("hostile_client")  # where annotations are looked up
    try:
        exec(compile(text, "hostile_client.py", "exec"), module.__dict__)
    finally:
        del sys.modules["hostile_client"]


@given(OPERATIONS | ANY_OPERATIONS)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_document_gives_a_client_that_compiles_or_one_line(operations: list[OperationSchema]) -> None:
    for generate in (python_client, typescript_client):
        try:
            text = generate(as_from_a_server(operations))
        except SchemaError as exc:
            assert len(str(exc)) < 1000
        else:
            text.encode()
            if generate is python_client:
                assert_compiles(text)


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


def operation(schema: dict[str, Any], name: str = "a/b", **more: Any) -> OperationSchema:
    return OperationSchema(name, "a", "query", "external", "", more.get("params", {}), schema, more.get("errors", ()))


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
    assert_compiles(python_client([operation({"$ref": "#/$defs/A", "$defs": definitions})]))


def test_a_member_whose_name_msgspec_refuses_makes_its_object_a_dictionary() -> None:
    text = python_client([operation({"title": "Odd", "type": "object", "properties": {'a"b': {"type": "integer"}}})])
    assert_compiles(text)
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
