"""Tables and counts of pages say what the code does: errors, events of agents, and how long the same server is elsewhere."""

from __future__ import annotations

import re
import runpy

import pytest

from discreet.client.oauth import GRANTS, OAuthClient, read_oauth
from discreet.errors.codes import ERROR_TABLE
from support.pages import Page
from support.tree import ROOT

LOGGED = re.compile(r"\blog\.(debug|info|warning|error)\(\s*\"([\w.]+)\"")
ROW = re.compile(r"^\| `([\w.]+)` \| (\w+) \|", re.MULTILINE)


def test_the_tables_of_errors_are_those_of_the_table() -> None:
    page = Page("docs/errors.md").text
    with_tables = runpy.run_path(str(ROOT / "docs" / "write_errors.py"))["with_tables"]
    assert with_tables(page) == page, "run: make docs"
    for row in ERROR_TABLE:
        assert f"| −{-row.code} | {row.message or 'its own'} |" in page


def test_every_event_of_the_agents_has_its_row_at_its_level() -> None:
    logged = {
        (event, "warn" if level == "warning" else level)
        for path in (ROOT / "agents").rglob("*.py")
        for level, event in LOGGED.findall(path.read_text(encoding="utf-8"))
    }
    table = Page("docs/logging.md").text.partition("What the agent says")[2].partition("What the log says")[0]
    assert len(logged) >= 11
    assert set(ROW.findall(table)) == logged


def test_the_keys_of_an_oauth_client_are_those_of_the_page_and_its_example_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("h11")
    text = Page("docs/auth.md").text
    table = text.partition("| key | |\n")[2].partition("\n\n")[0]
    keys = {key for row in table.splitlines()[1:] for key in re.findall(r"`([\w-]+)`", row.split("|")[1])}
    assert keys == set(OAuthClient.__struct_encode_fields__)
    example = re.search(r"```toml\n(\[oauth\].*?)```", text, re.DOTALL)
    assert example is not None
    monkeypatch.setenv("PETS_SECRET", "s3cret-of-the-shop")
    assert read_oauth(example[1]).grant == "client-credentials"
    assert set(GRANTS) == set(re.findall(r"^- \*\*`([\w-]+)`\*\*", text, re.MULTILINE))


def lines(path: str) -> int:
    text = (ROOT / path).read_text(encoding="utf-8")
    return sum(1 for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))


@pytest.mark.parametrize(
    ("page", "ours", "twin", "where"),
    [
        ("acp", "examples/acp_agent/tidy.py", "tests/interop/acp_sdk_twin.py", "the SDK for Python"),
        ("language-servers", "examples/language_server/todo_server.py", "bench/dialects/twins/todo_server_pygls.py", "pygls"),
        ("mcp", "examples/mcp_shop/shop.py", "bench/dialects/twins/shop_fastmcp.py", "fastmcp"),
    ],
)  # fmt: skip
def test_the_lines_are_counted_rightly(page: str, ours: str, twin: str, where: str) -> None:
    text = " ".join(Page(f"docs/{page}.md").text.split())
    assert f"`{ours}` and `{twin}` are the same" in text
    assert f"{lines(ours)} lines here, {lines(twin)} on {where}, without blank lines and comments" in text
