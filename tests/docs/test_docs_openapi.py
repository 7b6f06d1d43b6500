"""The page on operations by HTTP tells the truth: its commands print what is shown, its streams resume, its statuses are all."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

from discreet.daemon.settings.table import OPTIONS
from discreet.errors.codes import ERROR_TABLE
from discreet.errors.failures import AgentFailure
from discreet.gateway.answers import SMALLEST
from support.asgi_client import JSON, AsgiClient
from support.books import book, described, operations
from support.gateways import http_daemon
from support.pages import Page, played

pytest.importorskip("httptools")

from discreet.http import asgi

DOCUMENT = Page("docs/openapi.md")
PAGE = DOCUMENT.text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return DOCUMENT.install(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
def test_the_commands_print_what_is_shown(folder: Path) -> None:
    assert len(DOCUMENT.sessions) == 4
    with http_daemon(folder, "./shop.py:shop", "--http-operations") as url:
        for command, shown in DOCUMENT.sessions:
            assert played(command, url, folder).strip() == shown, command


@pytest.mark.anyio
async def test_the_stream_goes_on_behind_the_last_event(folder: Path) -> None:
    app = asgi(runpy.run_path(str(folder / "clock.py"))["clock"], http_operations=True, isolated=True)
    async with app.lifespan():
        client = AsgiClient(app)
        headers = {**JSON, "last-event-id": "2"}
        _, _, told = await client.request("POST", "/operations/clock/ticks", b'{"until": 4}', headers)
    assert re.findall(r"^(?:id|event|data): (.*)$", told.decode(), re.MULTILINE) == [
        "3",
        '"tick 3"',
        "4",
        '"tick 4"',
        "completed",
        '{"completed":true,"events":2}',
    ]


def test_every_status_and_every_code_has_its_row() -> None:
    table = DOCUMENT.section("Answers").partition("\n- ")[0]
    statuses = {
        status for row in re.findall(r"^\|([^|]+)\|", table, re.MULTILINE) for status in re.findall(r"\d{3}", row)
    }
    of_documents = {status for _, _, operation in operations(described(book())) for status in operation["responses"]}
    assert statuses | {"431"} == (of_documents | {"405"}) - {"409"}  # which is the example's own
    codes = {
        row.protocol_code for row in ERROR_TABLE if row.protocol_code and not issubclass(row.failure, AgentFailure)
    }
    assert {code for code in codes if re.search(rf"\b{code}\b", table)} == codes - {"CANCELLED"}


def test_the_sizes_are_those_of_the_code() -> None:
    defaults = {option.flag: option.default for option in OPTIONS}
    assert f"{defaults['--max-header-bytes']:,} bytes" in PAGE
    assert SMALLEST == 1024 and "1 KiB" in PAGE
