"""Requests to the client: they are asked here, their answers read, and the user is asked by forms and pages. Knows no turn."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, final

from ...a2a.types import new_id
from ...agents.editor import EditorAbility, EditorUnavailableError, FormAnswer, ToolCall
from ...async_block import async_block
from ...awaited import refuses_bool
from ...daemon.operations.context import ClientRefused
from ...errors.codes import INTERNAL_ERROR
from ...errors.decoders import DECODE_ERRORS, convert, decoder_for
from ...errors.failures import Internal
from .generated import structs

if TYPE_CHECKING:
    from ...daemon.operations.request import ClientInfo, Sending
    from .sessions import ClientCapabilities

T = TypeVar("T")


class Client(Protocol):
    """The way to the client, for messages of version 1."""

    @property
    def client(self) -> ClientInfo: ...
    def notify(self, method: str, params: object) -> Sending: ...
    async def notify_all(self, method: str, params: Iterable[object]) -> None: ...
    async def ask(self, method: str, params: object, timeout: float) -> bytes: ...


async def ask_client(host: Client, method: str, request: object, result: Any, timeout: float | None) -> Any:
    """Ask the client, and decode its answer to the type `result`. Raises `ClientRefused` and `TimeoutError`."""
    answer = await host.ask(method, request, math.inf if timeout is None else timeout)
    try:
        return decoder_for(result)(answer)
    except DECODE_ERRORS:  # their text quotes the answer
        pass
    raise _of_another_type(method)


def require(ability: EditorAbility, *, has_it: bool) -> None:
    """Raise `EditorUnavailableError` where the client lacks it."""
    if not has_it:
        raise EditorUnavailableError(f"the client does not advertise {ability}", ability)


def _of_another_type(method: str) -> ClientRefused:
    return ClientRefused(INTERNAL_ERROR, f"the client's answer to {method} is of another type", Internal())


@final
class Elicitation:
    """Asks the user, for a session or for a request outside of one. See `agents.editor.Asker`.

    `ask` has the params of `ask_client` behind the `host`.
    """

    def __init__(
        self,
        host: Client,
        capabilities: ClientCapabilities,
        ask: Callable[[str, object, Any, float | None], Awaitable[Any]],
        *,
        session_id: str | None = None,
        request_id: int | str | None = None,
    ) -> None:
        can = capabilities.elicitation
        self.can_ask: Final = can is not None and can.form is not None
        self.can_open: Final = can is not None and can.url is not None
        self._host = host
        self._ask = ask
        self._session_id = session_id
        self._request_id = request_id

    @refuses_bool
    async def ask(
        self, message: str, form: type[T], *, tool: ToolCall | None = None, timeout: float | None = None
    ) -> FormAnswer[T]:
        from ..forms import form_of  # late: most agents ask nothing

        schema, whole = form_of(form, lists=True)
        if not whole:
            raise ValueError("a form is a struct, a dataclass or a TypedDict, whose members are its fields")
        require("elicitation.form", has_it=self.can_ask)
        request = self._request("form", message, tool, requested_schema=convert(schema, structs.ElicitationSchema))
        answer = await self._ask("elicitation/create", request, structs.CreateElicitationResponse, timeout)
        if answer.action != "accept":
            return FormAnswer("decline" if answer.action == "decline" else "cancel")
        try:
            return FormAnswer("accept", convert(answer.content or {}, form))
        except DECODE_ERRORS:  # their texts quote the answer
            pass
        raise _of_another_type("elicitation/create")

    @async_block
    async def page(
        self, url: str, message: str, *, tool: ToolCall | None = None, timeout: float | None = None
    ) -> AsyncGenerator[bool]:
        from ..forms import is_address  # late, as above

        if not is_address(url):
            raise ValueError("a page has an address that begins with https:// (on this machine http://)")
        require("elicitation.url", has_it=self.can_open)
        page = new_id()
        request = self._request("url", message, tool, elicitation_id=page, url=url)
        answer = await self._ask("elicitation/create", request, structs.CreateElicitationResponse, timeout)
        agreed = answer.action == "accept"
        yield agreed
        if agreed:
            served = structs.CompleteElicitationNotification(elicitation_id=page)
            await self._host.notify("elicitation/complete", served)

    def _request(
        self, mode: str, message: str, tool: ToolCall | None, **members: Any
    ) -> structs.CreateElicitationRequest:
        return structs.CreateElicitationRequest(
            mode=mode,
            message=message,
            session_id=self._session_id,
            request_id=self._request_id,
            tool_call_id=None if tool is None else tool.id,
            **members,
        )
