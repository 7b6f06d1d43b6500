"""Builds the model of a client from the schemas of operations. Knows no language."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Final

import msgspec

from ..errors.exceptions import OperationError
from ..schemas.documents import AccessSchema, ErrorSchema, OperationSchema
from .model import ANY_TYPE, Alias, Client, ErrorType, Namespace, Operation, map_references, references
from .schemas import Schema, SchemaConverter, SchemaError, has_unsupported_member, parse_schema
from .text import NameScope, constant_name, error_name, type_name

_CLIENT: Final = "client"


def build_client(operations: Iterable[OperationSchema], reserved: Iterable[str]) -> Client:
    """Return the client of these operations. No type in it has a name out of `reserved`.

    The same operations give the same client, in whatever order they come. An additional operation changes no name of
    another one, unless it brings another type of the same name. Raises `SchemaError`.
    """
    ordered = sorted(operations, key=lambda operation: operation.name)
    names = NameScope(reserved)
    converter = SchemaConverter(names)
    errors = _Errors(converter)
    constants = NameScope()
    built: dict[str, tuple[str, Operation]] = {}
    for operation in ordered:
        if operation.name in built:
            raise SchemaError(f"{operation.name}: there are two operations of this name")
        built[operation.name] = operation.namespace, _build_operation(operation, converter, errors, constants)
    namespaces = [
        Namespace(
            wire_name=wire_name,
            name=names.unique(type_name(wire_name, _CLIENT)),
            description=f"The operations of `{wire_name}`" if wire_name else "The operations without a namespace",
            operations=tuple(operation for namespace, operation in built.values() if namespace == wire_name),
        )
        for wire_name in sorted({namespace for namespace, _ in built.values()})
    ]
    return Client(
        records=tuple(sorted(converter.records, key=lambda record: record.name)),
        aliases=_in_order(converter.aliases),
        errors=tuple(sorted(errors.declared.values(), key=lambda error: error.name)),
        namespaces=tuple(namespaces),
    )


def _in_order(aliases: Iterable[Alias]) -> tuple[Alias, ...]:
    """The aliases, each after those that it refers to, since some languages read them in order. An order that is right is kept.

    An alias that refers to itself through other aliases alone can't be written so: there, the reference becomes `ANY_TYPE`.
    """
    known = {alias.name: alias for alias in aliases}
    done: dict[str, Alias] = {}
    path: set[str] = set()

    def visit(alias: Alias) -> None:
        if alias.name in done:
            return
        path.add(alias.name)
        tp = map_references(alias.type, lambda reference: ANY_TYPE if reference.name in path else reference)
        for name in references(tp):
            if name in known:
                visit(known[name])
        path.remove(alias.name)
        done[alias.name] = Alias(alias.name, alias.description, tp)

    for alias in known.values():
        visit(alias)
    return tuple(done.values())


def _build_operation(
    operation: OperationSchema, converter: SchemaConverter, errors: _Errors, constants: NameScope
) -> Operation:
    try:
        return _convert(operation, converter, errors, constants)
    except SchemaError as exc:
        raise SchemaError(f"{operation.name}: {exc}") from exc
    except RecursionError as exc:
        raise SchemaError(f"{operation.name}: a schema is nested too deeply") from exc


def _convert(
    operation: OperationSchema, converter: SchemaConverter, errors: _Errors, constants: NameScope
) -> Operation:
    is_subscription = operation.kind == "subscription"
    own = type_name(operation.name)
    input_schema, output_schema = parse_schema(operation.input_schema), parse_schema(operation.output_schema)
    return Operation(
        wire_name=operation.name,
        method=operation.name.rpartition("/")[2],
        is_subscription=is_subscription,
        description="\n\n".join(filter(None, (operation.description, _scopes(operation.access or AccessSchema())))),
        params=converter.fields(input_schema, own),
        extra_params=converter.extra_fields(input_schema, own),
        result=converter.document(output_schema, type_name(own, "event" if is_subscription else "result")),
        errors=tuple(map(errors.declare, operation.error_schemas)),
        error_union=converter.names.unique(type_name(own, "error")),
        error_list=constants.unique(constant_name(operation.name, "errors")),
        params_type=converter.names.unique(type_name(own, "params")),
    )


def _scopes(access: AccessSchema) -> str:
    needed = [", ".join(access.all_of), f"one of {', '.join(access.any_of)}" if access.any_of else ""]
    phrase = " and ".join(filter(None, needed))
    return f"Needs the scopes {phrase}." if phrase else ""


class _Errors:
    """The declared errors of all operations. Equal ones are declared once."""

    def __init__(self, converter: SchemaConverter) -> None:
        self.declared: dict[bytes, ErrorType] = {}
        self._converter = converter

    def declare(self, error: ErrorSchema) -> str:
        """Return the name of an error. Raises `SchemaError` for an error that no operation can declare."""
        key = msgspec.json.encode(error, order="deterministic")
        if key not in self.declared:
            name = self._converter.names.unique(error_name(error.code))
            _check_declarable(name, error)
            details = Schema() if error.schema is None else parse_schema(error.schema)
            if has_unsupported_member(details):
                raise SchemaError(f"error {name}: a detail has a control character, a quote or a backslash in its name")
            self.declared[key] = ErrorType(
                name=name,
                code=error.code,
                message=error.message,
                description=error.description,
                http_status=error.http_status,
                retryable=error.retryable,
                fields=self._converter.fields(details, name),
            )
        return self.declared[key].name


def _check_declarable(name: str, error: ErrorSchema) -> None:
    try:
        types.new_class(name, (OperationError,), {"code": error.code, "http_status": error.http_status})
    except TypeError as exc:
        raise SchemaError(f"error {exc}") from exc
