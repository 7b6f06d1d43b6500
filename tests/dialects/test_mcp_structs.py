"""What is peculiar to the structs of MCP: answers to forms, any JSON, and content that is told by its type."""

from __future__ import annotations

import msgspec
import pytest

from discreet.dialects.mcp.generated import legacy, modern, shared
from discreet.errors.decoders import decoder_for


@pytest.mark.parametrize("answer", ["text", 1, 1.5, True, ["a", "b"]])
def test_an_answer_to_a_form_may_be_of_any_type_that_forms_have(answer: object) -> None:
    wire = {"action": "accept", "content": {"field": answer}}
    for struct in {legacy.ElicitResult, modern.ElicitResult}:
        read = decoder_for(struct)(msgspec.json.encode(wire))
        assert read.content == {"field": answer}


def test_null_is_a_value_where_any_json_may_stand() -> None:
    empty = modern.CallToolResult(content=[], result_type="complete")
    null = modern.CallToolResult(content=[], result_type="complete", structured_content=None)
    assert msgspec.to_builtins(empty) == {"content": [], "resultType": "complete"}
    assert msgspec.to_builtins(null) == {"content": [], "resultType": "complete", "structuredContent": None}


def test_both_eras_share_the_structs_that_are_the_same() -> None:
    assert legacy.CallToolResult is not modern.CallToolResult
    text = shared.TextContent(text="a")
    assert text.type == "text"
    assert msgspec.to_builtins(legacy.CallToolResult(content=[text])) == {"content": [{"type": "text", "text": "a"}]}


def test_a_word_that_a_closed_list_does_not_have_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decoder_for(legacy.SetLevelRequestParams)(b'{"level": "loud"}')


def test_the_meta_object_of_a_modern_request_is_read_by_short_names() -> None:
    wire = {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
            "progressToken": 4,
        }
    }
    meta = decoder_for(modern.RequestParams)(msgspec.json.encode(wire)).meta
    assert meta.protocol_version == "2026-07-28"
    assert meta.client_capabilities.roots == modern.ClientCapabilitiesRoots()
    assert meta.progress_token == 4
