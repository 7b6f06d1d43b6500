"""A client of MCP's own Python SDK 2 runs tools as tasks, by an extension that is written on the SDK's interface for extensions:
the SDK has none for tasks itself. Run by whichever Python has mcp.

The argument is the URL of a server that runs already; without it one is started.
"""

import os
import sys
from typing import Any, Literal

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim

ARGUMENTS = ["serve", "./mcp_everything.py:server", "--dialect", "mcp"]
STARTED = StdioServerParameters(command="discreet", args=ARGUMENTS, env=dict(os.environ))
SERVER = sys.argv[1] if len(sys.argv) > 1 else STARTED


class TaskParams(types.RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


class TaskRequest(types.Request[TaskParams, str]):
    name_param = "taskId"
    method: str
    params: TaskParams


class Created(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class Told(types.Result):
    task_id: str
    status: str
    input_requests: dict[str, Any] | None = None
    result: types.CallToolResult | None = None
    error: dict[str, Any] | None = None


class Tasks(ClientExtension):
    """Waits for each task, and answers what it asks for with `name`."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: list[str] = []

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Created, resolve=self.resolve)]

    async def resolve(self, created: Created, context: ClaimContext) -> types.CallToolResult:
        async def send(method: str, result_type: Any, **members: Any) -> Any:
            params = TaskParams(task_id=created.task_id, **members)
            return await context.session.send_request(TaskRequest(method=method, params=params), result_type)

        self.seen.append(created.status)
        answered: set[str] = set()
        while True:
            told = await send("tasks/get", Told)
            if told.status != self.seen[-1]:
                self.seen.append(told.status)
            if told.result is not None:
                return told.result
            if told.status in ("failed", "cancelled"):
                raise RuntimeError(told.status)
            keys = (told.input_requests or {}).keys() - answered
            if keys:
                content = {"name": self.name, "confirm": True}
                answers = {key: {"action": "accept", "content": content} for key in keys}
                await send("tasks/update", types.EmptyResult, input_responses=answers)
                answered |= keys
            await anyio.sleep(0.05)


async def fill(context: object, params: types.ElicitRequestFormParams) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Alice"})


def say(name: str, what: object) -> None:
    print(f"{name}={what}", flush=True)


async def main() -> None:
    tasks = Tasks("Alice")
    async with Client(SERVER, mode="2026-07-28", extensions=[tasks], elicitation_callback=fill) as client:
        for tool, arguments in {
            "slow_compute": {"seconds": 0.2, "label": "sum"},
            "failing_job": {},
            "confirm_delete": {"filename": "a.txt"},
            "multi_input": {},
            "test_tool_with_task": {},
            "greet": {"name": "Bob"},
        }.items():
            tasks.seen.clear()
            result = await client.call_tool(tool, arguments)
            say(tool, f"{'error' if result.is_error else result.content[0].text} {tasks.seen[-1:]}")


anyio.run(main)
