"""The agent of the comparison on the official SDK."""

import asyncio
from typing import Any
from uuid import uuid4

import acp


class Counter(acp.Agent):
    def on_connect(self, conn: acp.Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(protocol_version=1)

    async def new_session(self, cwd: str, **kwargs: Any) -> acp.NewSessionResponse:
        return acp.NewSessionResponse(session_id=uuid4().hex)

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> acp.PromptResponse:
        for number in range(int(prompt[0].text)):
            await self.client.session_update(session_id, acp.update_agent_message_text(f"chunk {number}"))
        return acp.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        pass


asyncio.run(acp.run_agent(Counter()))
