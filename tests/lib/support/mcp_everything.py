"""A server that offers everything that MCP has a word for, under the names by which the conformance suite of the protocol asks
for it.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Annotated, Any, Final

import anyio
import msgspec

from discreet import Context, OperationError, Service, mcp
from discreet.errors.exceptions import FailureError
from discreet.errors.failures import Unavailable

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
STEP: Final = 0.05
"""Seconds between two messages of one call, which the suite wants to see apart."""

server = Service("", description="Offers everything.", version="1.0")


class Broken(OperationError, code="BROKEN"):
    """This tool intentionally returns an error for testing."""


class Who(msgspec.Struct):
    name: str


class Colour(msgspec.Struct):
    color: str


class Confirmation(msgspec.Struct):
    ok: bool


class PromptContext(msgspec.Struct):
    context: str


# -- tools ---------------------------------------------------------------------------------------------------------


@server.query
async def test_simple_text() -> str:
    """Answer with a text."""
    return "This is a simple text response for testing."


@server.query
async def test_image_content() -> mcp.ImageContent:
    """Answer with an image."""
    return mcp.ImageContent(data=PNG, mime_type="image/png")


@server.query
async def test_audio_content() -> mcp.AudioContent:
    """Answer with a sound."""
    return mcp.AudioContent(data=WAV, mime_type="audio/wav")


@server.query
async def test_embedded_resource() -> mcp.EmbeddedResource:
    """Answer with a resource."""
    text = "This is an embedded resource content."
    return mcp.EmbeddedResource(
        resource=mcp.TextResourceContents(uri="test://embedded-resource", mime_type="text/plain", text=text)
    )


@server.query
async def test_multiple_content_types() -> list[mcp.TextContent | mcp.ImageContent | mcp.EmbeddedResource]:
    """Answer with content of several kinds."""
    text = '{"test":"data","value":123}'
    resource = mcp.TextResourceContents(uri="test://mixed-content-resource", mime_type="application/json", text=text)
    return [
        mcp.TextContent(text="Multiple content types test:"),
        mcp.ImageContent(data=PNG, mime_type="image/png"),
        mcp.EmbeddedResource(resource=resource),
    ]


@server.query
async def test_tool_with_logging(ctx: Context) -> str:
    """Send log messages."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.log("info", text)
        await anyio.sleep(STEP)
    return "done"


@server.query
async def test_logging_tool(ctx: Context) -> str:
    """Send one log message."""
    await ctx.log("info", "logged")
    return "done"


@server.query(errors=[Broken])
async def test_error_handling() -> str:
    """Fail."""
    raise Broken


@server.query
async def test_tool_with_progress(ctx: Context) -> str:
    """Tell of progress."""
    for done in (0, 50, 100):
        await ctx.progress((done, 100))
        await anyio.sleep(STEP)
    return "done"


@server.query
async def mirrored_in_headers(
    region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})],
    priority: Annotated[int, msgspec.Meta(extra_json_schema={"x-mcp-header": "Priority"})] = 0,
) -> str:
    """Answer with what stands in headers, too."""
    return f"{region} {priority}"


# -- requests to legacy clients, from within a tool ------------------------------------------------------------------


@server.query
async def test_sampling(ctx: Context, prompt: str) -> str:
    """Have the model say something."""
    messages = [{"role": "user", "content": {"type": "text", "text": prompt}}]
    answer = await ctx.request("sampling/createMessage", {"messages": messages, "maxTokens": 100})
    return f"LLM response: {answer['content']['text']}"


async def elicit(ctx: Context, message: str, properties: dict[str, Any], required: Sequence[str] = ()) -> Any:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return await ctx.request("elicitation/create", {"message": message, "requestedSchema": schema})


@server.query
async def test_elicitation(ctx: Context, message: str) -> str:
    """Ask the user."""
    properties = {name: {"type": "string", "description": f"User's {name}"} for name in ("username", "email")}
    return f"User response: {await elicit(ctx, message, properties, ['username', 'email'])}"


@server.query
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with defaults."""
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    answer = await elicit(ctx, "defaults", properties)
    return f"Elicitation completed: action={answer['action']}, content={answer.get('content')}"


@server.query
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask for choices."""
    options, choices = (
        [{"const": f"value{n}", "title": f"{word} {what}"} for n, word in enumerate(("First", "Second", "Third"), 1)]
        for what in ("Option", "Choice")
    )
    names = ["Option One", "Option Two", "Option Three"]
    plain = ["option1", "option2", "option3"]
    properties = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": options},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": choices}},
    }
    answer = await elicit(ctx, "enums", properties)
    return f"Elicitation completed: action={answer['action']}, content={answer.get('content')}"


# -- params that the client is asked for -----------------------------------------------------------------------------


@server.query
async def test_input_required_result_elicitation(user_name: Annotated[Who, mcp.Ask("What is your name?")]) -> str:
    """Ask for a name."""
    return f"Hello, {user_name.name}!"


@server.query
async def test_input_required_result_sampling(
    capital_question: Annotated[str, mcp.Sample("What is the capital of France?", max_tokens=100)],
) -> str:
    """Have the client's model answer."""
    return capital_question


@server.query
async def test_input_required_result_list_roots(client_roots: Annotated[list[mcp.Root], mcp.Roots()]) -> list[str]:
    """List the client's roots."""
    return [root.uri for root in client_roots]


@server.query
async def test_input_required_result_request_state(
    confirm: Annotated[Confirmation, mcp.Ask("Please confirm")],
) -> str:
    """Ask for a confirmation."""
    return "state-ok" if confirm.ok else "no"


