"""Answers what the page asks about the tasks of all callers: lists them, shows one as a timeline, cancels it, tries it again.

Only operators are answered: callers with the scope `tasks:operate`, and everybody where the gateway answers this machine alone
and knows no callers. What is said in tasks is scrubbed and cut.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeAlias, final

import msgspec

from ...a2a.types import STATE_OF_WORD, TaskQuery, ceil_timestamp
from ...daemon.operations.access import Access, AccessRule
from ...errors.exceptions import FailureError
from ...errors.failures import Failure, InsufficientPermissions, InvalidParams, TimedOut
from ...lazy import anyio
from ..answers import Answer
from ..operations import OperationWriter
from ..requests import GatewayRequest

if TYPE_CHECKING:
    from ..calls import HostedAgent

Asked: TypeAlias = tuple[str, Callable[[GatewayRequest, Access], Answer | Awaitable[Answer]]]
"""The HTTP method of what the page asks, and what answers."""

OPERATES: Final = AccessRule(all_of=frozenset({"tasks:operate"}), known=True)
"""The rule for operators."""

PAGE_SIZE: Final = 50
"""Tasks on one page."""

ANSWER_SECONDS: Final = 40.0
"""How long an answer may take: another daemon has 30 seconds to cancel a task."""

_MAX_AGE: Final = 1e9
"""In seconds."""

_WRITER: Final = OperationWriter()


class Operates(msgspec.Struct, frozen=True):
    """Whether the caller is an operator."""

    operates: bool


@final
class TasksOfAll:
    """One per page. `local_only`: the gateway answers this machine alone, and knows no callers."""

    def __init__(self, agent: HostedAgent, *, local_only: bool) -> None:
        self._agent = agent
        self._local_only = local_only
        self.asked: Final[Mapping[str, Asked]] = {
            "page/operator": ("GET", lambda _, access: fresh(Operates(self._may(access)))),
            "page/tasks": ("GET", self._guarded(self._list)),
            "page/task": ("GET", self._guarded(self._show)),
            "page/task/cancel": ("POST", self._guarded(self._cancel)),
            "page/task/retry": ("POST", self._guarded(self._retry)),
        }

    def _may(self, access: Access) -> bool:
        return OPERATES.allows(access.only_caller) and (access.provider is not None or self._local_only)

    def _guarded(
        self, answer: Callable[[GatewayRequest, Access], Awaitable[msgspec.Struct]]
    ) -> Callable[[GatewayRequest, Access], Awaitable[Answer]]:
        async def respond(request: GatewayRequest, access: Access) -> Answer:
            if not self._may(access):
                return _WRITER.failure(InsufficientPermissions(tuple(OPERATES.all_of)))
            failure: Failure = TimedOut()
            with anyio.move_on_after(ANSWER_SECONDS):
                try:
                    return fresh(await answer(request, access))
                except FailureError as exc:
                    failure = exc.failure
            return _WRITER.failure(failure)

        return respond

    async def _list(self, request: GatewayRequest, _: Access) -> msgspec.Struct:
        word, age = _given(request, "state"), _given(request, "older")
        if word and word not in STATE_OF_WORD:
            raise FailureError(InvalidParams("state", "one of", "another", tuple(STATE_OF_WORD)))
        if age and not (age.isascii() and age.isdigit() and int(age) <= _MAX_AGE):
            raise FailureError(InvalidParams("older", "age in seconds", "another"))
        query = TaskQuery(
            scope=request.query["caller"][-1] if "caller" in request.query else None,
            state=STATE_OF_WORD[word] if word else None,
            page_size=PAGE_SIZE,
            page_token=_given(request, "page"),
        )
        before = ceil_timestamp(datetime.now(UTC) - timedelta(seconds=int(age))) if age else ""
        return await self._agent.operator.list(query, operation=_given(request, "operation"), before=before)

    async def _show(self, request: GatewayRequest, _: Access) -> msgspec.Struct:
        return await self._agent.operator.show(_given(request, "id"))

    async def _cancel(self, request: GatewayRequest, access: Access) -> msgspec.Struct:
        return await self._agent.operator.cancel(_given(request, "id"), access.only_caller)

    async def _retry(self, request: GatewayRequest, access: Access) -> msgspec.Struct:
        """Where callers are known, no scope is taken over: the operator's are not those of the task's caller."""
        caller = access.only_caller
        scopes = caller.scopes if caller is not None and access.provider is None else frozenset[str]()
        return await self._agent.operator.retry(_given(request, "id"), scopes)


def _given(request: GatewayRequest, name: str) -> str:
    return request.query.get(name, [""])[-1]


def fresh(value: msgspec.Struct) -> Answer:
    """Answer with a value that is not to be kept."""
    return Answer(200, msgspec.json.encode(value), headers={"cache-control": "no-store"})
