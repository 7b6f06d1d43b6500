"""Encodes a failure as the error object of a JSON-RPC response, and decodes it. Total both ways.

An encoded error has the message of the table and data built from the failure's declared facts, never exception text. A
decoded error that is not recognised becomes `Internal`, which is not retryable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias, assert_never

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec import inspect as types

from .codes import (
    BATCH_MESSAGE,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MEMBER_RULES,
    PARSE_ERROR,
    SERVER_ERROR,
    STORE_UNAVAILABLE,
    row_of,
    rows_of_code,
)
from .decoders import decoder_for, type_info
from .exceptions import ExternalError, OperationError
from .failures import (
    OPERATION_TYPE_REASON,
    A2AVersion,
    AgentFailure,
    AuthenticationRequired,
    Cancelled,
    DomainFailure,
    ErrorDefinition,
    Failure,
    InsufficientPermissions,
    Internal,
    InvalidParams,
    InvalidRequest,
    JsonScalar,
    MethodNotFound,
    OperationTypeMismatch,
    Overloaded,
    ParseFailure,
    TimedOut,
    Unavailable,
)

# Scrubs the details of a declared error along their declared type, and finds facts that would never be seen.
#
# Only what may hold any text is scrubbed. Closed lists, numbers, booleans, dates and UUIDs can't hold a secret: removing one
# would break the published schema of the error.


Fields: TypeAlias = "dict[str, types.Type]"

_CLOSED: Final = (
    types.NoneType, types.BoolType, types.IntType, types.FloatType, types.DecimalType, types.LiteralType, types.EnumType,
    types.UUIDType, types.DateTimeType, types.DateType, types.TimeType, types.TimeDeltaType,
)  # fmt: skip
"""Types whose values are numbers, members of a closed list, or texts of a format that no secret has."""
_ANY_TEXT: Final = (types.StrType, types.AnyType, types.RawType, types.CustomType)
_BYTES: Final = (types.BytesType, types.ByteArrayType, types.MemoryViewType)
_OBJECTS: Final = (types.StructType, types.DataclassType, types.TypedDictType)
_ARRAYS: Final = (types.ListType, types.VarTupleType, types.SetType, types.FrozenSetType, types.CollectionType)


def without_secrets(details: object, tp: Any) -> tuple[object, int]:
    """The details, given as JSON values, without secrets in their texts, and the number of replacements.

    Without any, the result is equal to `details`.
    """
    return _scrub(details, _type_info(tp), "")


def hidden_facts(tp: type[msgspec.Struct]) -> list[str]:
    """The names of texts in details of this type that the scrubber would always remove, in dotted form."""
    return list(dict.fromkeys(_hidden(_type_info(tp), "", frozenset())))


@lru_cache(maxsize=256)
def _type_info(tp: Any) -> types.Type:
    return type_info(tp)


def _scrub(value: Any, node: types.Type, name: str) -> tuple[Any, int]:
    from .redaction import scrub_details, scrub_known  # late: costs start-up time
    from .redaction.limits import REDACTED

    node = _member_for(value, _plain(node))
    if isinstance(node, _CLOSED):
        return value, 0
    if isinstance(node, _BYTES):  # base64: the other layers would take any for a secret
        return (value, 0) if scrub_known(str(value)) == value else (REDACTED, 1)
    if isinstance(value, Mapping) and isinstance(node, (*_OBJECTS, types.DictType)):
        return _scrub_object(value, node)
    if isinstance(value, list):
        scrubbed = [_scrub(item, of, name) for item, of in zip(value, _item_types(node, len(value)), strict=True)]
        return [item for item, _ in scrubbed], sum(count for _, count in scrubbed)
    if not name:
        return scrub_details(value)
    named, count = scrub_details({name: value})
    assert isinstance(named, Mapping)
    return next(iter(named.values())), count


def _scrub_object(value: Mapping[str, Any], node: types.Type) -> tuple[dict[str, Any], int]:
    from .redaction import scrub_secrets  # late: costs start-up time

    fields = _fields(node)
    other = node.value_type if isinstance(node, types.DictType) else types.AnyType()
    result: dict[str, Any] = {}
    total = 0
    for key, item in value.items():
        shown, in_key = (key, 0) if key in fields else scrub_secrets(key)
        result[shown], in_item = _scrub(item, fields.get(key, other), key)
        total += in_key + in_item
    return result, total


def _item_types(node: types.Type, count: int) -> list[types.Type]:
    """The types of the items of an array of `count` items."""
    if isinstance(node, _ARRAYS):
        return [node.item_type] * count
    if isinstance(node, types.TupleType):
        given = list(node.item_types)
    else:  # a struct that is encoded as an array: its tag comes first
        given = list(_fields(node).values())
        if isinstance(node, types.StructType) and node.tag is not None:
            given.insert(0, types.NoneType())
    return [*given, *[types.AnyType()] * count][:count]


def _plain(node: types.Type) -> types.Type:
    while isinstance(node, types.Metadata):
        node = node.type
    return node


def _member_for(value: object, node: types.Type) -> types.Type:
    """The member of a union that a JSON value belongs to. Where several could hold it, the least closed one."""
    if not isinstance(node, types.UnionType):
        return node
    members = [_plain(member) for member in node.types]
    match value:
        case str():
            literals = [member for member in members if isinstance(member, types.LiteralType | types.EnumType)]
            if any(value in _values(member) for member in literals):
                return literals[0]
            return next((member for member in members if not isinstance(member, (*_CLOSED, *_OBJECTS))), members[0])
        case Mapping():
            found = [member for member in members if isinstance(member, (*_OBJECTS, types.DictType))]
            tagged = [m for m in found if isinstance(m, types.StructType) and value.get(m.tag_field or "") == m.tag]
            return next(iter([*tagged, *found]), types.AnyType())
        case list():
            return next(
                (member for member in members if isinstance(member, (*_ARRAYS, types.TupleType))), types.AnyType()
            )
        case _:
            return types.NoneType()


def _values(node: types.Type) -> tuple[object, ...]:
    if isinstance(node, types.EnumType):
        return tuple(member.value for member in node.cls)
    return node.values if isinstance(node, types.LiteralType) else ()


def _fields(node: types.Type) -> Fields:
    fields = getattr(node, "fields", ())
    return {field.encode_name: field.type for field in fields}


def _hidden(node: types.Type, name: str, above: frozenset[type]) -> Iterator[str]:
    from .redaction.layers.sensitivity import Sensitivity, name_sensitivity  # late: costs start-up time

    node = _plain(node)
    if isinstance(node, types.UnionType):
        for member in node.types:
            yield from _hidden(member, name, above)
    elif isinstance(node, (*_OBJECTS, types.NamedTupleType)):
        if node.cls not in above:
            for field, of in _fields(node).items():
                yield from _hidden(of, name if _is_positional(node) else _dotted(name, field), above | {node.cls})
    elif isinstance(node, _ARRAYS):
        yield from _hidden(node.item_type, name, above)
    elif isinstance(node, types.DictType):
        for key in _values(_plain(node.key_type)) or ("*",):
            yield from _hidden(node.value_type, _dotted(name, str(key)), above)
    elif isinstance(node, types.TupleType):
        for item in node.item_types:
            yield from _hidden(item, name, above)
    elif isinstance(node, _ANY_TEXT) and name_sensitivity(name.rpartition(".")[2]) is Sensitivity.CERTAIN:
        yield name


def _is_positional(node: types.Type) -> bool:
    """Whether it is an array in JSON, so that its fields have no names there."""
    return isinstance(node, types.NamedTupleType) or (isinstance(node, types.StructType) and node.array_like)


def _dotted(name: str, field: str) -> str:
    return f"{name}.{field}" if name else field


class ErrorObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """The member `error` of a response (JSON-RPC 2.0 section 5.1); `data` is raw JSON."""

    code: int
    message: str
    data: Raw | UnsetType = UNSET


class ReasonData(msgspec.Struct, frozen=True):
    reason: str


class InternalData(msgspec.Struct, frozen=True):
    code: str


class InvalidParamsData(msgspec.Struct, frozen=True, omit_defaults=True):
    param: str
    expected: str
    received: str
    accepted: tuple[JsonScalar, ...] | None = None


class ServerErrorData(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data of every −32000; the flag is always present."""

    code: str
    retryable: bool
    details: Raw | UnsetType = UNSET