@server.query
async def test_input_required_result_tampered_state(
    confirm: Annotated[Confirmation, mcp.Ask("Please confirm")],
) -> str:
    """Ask for a confirmation."""
    return "state-ok" if confirm.ok else "no"


@server.query
async def test_input_required_result_multiple_inputs(
    user_name: Annotated[Who, mcp.Ask("What is your name?")],
    greeting: Annotated[str, mcp.Sample("Generate a greeting", max_tokens=50)],
    client_roots: Annotated[list[mcp.Root], mcp.Roots()],
) -> str:
    """Ask for several things at once."""
    return f"{greeting} {user_name.name} {len(client_roots)}"


@server.query
async def test_input_required_result_multi_round(
    step1: Annotated[Who, mcp.Ask("Step 1: What is your name?")],
    step2: Annotated[Colour, mcp.Ask(lambda step1: f"Step 2: What is your favorite color, {step1.name}?")],
) -> str:
    """Ask one thing after the other."""
    return f"{step1.name} likes {step2.color}"


@server.query("test_input_required_result_capabilities")
async def capabilities(
    capital: Annotated[str | None, mcp.Sample("What is the capital of France?", max_tokens=100)] = None,
    confirm: Annotated[Confirmation | None, mcp.Ask("Please confirm")] = None,
) -> str:
    """Ask for what the client is capable of."""
    return f"{capital} {confirm and confirm.ok}"


@server.query
async def test_missing_capability(ok: Annotated[str, mcp.Sample("Say yes")]) -> str:
    """Have the client's model answer."""
    return ok


@server.query
async def test_streaming_elicitation(ok: Annotated[bool, mcp.Ask("Go on?")]) -> str:
    """Ask whether to go on."""
    return f"{ok}"


# -- tools that run as tasks -----------------------------------------------------------------------------------------


@server.query
async def greet(name: str) -> str:
    """Greet, and never as a task."""
    return f"Hello, {name}!"


@server.query(task="optional")
async def slow_compute(seconds: float, label: str = "") -> str:
    """Take a while."""
    await anyio.sleep(seconds)
    return f"{label} done"


@server.mutation(task="required", errors=[Broken])
async def failing_job() -> str:
    """Fail."""
    raise Broken


@server.mutation(task="optional")
async def protocol_error_job() -> str:
    """Fail as a call fails that the daemon does not take."""
    raise FailureError(Unavailable())


@server.mutation(task="optional")
async def confirm_delete(ctx: Context, filename: str) -> str:
    """Ask while the task runs."""
    answer = await elicit(ctx, f"Delete {filename}?", {"confirm": {"type": "boolean"}}, ["confirm"])
    return f"{filename} {answer['action']}"


@server.query(task="optional")
async def multi_input(ctx: Context) -> str:
    """Ask two things at once while the task runs."""
    async with anyio.create_task_group() as tasks:
        for name in ("first", "second"):
            tasks.start_soon(elicit, ctx, f"Your {name} name?", {"name": {"type": "string"}})
    return "both are answered"


@server.query(task="required")
async def test_tool_with_task(user_name: Annotated[Who, mcp.Ask("What is your name?")]) -> str:
    """Ask before the task begins."""
    return f"Hello, {user_name.name}!"


# -- resources and prompts -------------------------------------------------------------------------------------------


@server.resource("test://static-text", mime_type="text/plain")
async def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
async def static_binary() -> bytes:
    """An image."""
    return base64.b64decode(PNG)


@server.resource("test://watched-resource", mime_type="text/plain")
async def watched_resource() -> str:
    """A text that is watched."""
    return "watched"


@server.resource("test://template/{id}/data", mime_type="application/json")
async def template(id: str) -> dict[str, Any]:
    """Data by their id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@server.resource("test://asking/{name}", mime_type="text/plain")
async def asking(name: str, sure: Annotated[bool, mcp.Ask(lambda name: f"Show {name}?")]) -> str:
    """A text that the user has to release."""
    return f"{name} {sure}"


@server.prompt
async def test_simple_prompt() -> str:
    """A text."""
    return "This is a simple prompt for testing."


def words_that_begin(begun: str) -> list[str]:
    return [word for word in ("test", "testing", "hello") if word.startswith(begun)]


@server.prompt(complete={"arg1": words_that_begin})
async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A text with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt
async def test_prompt_with_embedded_resource(resourceUri: str) -> list[mcp.PromptMessage]:  # noqa: N803 - the name that the suite uses
    """A resource and a text."""
    text = "Embedded resource content for testing."
    resource = mcp.TextResourceContents(uri=resourceUri, mime_type="text/plain", text=text)
    return [
        mcp.PromptMessage(role="user", content=mcp.EmbeddedResource(resource=resource)),
        mcp.PromptMessage(role="user", content=mcp.TextContent(text="Please process the embedded resource above.")),
    ]


@server.prompt
async def test_prompt_with_image() -> list[mcp.PromptMessage]:
    """An image and a text."""
    return [
        mcp.PromptMessage(role="user", content=mcp.ImageContent(data=PNG, mime_type="image/png")),
        mcp.PromptMessage(role="user", content=mcp.TextContent(text="Please analyze the image above.")),
    ]


@server.prompt
async def test_input_required_result_prompt(
    user_context: Annotated[PromptContext, mcp.Ask("What context should the prompt use?")],
) -> str:
    """A text that the user's answer goes into."""
    return f"Mind the context: {user_context.context}"
