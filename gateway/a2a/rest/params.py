"""From path, query and body to the params of a method, as JSON (A2A 1.0, section 11.5). Checks no values: their method does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, get_args

import msgspec
from msgspec import Raw

from ....daemon.rpc.text import json_failure
from ....errors.exceptions import FailureError
from ....errors.failures import InvalidParams

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

    from ....daemon.operations.params import InputModel
    from .routes import Found

_encode: Final = msgspec.json.Encoder().encode
_read_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode

_BOOLEANS: Final = {"true": True, "false": False}


def read_params(found: Found, body: bytes, query: QueryParams, model: InputModel) -> Raw:
    """The params of the method, whose model this is. Raises `FailureError` where they can't be told."""
    if body or found.route.needs_body:
        return _params_of_body(body, found.params)
    return _params_of_query(query, found.params, model)


def _params_of_body(body: bytes, path: Mapping[str, str]) -> Raw:
    """The params that a body holds, and the path: what the path says counts. Raises `FailureError` for what is no JSON."""
    failure = json_failure(body)
    if failure is not None:
        raise FailureError(failure)
    if not path:
        return Raw(body)
    try:
        members = _read_members(body)
    except msgspec.ValidationError:  # no object: the method refuses it
        return Raw(body)
    return Raw(_encode({**{name: value for name, value in members.items() if name not in path}, **path}))


def _params_of_query(query: QueryParams, path: Mapping[str, str], model: InputModel) -> Raw:
    """The params that a query and a path hold. Of the query those count that the method has; the others may be service
    parameters. Empty ones count as absent. Raises `FailureError(InvalidParams)` for one that came twice.

    Numbers stay texts, which ProtoJSON allows; booleans become such.
    """
    params: dict[str, object] = {}
    for field in msgspec.structs.fields(model.type):
        name = field.encode_name
        given = [] if name in path else [value for value in query.getlist(name) if value]
        if len(given) > 1:
            raise FailureError(InvalidParams(name, "one value", "array"))
        if given:
            value = given[0]
            params[name] = _BOOLEANS.get(value, value) if bool in get_args(field.type) else value
    return Raw(_encode({**params, **path}))
