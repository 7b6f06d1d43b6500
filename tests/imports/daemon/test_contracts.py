"""What another daemon offers is mounted as it is: names, kinds, schemas, errors, deadlines."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from msgspec import UNSET, Raw

from discreet import Service
from discreet.compatibility.changes import additions, breaking_changes
from discreet.errors.codes import grpc_of_http
from discreet.gateway.openapi.document import About, document_text, openapi_document
from discreet.imports.daemon.contracts import DaemonImport, import_of, read_openrpc, read_own_document
from discreet.schemas.documents import ErrorSchema, OperationSchema, Snapshot, snapshot
from discreet.schemas.openrpc import openrpc_document
from support.generated_services import services


def by_openapi(service: Service) -> DaemonImport:
    about = About(title="x", version="1", url="https://example.org/base")
    found = read_own_document(document_text(openapi_document(service.operations, about)))
    assert found is not None
    return found


def by_openrpc(service: Service) -> DaemonImport:
    return read_openrpc(msgspec.json.encode(openrpc_document(service.operations, version="1")))


def by_contracts(service: Service) -> DaemonImport:
    return import_of(snapshot(service.operations).operations.values())


def contract(found: DaemonImport) -> Snapshot:
    """The import as a snapshot, each schema with the types that it refers to."""

    def whole(schema: Any) -> Any:
        return {**(schema if isinstance(schema, dict) else {}), "$defs": dict(found.definitions)}

    operations = {
        each.method: OperationSchema(
            name=each.method,
            namespace="",
            kind=each.kind,
            visibility="external",
            description=each.description,
            input_schema=whole(each.input),
            output_schema=whole(each.output),
            error_schemas=tuple(
                ErrorSchema(
                    code=error.code,
                    message=error.message,
                    description=error.description,
                    schema=None if error.schema is None else whole(error.schema),
                    http_status=error.http_status,
                    grpc_status=grpc_of_http(error.http_status),
                    retryable=error.retryable,
                )
                for error in each.errors
            ),
            timeout=each.timeout,
            numbered=each.numbered or UNSET,
        )
        for each in found.operations
    }
    return Snapshot(1, operations)


@settings(max_examples=60)
@given(services())
def test_a_document_that_discreet_wrote_gives_the_same_operations_schemas_and_errors(service: Service) -> None:
    found, original = contract(by_openapi(service)), snapshot(service.operations)
    assert breaking_changes(original, found) == additions(original, found) == ()
    assert breaking_changes(found, original) == additions(found, original) == ()
    assert facts(found) == facts(original)


@settings(max_examples=60)
@given(services())
def test_contracts_that_a_daemon_tells_give_the_same_operations_schemas_and_errors(service: Service) -> None:
    found, original = contract(by_contracts(service)), snapshot(service.operations)
    assert breaking_changes(original, found) == additions(original, found) == ()
    assert breaking_changes(found, original) == additions(found, original) == ()
    assert facts(found) == facts(original)


@settings(max_examples=60)
@given(services())
def test_an_openrpc_document_of_discreet_keeps_kinds_schemas_and_codes(service: Service) -> None:
    found, original = by_openrpc(service), snapshot(service.operations)
    assert [(each.method, each.kind, each.description) for each in found.operations] == [
        (each.name, each.kind, each.description) for each in map(original.operations.get, names(service)) if each
    ]
    for each in found.operations:
        errors = original.operations[each.method].error_schemas
        assert [(error.code, error.retryable, error.schema is None) for error in each.errors] == [
            (error.code, error.retryable, error.schema is None) for error in errors
        ]
    changes = breaking_changes(original, contract(found))
    assert [
        str(change) for change in changes if "httpStatus" not in change.what and "position" not in change.what
    ] == []


def names(service: Service) -> list[str]:
    return [spec.name for spec in service.operations]


def facts(document: Snapshot) -> Any:
    """What comparisons of schemas don't look at."""
    return {
        name: (
            each.kind,
            each.description,
            each.timeout,
            each.numbered,
            sorted(
                (error.code, error.http_status, error.retryable, error.message, error.description)
                for error in each.error_schemas
            ),
        )
        for name, each in document.operations.items()
    }


def test_types_of_one_name_are_told_apart_and_equal_ones_are_shared() -> None:
    one = msgspec.defstruct("Thing", [("a", int)])
    two = msgspec.defstruct("Thing", [("b", str)])
    service = Service("s")
    for name, tp in (("first", one), ("second", two), ("third", one)):

        async def handler(things: Any) -> None: ...

        handler.__annotations__ = {"things": list[tp], "return": None}  # type: ignore[valid-type]
        service.query(name=name)(handler)
    found = by_contracts(service)
    assert sorted(found.definitions) == ["Thing", "Thing_2"]
    assert [json.dumps(each.input).count("Thing_2") for each in found.operations] == [0, 1, 0]


def test_an_import_is_stored_and_read_back_as_it_was() -> None:
    service = Service("s")

    @service.subscription(timeout=3)
    async def ticks(count: int) -> Any:
        yield Raw(b"1")

    found = by_contracts(service)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=DaemonImport) == found


def test_a_notification_is_a_mutation_and_what_takes_no_object_is_left_out() -> None:
    service = Service("s")

    @service.notification()
    def hear(text: str) -> None: ...

    @service.query()
    def sorts(items: list[int], /) -> None: ...

    found = by_contracts(service)
    assert [(each.method, each.kind) for each in found.operations] == [("s/hear", "mutation")]
    assert {(note.pointer, note.kind) for note in found.notes} == {("/s/hear", "changed"), ("/s/sorts", "left-out")}
