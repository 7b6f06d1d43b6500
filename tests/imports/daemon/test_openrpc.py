"""OpenRPC documents of any server, as operations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from discreet.imports.daemon.contracts import DaemonImport, read_openrpc


def read(*methods: Any, **more: Any) -> DaemonImport:
    document = {"openrpc": "1.3.2", "info": {"title": "Pets", "version": "2"}, "methods": list(methods), **more}
    return read_openrpc(json.dumps(document).encode())


def content(name: str, schema: Any, *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "schema": schema, "required": required}


LIST_PETS = {
    "name": "list_pets",
    "summary": "List all pets",
    "params": [content("limit", {"type": "integer", "minimum": 1}, required=True), content("tag", {"type": "string"})],
    "result": content("pets", {"$ref": "#/components/schemas/Pets"}),
    "errors": [{"code": 100, "message": "pets busy"}, {"code": -32050, "message": "gone", "data": {"type": "string"}}],
}
PETS = {
    "schemas": {"Pets": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}, "Pet": {"type": "object"}}
}


def test_a_method_is_a_mutation_with_its_params_its_result_and_its_errors_by_number() -> None:
    (operation,) = read(LIST_PETS, components=PETS).operations
    assert (operation.name, operation.method, operation.kind) == ("list_pets", "list_pets", "mutation")
    assert operation.description == "List all pets"
    assert operation.input == {
        "type": "object",
        "properties": {"limit": {"type": "integer", "minimum": 1}, "tag": {"type": "string"}},
        "required": ["limit"],
        "additionalProperties": False,
    }
    assert operation.output == {"$ref": "#/$defs/Pets"}
    assert [(error.code, error.schema, error.message) for error in operation.errors] == [
        ("RPC_100", None, "pets busy"),
        ("RPC_MINUS_32050", {"type": "string"}, "gone"),
    ]
    assert operation.codes == {100: "RPC_100", -32050: "RPC_MINUS_32050"}
    assert operation.positions is None


def test_shared_types_are_those_of_the_components() -> None:
    found = read(LIST_PETS, components=PETS)
    assert found.definitions == {"Pets": {"type": "array", "items": {"$ref": "#/$defs/Pet"}}, "Pet": {"type": "object"}}
    assert (found.title, found.version) == ("Pets", "2")


def test_descriptors_and_errors_are_found_where_references_lead() -> None:
    components = {
        "contentDescriptors": {"Limit": content("limit", {"type": "integer"})},
        "errors": {"Busy": {"code": 7, "message": "busy"}},
    }
    method = {
        "name": "a",
        "params": [{"$ref": "#/components/contentDescriptors/Limit"}],
        "result": {"$ref": "#/components/contentDescriptors/Limit"},
        "errors": [{"$ref": "#/components/errors/Busy"}],
    }
    (operation,) = read(method, components=components).operations
    assert operation.input["properties"] == {"limit": {"type": "integer"}}
    assert operation.output == {"type": "integer"}
    assert operation.codes == {7: "RPC_7"}


def test_tuples_of_draft_07_are_those_of_2020_12() -> None:
    tuples = {"type": "array", "items": [{"type": "string"}, {"items": [True]}], "additionalItems": False}
    (operation,) = read({"name": "a", "params": [], "result": content("r", tuples)}).operations
    assert operation.output == {
        "type": "array",
        "prefixItems": [{"type": "string"}, {"prefixItems": [True]}],
        "items": False,
    }


def test_a_name_that_no_operation_can_have_is_changed_and_stays_unique() -> None:
    found = read(*({"name": name, "params": []} for name in ("get pets!", "get pets?", "ok", "rpc.discover")))
    assert [(each.name, each.method) for each in found.operations] == [
        ("get_pets_", "get pets!"),
        ("get_pets__2", "get pets?"),
        ("ok", "ok"),
    ]
    assert [(note.pointer, note.kind) for note in found.notes] == [("/methods/0", "renamed"), ("/methods/1", "renamed")]


@pytest.mark.parametrize(
    "method",
    [
        {"name": "a", "params": [{"$ref": "#/components/contentDescriptors/None"}]},
        {"name": "a", "params": [{"$ref": "https://example.org/x"}]},
        {"name": "a", "params": [content("x", {"$ref": "#/definitions/X"})]},
        {"name": "a", "params": [content("x", {}), content("x", {})]},
        {"name": "a", "params": [content("x", [1])]},
        {"name": "a", "params": [], "paramStructure": "odd"},
        {"name": "a", "params": 1},
        {"name": "a", "errors": [5]},
        {"params": []},
    ],
)
def test_a_method_that_can_not_be_mounted_is_left_out_and_the_others_stay(method: Any) -> None:
    found = read(method, {"name": "good", "params": []})
    assert [each.name for each in found.operations] == ["good"]
    assert [(note.pointer, note.kind) for note in found.notes] == [("/methods/0", "left-out")]


def test_references_in_a_circle_come_to_an_end() -> None:
    circle = {"contentDescriptors": {"A": {"$ref": "#/components/contentDescriptors/A"}}}
    method = {"name": "a", "params": [{"$ref": "#/components/contentDescriptors/A"}]}
    assert [note.kind for note in read(method, components=circle).notes] == ["left-out"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"\xff",
        b"{}",
        b'{"openrpc": "1.0.0"}',
        b'{"openrpc": "1.0.0", "methods": {}}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_document_is_refused_with_one_sentence(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"^not an OpenRPC document$"):
        read_openrpc(text)
