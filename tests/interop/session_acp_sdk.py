"""The official SDK's client drives an agent: prints what it sees as JSON. Run by the interpreter that has the SDK.

Arguments: a folder with a file `a.txt`, then the agent's command.
"""

# ruff: noqa: ANN002, ANN201, ANN204
from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from acp import PROTOCOL_VERSION, Client, RequestError, spawn_agent_process, text_block
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    FileSystemCapabilities,
    Implementation,
    ReadTextFileResponse,
    RequestPermissionResponse,
    WriteTextFileResponse,
)


class Editor(Client):
    def __init__(self):
        self.seen = []
        self.asked = asyncio.Event()
        self.silent = False

    def on_connect(self, conn):
        pass

    async def session_update(self, session_id, update, **kwargs):
        self.seen.append(update.session_update)

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked.set()
        if self.silent:
            await asyncio.Event().wait()
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id))

    async def read_text_file(self, session_id, path, line=None, limit=None, **kwargs):
        if not Path(path).exists():
            raise RequestError.resource_not_found(path)
        return ReadTextFileResponse(content=Path(path).read_text())

    async def write_text_file(self, session_id, path, content, **kwargs):
        Path(path).write_text(content)
        return WriteTextFileResponse()


async def main(folder, *command):
    editor = Editor()
    async with spawn_agent_process(editor, *command, env=os.environ) as (agent, _):
        hello = await agent.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(
                fs=FileSystemCapabilities(read_text_file=True, write_text_file=True)
            ),
            client_info=Implementation(name="driver", version="1"),
        )
        session = await agent.new_session(cwd=folder, mcp_servers=[])
        done = await agent.prompt(session_id=session.session_id, prompt=[text_block("a.txt")])
        seen, editor.seen = editor.seen, []
        editor.silent = True
        editor.asked.clear()
        running = asyncio.create_task(agent.prompt(session_id=session.session_id, prompt=[text_block("a.txt")]))
        await editor.asked.wait()
        await agent.cancel(session_id=session.session_id)
        cancelled = await running
        try:
            await agent.prompt(session_id="nowhere", prompt=[text_block("a.txt")])
        except RequestError as error:
            refused = error.code
    print(
        json.dumps(
            {
                "version": hello.protocol_version,
                "agent": hello.agent_info.name,
                "stopped": [done.stop_reason, cancelled.stop_reason],
                "seen": seen,
                "refused": refused,
            }
        )
    )


asyncio.run(main(*sys.argv[1:]))
