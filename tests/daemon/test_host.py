"""What can be hosted, what is said of what can not, and the life of a daemon: every state × every event."""

from __future__ import annotations

import errno
import os
from itertools import product
from pathlib import Path
from typing import Literal, get_args

import pytest

from discreet import DeclarationError, Service
from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.daemon.apps import AppError
from discreet.daemon.connection.connection import Connection
from discreet.daemon.daemon import Daemon
from discreet.daemon.host import Host
from discreet.daemon.hosting import credentials_of
from discreet.daemon.lifecycle import TABLE, Event, Lifecycle, State
from discreet.daemon.settings import Settings
from discreet.framing.transports.memory import memory_pair
from support.logged_events import LoggedEvents
from support.owners import Alone

pytestmark = pytest.mark.anyio


def test_a_builtin_method_can_not_be_declared_again() -> None:
    service = Service("")

    @service.query()
    def version() -> str:
        return "mine"

    with pytest.raises(DeclarationError, match="version"):
        Connection(Host([service], Settings(), version="1"), memory_pair()[0], Alone())


class Idle:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None: ...

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None: ...


@pytest.mark.parametrize("dialect", ["lsp", "mcp"])
async def test_an_agent_that_no_client_can_reach_is_refused_or_logged(
    logged: LoggedEvents, dialect: Literal["lsp", "mcp"]
) -> None:
    agent, settings = Agent(Idle(), name="Clerk", description="Waits."), Settings(dialect=dialect)
    with pytest.raises(DeclarationError, match=f"agent 'Clerk': with --dialect {dialect} no client can reach"):
        Host([], settings, version="1", agent=agent)
    Host([Service("shop")], settings, version="1", agent=agent)
    assert logged.names() == ["agent.unreachable"]


@pytest.mark.parametrize("declared", ["hover", "command", "prompt"])
async def test_methods_that_clients_of_a_plain_server_never_find_are_logged(
    logged: LoggedEvents, declared: Literal["hover", "command", "prompt"]
) -> None:
    service = Service("shop")

    def work() -> None: ...

    def ask() -> str:
        return "well?"

    match declared:
        case "hover":
            service.query("textDocument/hover")(work)
        case "command":
            service.command(work)
        case "prompt":
            service.prompt(ask)
    meant: Literal["mcp", "lsp"] = "mcp" if declared == "prompt" else "lsp"
    Host([service], Settings(dialect=meant), version="1")
    Host([service], Settings(dialect="plain"), version="1")
    assert logged.names() == []
    Host([service], Settings(), version="1")
    ((event, fields),) = logged()
    assert (event, len(fields["methods"])) == ("dialect.undeclared", 1)
    assert f"dialect={meant!r}" in fields["hint"]


async def test_declarations_that_a_dialect_refuses_name_their_lines() -> None:
    service = Service("shop")
    for name in ("a.b", "a/b"):
        service.query(name)(lambda: None)
    host = Host([service], Settings(dialect="mcp"), version="1")
    with pytest.raises(DeclarationError, match=r"\(test_host.py:\d+, test_host.py:\d+\)$"):
        Daemon(host, memory_pair()[0])


async def test_a_method_of_the_daemons_own_can_not_be_declared() -> None:
    service = Service("services")
    service.query("services/list")(lambda: None)
    with pytest.raises(DeclarationError, match=r"daemon's own methods: services/list \(test_host.py:\d+\)"):
        Host([service], Settings(), version="1")


async def test_a_credential_that_can_not_be_read_says_why(tmp_path: Path) -> None:
    service = Service("shop", credentials=["key"])
    with pytest.raises(AppError, match=f"key: its file can't be read: {os.strerror(errno.ENOENT)}"):
        credentials_of(Settings(credentials=(f"key={tmp_path}/gone",)), [service])
    (tmp_path / "key").write_bytes(b"\xff")
    with pytest.raises(AppError, match="no UTF-8 text"):
        credentials_of(Settings(credentials=(f"key={tmp_path}/key",)), [service])


PATHS: dict[State, list[Event]] = {
    "starting": [],
    "serving": ["ready"],
    "swapping": ["ready", "reload"],
    "swapped": ["ready", "reload", "swap"],
    "draining": ["ready", "end-of-input"],
    "stopped": ["ready", "end-of-input", "drained"],
}
ENDINGS = {"end-of-input", "signal", "shutdown", "exit", "parent-gone"}
CUTS = {"reader-gone", "failed"}


def after(*events: Event) -> Lifecycle:
    life = Lifecycle()
    for event in events:
        life.apply(event)
    return life


def expected(state: State, event: Event) -> State:
    if state in ("stopped", "swapped"):
        return state
    if event in CUTS:
        return "stopped"
    if event in ENDINGS and state in ("starting", "serving", "swapping"):
        return "draining"
    if event == "ready" and state == "starting":
        return "serving"
    if event in ("drained", "window-closed") and state == "draining":
        return "stopped"
    if (state, event) == ("serving", "reload"):
        return "swapping"
    if (state, event) == ("swapping", "swap"):
        return "swapped"
    return state


@pytest.mark.parametrize(("state", "event"), list(product(get_args(State), get_args(Event))))
def test_every_event_in_every_state_leads_where_the_drawing_says(state: State, event: Event) -> None:
    life = after(*PATHS[state])
    assert life.state == state
    changed = life.apply(event)
    assert life.state == expected(state, event)
    assert changed == (life.state != state) == ((state, event) in TABLE)


@pytest.mark.parametrize(
    ("events", "status"),
    [
        (["ready", "end-of-input", "drained"], 0),
        (["ready", "signal", "window-closed"], 0),
        (["ready", "shutdown", "reader-gone"], 0),
        (["ready", "reader-gone"], 1),
        (["ready", "failed"], 1),
        (["ready", "signal", "failed"], 1),
    ],
)
def test_the_status_tells_a_graceful_end_from_a_broken_one(events: list[Event], status: int) -> None:
    assert after(*events).status == status


def test_the_first_reason_to_end_stands() -> None:
    assert after("ready", "shutdown", "end-of-input", "drained").reason == "shutdown"


def test_a_reload_is_no_reason_to_end_and_gives_way_to_one() -> None:
    assert after("ready", "reload", "swap").reason is None
    assert after("ready", "reload", "signal", "drained").reason == "signal"
