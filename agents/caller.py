"""Who calls an agent, and how. Holds data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from ..daemon.operations.identity import Identity

if TYPE_CHECKING:
    from .editor import Turn


class Caller(msgspec.Struct, frozen=True):
    """Who calls, and how. A caller sees the tasks of its own `scope` only; its push notifications are in its `version`.

    `turn` is the prompt that the call serves, where the caller has an editor: its message always gets a task.
    """

    scope: str
    version: str
    identity: Identity | None = None
    extensions: tuple[str, ...] = ()
    service_params: Mapping[str, str] = {}
    turn: Turn | None = None
