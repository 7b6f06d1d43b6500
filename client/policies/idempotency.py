"""Which operations may be repeated: the server says so in `services/list`. Asks when it matters, and only then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, final

import anyio
import msgspec

from ..errors import ClientError, MethodNotFound


class Listed(msgspec.Struct, frozen=True):
    """One entry of `services/list`, as far as it matters here."""

    name: str
    kind: str


Ask: TypeAlias = Callable[[Mapping[str, str] | None], Awaitable[list[Listed]]]
"""Calls `services/list` with these service params."""


@final
class KnownKinds:
    """What is known of a server's operations. What it does not list, or lists to nobody, is taken for a mutation."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: dict[str, str] = {}
        self._offered = True
        self._asking = anyio.Lock()

    async def is_query(self, method: str, service_params: Mapping[str, str] | None) -> bool:
        """Whether the server calls it a query, to a caller with these service params. Raises no `ClientError`."""
        name = method.removeprefix("/")
        async with self._asking:
            if name not in self._known and self._offered:
                await self._learn(service_params)
        return self._known.get(name) == "query"

    async def _learn(self, service_params: Mapping[str, str] | None) -> None:
        try:
            self._known.update({listed.name: listed.kind for listed in await self._ask(service_params)})
        except MethodNotFound:
            self._offered = False
        except ClientError:
            return  # it stays unknown, and the next one who needs it asks again
