"""The same echo as a route of Starlette on uvicorn, with pydantic on both sides: server_starlette.py PORT"""

import sys
from typing import Annotated

import uvicorn
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class Echo(BaseModel):
    text: str
    count: Annotated[int, Field(ge=0)]
    tags: list[str]


async def echo(request: Request) -> Response:
    params = Echo.model_validate_json(await request.body())
    result = Echo(text=params.text, count=params.count, tags=params.tags)
    return Response(Echo.model_validate(result).model_dump_json(), media_type="application/json")


app = Starlette(routes=[Route("/operations/bench/echo", echo, methods=["POST"])])

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), loop="asyncio", http="httptools", access_log=False, log_level="error")
