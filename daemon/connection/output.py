"""What whoever sends messages to a client needs of the way there: the connection's writer, or the answer to one HTTP request."""

from __future__ import annotations

from typing import Protocol


class Output(Protocol):
    """Used on the loop's thread only."""

    @property
    def congested(self) -> bool:
        """True while producers should wait."""
        ...

    @property
    def unsent_bytes(self) -> int:
        """How much the client has not taken, although it could."""
        ...

    def post(self, body: bytes) -> None:
        """Queue one message for the next flush. Never blocks."""
        ...

    def flush(self) -> None:
        """Send what the client takes now. Never blocks, never raises."""
        ...

    async def wait_for_room(self) -> None:
        """Return when it is not congested any more, or at once when the client has gone."""
        ...
