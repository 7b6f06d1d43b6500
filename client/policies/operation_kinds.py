"""Knows which operations are queries, and so may be repeated. Asks the server, and only when the answer matters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias, final

import anyio
import msgspec

from ..errors import ClientError, MethodNotFound


class ListedOperation(msgspec.Struct, frozen=True):
    """The members of an entry of `services/list` that a client uses."""

    name: str
    kind: str


ListOperations: TypeAlias = Callable[[Mapping[str, str] | None], Awaitable[list[ListedOperation]]]
"""Calls `services/list` with these service params."""


class Kinds(Protocol):
    """Knows what may be repeated."""

    async def is_query(self, method: str, service_params: Mapping[str, str] | None) -> bool:
        """Whether the method is a query for a caller with these service params. Raises no `ClientError`."""
        ...


@final
class OperationKinds:
    """The kinds of a server's operations. An operation that the server does not list counts as a mutation."""

    def __init__(self, list_operations: ListOperations) -> None:
        self._list_operations = list_operations
        self._kinds: dict[str, str] = {}
        self._has_listing = True
        self._lock = anyio.Lock()

    async def is_query(self, method: str, service_params: Mapping[str, str] | None) -> bool:
        """Whether the server lists the method as a query."""
        name = method.removeprefix("/")
        async with self._lock:
            if name not in self._kinds and self._has_listing:
                await self._load(service_params)
        return self._kinds.get(name) == "query"

    async def _load(self, service_params: Mapping[str, str] | None) -> None:
        try:
            listed = await self._list_operations(service_params)
        except MethodNotFound:
            self._has_listing = False
        except ClientError:
            return  # the next caller asks again
        else:
            self._kinds.update({operation.name: operation.kind for operation in listed})
