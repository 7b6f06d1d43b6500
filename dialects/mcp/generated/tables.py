# Written by tools/protocols from the schemas of MCP 2024-11-05 to 2025-11-25 and 2026-07-28. Do not edit.
"""The tables of the revisions: methods, and members of results that an older one lacks. Plain data."""

from __future__ import annotations

from typing import Final

LEGACY_REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

MODERN_REVISION: Final = "2026-07-28"

LEGACY_METHODS: Final[dict[str, str]] = {
    "completion/complete": "2024-11-05",
    "initialize": "2024-11-05",
    "logging/setLevel": "2024-11-05",
    "notifications/cancelled": "2024-11-05",
    "notifications/initialized": "2024-11-05",
    "notifications/progress": "2024-11-05",
    "notifications/roots/list_changed": "2024-11-05",
    "notifications/tasks/status": "2025-11-25",
    "ping": "2024-11-05",
    "prompts/get": "2024-11-05",
    "prompts/list": "2024-11-05",
    "resources/list": "2024-11-05",
    "resources/read": "2024-11-05",
    "resources/subscribe": "2024-11-05",
    "resources/templates/list": "2024-11-05",
    "resources/unsubscribe": "2024-11-05",
    "tasks/cancel": "2025-11-25",
    "tasks/get": "2025-11-25",
    "tasks/list": "2025-11-25",
    "tasks/result": "2025-11-25",
    "tools/call": "2024-11-05",
    "tools/list": "2024-11-05",
}
"""What clients call in legacy revisions, with the first one that knows it."""

MODERN_METHODS: Final = frozenset(
    [
        "completion/complete",
        "notifications/cancelled",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "server/discover",
        "subscriptions/listen",
        "tools/call",
        "tools/list",
    ]
)
"""What clients call in the modern revision."""

STRUCTS: Final[dict[str, str]] = {
    "AudioContent": "2025-03-26",
    "Icon": "2025-11-25",
    "ResourceLink": "2025-06-18",
    "ToolAnnotations": "2025-03-26",
    "ToolExecution": "2025-11-25",
    "ToolResultContent": "2025-11-25",
    "ToolUseContent": "2025-11-25",
}
"""The first revision that has a struct, if that is not the first of all."""

MEMBERS: Final[dict[str, dict[str, str]]] = {
    "Annotations": {"lastModified": "2025-06-18"},
    "AudioContent": {"_meta": "2025-06-18"},
    "BlobResourceContents": {"_meta": "2025-06-18"},
    "CallToolResult": {"structuredContent": "2025-06-18"},
    "EmbeddedResource": {"_meta": "2025-06-18"},
    "ImageContent": {"_meta": "2025-06-18"},
    "Prompt": {"_meta": "2025-06-18", "icons": "2025-11-25", "title": "2025-06-18"},
    "PromptArgument": {"title": "2025-06-18"},
    "PromptReference": {"title": "2025-06-18"},
    "Resource": {"_meta": "2025-06-18", "icons": "2025-11-25", "title": "2025-06-18"},
    "ResourceLink": {"icons": "2025-11-25"},
    "ResourceTemplate": {"_meta": "2025-06-18", "icons": "2025-11-25", "title": "2025-06-18"},
    "Root": {"_meta": "2025-06-18"},
    "SamplingMessage": {"_meta": "2025-11-25"},
    "TextContent": {"_meta": "2025-06-18"},
    "TextResourceContents": {"_meta": "2025-06-18"},
    "Tool": {
        "_meta": "2025-06-18",
        "annotations": "2025-03-26",
        "execution": "2025-11-25",
        "icons": "2025-11-25",
        "outputSchema": "2025-06-18",
        "title": "2025-06-18",
    },
    "ServerCapabilities": {"completions": "2025-03-26", "tasks": "2025-11-25"},
}
"""The first revision that has a member, by its name on the wire, if its struct is older."""

MESSAGES: Final = (
    "BooleanSchema CallToolRequestParams CancelledNotificationParams CompleteRequestParams "
    "CompleteRequestParamsContext CreateMessageRequestParams ElicitRequestFormParams "
    "ElicitRequestFormParamsRequestedSchema ElicitRequestParams ElicitRequestURLParams ElicitResult "
    "ElicitationCompleteNotificationParams GetPromptRequestParams LegacyTitledEnumSchema ListRootsResult LoggingLevel "
    "LoggingMessageNotificationParams ModelHint ModelPreferences NotificationParams NumberSchema "
    "PaginatedRequestParams PrimitiveSchemaDefinition ProgressNotificationParams ProgressToken "
    "ReadResourceRequestParams RequestId RequestParams ResourceUpdatedNotificationParams SetLevelRequestParams "
    "StringSchema SubscribeRequestParams TaskMetadata TitledMultiSelectEnumSchema TitledMultiSelectEnumSchemaItems "
    "TitledMultiSelectEnumSchemaItemsAnyOfItem TitledSingleSelectEnumSchema TitledSingleSelectEnumSchemaOneOfItem "
    "ToolChoice UnsubscribeRequestParams UntitledMultiSelectEnumSchema UntitledMultiSelectEnumSchemaItems "
    "UntitledSingleSelectEnumSchema "
).split()
"""The names of the module `messages`."""
