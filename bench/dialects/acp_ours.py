"""The agent of the comparison on discreet: it answers with as many chunks of text as the prompt says."""

from discreet import serve
from discreet.agents import Agent, RequestContext, TaskEvents


class Counter:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        artifact = None
        for number in range(int(context.text)):
            artifact = await events.artifact(f"chunk {number}", artifact_id=artifact, append=artifact is not None)
        await events.complete()

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to clean up."""


if __name__ == "__main__":
    serve(Agent(Counter(), name="Counter", description="Counts.", version="1"), dialect="acp")
