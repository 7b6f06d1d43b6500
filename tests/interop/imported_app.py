"""An HTTP API of FastAPI, whose document a daemon imports: `python imported_app.py` writes it and serves, on a free port.

Prints the document, then the port, a line each. What a client sends is checked by FastAPI; what it answers is declared.
"""

import json
import socket
from enum import StrEnum
from typing import Annotated

import uvicorn
from fastapi import Cookie, FastAPI, Header, HTTPException, Path, Query
from pydantic import BaseModel, ConfigDict, Field


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Part(Strict):
    name: Annotated[str, Field(min_length=1, max_length=20)]
    parts: list["Part"] = []


class Item(Strict):
    name: Annotated[str, Field(max_length=40)]
    price: Annotated[int, Field(ge=0, le=10**9)]
    note: str | None = None
    root: Part | None = None


class Stored(Item):
    id: int


class Problem(BaseModel):
    detail: str


app = FastAPI(title="Items", version="1")
missing = {404: {"model": Problem, "description": "There is no such item"}}


@app.get("/items/{item_id}", responses=missing, operation_id="get_item")
def get_item(item_id: Annotated[int, Path(ge=1, le=1000)]) -> Stored:
    if item_id > 2:
        raise HTTPException(404, "no such item")
    return Stored(id=item_id, name="pen", price=2)


@app.get("/items", operation_id="find_items")
def find_items(
    colour: Colour | None = None,
    ids: Annotated[list[Annotated[int, Field(ge=0, le=10**6)]] | None, Query(max_length=5)] = None,
    most: Annotated[int, Query(ge=1, le=50)] = 10,
    x_trace: Annotated[str | None, Header(pattern="^[a-z]{1,10}$")] = None,
    session: Annotated[str | None, Cookie(pattern="^[a-z]{1,10}$")] = None,
) -> list[Stored]:
    return [Stored(id=number, name=colour or "pen", price=most) for number in (ids or [1])[:most]]


@app.post(
    "/items",
    status_code=201,
    operation_id="add_item",
    responses={409: {"model": Problem, "description": "It is there"}},
)
def add_item(item: Item) -> Stored:
    if item.name == "pen":
        raise HTTPException(409, "it is there")
    return Stored(id=3, **item.model_dump())


@app.delete("/items/{item_id}", status_code=204, responses=missing, operation_id="remove_item")
def remove_item(item_id: Annotated[int, Path(ge=1, le=1000)]) -> None:
    if item_id > 2:
        raise HTTPException(404, "no such item")


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", 0))
    print(json.dumps(app.openapi()))
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])
