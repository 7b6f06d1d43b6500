"""A declared error as data: what `errors=[…]` means to the registry, the wire and the documents."""

from __future__ import annotations

import re
from typing import ClassVar, get_origin, get_type_hints

import msgspec

_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_NAMES_OF_EXCEPTIONS = frozenset({"args", "add_note", "with_traceback", "details", "definition"})


class ErrorDefinition(msgspec.Struct, frozen=True):
    """One declared error. `details` is the struct type of its facts; `has_details` is False where it has none."""

    code: str
    message: str
    description: str
    http_status: int
    retryable: bool
    details: type[msgspec.Struct]

    @property
    def has_details(self) -> bool:
        return bool(self.details.__struct_fields__)


def define(
    cls: type[Exception],
    *,
    code: str,
    message: str | None,
    http_status: int,
    retryable: bool,
    reserved: frozenset[str],
) -> ErrorDefinition:
    """Read an error class's declaration. Raises `TypeError` that names the class and what is wrong with it."""
    name = cls.__name__
    if not _CODE.fullmatch(code):
        raise TypeError(f"{name}: code {code!r} must be upper-case words such as FILE_NOT_FOUND")
    if code in reserved:
        raise TypeError(f"{name}: code {code} is a protocol code and can't be declared")
    if not 400 <= http_status <= 599:
        raise TypeError(f"{name}: http_status {http_status} must be between 400 and 599")
    description = " ".join((cls.__doc__ or "").split())
    return ErrorDefinition(
        code=code,
        message=message or first_sentence(cls.__doc__) or code.replace("_", " ").capitalize(),
        description=description,
        http_status=http_status,
        retryable=retryable,
        details=_details_type(cls),
    )


def first_sentence(doc: str | None) -> str:
    """The first line of a docstring without its full stop; empty where there is none."""
    lines = (doc or "").strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else ""


def _details_type(cls: type[Exception]) -> type[msgspec.Struct]:
    """The struct of a class's own facts, upon that of the class it extends; defaults move from class to struct."""
    parent: ErrorDefinition | None = getattr(cls.__base__, "definition", None)
    inherited = parent.details.__struct_fields__ if parent else ()
    fields: list[tuple[str, object] | tuple[str, object, object]] = []
    for field, annotation in get_type_hints(cls, include_extras=True).items():
        if get_origin(annotation) is ClassVar or (field in inherited and field not in cls.__dict__):
            continue
        if field.startswith("_") or field in _NAMES_OF_EXCEPTIONS:
            raise TypeError(f"{cls.__name__}: a fact can't be named {field}")
        if field in cls.__dict__:
            fields.append((field, annotation, cls.__dict__[field]))
            delattr(cls, field)  # or it would hide the instance's own fact
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
