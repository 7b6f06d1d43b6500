"""A server made with pygls, for `test_foreign_servers`. Run by whichever Python has pygls."""

import asyncio
import os
import sys
from typing import NoReturn

from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import JsonRPCRequestMessage, default_converter


def plain() -> object:
    """The default converter makes named tuples of JSON objects; this one keeps them."""
    converter = default_converter()
    converter.register_structure_hook(JsonRPCRequestMessage, lambda message, cls: cls(**message))
    return converter


server = LanguageServer("peer", "1", converter_factory=plain)
cancelled: list[object] = []


@server.feature("echo")
def echo(params) -> object:
    return params


@server.feature("refuse")
def refuse(params) -> NoReturn:
    raise JsonRpcException(code=-32050, message="it rains", data={"since": "noon"})


@server.feature("ask")
async def ask(params) -> object:
    server.protocol.notify("client/told", {"text": "psst"})
    answer = await server.protocol.send_request_async("client/answer", params)
    return {"answer": answer.text}


@server.feature("wait")
async def wait(params) -> object:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        cancelled.append(params)
        raise


@server.feature("cancelled")
async def count(params) -> object:
    return {"count": len(cancelled)}


@server.feature("chatter")
def chatter(params) -> object:
    sys.stderr.write("chatter\n" * params["lines"])
    return {}


@server.feature("junk")
def junk(params) -> object:
    os.write(1, b"Traceback (most recent call last):\r\n\r\n")
    return {}


@server.feature("die")
def die(params) -> object:
    os._exit(7)


server.start_io()
