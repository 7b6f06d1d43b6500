# Written by tools/protocols from the schemas of MCP 2024-11-05 to 2025-11-25 and 2026-07-28. Do not edit.
"""The methods and error codes of each revision. Plain data, no structs.

Types are written as in Python, with the names of the structs in `shared`, and in `legacy` or `modern`.
"""

from __future__ import annotations

from typing import Final, Literal, NotRequired, TypedDict


class Method(TypedDict):
    direction: Literal["clientToServer", "serverToClient", "both", "inputRequired"]
    """`inputRequired` is a request within a result, which the client answers with its next request."""
    kind: Literal["request", "notification"]
    params: NotRequired[str]
    result: NotRequired[str]
    since: NotRequired[str]
    """The first revision that knows it, if that is not the first of all."""


class Error(TypedDict):
    code: int
    data: NotRequired[str]


LEGACY_METHODS: Final[dict[str, Method]] = {
    "completion/complete": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "CompleteRequestParams",
        "result": "CompleteResult",
    },
    "elicitation/create": {
        "direction": "serverToClient",
        "kind": "request",
        "params": "ElicitRequestParams",
        "result": "ElicitResult",
        "since": "2025-06-18",
    },
    "initialize": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "InitializeRequestParams",
        "result": "InitializeResult",
    },
    "logging/setLevel": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "SetLevelRequestParams",
        "result": "dict[str, Any]",
    },
    "notifications/cancelled": {"direction": "both", "kind": "notification", "params": "CancelledNotificationParams"},
    "notifications/elicitation/complete": {
        "direction": "serverToClient",
        "kind": "notification",
        "params": "ElicitationCompleteNotificationParams",
        "since": "2025-11-25",
    },
    "notifications/initialized": {
        "direction": "clientToServer",
        "kind": "notification",
        "params": "NotificationParams",
    },
    "notifications/message": {
        "direction": "serverToClient",
        "kind": "notification",
        "params": "LoggingMessageNotificationParams",
    },
    "notifications/progress": {"direction": "both", "kind": "notification", "params": "ProgressNotificationParams"},
    "notifications/prompts/list_changed": {
        "direction": "serverToClient",
        "kind": "notification",
        "params": "NotificationParams",
    },
    "notifications/resources/list_changed": {
        "direction": "serverToClient",
        "kind": "notification",
        "params": "NotificationParams",
    },
    "notifications/resources/updated": {
        "direction": "serverToClient",
        "kind": "notification",
        "params": "ResourceUpdatedNotificationParams",
    },
    "notifications/roots/list_changed": {
        "direction": "clientToServer",
        "kind": "notification",
        "params": "NotificationParams",
    },
    "notifications/tasks/status": {
        "direction": "both",
        "kind": "notification",
        "params": "TaskStatusNotificationParams",
        "since": "2025-11-25",
    },
    "notifications/tools/list_changed": {
        "direction": "serverToClient",
        "kind": "notification",
        "params": "NotificationParams",
    },
    "ping": {"direction": "both", "kind": "request", "params": "RequestParams", "result": "dict[str, Any]"},
    "prompts/get": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "GetPromptRequestParams",
        "result": "GetPromptResult",
    },
    "prompts/list": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "PaginatedRequestParams",
        "result": "ListPromptsResult",
    },
    "resources/list": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "PaginatedRequestParams",
        "result": "ListResourcesResult",
    },
    "resources/read": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "ReadResourceRequestParams",
        "result": "ReadResourceResult",
    },
    "resources/subscribe": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "SubscribeRequestParams",
        "result": "dict[str, Any]",
    },
    "resources/templates/list": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "PaginatedRequestParams",
        "result": "ListResourceTemplatesResult",
    },
    "resources/unsubscribe": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "UnsubscribeRequestParams",
        "result": "dict[str, Any]",
    },
    "roots/list": {
        "direction": "serverToClient",
        "kind": "request",
        "params": "RequestParams",
        "result": "ListRootsResult",
    },
    "sampling/createMessage": {
        "direction": "serverToClient",
        "kind": "request",
        "params": "CreateMessageRequestParams",
        "result": "CreateMessageResult",
    },
    "tasks/cancel": {
        "direction": "both",
        "kind": "request",
        "params": "CancelTaskRequestParams",
        "result": "CancelTaskResult",
        "since": "2025-11-25",
    },
    "tasks/get": {
        "direction": "both",
        "kind": "request",
        "params": "GetTaskRequestParams",
        "result": "GetTaskResult",
        "since": "2025-11-25",
    },
    "tasks/list": {
        "direction": "both",
        "kind": "request",
        "params": "PaginatedRequestParams",
        "result": "ListTasksResult",
        "since": "2025-11-25",
    },
    "tasks/result": {
        "direction": "both",
        "kind": "request",
        "params": "GetTaskPayloadRequestParams",
        "result": "dict[str, Any]",
        "since": "2025-11-25",
    },
    "tools/call": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "CallToolRequestParams",
        "result": "CallToolResult",
    },
    "tools/list": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "PaginatedRequestParams",
        "result": "ListToolsResult",
    },
}

