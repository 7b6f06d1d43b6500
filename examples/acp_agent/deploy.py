"""An agent that deploys: it asks its user by a form, has production approved on a page, and tells a server of MCP."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Annotated, Literal

import msgspec

from discreet.acp import AcpOptions, ConfigOption, Editor
from discreet.agents import Agent, RequestContext, TaskEvents


class Order(msgspec.Struct):
    target: Annotated[Literal["production", "staging"], msgspec.Meta(title="Where to")]
    replicas: Annotated[int, msgspec.Meta(title="Replicas", ge=1, le=9)] = 2


class Deployer:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        editor = context.editor
        if editor is None:
            return await events.reject("Deployments are asked for in an editor.")
        await editor.set_title(f"Deploy {context.text}")
        answer = await editor.ask(f"Where shall {context.text} go?", Order)
        if answer.value is None:
            return await events.complete("Nothing was deployed.")
        async with AsyncExitStack() as block:
            if answer.value.target == "production":
                url = "https://deployments.example/approve"
                if not await block.enter_async_context(editor.page(url, "Approve the deployment.")):
                    return await events.reject("Production was not approved.")
            said = await deploy(editor, context.text, answer.value)
        await editor.usage(1_200, 200_000, cost=0.02)
        await events.complete(said)


async def deploy(editor: Editor, what: str, order: Order) -> str:
    if editor.config["dry"]:
        return f"{what} would run {order.replicas} times in {order.target}."
    async with editor.tool(f"Deploy {what}", kind="execute", raw_input=msgspec.to_builtins(order)):
        for server in editor.mcp_servers:
            async with editor.mcp(server["name"]) as tools:
                if "announce" in tools.operations:
                    await tools.call("announce", {"text": f"{what} is deployed to {order.target}"})
    return f"{what} runs {order.replicas} times in {order.target}."


agent = Agent(
    Deployer(),
    name="Deployer",
    description="Deploys what it is told to.",
    version="1.0.0",
    acp=AcpOptions(config_options=(ConfigOption(id="dry", name="Only say what would be done"),)),
)
