"""What the `initialize` of every dialect has in common: what a client says of itself, and what services run before the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, get_type_hints

import msgspec

from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from ..operations.context import CallFailed, Context
from ..operations.request import ClientInfo
from ..operations.service import Service
from ..operations.spec import OperationSpec

MAX_CLIENT_BYTES: Final = 256 * 1024
"""What a client may say of itself, as JSON. It is kept as long as the client is there. Editors say some 20 KiB."""


class ServerInfo(msgspec.Struct, frozen=True):
    name: str
    version: str


def add_initialize(
    service: Service, hooks: Sequence[OperationSpec], answer: Callable[..., Any], answer_after_hooks: Callable[..., Any]
) -> None:
    """Add `initialize` to a service: `answer`, or the coroutine `answer_after_hooks` if services run something before."""
    if not hooks:  # then it is answered before any event loop is loaded
        service.query("initialize", inline=True)(answer)
        return answer_at_once(service)
    errors = list(dict.fromkeys(error for hook in hooks for error in hook.errors))
    service.query("initialize", errors=errors, description=answer.__doc__ or "")(answer_after_hooks)
    uses = frozenset(hook.name for hook in hooks)
    service.operations[-1] = msgspec.structs.replace(service.operations[-1], uses=uses)


def answer_at_once(service: Service) -> None:
    """Let the last operation wait for nothing that was read before it, except with `--ordered`. It is inline."""
    service.operations[-1] = msgspec.structs.replace(service.operations[-1], immediate="unordered")


def add_shutdown(service: Service, hooks: Sequence[OperationSpec], end: Callable[[], Any]) -> None:
    """Add `shutdown` to a service: `end`, behind what services run before."""
    if not hooks:
        service.mutation("shutdown", inline=True)(end)
        return

    async def shutdown(ctx: Context) -> Any:
        for hook in hooks:
            await ctx.call(hook.name, {})
        return end()

    errors = list(dict.fromkeys(error for hook in hooks for error in hook.errors))
    shutdown.__annotations__["return"] = get_type_hints(end)["return"]
    service.mutation("shutdown", errors=errors, description=end.__doc__ or "")(shutdown)
    uses = frozenset(hook.name for hook in hooks)
    service.operations[-1] = msgspec.structs.replace(service.operations[-1], uses=uses)


async def run_initializers(ctx: Context, hooks: Sequence[OperationSpec], params: dict[str, Any]) -> dict[str, Any]:
    """Run what the services declare, one after the other; what they add to the capabilities. In an operation that `uses` them.

    Raises what the first of them raises; `FailureError(InvalidParams)` for params that are none of it.
    """
    added: dict[str, Any] = {}
    for hook in hooks:
        given = hook.input
        everything = given.whole or given.extra is not None
        wanted = params if everything else {name: params[name] for name in given.names if name in params}
        try:
            added.update(await ctx.call(hook.name, wanted, type=dict[str, Any] | None) or {})
        except CallFailed as exc:
            if isinstance(exc.failure, InvalidParams):  # the client's own fault, since they are its params
                raise FailureError(exc.failure) from None
            raise
    return added


def client_info(params: dict[str, Any], protocol_version: str | int) -> ClientInfo:
    """What a client's `initialize` says of it. Members of another type count as absent. Raises as `checked` does."""
    info, capabilities = params.get("clientInfo"), params.get("capabilities")
    name, version = (info.get("name"), info.get("version")) if isinstance(info, dict) else (None, None)
    return checked(
        ClientInfo(
            name=name if isinstance(name, str) else "",
            version=version if isinstance(version, str) else "",
            protocol_version=protocol_version,
            capabilities=capabilities if isinstance(capabilities, dict) else {},
        )
    )


def checked(client: ClientInfo) -> ClientInfo:
    """The same, if it may be kept. Raises `FailureError(InvalidParams)` for a client that says too much."""
    if len(msgspec.json.encode(client)) > MAX_CLIENT_BYTES:
        raise FailureError(InvalidParams("capabilities", f"at most {MAX_CLIENT_BYTES} bytes with clientInfo", "more"))
    return client
