"""The errors of operations as responses: which codes come with which status, and how each looks.

The facts are those of the table of errors and of what operations declare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, final

from msgspec import UNSET, Struct

from ...daemon.operations.spec import OperationSpec
from ...errors.codes import ERROR_TABLE
from ...errors.failures import (
    AuthenticationRequired,
    InsufficientPermissions,
    Internal,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    Overloaded,
    ParseFailure,
    TimedOut,
    Unavailable,
)
from ...errors.wire import OPTIONAL_DETAILS, PROTOCOL_DETAILS
from ...schemas.documents import ErrorSchema
from ...schemas.json_schema import JsonSchema, json_schema
from ...schemas.named_types import SHARED, NamedTypes
from .examples import example_of
from .objects import Example, Header, MediaType, Response

JSON: Final = "application/json"

_Rows: TypeAlias = tuple[tuple[int, type], ...]

ALWAYS: Final[_Rows] = (
    (400, InvalidParams),
    (404, MethodNotFound),
    (429, Overloaded),
    (500, Internal),
    (503, Unavailable),
)
"""The failures of every operation, each with its status."""
OF_CALLERS: Final[_Rows] = ((401, AuthenticationRequired),)
"""The further failures of an operation that only known callers may call."""
OF_SCOPES: Final[_Rows] = ((403, InsufficientPermissions),)
"""The further failures of an operation that asks for scopes."""
OF_BODIES: Final[_Rows] = (
    (400, ParseFailure),
    (400, InvalidRequest),
    (408, TimedOut),
    (413, InvalidRequest),
    (415, InvalidRequest),
)
"""The further failures of a request with a body."""
OF_DEADLINES: Final[_Rows] = ((504, TimedOut),)

HEAD_TOO_LARGE: Final = 431
"""The status of a request whose URL and headers are too large. Its answer has no content: the server gives it, and not the
gateway."""

_RETRY_AFTER: Final = Header({"type": "integer", "minimum": 0}, "Seconds to wait before the call is made again.")
_CHALLENGE: Final = Header({"type": "string"}, "The schemes of credentials that are accepted.")
_HEADERS: Final[Mapping[int, dict[str, Header]]] = {
    401: {"WWW-Authenticate": _CHALLENGE},
    429: {"Retry-After": _RETRY_AFTER},
    503: {"Retry-After": _RETRY_AFTER},
}
_DETAILS: Final[Mapping[type, object]] = {
    ParseFailure: {"reason": "invalid-json"},
    InvalidRequest: {"reason": "unsupported-content-type"},
    InvalidParams: {"param": "limit", "expected": "integer >= 1", "received": "string"},
    AuthenticationRequired: {"authSchemes": ["bearer"], "realm": "discreet"},
}
"""Examples of the details of protocol errors."""


class _Error(Struct, frozen=True):
    code: str
    schema: JsonSchema
    meaning: str
    example: Any  # JSON, or UNSET


@final
class ErrorResponses:
    """The error responses of one document. `shared` are the responses that operations refer to: those with protocol errors only.
    With `known_only`, callers must be known unless an operation is public."""

    def __init__(self, types: NamedTypes, *, known_only: bool) -> None:
        self._types = types
        self._known_only = known_only
        self._of_protocol = {failure: self._protocol_error(failure) for failure in PROTOCOL_DETAILS if failure in _USED}
        self.shared: dict[str, Response] = {}

    def of(self, spec: OperationSpec, declared: Sequence[ErrorSchema], *, with_body: bool) -> dict[str, Response]:
        """The responses of a call that fails, by their status."""
        found: dict[int, list[_Error]] = {}
        for error in declared:
            schema = _error_schema(error.code, retryable=error.retryable, message=error.message, details=error.schema)
            meaning = error.description or error.message
            told = self._error(schema, _type_name(error.code), meaning, example_of(schema, schema))
            found.setdefault(error.http_status, []).append(told)
        own = frozenset(found)
        timed = spec.timeout is not None and spec.mode != "inline"
        rule = spec.access
        known = OF_CALLERS * (not rule.public and (self._known_only or not rule.open))
        access = (*known, *(OF_SCOPES * (not rule.open)))
        rows = (*ALWAYS, *(OF_BODIES * with_body), *access, *(OF_DEADLINES * timed))
        for status, failure in rows:
            found.setdefault(status, []).append(self._of_protocol[failure])
        responses = {
            status: _response(status, errors) if status in own else self._share(status, errors)
            for status, errors in found.items()
        }
        name = f"HeadTooLarge{HEAD_TOO_LARGE}"
        self.shared.setdefault(name, Response("The URL and the headers are too large together."))
        responses.setdefault(HEAD_TOO_LARGE, Response(ref=f"{RESPONSES}{name}"))
        return {str(status): response for status, response in sorted(responses.items())}

    def _protocol_error(self, failure: type) -> _Error:
        row = next(row for row in ERROR_TABLE if row.failure is failure)
        details_type = PROTOCOL_DETAILS[failure]
        details = None if details_type is None else json_schema(details_type, titled=False)
        schema = _error_schema(row.protocol_code, retryable=row.retryable, message=row.message, details=details)
        example: Any = {"code": row.protocol_code, "message": row.message, "retryable": row.retryable}
        if failure in OPTIONAL_DETAILS:
            schema["required"].remove("details")
        elif details is not None:
            example["details"] = _DETAILS[failure]
        name = f"{failure.__name__}Error" if row.protocol_code == "FORBIDDEN" else _type_name(row.protocol_code)
        return self._error(schema, name, row.message, example)

    def _error(self, schema: JsonSchema, name: str, meaning: str, example: object) -> _Error:
        reference = self._types.include_named(schema, name)
        assert isinstance(reference, dict), "a schema with members is no boolean"
        return _Error(schema["properties"]["code"]["const"], reference, meaning, example)

    def _share(self, status: int, errors: Sequence[_Error]) -> Response:
        names = [error.schema["$ref"].removeprefix(SHARED).removesuffix("Error") for error in errors]
        name = f"{'Or'.join(names)}{status}"
        if name not in self.shared:
            self.shared[name] = _response(status, errors)
        return Response(ref=f"{RESPONSES}{name}")


RESPONSES: Final = "#/components/responses/"

_USED: Final = frozenset(failure for _, failure in (*ALWAYS, *OF_CALLERS, *OF_SCOPES, *OF_BODIES, *OF_DEADLINES))


def _error_schema(code: str, *, retryable: bool, message: str, details: JsonSchema | None) -> JsonSchema:
    """The schema of an error of this code as `errors.wire` writes it, with the types that its details refer to."""
    properties: JsonSchema = {
        "code": {"type": "string", "const": code},
        "message": {"type": "string", "examples": [message]},
        "retryable": {"type": "boolean", "const": retryable},
    }
    schema: JsonSchema = {"type": "object", "properties": properties, "required": ["code", "message", "retryable"]}
    if details is None:
        return schema
    properties["details"] = {word: value for word, value in details.items() if word not in ("$schema", "$defs")}
    schema["required"].append("details")
    return schema | ({"$defs": details["$defs"]} if "$defs" in details else {})


def _response(status: int, errors: Sequence[_Error]) -> Response:
    """Several errors of one status are told apart by their code."""
    schema = errors[0].schema
    if len(errors) > 1:
        mapping = {error.code: error.schema["$ref"] for error in errors}
        discriminator = {"propertyName": "code", "mapping": mapping}
        schema = {"oneOf": [error.schema for error in errors], "discriminator": discriminator}
    examples = {error.code: Example(error.example) for error in errors if error.example is not UNSET}
    meaning = "\n".join(f"{error.code}: {error.meaning}" for error in errors)
    return Response(meaning, _HEADERS.get(status, {}), {JSON: MediaType(schema, examples=examples)})


def _type_name(code: str) -> str:
    """FILE_NOT_FOUND as FileNotFoundError."""
    name = "".join(word.capitalize() for word in code.split("_"))
    return name if name.endswith("Error") else f"{name}Error"
