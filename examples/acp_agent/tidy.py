"""An agent that tidies files: in an editor it changes the file and asks before it does, elsewhere it tidies what it is sent."""

from __future__ import annotations

import os.path

from discreet.acp import Diff, Editor
from discreet.agents import Agent, RequestContext, TaskEvents


class Tidier:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        if context.editor is not None:
            said = await tidy_file(context.editor, context.text.strip())
            return await events.complete(said)
        await events.artifact(tidied(context.text))
        await events.complete()

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to clean up."""


async def tidy_file(editor: Editor, name: str) -> str:
    path = os.path.join(editor.cwd, name)
    async with editor.tool(f"Tidy {name}", kind="edit", locations=[path]) as tool:
        before = await editor.read_text_file(path)
        after = tidied(before)
        await tool.update(Diff(path, after, before))
        if not await editor.permit(f"Tidy {name}", tool=tool):
            return f"{name} stays as it is."
        await editor.write_text_file(path, after)
    return f"{name} is tidy."


def tidied(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


agent = Agent(Tidier(), name="Tidier", description="Removes white space at the ends of lines.", version="1.0.0")
