"""From a call to the operation that it means, or to the reason why there is none. Runs no handler of an app."""

from __future__ import annotations

from typing import Final, TypeAlias, final

from msgspec import UnsetType
from msgspec.structs import replace

from ...errors.exceptions import FailureError
from ...errors.failures import Failure, Internal, MethodNotFound, OperationTypeMismatch
from ...errors.redaction.safe_call import type_name
from ..logs import log
from ..operations.access import Access, ProviderFailed
from ..operations.registry import Registry
from ..operations.service import DeclarationError
from ..operations.spec import Forward, OperationSpec
from ..rpc.envelope import Call
from .execution import Raised, attempt_now

REPLACEABLE: Final = frozenset({"initialize", "initialized", "shutdown"})
"""Methods of the daemon in whose place a service may put its own."""

Route: TypeAlias = tuple[Call, OperationSpec]


@final
class Router:
    """Lookup and visibility, then access: the checks before input, in that order (section 6 of docs/protocol.md).

    `builtins` are the methods of this connection alone. Raises `DeclarationError` where `registry` declares one of them too
    that is not `REPLACEABLE`. Unless `named`, only the builtins are methods, and forward calls to what `registry` holds.
    """

    def __init__(self, builtins: Registry, registry: Registry, access: Access, *, named: bool = True) -> None:
        twice = (builtins.names - REPLACEABLE) & registry.names if named else ()
        if twice:
            raise DeclarationError(f"operations with names of the daemon's own methods: {', '.join(sorted(twice))}")
        self._builtins = builtins
        self._registry = registry
        self._named = named
        self._access = access

    def route(self, call: Call, access: Access | None = None) -> Route | Failure:
        """Where a call goes; the call may come back rewritten. Never raises, whatever an identity provider does.

        `access` is that of one caller, where it is known already.
        """
        access = access or self._access
        spec = self._registry.by_name.get(call.method) if self._named else None
        if spec is None or spec.visibility != "external":
            spec = self._find(call.method) if self._named else self._builtins.find(call.method)
        if spec is None:
            return MethodNotFound()
        mismatch = False
        if spec.mode == "forward":
            try:
                target: Forward = spec.invoke(None, spec.input.decode(call.params))
            except FailureError as exc:
                return exc.failure
            spec = self._find(target.method)
            if spec is None or spec.mode == "forward":
                return MethodNotFound()
            mismatch = target.subscribe is not None and (spec.kind == "subscription") != target.subscribe
            if target.patient and isinstance(spec.timeout, UnsetType):
                spec = replace(spec, timeout=None)
            call = _forwarded(call, spec, target)
            if call.span is not None:
                call.span.lead_to(target.name or spec.name)
        if not access.unrestricted or spec.admits is not None:
            refusal = refusal_of(access, call, spec)
            if refusal is not None:
                return refusal
        return OperationTypeMismatch() if mismatch else (call, spec)

    def name_of(self, call: Call) -> str | None:
        """The declared name of the operation that a call names; None where there is none that can be called."""
        spec = self._find(call.method) if self._named else self._builtins.find(call.method)
        return None if spec is None else spec.name

    def _find(self, method: str) -> OperationSpec | None:
        return self._registry.find(method) or self._builtins.find(method)


def refusal_of(access: Access, call: Call, spec: OperationSpec) -> Failure | None:
    """Why this caller may not make this call; None where it may. Nothing of the params is read for it."""
    if not access.unrestricted:
        refusal = attempt_now(lambda: access.refusal(spec.access, call.metadata), step="identity.resolve")
        if isinstance(refusal, Raised):
            return provider_failed(call, refusal.exc)
        if refusal is not None:
            return refusal
    return None if spec.admits is None else spec.admits(call.metadata)


def provider_failed(call: Call, exc: BaseException) -> Internal:
    """What a call gets whose sender the identity provider could not name. The exception may hold the credential."""
    log.error(
        "identity.failed",
        method=call.method,
        id=call.id,
        error=exc.error if isinstance(exc, ProviderFailed) else type_name(exc),
    )
    return Internal()


def _forwarded(call: Call, spec: OperationSpec, target: Forward) -> Call:
    params = None if bytes(target.params) == b"null" else target.params
    return Call(
        spec.name,
        call.id,
        params,
        call.metadata,
        target.prefix,
        call.size,
        target.rendering,
        target.progress_token,
        span=call.span,
    )
