"""From a call to the operation that it means, or to the reason why there is none. Runs nothing."""

from __future__ import annotations

from typing import Final, TypeAlias, final

from ...errors.exceptions import FailureError
from ...errors.failures import Failure, MethodNotFound, OperationTypeMismatch
from ..operations.access import Access
from ..operations.registry import Registry
from ..operations.spec import OperationSpec
from ..rpc.envelope import Call

FORWARDING: Final[dict[str, bool]] = {"services/call": False, "services/subscribe": True}
"""Methods that name an operation as data, and whether they want a subscription."""

Route: TypeAlias = tuple[Call, OperationSpec]


@final
class Router:
    """Lookup and visibility, then access: the checks before input, in that order (section 6 of docs/protocol.md)."""

    def __init__(self, registry: Registry, access: Access) -> None:
        self._registry = registry
        self._access = access

    def route(self, call: Call) -> Route | Failure:
        """Where a call goes; the call may come back rewritten."""
        spec = self._registry.find(call.method)
        if spec is None:
            return MethodNotFound()
        if spec.name in FORWARDING:
            forwarded = self._forwarded(call, spec)
            if not isinstance(forwarded, tuple):
                return forwarded
            call, spec = forwarded
        if not self._access.unrestricted:
            refusal = self._access.refusal(spec.access, call.metadata)
            if refusal is not None:
                return refusal
        return call, spec

    def _forwarded(self, call: Call, forwarder: OperationSpec) -> Route | Failure:
        try:
            name, given = forwarder.input.decode(call.params)
        except FailureError as exc:
            return exc.failure
        spec = self._registry.find(name)
        if spec is None or spec.name in FORWARDING:
            return MethodNotFound()
        if (spec.kind == "subscription") != FORWARDING[forwarder.name]:
            return OperationTypeMismatch()
        params = None if given is None or bytes(given) == b"null" else given
        return Call(spec.name, call.id, params, call.metadata, "input", call.size), spec