class AuthChallenge(msgspec.Struct, frozen=True, rename="camel"):
    auth_schemes: tuple[str, ...]
    realm: str


class _AgentData(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The `data` of A2A 0.3."""

    task_id: str | None = None
    current_state: str | None = None
    completed_at: str | None = None
    reason: str | None = None
    suggestion: str | None = None
    accepted: tuple[str, ...] = ()


class RetryAfter(msgspec.Struct, frozen=True, rename="camel"):
    retry_after_ms: int


_encode = msgspec.json.Encoder().encode


def error_object(failure: Failure, dialect: str = "plain", *, version: A2AVersion | None = None) -> ErrorObject:
    """The error object of a failure: the code of the table in this dialect, its message, and minimal data.

    `version` is that of the A2A method that failed: in 1.0 the data are `rpc_details`.
    """
    row = row_of(failure)
    if version == "1.0" or (isinstance(failure, AgentFailure) and failure.version == "1.0"):
        from .rpc_details import details_of  # late: costs start-up time

        data: object = details_of(failure, row)
    else:
        data = data_of(failure, row.protocol_code, row.retryable)
    return ErrorObject(row.code_in(dialect), message_of(failure, row.message), UNSET if data is None else _raw(data))


def encode_status(failure: Failure, http_status: int, version: A2AVersion = "1.0") -> bytes:
    """The body of an HTTP response with this status: a google.rpc.Status as HTTP+JSON has it (A2A 1.0, section 11.6).

    0.3 does not say what such a body is. Its own begins with the error's name and message, where a2a-sdk looks for them.
    """
    from .rpc_details import details_of

    row = row_of(failure)
    status = {
        "code": http_status,
        "status": row.grpc_status,
        "message": message_of(failure, row.message),
        "details": details_of(failure, row),
    }
    name = f"{row.failure.__name__}Error"
    old = {"type": name, "message": status["message"]} if version == "0.3" else {}
    return _encode({**old, "error": status})


def message_of(failure: Failure, message: str) -> str:
    match failure:
        case InvalidRequest("batch-not-supported"):
            return BATCH_MESSAGE
        case InvalidRequest(member=member) if member is not None:
            return f"{message}: {MEMBER_RULES[member]}"
        case ParseFailure(hint=hint) | InvalidRequest(hint=hint) | OperationTypeMismatch(hint=hint) if hint:
            return f"{message}: {hint}"
        case InvalidParams(unknown=what) if what:
            return f"{message}: unknown {what}"
        case Unavailable(int()):
            return STORE_UNAVAILABLE
        case _:
            return message


def encode_error(failure: Failure, dialect: str = "plain") -> bytes:
    """The error object of a failure, as JSON text."""
    return _encode(error_object(failure, dialect))


def encode_error_response(
    request_id: bytes, failure: Failure, dialect: str = "plain", *, version: A2AVersion | None = None
) -> bytes:
    """The JSON-RPC response that answers a request with a failure. `request_id` is the JSON text of the request's id,
    `version` that of its method if it is one of A2A."""
    error = _encode(error_object(failure, dialect, version=version))
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request_id, error)


def data_of(failure: Failure, code: str, retryable: bool) -> msgspec.Struct | None:
    match failure:
        case ParseFailure(reason) | InvalidRequest(reason=reason):
            return ReasonData(reason)
        case OperationTypeMismatch():
            return ReasonData(OPERATION_TYPE_REASON)
        case InvalidParams():
            return InvalidParamsData(failure.param, failure.expected, failure.received, failure.accepted)
        case Internal():
            return InternalData(failure.code) if failure.code else None
        case DomainFailure():
            return ServerErrorData(code, retryable, _details_of(failure))
        case AuthenticationRequired():
            return ServerErrorData(code, retryable, _raw(AuthChallenge(failure.schemes, failure.realm)))
        case Overloaded() | Unavailable():
            after = failure.retry_after_ms
            return ServerErrorData(code, retryable, UNSET if after is None else _raw(RetryAfter(after)))
        case InsufficientPermissions() | TimedOut():
            return ServerErrorData(code, retryable)
        case MethodNotFound() | Cancelled():
            return None
        case AgentFailure():
            return _AgentData(**{name: getattr(failure, name) for name in _AgentData.__struct_fields__})
        case _:
            assert_never(failure)


def _details_of(failure: DomainFailure) -> Raw | UnsetType:
    """The details, in which stands the time to wait, too, as in those of OVERLOADED. Details that are no object have no place
    for it."""
    details, after = failure.details, failure.retry_after_ms
    if after is None:
        return UNSET if details is None else details
    members: object = {} if details is None else msgspec.json.decode(details)
    return _raw({"retryAfterMs": after, **members}) if isinstance(members, dict) else details or UNSET


def _raw(value: object) -> Raw:
    return Raw(_encode(value))


def failure_of(exc: OperationError, declared: Sequence[type[OperationError]]) -> Failure:
    """The failure for an error that an operation raised.

    A declared error becomes a `DomainFailure`; its details are checked against their declared types, and the scrubber
    removes secrets from them. A subclass of a declared one that adds neither a code, a number nor fields is that one; any other
    is undeclared: no schema has its code and its fields. An undeclared one becomes `Internal` with its code and nothing else.
    Raises `msgspec.ValidationError` or `TypeError` if a declared error carries fields that its declaration does not allow; treat
    that as an unexpected fault.
    """
    definition = exc.definition
    if type(exc) not in declared:
        declaration = next((cls for cls in declared if isinstance(exc, cls) and _says_no_more(definition, cls)), None)
        if declaration is None:
            return Internal(definition.code)
        definition = declaration.definition
    details = None
    if definition.has_details and exc.details is not None:
        encoded = bytes(exc.raw) if isinstance(exc, ExternalError) and exc.raw is not None else _encode(exc.details)
        decoder_for(definition.details)(encoded)
        details = _without_secrets(encoded, definition.details)
    return DomainFailure(
        definition.code,
        definition.message,
        definition.retryable,
        details,
        definition.http_status,
        definition.number,
        exc.retry_after_ms if isinstance(exc, ExternalError) else None,
    )


def _says_no_more(definition: ErrorDefinition, declaration: type[OperationError]) -> bool:
    """Whether an error of this definition has the facts of that declaration and no others, by which callers know it."""
    known = declaration.definition
    same_fields = _fields_of(definition) == _fields_of(known)
    return same_fields and definition.code == known.code and definition.number == known.number


def _fields_of(definition: ErrorDefinition) -> object:
    return getattr(definition.details, "__struct_fields__", definition.details)


def _without_secrets(encoded: bytes, tp: Any) -> Raw:
    """The details without secrets. Raises `msgspec.ValidationError` if they do not fit their declared type without them."""

    scrubbed, replacements = without_secrets(msgspec.json.decode(encoded), tp)
    if not replacements:
        return Raw(encoded)
    safe = _encode(scrubbed)
    decoder_for(tp)(safe)
    return Raw(safe)


NO_CODE: Final = 0
"""Stands for the code of a received error without one; JSON-RPC does not use it."""


def decode_error(raw: bytes | Raw, *, a2a: bool = True) -> tuple[ErrorObject, Failure]:
    """Decode the error object of a peer, and the failure that it stands for. Total: unrecognised text is `Internal`.

    Without `a2a`, the numbers of A2A are the peer's own.

    JSON of another shape becomes the `data` of the returned error object.
    """
    try:
        try:
            error = decoder_for(ErrorObject)(raw)
        except msgspec.ValidationError:
            error = _malformed_error(raw)
        return error, _failure_from(error, a2a=a2a)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ErrorObject(NO_CODE, ""), Internal()


def _malformed_error(raw: bytes | Raw) -> ErrorObject:
    decoded: object = msgspec.json.decode(raw)
    members = decoded if isinstance(decoded, dict) else {"message": decoded}
    code, message = members.get("code"), members.get("message")
    number = code if isinstance(code, int) and not isinstance(code, bool) else NO_CODE
    return ErrorObject(number, message if isinstance(message, str) else "", Raw(bytes(raw)))


def _failure_from(error: ErrorObject, *, a2a: bool) -> Failure:
    if not isinstance(error.data, UnsetType) and bytes(error.data).lstrip().startswith(b"["):
        from .rpc_details import failure_from_details, read_details

        return failure_from_details(error.code, error.message, read_details(error.data))
    if error.code == SERVER_ERROR:
        return _server_failure(error.message, error.data)
    rows = [row for row in rows_of_code(error.code) if a2a or not issubclass(row.failure, AgentFailure)]
    if not rows:
        return _numbered_failure(error)
    for row in rows:
        try:
            built = _from_data(row.failure, error.data)
        except msgspec.DecodeError:  # data of the peer's own under a standard code
            continue
        if built is not None:
            return built
    return _DEFAULT_FAILURES.get(error.code, Internal())


_DEFAULT_FAILURES: dict[int, Failure] = {
    PARSE_ERROR: ParseFailure("invalid-json"),
    INVALID_REQUEST: InvalidRequest("malformed-envelope"),
    INVALID_PARAMS: InvalidParams("$", expected="", received=""),
}
"""What a standard code means if its data is missing or not ours."""


def _from_data(kind: type[Any], data: Raw | UnsetType) -> Failure | None:
    """The failure of this kind that the data describes; None if the data belongs to another kind."""
    if kind is MethodNotFound or kind is Cancelled:
        return MethodNotFound() if kind is MethodNotFound else Cancelled()
    if issubclass(kind, AgentFailure):
        return _agent_failure(kind, data)
    if isinstance(data, UnsetType):
        return None
    if kind is Internal:
        return Internal(decoder_for(InternalData)(data).code)
    if kind is OperationTypeMismatch:
        reason = decoder_for(ReasonData)(data).reason
        return OperationTypeMismatch() if reason == OPERATION_TYPE_REASON else None
    built: Failure = decoder_for(kind)(data)
    return built


def _agent_failure(kind: type[Any], data: Raw | UnsetType) -> Failure:
    """The failure of this kind, with the data if it can be read: the code alone determines the kind."""
    built: Failure = kind()
    if isinstance(data, UnsetType):
        return built
    try:
        fields = decoder_for(_AgentData)(data)
    except msgspec.DecodeError:  # data of the peer's own
        return built
    return msgspec.structs.replace(built, version="0.3", **msgspec.structs.asdict(fields))


def decode_declared(raw: bytes | Raw) -> Failure:
    """The failure that an error object stands for by its data alone: a declared error may have any number, also one that the
    table has for another failure. `Internal` for data that are none of a declared error.
    """
    try:
        return _numbered_failure(decoder_for(ErrorObject)(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Internal()


def _numbered_failure(error: ErrorObject) -> Failure:
    """A declared error with a number of its own; `Internal` for a number of the peer's own."""
    failure = _server_failure(error.message, error.data)
    if not isinstance(failure, DomainFailure):
        return failure if error.code == SERVER_ERROR else Internal()
    return failure if error.code == SERVER_ERROR else msgspec.structs.replace(failure, number=error.code)


def _server_failure(message: str, data: Raw | UnsetType) -> Failure:
    try:
        server = decoder_for(ServerErrorData)(b"" if isinstance(data, UnsetType) else data)
        details = None if isinstance(server.details, UnsetType) else server.details
        match server.code:
            case "TIMEOUT":
                return TimedOut()
            case "UNAVAILABLE":
                return Unavailable(_retry_after_ms(details))
            case "FORBIDDEN" if details is None:
                return InsufficientPermissions()
            case "FORBIDDEN":
                challenge = decoder_for(AuthChallenge)(details or b"")
                return AuthenticationRequired(challenge.auth_schemes, challenge.realm)
            case "OVERLOADED":
                return Overloaded(_retry_after_ms(details))
            case code:
                return DomainFailure(code, message, server.retryable, details, retry_after_ms=_asked_to_wait(details))
    except msgspec.DecodeError:
        return Internal()


class _MayAskToWait(msgspec.Struct, rename="camel"):
    retry_after_ms: object = None


def _asked_to_wait(details: Raw | None) -> int | None:
    """What the details of a declared error say of the time to wait. Whatever else has that name there says nothing."""
    if details is None or b"retryAfterMs" not in bytes(details):
        return None
    try:
        after = decoder_for(_MayAskToWait)(details).retry_after_ms
    except msgspec.ValidationError:  # no object
        return None
    return after if type(after) is int and after >= 0 else None


def _retry_after_ms(details: Raw | None) -> int | None:
    return decoder_for(RetryAfter)(details).retry_after_ms if details else None
