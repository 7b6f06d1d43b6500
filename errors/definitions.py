"""Reads the declaration of an error class into a struct. Never raises or renders the error itself."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final, get_origin, get_type_hints

import msgspec

from .decoders import ExternalSchema

_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
JSON_RPC_CODES: Final = frozenset({-32700, -32600, -32601, -32602, -32603})
"""The codes that JSON-RPC 2.0 defines (section 5.1). An error that is declared can't mean what they mean."""
_RESERVED_FIELDS = frozenset({"args", "add_note", "with_traceback", "details", "definition"})

_UNREADABLE = (TypeError, ValueError, NameError, AttributeError, SyntaxError, RuntimeError)
"""What resolving annotations raises, and msgspec for defaults that it refuses."""


class ErrorDefinition(msgspec.Struct, frozen=True):
    """One declared error; `details` is the struct type of its fields, or a type with a given schema. `number` is the JSON-RPC
    code, None for that of all.
    """

    code: str
    message: str
    description: str
    http_status: int
    retryable: bool
    details: Any
    number: int | None = None

    @property
    def has_details(self) -> bool:
        """Whether the error has any field."""
        return isinstance(self.details, ExternalSchema) or bool(self.details.__struct_fields__)


def define_error(
    cls: type[Exception],
    *,
    code: str,
    message: str | None,
    http_status: int,
    retryable: bool,
    number: int | None,
    reserved: frozenset[str],
) -> ErrorDefinition:
    """The declaration of an error class. Raises `TypeError` that names the class and the fault of its declaration."""
    name = cls.__name__
    if not (isinstance(code, str) and _CODE.fullmatch(code)):
        raise TypeError(f"{name}: code {code!r} must be upper-case words such as FILE_NOT_FOUND")
    if code in reserved:
        raise TypeError(f"{name}: code {code} is a protocol code and can't be declared")
    if not (isinstance(http_status, int) and 400 <= http_status <= 599):
        raise TypeError(f"{name}: http_status {http_status!r} must be a number between 400 and 599")
    if not isinstance(retryable, bool):
        raise TypeError(f"{name}: retryable must be True or False")
    if not (
        message is None or (isinstance(message, str) and not any("\ud800" <= char <= "\udfff" for char in message))
    ):
        raise TypeError(f"{name}: message must be a string of Unicode text")
    if number is not None and not _may_be_declared(number):
        raise TypeError(
            f"{name}: number {number!r} must be an integer of 32 bits that JSON-RPC does not define itself"
            f" ({', '.join(map(str, sorted(JSON_RPC_CODES)))})"
        )
    description = " ".join((cls.__doc__ or "").split())
    return ErrorDefinition(
        code=code,
        message=message or first_line(cls.__doc__) or code.replace("_", " ").capitalize(),
        description=description,
        http_status=http_status,
        retryable=retryable,
        details=_checked_details_type(cls),
        number=number,
    )


def _may_be_declared(number: object) -> bool:
    return type(number) is int and -(2**31) <= number < 2**31 and number not in JSON_RPC_CODES


def first_line(doc: str | None) -> str:
    """The first line of a docstring without its full stop; empty without a docstring."""
    lines = (doc or "").strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else ""


def _checked_details_type(cls: type[Exception]) -> type[msgspec.Struct]:
    try:
        return _details_type(cls)
    except _UNREADABLE as exc:
        raise TypeError(f"{cls.__name__}: its fields can't be read: {exc}") from exc


def _details_type(cls: type[Exception]) -> type[msgspec.Struct]:
    """The struct of a class's annotated fields, which extends that of its base class. Moves defaults to the struct."""
    parent: ErrorDefinition | None = getattr(cls.__base__, "definition", None)
    inherited = parent.details.__struct_fields__ if parent else ()
    fields: list[tuple[str, object] | tuple[str, object, object]] = []
    for field, annotation in get_type_hints(cls, include_extras=True).items():
        if get_origin(annotation) is ClassVar or (field in inherited and field not in cls.__dict__):
            continue
        if field.startswith("_") or field in _RESERVED_FIELDS:
            raise TypeError(f"no field can be named {field}")
        if field in cls.__dict__:
            fields.append((field, annotation, cls.__dict__[field]))
            delattr(cls, field)  # a class attribute would hide the instance's field
        else:
            fields.append((field, annotation))
    return msgspec.defstruct(
        f"{cls.__name__}Details",
        fields,
        bases=(parent.details,) if parent else None,
        frozen=True,
        kw_only=True,
        module=cls.__module__,
    )
