"""Calls of MCP's modern revision that bring answers: for tests."""

from typing import Any

from .mcp_wire import McpClient

ALL: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
PARIS = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}


def capable(**capabilities: Any) -> dict[str, Any]:
    return {"_meta": {"io.modelcontextprotocol/clientCapabilities": capabilities}}


async def rounds(
    client: McpClient, method: str, params: dict[str, Any], *answers: dict[str, Any], **capabilities: Any
) -> list[dict[str, Any]]:
    """The results of a call and of those that bring answers, each with the state of the one before."""
    call = params | capable(**(capabilities or ALL))
    results = [(await client.call(method, call))["result"]]
    for responses in answers:
        assert results[-1]["resultType"] == "input_required"
        more = {"inputResponses": responses, "requestState": results[-1]["requestState"]}
        results.append((await client.call(method, {**call, **more}))["result"])
    return results
