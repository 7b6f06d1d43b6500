"""The document of one operation, and the snapshot of all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import msgspec
import pytest
from jsonschema import Draft202012Validator
from msgspec import Meta

from discreet import OperationError, Service
from discreet.errors import FailureError
from discreet.schemas.documents import (
    OperationSchema,
    Snapshot,
    operation_schema,
    read_snapshot,
    snapshot,
    snapshot_text,
)
from discreet.schemas.json_schema import DIALECT, PYTHON_PATTERN, json_schema
from discreet.schemas.patterns import to_ecma

files = Service("files")


class FileNotFound(OperationError, code="FILE_NOT_FOUND", http_status=404):
    """The file does not exist."""

    path: str


class Busy(OperationError, code="BUSY", retryable=True):
    """Somebody else has it."""


class Content(msgspec.Struct, frozen=True, rename="camel"):
    """What was read.

    This paragraph is for those who read the code.
    """

    media_type: str
    parts: list[Content] = []


Limit = Annotated[int, Meta(ge=1, description="Most bytes to read.")]


@files.query(errors=[FileNotFound, Busy], timeout=2.5, scopes=["files:read", "a"])
def read(path: Annotated[str, Meta(description="Below the root.")], limit: Limit = 10) -> Content:
    """Read one file."""
    raise NotImplementedError


@files.mutation(timeout=None)
def write(path: str, **more: int) -> None:
    """Write one file."""


@files.query()
def anything(**params: Any) -> Any: ...


@files.subscription()
async def watch() -> AsyncIterator[Literal["made", "gone"]]:
    """Watch files."""
    yield "made"


@files.query(visibility="internal")
def hidden() -> int:
    return 1


def by_name(name: str) -> OperationSchema:
    return next(operation_schema(spec) for spec in files.operations if spec.name == f"files/{name}")


def as_json(name: str) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(by_name(name)))
    return document


def test_an_operation_s_document_says_all_that_its_declaration_says() -> None:
    assert as_json("read") == {
        "name": "files/read",
        "namespace": "files",
        "kind": "query",
        "visibility": "external",
        "description": "Read one file.",
        "inputSchema": {
            "$schema": DIALECT,
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Below the root."},
                "limit": {"type": "integer", "minimum": 1, "description": "Most bytes to read.", "default": 10},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
        "outputSchema": {
            "$schema": DIALECT,
            "title": "Content",
            "description": "What was read.",
            "type": "object",
            "properties": {
                "mediaType": {"type": "string"},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/Content"}, "default": []},
            },
            "required": ["mediaType"],
            "$defs": {
                "Content": {
                    "title": "Content",
                    "description": "What was read.",
                    "type": "object",
                    "properties": {
                        "mediaType": {"type": "string"},
                        "parts": {"type": "array", "items": {"$ref": "#/$defs/Content"}, "default": []},
                    },
                    "required": ["mediaType"],
                }
            },
        },
        "errorSchemas": [
            {
                "code": "FILE_NOT_FOUND",
                "message": "The file does not exist",
                "description": "The file does not exist.",
                "schema": {
                    "$schema": DIALECT,
                    "type": "object",
                    "properties": {"path": {"type": "string"}},
                    "required": ["path"],
                },
                "httpStatus": 404,
                "grpcStatus": "NOT_FOUND",
                "retryable": False,
            },
            {
                "code": "BUSY",
                "message": "Somebody else has it",
                "description": "Somebody else has it.",
                "schema": None,
                "httpStatus": 500,
                "grpcStatus": "INTERNAL",
                "retryable": True,
            },
        ],
        "timeout": 2.5,
        "access": {"allOf": ["a", "files:read"], "anyOf": []},
    }


def test_a_timeout_is_a_number_or_none_or_left_to_the_daemon() -> None:
    assert as_json("read")["timeout"] == 2.5
    assert as_json("write")["timeout"] is None
    assert "timeout" not in as_json("anything")


def test_a_subscription_s_output_is_one_event() -> None:
    document = as_json("watch")
    assert (document["kind"], document["outputSchema"]["enum"]) == ("subscription", ["gone", "made"])


@pytest.mark.parametrize(
    "params", [{"path": "a"}, {"path": "a", "size": 1}, {"path": "a", "size": "x"}, {"size": 1}, {"path": 1}, {}]
)
def test_further_members_of_a_handler_are_in_the_schema_as_they_are_decoded(params: dict[str, Any]) -> None:
    spec = next(spec for spec in files.operations if spec.name == "files/write")
    try:
        spec.input.decode(msgspec.json.encode(params))
        decoded = True
    except FailureError:
        decoded = False
    assert Draft202012Validator(by_name("write").input_schema).is_valid(params) == decoded


def test_a_handler_that_takes_anything_says_so() -> None:
    assert by_name("anything").input_schema == {"$schema": DIALECT, "type": "object", "additionalProperties": True}
    assert by_name("anything").output_schema == {"$schema": DIALECT}


def test_types_of_one_name_are_told_apart() -> None:
    one, other = msgspec.defstruct("Same", [("a", int)]), msgspec.defstruct("Same", [("b", int)])
    schema = json_schema(tuple[one, other])  # type: ignore[valid-type]
    assert list(schema["$defs"]) == ["Same", "Same_2"]
    assert Draft202012Validator(schema).is_valid([{"a": 1}, {"b": 1}])
    assert not Draft202012Validator(schema).is_valid([{"b": 1}, {"a": 1}])


def test_what_a_user_adds_to_a_schema_stands_in_it() -> None:
    tp = Annotated[int, Meta(title="Port", examples=[80], extra_json_schema={"x-unit": "none"})]
    assert json_schema(list[tp])["items"] == {"type": "integer", "title": "Port", "examples": [80], "x-unit": "none"}


@pytest.mark.parametrize(
    ("python", "ecma"),
    [
        ("^[a-z]+$", "^[a-z]+$"),
        (r"\Aab{,2}\Z", "^ab{0,2}$"),
        (r"(?P<sign>[+-])x(?P=sign)", r"([+\-])x(?:\1)"),
        ("(?a)[a-f_]", "[a-f_]"),
        ("(?i)^(on|off)$", None),
        (r"\-\ \#[\-a][]]", r"- #[\-a][\]]"),
        ("a{x}]", r"a\{x\}\]"),
        ("(?s)a.b", None),
        ("a++", None),
        ("(?>a)", None),
        ("(?i:a)b", None),
        (r"\N{BULLET}", None),
    ],
)
def test_patterns_are_spelled_for_ecma_262_or_left_out(python: str, ecma: str | None) -> None:
    assert to_ecma(python) == ecma
    written = json_schema(Annotated[str, Meta(pattern=python)])
    assert written.get("pattern") == ecma
    assert written.get(PYTHON_PATTERN) == (python if ecma is None else None)


def test_a_snapshot_holds_external_operations_by_name_and_reads_back() -> None:
    document = snapshot(files.operations)
    assert list(document.operations) == ["files/anything", "files/read", "files/watch", "files/write"]
    text = snapshot_text(document)
    assert text == snapshot_text(snapshot(reversed(files.operations)))
    assert text.endswith(b"}\n")
    assert text.startswith(b'{\n  "discreet": 1,\n  "operations": {\n    "files/anything": {\n')
    assert snapshot_text(read_snapshot(text)) == text


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[]", b'{"discreet":2,"operations":{}}', b"\xff", b'{"discreet":1,"operations":1}']
)
def test_other_documents_are_no_snapshot(text: bytes) -> None:
    with pytest.raises(ValueError):
        read_snapshot(text)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": 5},
        {"properties": {"a": 5}},
        {"$defs": []},
        {"anyOf": {}},
        {"items": "a"},
        {"enum": 1},
        {"required": "a"},
        {"type": {}},
        {"minLength": "a"},
        {"multipleOf": 0},
        {"$ref": 1},
    ],
)
def test_a_snapshot_with_what_is_no_schema_is_none(schema: Any) -> None:
    document = msgspec.to_builtins(snapshot(files.operations))
    document["operations"]["files/read"]["inputSchema"] = schema
    with pytest.raises(ValueError, match="not a snapshot"):
        read_snapshot(msgspec.json.encode(document))


def test_an_empty_snapshot_reads_back() -> None:
    assert read_snapshot(snapshot_text(Snapshot(1, {}))) == Snapshot(1, {})
