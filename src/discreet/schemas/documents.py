"""An operation's contract as a document: schemas, errors and access, for `services/schema` and for snapshots.

Derives everything from the operation's `OperationSpec`. Never sees a payload.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ..daemon.declarations import Prompt, Resource
from ..daemon.operations.access import AccessRule
from ..daemon.operations.params import InputModel
from ..daemon.operations.spec import OperationSpec, Visibility
from ..errors.codes import GrpcStatus, grpc_of_http
from ..errors.decoders import decoder_for
from ..errors.exceptions import ErrorDefinition
from ..errors.redaction import scrub_known
from .json_schema import JsonSchema, json_schema
from .named_types import require_schema

SNAPSHOT_FORMAT: Final = 1
"""The version of the snapshot's format. Increment it with every incompatible change."""

_INDENT: Final = 2


class ErrorSchema(msgspec.Struct, frozen=True, rename="camel"):
    """A declared error. `schema` is that of `error.data.details`, None where the error has no details."""

    code: str
    message: str
    description: str
    schema: JsonSchema | None
    http_status: int
    grpc_status: GrpcStatus
    retryable: bool


class AccessSchema(msgspec.Struct, frozen=True, rename="camel"):
    """The scopes that a caller needs, sorted: all of `all_of` and, unless it is empty, one of `any_of`."""

    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()


class OfferSchema(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """As what clients of MCP get an operation: the resource or the template with this `uri`, or a prompt, which has none."""

    uri: str = ""
    mime_type: str = ""
    title: str = ""


class OperationSchema(msgspec.Struct, frozen=True, rename="camel"):
    """An operation's contract as callers see it.

    `input_schema` describes params by name, without the members that every request may have (`META_MEMBERS`). Params by
    position come in the order of its properties. `output_schema` describes the result, or one event. `timeout` is in
    seconds, None for no deadline, and left out where the daemon's setting applies. `access` is left out where every
    caller is allowed, `numbered` where the events of a subscription have no numbers at which callers could go on, and `offer`
    where the operation is neither a resource nor a prompt.
    """

    name: str
    namespace: str
    kind: str
    visibility: Visibility
    description: str
    input_schema: JsonSchema
    output_schema: JsonSchema
    error_schemas: tuple[ErrorSchema, ...]
    timeout: float | None | UnsetType = UNSET
    access: AccessSchema | UnsetType = UNSET
    numbered: bool | UnsetType = UNSET
    offer: OfferSchema | UnsetType = UNSET


class Snapshot(msgspec.Struct, frozen=True):
    """The contracts of all external operations, by name and in the order of names. `discreet` is `SNAPSHOT_FORMAT`."""

    discreet: Literal[1]
    operations: dict[str, OperationSchema]


def operation_schema(spec: OperationSpec) -> OperationSchema:
    """The contract of one operation. Each schema in it is a document of its own: no reference leads out of it."""
    return OperationSchema(
        name=spec.name,
        namespace=spec.namespace,
        kind=spec.kind,
        visibility=spec.visibility,
        description=scrub_known(spec.description),
        input_schema=input_schema(spec.input),
        output_schema=json_schema(spec.returns),
        error_schemas=tuple(_error(cls.definition) for cls in spec.errors),
        timeout=spec.timeout,
        access=UNSET if spec.access.open else _access(spec.access),
        numbered=spec.numbered or UNSET,
        offer=_offer(spec),
    )


def _offer(spec: OperationSpec) -> OfferSchema | UnsetType:
    match spec.offer:
        case Resource(uri=uri, mime_type=mime_type, title=title):
            return OfferSchema(uri, mime_type, title)
        case Prompt(title=title):
            return OfferSchema(title=title)
        case _:
            return UNSET


def snapshot(specs: Iterable[OperationSpec]) -> Snapshot:
    """A snapshot of the external ones of these operations. Their order makes no difference."""
    external = (spec for spec in specs if spec.visibility == "external")
    return Snapshot(1, {spec.name: operation_schema(spec) for spec in sorted(external, key=lambda spec: spec.name)})


def snapshot_text(document: Snapshot) -> bytes:
    """A snapshot as JSON for a file: indented, members in a fixed order, a line end at the end."""
    return msgspec.json.format(msgspec.json.encode(document), indent=_INDENT) + b"\n"


def read_snapshot(text: bytes) -> Snapshot:
    """The snapshot that `snapshot_text` wrote. Raises `ValueError` for any other text or format."""
    try:
        read = decoder_for(Snapshot)(text)
        for operation in read.operations.values():
            for schema in (
                operation.input_schema,
                operation.output_schema,
                *(e.schema for e in operation.error_schemas),
            ):
                require_schema(schema or {})
        return read
    except (ValueError, RecursionError):  # msgspec's own are `ValueError`, too
        raise ValueError("not a snapshot of operations, or one of another format") from None


def input_schema(model: InputModel) -> JsonSchema:
    """The schema of an operation's params by name."""
    extra: Any = model.extra if model.names else None  # without named params the type itself is a dict
    return json_schema(model.type, extra=extra, titled=False)


def _error(definition: ErrorDefinition) -> ErrorSchema:
    return ErrorSchema(
        code=definition.code,
        message=scrub_known(definition.message),
        description=scrub_known(definition.description),
        schema=json_schema(definition.details, titled=False) if definition.has_details else None,
        http_status=definition.http_status,
        grpc_status=grpc_of_http(definition.http_status),
        retryable=definition.retryable,
    )


def _access(rule: AccessRule) -> AccessSchema:
    return AccessSchema(tuple(sorted(rule.all_of)), tuple(sorted(rule.any_of)))
