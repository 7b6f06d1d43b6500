"""From the query of a URL to params as JSON, by the form that each has there. Checks no values: the operation does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import parse_qsl

import msgspec
from msgspec import Raw

from ...daemon.rpc.text import json_failure
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from ..openapi.query_params import Form, QueryParam

_encode: Final = msgspec.json.Encoder().encode
_NOT_SCALAR: Final = frozenset(b'"[{n \t\r\n')
"""How a JSON text begins that is no number and no boolean."""


def read_query(query: bytes, params: Mapping[str, QueryParam], ignored: Collection[str] = ()) -> bytes:
    """The params that a query holds; those of other names are told to the operation, which knows whether it takes them.

    Raises `FailureError(InvalidParams)` for a query that is no UTF-8, for one value too many, and for what should be JSON.
    """
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise FailureError(InvalidParams("$", "percent-encoded UTF-8", "string")) from None
    values: dict[str, object] = {}
    for name, text in pairs:
        param = params.get(name)
        if name in ignored:
            continue
        value = text if param is None else _value(param, text)
        if param is not None and param.repeated:
            values.setdefault(name, [])
            listed = values[name]
            assert isinstance(listed, list), "each param has one form"
            listed.append(value)
        elif name in values:
            raise FailureError(InvalidParams(name if param else "$", "one value", "array"))
        else:
            values[name] = value
    return _encode(values)


def _value(param: QueryParam, text: str) -> str | Raw:
    """The value in the form of this param. A scalar that is none stays a text, and the param's own type says what it expects."""
    form: Form = param.form
    if form == "text":
        return text
    written = text.encode()
    if form == "json":
        if json_failure(written) is not None:
            raise FailureError(InvalidParams(param.name, "JSON", "string"))
        return Raw(written)
    is_scalar = written and written[0] not in _NOT_SCALAR and written[-1:] > b" " and json_failure(written) is None
    return Raw(written) if is_scalar else text