MODERN_METHODS: Final[dict[str, Method]] = {
    "completion/complete": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "CompleteRequestParams",
        "result": "CompleteResult",
    },
    "elicitation/create": {
        "direction": "inputRequired",
        "kind": "request",
        "params": "ElicitRequestParams",
        "result": "ElicitResult",
    },
    "notifications/cancelled": {"direction": "both", "kind": "notification", "params": "CancelledNotificationParams"},
    "notifications/message": {
        "direction": "serverToClient",
        "kind": "notification",
        "params": "LoggingMessageNotificationParams",
    },
    "notifications/progress": {
        "direction": "serverToClient",
        "kind": "notification",
        "params": "ProgressNotificationParams",
    },
    "notifications/prompts/list_changed": {
        "direction": "serverToClient",
        "kind": "notification",
        "params": "NotificationParams",
    },
    "notifications/resources/list_changed": {
        "direction": "serverToClient",
        "kind": "notification",
        "params": "NotificationParams",
    },
    "notifications/resources/updated": {
        "direction": "serverToClient",
        "kind": "notification",
        "params": "ResourceUpdatedNotificationParams",
    },
    "notifications/subscriptions/acknowledged": {
        "direction": "serverToClient",
        "kind": "notification",
        "params": "SubscriptionsAcknowledgedNotificationParams",
    },
    "notifications/tools/list_changed": {
        "direction": "serverToClient",
        "kind": "notification",
        "params": "NotificationParams",
    },
    "prompts/get": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "GetPromptRequestParams",
        "result": "InputRequiredResult | GetPromptResult",
    },
    "prompts/list": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "PaginatedRequestParams",
        "result": "ListPromptsResult",
    },
    "resources/list": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "PaginatedRequestParams",
        "result": "ListResourcesResult",
    },
    "resources/read": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "ReadResourceRequestParams",
        "result": "InputRequiredResult | ReadResourceResult",
    },
    "resources/templates/list": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "PaginatedRequestParams",
        "result": "ListResourceTemplatesResult",
    },
    "roots/list": {
        "direction": "inputRequired",
        "kind": "request",
        "params": "ListRootsRequestParams",
        "result": "ListRootsResult",
    },
    "sampling/createMessage": {
        "direction": "inputRequired",
        "kind": "request",
        "params": "CreateMessageRequestParams",
        "result": "CreateMessageResult",
    },
    "server/discover": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "RequestParams",
        "result": "DiscoverResult",
    },
    "subscriptions/listen": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "SubscriptionsListenRequestParams",
        "result": "SubscriptionsListenResult",
    },
    "tools/call": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "CallToolRequestParams",
        "result": "InputRequiredResult | CallToolResult",
    },
    "tools/list": {
        "direction": "clientToServer",
        "kind": "request",
        "params": "PaginatedRequestParams",
        "result": "ListToolsResult",
    },
}

ERRORS: Final[dict[str, dict[str, Error]]] = {
    "2024-11-05": {},
    "2025-03-26": {},
    "2025-06-18": {},
    "2025-11-25": {"URLElicitationRequired": {"code": -32042, "data": "URLElicitationRequiredErrorData"}},
    "2026-07-28": {
        "HeaderMismatch": {"code": -32020},
        "Internal": {"code": -32603},
        "InvalidParams": {"code": -32602},
        "InvalidRequest": {"code": -32600},
        "MethodNotFound": {"code": -32601},
        "MissingRequiredClientCapability": {"code": -32021, "data": "MissingRequiredClientCapabilityErrorData"},
        "Parse": {"code": -32700},
        "UnsupportedProtocolVersion": {"code": -32022, "data": "UnsupportedProtocolVersionErrorData"},
    },
}
"""What each revision's schema names. All of them have the codes of JSON-RPC."""
