"""The official SDK's client drives an agent that asks by forms and pages, and its sessions: prints what it sees as JSON.

Arguments: a folder, the server of MCP to pass (program, then its argument as JSON), then the agent's command.
"""

# ruff: noqa: ANN002, ANN201, ANN204
from __future__ import annotations

import asyncio
import json
import os
import sys

from acp import PROTOCOL_VERSION, Client, RequestError, spawn_agent_process, text_block
from acp.schema import (
    AcceptElicitationResponse,
    ClientCapabilities,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    ElicitationUrlCapabilities,
    McpServerStdio,
)


class Editor(Client):
    def __init__(self):
        self.seen = []
        self.titles = []
        self.costs = []
        self.asked = []
        self.completed = 0

    def on_connect(self, conn):
        pass

    async def session_update(self, session_id, update, **kwargs):
        self.seen.append(update.session_update)
        if update.session_update == "session_info_update":
            self.titles.append(update.title)
        if update.session_update == "usage_update":
            self.costs.append(update.cost.amount)

    async def create_elicitation(self, message, mode, **kwargs):
        schema = getattr(mode, "requested_schema", None)
        self.asked.append([message, sorted(schema.properties) if schema else str(mode.url)])
        return AcceptElicitationResponse(action="accept", content={"target": "production", "replicas": 3})

    async def complete_elicitation(self, elicitation_id, **kwargs):
        self.completed += 1


async def main(folder, program, arguments, *command):
    editor = Editor()
    async with spawn_agent_process(editor, *command, env=os.environ, use_unstable_protocol=True) as (agent, _):
        asks = ElicitationCapabilities(form=ElicitationFormCapabilities(), url=ElicitationUrlCapabilities())
        hello = await agent.initialize(
            protocol_version=PROTOCOL_VERSION, client_capabilities=ClientCapabilities(elicitation=asks)
        )
        can = hello.agent_capabilities.session_capabilities
        server = McpServerStdio(name="announcements", command=program, args=json.loads(arguments), env=[])
        session = await agent.new_session(cwd=folder, mcp_servers=[server], additional_directories=["/more"])
        options = await agent.set_config_option(config_id="dry", session_id=session.session_id, value="off")
        done = await agent.prompt(session_id=session.session_id, prompt=[text_block("shop")])
        listed = (await agent.list_sessions()).sessions
        await agent.close_session(session_id=session.session_id)
        await agent.resume_session(cwd=folder, session_id=session.session_id, mcp_servers=[])
        seen, editor.seen = editor.seen, []
        await agent.load_session(cwd=folder, session_id=session.session_id, mcp_servers=[])
        loaded = editor.seen
        await agent._conn.send_request("session/delete", {"sessionId": session.session_id})  # the SDK has no method yet
        left = (await agent.list_sessions()).sessions
        try:
            await agent._conn.send_request("logout", {})
        except RequestError as error:
            refused = error.code
    print(
        json.dumps(
            {
                "can": sorted(name for name, value in can if value is not None and name != "field_meta"),
                "switch": [options.config_options[0].type, options.config_options[0].current_value],
                "stopped": done.stop_reason,
                "asked": editor.asked,
                "completed": editor.completed,
                "seen": seen,
                "costs": editor.costs[:1],
                "listed": [[each.title, each.additional_directories] for each in listed],
                "loaded": loaded,
                "left": len(left),
                "refused": refused,
            }
        )
    )


asyncio.run(main(*sys.argv[1:]))
