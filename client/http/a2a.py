"""What the client knows of A2A's methods: their versions, which of them only read, and how streams of tasks go on.

Holds facts. Sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

import msgspec

from ...a2a.methods import V03_METHODS, V10_METHODS
from ...a2a.states import INTERRUPTED, TERMINAL
from ...a2a.types import TaskState

_VERSIONS: Final = {**dict.fromkeys(V03_METHODS, "0.3"), **dict.fromkeys(V10_METHODS, "1.0")}

QUERIES: Final = frozenset(
    {
        "GetTask",
        "ListTasks",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "GetExtendedAgentCard",
        "tasks/get",
        "tasks/pushNotificationConfig/get",
        "tasks/pushNotificationConfig/list",
        "agent/getAuthenticatedExtendedCard",
    }
)
"""The methods that change nothing. A test compares them with the daemon's own table."""


@final
class A2AKinds:
    """Knows what may be repeated without asking the server, which has no list of its operations."""

    async def is_query(self, method: str, service_params: Mapping[str, str] | None) -> bool:
        return method in QUERIES


def version_of(method: str) -> str | None:
    """The version of A2A that has this method; None for a method of something else."""
    return _VERSIONS.get(method)


class StreamMethod(msgspec.Struct, frozen=True):
    """A method that gives the events of a task. `resumed_by` is the one that goes on with them."""

    resumed_by: str
    sends: bool


STREAM_METHODS: Final[Mapping[str, StreamMethod]] = {
    "SendStreamingMessage": StreamMethod("SubscribeToTask", sends=True),
    "SubscribeToTask": StreamMethod("SubscribeToTask", sends=False),
    "message/stream": StreamMethod("tasks/resubscribe", sends=True),
    "tasks/resubscribe": StreamMethod("tasks/resubscribe", sends=False),
}


def _names(states: frozenset[TaskState]) -> frozenset[str]:
    """The names of states in 1.0 and in 0.3."""
    return frozenset(name for state in states for name in (state.value, state.name.lower().replace("_", "-")))


ENDED: Final = _names(TERMINAL)
"""States after which nothing follows."""

WAITING: Final = _names(INTERRUPTED)
"""States with which the answer to a message ends, too."""
