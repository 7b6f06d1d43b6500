"""The method names of A2A, by version. Imports next to nothing, because every daemon loads it, also those without an agent."""

from __future__ import annotations

from typing import Final

from ..errors.failures import A2AVersion

V03_METHODS: Final = (
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "tasks/pushNotificationConfig/delete",
    "agent/getAuthenticatedExtendedCard",
)
V10_METHODS: Final = (
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
)
METHODS: Final = frozenset({*V03_METHODS, *V10_METHODS})

VERSIONS: Final[dict[str, A2AVersion]] = {**dict.fromkeys(V03_METHODS, "0.3"), **dict.fromkeys(V10_METHODS, "1.0")}
