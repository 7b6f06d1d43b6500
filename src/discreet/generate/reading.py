"""The documents of operations as a `Module`: which types, errors and namespaces a client of them has. Knows no language."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ..daemon.schemas.documents import AccessSchema, ErrorSchema, OperationSchema
from .model import Error, Module, Namespace, Operation
from .names import Names, error_name, type_name
from .types import Types

_CLIENT: Final = "client"


def read(operations: Iterable[OperationSchema], reserved: Iterable[str]) -> Module:
    """What a client of these operations consists of. `reserved` are names that no type may have.

    The same operations give the same module, in whatever order they come; one more moves no other's name, unless it
    brings another type of a name that is taken.
    """
    ordered = sorted(operations, key=lambda operation: operation.name)
    names = Names(reserved)
    types = Types(names)
    errors = _Errors(types)
    read_operations = [(operation.namespace, _operation(operation, types, errors)) for operation in ordered]
    namespaces = [
        Namespace(
            wire=wire,
            name=names.take(type_name(wire, _CLIENT)),
            operations=tuple(read for namespace, read in read_operations if namespace == wire),
        )
        for wire in dict.fromkeys(sorted(namespace for namespace, _ in read_operations))
    ]
    return Module(
        records=tuple(sorted(types.records, key=lambda record: record.name)),
        aliases=tuple(types.aliases),
        errors=tuple(sorted(errors.found.values(), key=lambda error: error.name)),
        namespaces=tuple(namespaces),
    )


def _operation(operation: OperationSchema, types: Types, errors: _Errors) -> Operation:
    streams = operation.kind == "subscription"
    own = type_name(operation.name)
    params = types.fields(operation.input_schema, own)
    rest = types.rest(operation.input_schema, own)
    result = types.result(operation.output_schema, type_name(own, "event" if streams else "result"))
    return Operation(
        wire=operation.name,
        verb=operation.name.rpartition("/")[2],
        streams=streams,
        doc="\n\n".join(filter(None, (operation.description, _scopes(operation.access or AccessSchema())))),
        params=params,
        rest=rest,
        result=result,
        errors=tuple(errors.declare(error) for error in operation.error_schemas),
        error_type=types.names.take(type_name(own, "error")),
        params_type=types.names.take(type_name(own, "params")),
    )


def _scopes(access: AccessSchema) -> str:
    needed = [", ".join(access.all_of), f"one of {', '.join(access.any_of)}" if access.any_of else ""]
    phrase = " and ".join(filter(None, needed))
    return f"Needs the scopes {phrase}." if phrase else ""


class _Errors:
    """The declared errors of all operations. Equal ones are there once."""

    def __init__(self, types: Types) -> None:
        self.found: dict[bytes, Error] = {}
        self._types = types

    def declare(self, error: ErrorSchema) -> str:
        """The name of an error."""
        key = msgspec.json.encode(error, order="deterministic")
        if key not in self.found:
            name = self._types.names.take(error_name(error.code))
            self.found[key] = Error(
                name=name,
                code=error.code,
                message=error.message,
                doc=error.description,
                http_status=error.http_status,
                retryable=error.retryable,
                fields=() if error.schema is None else self._types.fields(error.schema, name),
            )
        return self.found[key].name
