"""An agent that does what it is asked: `ask`, `reply`, `count`, `wait` until it is canceled, or greet."""

import anyio

from discreet.agents import Agent, RequestContext, Skill, TaskEvents


class Obedient:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        match context.text:
            case "reply":
                await events.reply("at once")
            case "ask":
                await events.require_input("Who?")
            case "wait":
                await events.working("Waiting.")
                await anyio.sleep_forever()
            case "count":
                for number in range(30):
                    await events.artifact(str(number), artifact_id=f"n{number}")
                    await anyio.sleep(0.001)
                await events.complete()
            case name:
                await events.working()
                await events.artifact(f"Hello, {name}!", artifact_id="greeting", last_chunk=True)
                await events.complete("Done.")

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        await events.cancel("As you wish.")


agent = Agent(
    Obedient(),
    name="Obedient",
    description="Does what it is asked.",
    skills=[Skill(id="greet", name="Greet", description="Greets.", tags=("x",))],
    replies_without_task=True,
)
