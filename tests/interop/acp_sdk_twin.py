"""The same agent as examples/acp_agent/tidy.py, on the official SDK for Python. It speaks ACP only."""

# ruff: noqa: ANN201, ANN204
from __future__ import annotations

import asyncio
import os.path
from uuid import uuid4

from acp import (
    Agent,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    RequestError,
    run_agent,
    start_tool_call,
    tool_diff_content,
    update_agent_message_text,
    update_tool_call,
)
from acp.schema import AgentCapabilities, Implementation, PermissionOption, ToolCallLocation, ToolCallUpdate


class Tidier(Agent):
    def __init__(self):
        self.sessions = {}
        self.running = {}

    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **kwargs):
        fs = client_capabilities and client_capabilities.fs
        self.can_edit = bool(fs and fs.read_text_file and fs.write_text_file)
        return InitializeResponse(
            protocol_version=1,
            agent_capabilities=AgentCapabilities(),
            agent_info=Implementation(name="Tidier", version="1.0.0"),
        )

    async def new_session(self, cwd, additional_directories=None, mcp_servers=None, **kwargs):
        session_id = uuid4().hex
        self.sessions[session_id] = cwd
        return NewSessionResponse(session_id=session_id)

    async def prompt(self, session_id, prompt, **kwargs):
        if session_id not in self.sessions:
            raise RequestError.resource_not_found(session_id)
        if session_id in self.running:
            raise RequestError.invalid_request()
        if not self.can_edit:
            raise RequestError.internal_error({"reason": "the client can't edit files"})
        name = "\n".join(block.text for block in prompt if block.type == "text").strip()
        work = self.running[session_id] = asyncio.create_task(self.tidy_file(session_id, name))
        try:
            said = await work
        except asyncio.CancelledError:
            return PromptResponse(stop_reason="cancelled")
        finally:
            del self.running[session_id]
        await self.client.session_update(session_id, update_agent_message_text(said))
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id, **kwargs):
        if session_id in self.running:
            self.running[session_id].cancel()

    async def tidy_file(self, session_id, name):
        path, call = os.path.join(self.sessions[session_id], name), uuid4().hex
        await self.client.session_update(
            session_id,
            start_tool_call(
                call, f"Tidy {name}", kind="edit", status="in_progress", locations=[ToolCallLocation(path=path)]
            ),
        )
        status = "failed"
        try:
            before = (await self.client.read_text_file(session_id=session_id, path=path)).content
            after = tidied(before)
            diff = tool_diff_content(path, after, before)
            await self.client.session_update(session_id, update_tool_call(call, content=[diff]))
            answer = await self.client.request_permission(
                session_id=session_id,
                tool_call=ToolCallUpdate(tool_call_id=call, title=f"Tidy {name}"),
                options=[
                    PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
                    PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
                ],
            )
            status = "completed"
            if answer.outcome.outcome != "selected" or answer.outcome.option_id != "allow":
                return f"{name} stays as it is."
            await self.client.write_text_file(session_id=session_id, path=path, content=after)
            return f"{name} is tidy."
        finally:
            await self.client.session_update(session_id, update_tool_call(call, status=status))


def tidied(text):
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


if __name__ == "__main__":
    asyncio.run(run_agent(Tidier()))
