"""The pages say how many lines the same server takes elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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
    text = " ".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").split())
    assert f"`{ours}` and `{twin}` are the same" in text
    assert f"{lines(ours)} lines here, {lines(twin)} on {where}, without blank lines and comments" in text
