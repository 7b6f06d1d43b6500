"""Everything that version 1 of the schema has, and the test that shows it. What the schema adds fails here until it has a row."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final  # Any: JSON

HERE: Final = Path(__file__).parent

SHOWN_BY: Final = {
    # methods of agents
    "method initialize": ("sessions", "initialize_answers_version_1_for_any", "client.hello("),
    "method authenticate": ("sessions", "signing_in_takes_a_declared_method", '"authenticate"'),
    "method logout": ("sessions", "signing_out_is_the_agents_own", '"logout"'),
    "method session/new": ("sessions", "a_new_session_tells_modes_and_options", '"session/new"'),
    "method session/load": ("sessions", "a_session_is_listed_loaded_and_continued", '"session/load"'),
    "method session/resume": ("sessions", "a_session_is_listed_once_however_many_tasks", '"session/resume"'),
    "method session/list": ("sessions", "a_session_is_listed_once_however_many_tasks", '"session/list"'),
    "method session/delete": ("sessions", "a_session_that_is_deleted_is_listed", '"session/delete"'),
    "method session/close": ("prompts", "closing_a_session_cancels_what_runs_in_it", '"session/close"'),
    "method session/set_mode": ("sessions", "modes_and_options_reach_the_executor", '"session/set_mode"'),
    "method session/set_config_option": (
        "sessions",
        "modes_and_options_reach_the_executor",
        '"session/set_config_option"',
    ),
    "method session/prompt": ("prompts", "what_an_unchanged_executor_says", "client.prompt("),
    "method session/cancel": ("prompts", "a_running_prompt_is_cancelled_with_its_task", "client.cancel("),
    # methods of clients
    "method session/update": ("prompts", "what_an_unchanged_executor_says", '"update"'),
    "method session/request_permission": ("editor", "the_user_is_asked_and_answers", '"session/request_permission"'),
    "method fs/read_text_file": ("editor", "files_are_read_and_written", '"fs/read_text_file"'),
    "method fs/write_text_file": ("editor", "files_are_read_and_written", '"fs/write_text_file"'),
    "method terminal/create": ("editor", "a_command_that_goes_on_is_watched_and_killed", '"terminal/create"'),
    "method terminal/output": ("editor", "a_command_that_goes_on_is_watched_and_killed", '"terminal/output"'),
    "method terminal/kill": ("editor", "a_command_that_goes_on_is_watched_and_killed", '"terminal/kill"'),
    "method terminal/release": ("editor", "a_command_that_is_cancelled_gives_its_terminal", '"terminal/release"'),
    "method terminal/wait_for_exit": ("editor", "a_command_that_is_cancelled_gives", '"terminal/wait_for_exit"'),
    "method elicitation/create": ("elicitation", "a_user_fills_in_a_form_of_every_kind", '"elicitation/create"'),
    "method elicitation/complete": ("elicitation", "a_page_is_opened_and_the_editor_is_told", "client.completed"),
    # methods of both
    "method $/cancel_request": ("prompts", "a_request_that_is_cancelled_by_its_id", '"$/cancel_request"'),
    "method $/cancel_request, to the client": ("editor", "a_client_that_never_answers_a_question", "client.cancelled"),
    # updates
    "update user_message_chunk": ("sessions", "a_session_is_listed_loaded_and_continued", '"user_message_chunk"'),
    "update agent_message_chunk": ("prompts", "what_an_unchanged_executor_says", '"agent_message_chunk"'),
    "update agent_thought_chunk": ("prompts", "what_an_unchanged_executor_says", '"agent_thought_chunk"'),
    "update tool_call": ("editor", "a_tool_call_is_shown_from_its_beginning", '"tool_call"'),
    "update tool_call_update": ("sessions", "a_loaded_session_shows_its_tool_calls", '"tool_call_update"'),
    "update plan": ("editor", "plans_and_modes_are_told", '"plan"'),
    "update available_commands_update": ("sessions", "a_new_session_tells_modes", '"availableCommands"'),
    "update current_mode_update": ("editor", "plans_and_modes_are_told", '"current_mode_update"'),
    "update config_option_update": ("editor", "options_that_the_agent_changes", '"config_option_update"'),
    "update session_info_update": ("sessions", "the_title_that_the_agent_gives", '"session_info_update"'),
    "update usage_update": ("editor", "usage_is_told", '"usage_update"'),
    # content of prompts and of messages
    **{
        f"block {kind}": ("sessions", "every_kind_of_block_reaches_the_executor_and_comes_back", f'"{kind}"')
        for kind in ("text", "image", "audio", "resource_link", "resource")
    },
    "resource TextResourceContents": ("sessions", "every_kind_of_block_reaches_the_executor", '"text": "b"'),
    "resource BlobResourceContents": ("sessions", "every_kind_of_block_reaches_the_executor", '"blob"'),
    # content of tool calls
    "tool content content": ("sessions", "a_loaded_session_shows_its_tool_calls", 'update("seen"'),
    "tool content diff": ("editor", "a_tool_call_is_shown_from_its_beginning", '"diff"'),
    "tool content terminal": ("editor", "a_command_runs_in_a_terminal_that_is_given_back", '"terminal"'),
    # why a turn stops, and errors
    "stop reason end_turn": ("prompts", "a_task_that_asks_ends_the_turn", '"end_turn"'),
    "stop reason max_tokens": ("prompts", "an_executor_that_stops_at_a_limit", '"max_tokens"'),
    "stop reason max_turn_requests": ("prompts", "an_executor_that_stops_at_a_limit", '"max_turn_requests"'),
    "stop reason refusal": ("prompts", "what_an_unchanged_executor_says", '"refusal"'),
    "stop reason cancelled": ("prompts", "a_running_prompt_is_cancelled_with_its_task", '"cancelled"'),
    "error -32000": ("prompts", "a_task_that_needs_its_user_to_sign_in", "-32000"),
    "error -32002": ("prompts", "an_unknown_session_is_no_resource", "-32002"),
    "error -32600": ("prompts", "a_second_prompt_in_a_session_is_refused", "-32600"),
    "error -32601": ("sessions", "services_hear_of_the_client", "-32601"),
    "error -32602": ("sessions", "blocks_that_the_agent_can_not_take", "-32602"),
    "error -32603": ("sessions", "a_fault_of_the_agents_own_code_is_an_internal_error", "-32603"),
    "error -32700": ("sessions", "what_is_no_json_is_a_parse_error", "-32700"),
    "error -32800": ("prompts", "a_request_that_is_cancelled_by_its_id", "-32800"),
    # what agents can do
    "agent loadSession": ("sessions", "sessions_are_offered_for_later_only_where", '"loadSession"'),
    "agent promptCapabilities.image": ("sessions", "initialize_answers_version_1_for_any", '"image"'),
    "agent promptCapabilities.audio": ("sessions", "initialize_answers_version_1_for_any", '"audio"'),
    "agent promptCapabilities.embeddedContext": ("sessions", "initialize_answers_version_1", '"embeddedContext"'),
    "agent mcpCapabilities.http": ("mcp_servers", "a_server_behind_a_url_is_called", '"http": True'),
    "agent mcpCapabilities.sse": ("mcp_servers", "a_server_behind_a_url_is_called", '"sse": False'),
    "agent sessionCapabilities.list": ("sessions", "sessions_are_offered_for_later_only_where", '"list"'),
    "agent sessionCapabilities.resume": ("sessions", "sessions_are_offered_for_later_only_where", '"resume"'),
    "agent sessionCapabilities.delete": ("sessions", "a_session_that_is_deleted_is_listed", '"delete"'),
    "agent sessionCapabilities.close": ("sessions", "sessions_are_offered_for_later_only_where", '"close"'),
    "agent sessionCapabilities.additionalDirectories": (
        "sessions",
        "sessions_are_offered_for_later_only_where",
        '"additionalDirectories"',
    ),
    "agent auth.logout": ("sessions", "signing_out_is_the_agents_own", '{"logout": {}}'),
    # what clients can do
    "client fs.readTextFile": ("editor", "what_the_client_did_not_advertise_is_not_asked", "can_read"),
    "client fs.writeTextFile": ("editor", "what_the_client_did_not_advertise_is_not_asked", "can_write"),
    "client terminal": ("editor", "what_the_client_did_not_advertise_is_not_asked", "can_run"),
    "client session.configOptions.boolean": ("editor", "options_that_the_agent_changes", '"boolean"'),
    "client auth.terminal": ("sessions", "a_way_to_sign_in_by_a_terminal_is_told", "hello({})"),
    "client elicitation.form": ("elicitation", "only_what_the_client_offers_is_asked_of_it", '"form"'),
    "client elicitation.url": ("elicitation", "only_what_the_client_offers_is_asked_of_it", '"url"'),
    # alternatives
    "sign-in agent": ("sessions", "signing_in_takes_a_declared_method", '"authMethods"'),
    "sign-in terminal": ("sessions", "a_way_to_sign_in_by_a_terminal_is_told", '"terminal"'),
    "server http": ("mcp_servers", "a_server_behind_a_url_is_called", '"http"'),
    "server sse": ("mcp_servers", "a_server_that_can_not_be_used_is_told", '"sse"'),
    "server stdio": ("mcp_servers", "tools_resources_and_prompts_of_a_command", "odd("),
    "option select": ("sessions", "modes_and_options_reach_the_executor", '"model"'),
    "option boolean": ("sessions", "modes_and_options_reach_the_executor", '"boolean"'),
    "elicitation form": ("elicitation", "a_user_fills_in_a_form_of_every_kind", '"form"'),
    "elicitation url": ("elicitation", "a_page_is_opened_and_the_editor_is_told", '"url"'),
    **{
        f"field {kind}": ("elicitation", "a_user_fills_in_a_form_of_every_kind", f'"{kind}"')
        for kind in ("string", "number", "integer", "boolean", "array")
    },
    "answer accept": ("elicitation", "a_user_fills_in_a_form_of_every_kind", '"accept"'),
    "answer decline": ("elicitation", "a_user_who_does_not_answer_is_no_error", '"decline"'),
    "answer cancel": ("elicitation", "a_user_who_does_not_answer_is_no_error", '"cancel"'),
    "permission selected": ("editor", "the_user_is_asked_and_answers", '"selected"'),
    "permission cancelled": ("editor", "what_was_published_before_a_question", '"cancelled"'),
}
"""By what the schema has: the file of the test, the beginning of its name, and what of its text shows that it is about that."""

ALTERNATIVES: Final = {
    "SessionUpdate": "update",
    "ContentBlock": "block",
    "EmbeddedResourceResource": "resource",
    "ToolCallContent": "tool content",
    "StopReason": "stop reason",
    "ErrorCode": "error",
    "AuthMethod": "sign-in",
    "McpServer": "server",
    "SessionConfigOption": "option",
    "CreateElicitationRequest": "elicitation",
    "ElicitationPropertySchema": "field",
    "CreateElicitationResponse": "answer",
    "RequestPermissionOutcome": "permission",
}
"""The definitions whose alternatives are shown, and how the table calls these."""


def items_of(definitions: dict[str, Any], alternatives: Mapping[str, str] = ALTERNATIVES) -> Iterator[str]:
    """The names of all that the table must have."""
    for method in {schema["x-method"] for schema in definitions.values() if "x-method" in schema}:
        yield f"method {method}"
    yield "method $/cancel_request, to the client"
    for name, word in alternatives.items():
        schema = definitions[name]
        for each in schema.get("oneOf") or schema["anyOf"]:
            constants = [each, *each.get("properties", {}).values()]
            found = [one["const"] for one in constants if "const" in one] or [each["title"]]
            if str(found[0]).lower() != "other":
                yield f"{word} {found[0]}"
    for side, name in (("agent", "AgentCapabilities"), ("client", "ClientCapabilities")):
        for path in _leaves(definitions, name):
            yield f"{side} {path}"


def _leaves(definitions: dict[str, Any], name: str) -> Iterator[str]:
    for member, schema in definitions[name]["properties"].items():
        if member == "_meta":
            continue
        inner = [
            each["$ref"].rpartition("/")[2] for each in schema.get("allOf", schema.get("anyOf", ())) if "$ref" in each
        ]
        deeper = [path for one in inner for path in _leaves(definitions, one)]
        yield from (f"{member}.{path}" for path in deeper)
        if not deeper:
            yield member


def test_everything_that_the_schema_has_is_in_the_table(schemas: Path) -> None:
    definitions = json.loads((schemas / "acp" / "v1.json").read_text("utf-8"))["$defs"]
    assert sorted(items_of(definitions)) == sorted(SHOWN_BY)


def test_what_the_schema_adds_is_missing_in_the_table(schemas: Path) -> None:
    definitions = json.loads((schemas / "acp" / "v1.json").read_text("utf-8"))["$defs"]
    definitions["ForkSessionRequest"] = {"x-method": "session/fork", "x-side": "agent"}
    definitions["ContentBlock"]["oneOf"].append({"properties": {"type": {"const": "video"}}})
    definitions["FileSystemCapabilities"]["properties"]["deleteFile"] = {"type": "boolean"}
    assert {*items_of(definitions)} - SHOWN_BY.keys() == {"method session/fork", "block video", "client fs.deleteFile"}


@cache
def texts_in(name: str) -> dict[str, str]:
    """The texts of a file's tests, with their decorators."""
    text = (HERE / f"test_acp_{name}.py").read_text("utf-8")
    lines = text.splitlines()
    return {
        each.name: "\n".join(
            lines[min([each.lineno, *(one.lineno for one in each.decorator_list)]) - 1 : each.end_lineno]
        )
        for each in ast.parse(text).body
        if isinstance(each, ast.AsyncFunctionDef | ast.FunctionDef) and each.name.startswith("test_")
    }


def test_the_test_of_every_item_is_there_and_about_it() -> None:
    wrong = []
    for item, (file, begin, word) in SHOWN_BY.items():
        found = [text for name, text in texts_in(file).items() if name.startswith(f"test_{begin}")]
        if len(found) != 1 or word not in found[0]:
            wrong.append(item)
    assert wrong == []
