"""Tool calls as the client shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, assert_never, final

from msgspec.structs import replace

from ...a2a.types import Part
from ...agents import editor as shown
from ...agents.editor import ToolContent, ToolKind, ToolStatus, check_word
from .content import block_of
from .generated.prompts import (
    Content,
    Diff,
    SessionUpdateToolCallUpdate,
    Terminal,
    TextContent,
    ToolCall,
    ToolCallContent,
    ToolCallLocation,
    ToolCallStatus,
    ToolCallUpdate,
)
from .generated.prompts import ToolKind as WireToolKind

if TYPE_CHECKING:
    from .turn import PromptTurn


def content_of(content: Iterable[ToolContent], absolute: Callable[[str], str]) -> list[ToolCallContent] | None:
    """Convert the content of a tool call; None for nothing. `absolute` is that of the session."""
    return [_item(each, absolute) for each in content] or None


def _item(content: ToolContent, absolute: Callable[[str], str]) -> ToolCallContent:
    match content:
        case str():
            return Content(content=TextContent(text=content))
        case Part():
            return Content(content=block_of(content))
        case shown.Diff():
            return Diff(path=absolute(content.path), old_text=content.old_text, new_text=content.new_text)
        case shown.Terminal():
            return Terminal(terminal_id=content.id)
        case _:
            assert_never(content)


def tool_update(
    call_id: str, content: list[ToolCallContent] | None, *, title: str | None = None, kind: ToolKind | None = None
) -> ToolCallUpdate:
    """What is asked about, in a question to the user."""
    return ToolCallUpdate(
        tool_call_id=call_id,
        title=title,
        kind=None if kind is None else WireToolKind(kind),
        content=content,
    )


@final
class ShownTool:
    """One tool call. The client is told that it failed if the turn ends before it does."""

    def __init__(self, turn: PromptTurn, call_id: str, absolute: Callable[[str], str]) -> None:
        self._turn = turn
        self._absolute = absolute
        self.id = call_id
        self.over = False

    async def begin(self, first: ToolCall) -> None:
        """Show it."""
        await self._turn.caught_up()
        self._turn.at_end(self.id, self._status("failed"))
        await self._turn.send(replace(first, tool_call_id=self.id))

    async def update(
        self,
        *content: ToolContent,
        title: str | None = None,
        status: ToolStatus | None = None,
        locations: Sequence[str] | None = None,
        raw_output: object = None,
    ) -> None:
        if status is not None:
            check_word("the status of a tool call", status, ToolStatus)
        if self.over:
            raise RuntimeError("the tool call has ended with its block: update it there")
        await self._turn.caught_up()
        if status in ("completed", "failed"):
            self._turn.at_end(self.id, None)
        await self._turn.send(
            SessionUpdateToolCallUpdate(
                tool_call_id=self.id,
                title=title,
                status=None if status is None else ToolCallStatus(status),
                content=content_of(content, self._absolute),
                locations=None
                if locations is None
                else [ToolCallLocation(path=self._absolute(path)) for path in locations],
                raw_output=raw_output,
            )
        )

    async def complete(self) -> None:
        """The block is over. Where the executor has said how it ended, that stands."""
        if self._turn.awaits_end(self.id):
            await self._turn.caught_up()
            self.end("completed")

    def end(self, status: ToolStatus) -> None:
        """Tell at once how it ended, if that was not told."""
        if self._turn.awaits_end(self.id):
            self._turn.at_end(self.id, None)
            self._turn.send(self._status(status))

    def _status(self, status: ToolStatus) -> SessionUpdateToolCallUpdate:
        return SessionUpdateToolCallUpdate(tool_call_id=self.id, status=ToolCallStatus(status))
