"""The same echo as a route of FastAPI on uvicorn: server_fastapi.py PORT"""

import sys
from typing import Annotated

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, Field


class Echo(BaseModel):
    text: str
    count: Annotated[int, Field(ge=0)]
    tags: list[str]


app = FastAPI()


@app.post("/operations/bench/echo")
async def echo(params: Echo) -> Echo:
    return Echo(text=params.text, count=params.count, tags=params.tags)


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), loop="asyncio", http="httptools", access_log=False, log_level="error")
