# Written by tools/protocols from the schemas of MCP 2024-11-05 to 2025-11-25 and 2026-07-28. Do not edit.
"""The methods of servers, and the handlers of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ...client import Answer, Listener, Notification, Request, Taken

if TYPE_CHECKING:
    from .messages import (
        CallToolRequestParams,
        CompleteRequestParams,
        CreateMessageRequestParams,
        ElicitationCompleteNotificationParams,
        ElicitRequestParams,
        ElicitResult,
        GetPromptRequestParams,
        ListRootsResult,
        LoggingMessageNotificationParams,
        NotificationParams,
        PaginatedRequestParams,
        ProgressNotificationParams,
        ReadResourceRequestParams,
        RequestParams,
        ResourceUpdatedNotificationParams,
        SetLevelRequestParams,
        SubscribeRequestParams,
        UnsubscribeRequestParams,
    )
    from .structs import (
        CallToolResult,
        CompleteResult,
        CreateMessageResult,
        GetPromptResult,
        ListPromptsResult,
        ListResourcesResult,
        ListResourceTemplatesResult,
        ListToolsResult,
        ReadResourceResult,
    )


class Methods:
    """The methods of a server, each with the struct of its params."""

    completion_complete: Request[CompleteRequestParams, CompleteResult] = Request(
        "completion/complete", "CompleteResult"
    )
    logging_set_level: Request[SetLevelRequestParams, dict[str, Any]] = Request("logging/setLevel", "dict[str, Any]")
    notifications_progress: Notification[ProgressNotificationParams] = Notification("notifications/progress")
    notifications_roots_list_changed: Notification[NotificationParams] = Notification(
        "notifications/roots/list_changed"
    )
    ping: Request[RequestParams, dict[str, Any]] = Request("ping", "dict[str, Any]")
    prompts_get: Request[GetPromptRequestParams, GetPromptResult] = Request("prompts/get", "GetPromptResult")
    prompts_list: Request[PaginatedRequestParams, ListPromptsResult] = Request("prompts/list", "ListPromptsResult")
    resources_list: Request[PaginatedRequestParams, ListResourcesResult] = Request(
        "resources/list", "ListResourcesResult"
    )
    resources_read: Request[ReadResourceRequestParams, ReadResourceResult] = Request(
        "resources/read", "ReadResourceResult"
    )
    resources_subscribe: Request[SubscribeRequestParams, dict[str, Any]] = Request(
        "resources/subscribe", "dict[str, Any]"
    )
    resources_templates_list: Request[PaginatedRequestParams, ListResourceTemplatesResult] = Request(
        "resources/templates/list", "ListResourceTemplatesResult"
    )
    resources_unsubscribe: Request[UnsubscribeRequestParams, dict[str, Any]] = Request(
        "resources/unsubscribe", "dict[str, Any]"
    )
    tools_call: Request[CallToolRequestParams, CallToolResult] = Request("tools/call", "CallToolResult")
    tools_list: Request[PaginatedRequestParams, ListToolsResult] = Request("tools/list", "ListToolsResult")


class Handlers(Struct, frozen=True, kw_only=True):
    """Handlers of what a server sends, each called with the struct of the params."""

    elicitation_create: Answer[ElicitRequestParams, ElicitResult] | None = None
    notifications_elicitation_complete: Listener[ElicitationCompleteNotificationParams] | None = None
    notifications_message: Listener[LoggingMessageNotificationParams] | None = None
    notifications_progress: Listener[ProgressNotificationParams] | None = None
    notifications_prompts_list_changed: Listener[NotificationParams] | None = None
    notifications_resources_list_changed: Listener[NotificationParams] | None = None
    notifications_resources_updated: Listener[ResourceUpdatedNotificationParams] | None = None
    notifications_tools_list_changed: Listener[NotificationParams] | None = None
    roots_list: Answer[RequestParams, ListRootsResult] | None = None
    sampling_create_message: Answer[CreateMessageRequestParams, CreateMessageResult] | None = None


TAKEN: Final = {
    "elicitation_create": Taken("elicitation/create", "ElicitRequestParams", answers=True),
    "notifications_elicitation_complete": Taken(
        "notifications/elicitation/complete", "ElicitationCompleteNotificationParams", answers=False
    ),
    "notifications_message": Taken("notifications/message", "LoggingMessageNotificationParams", answers=False),
    "notifications_progress": Taken("notifications/progress", "ProgressNotificationParams", answers=False),
    "notifications_prompts_list_changed": Taken(
        "notifications/prompts/list_changed", "NotificationParams", answers=False
    ),
    "notifications_resources_list_changed": Taken(
        "notifications/resources/list_changed", "NotificationParams", answers=False
    ),
    "notifications_resources_updated": Taken(
        "notifications/resources/updated", "ResourceUpdatedNotificationParams", answers=False
    ),
    "notifications_tools_list_changed": Taken("notifications/tools/list_changed", "NotificationParams", answers=False),
    "roots_list": Taken("roots/list", "RequestParams", answers=True),
    "sampling_create_message": Taken("sampling/createMessage", "CreateMessageRequestParams", answers=True),
}
"""The message of each handler."""
