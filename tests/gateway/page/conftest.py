"""A daemon with the page, and a browser that looks at it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import support
from support.browser import CHROMIUM, Page, browser
from support.gateways import http_daemon
from support.requirements import missing

APPS = Path(support.__path__[0])
SIZES = {"desktop": (1280, 800), "tablet": (800, 1000), "phone": (375, 812), "narrow": (320, 568)}
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

Show = Callable[..., Page]


def resize(page: Page, size: str, *, dark: bool = False) -> None:
    """Show the page on a screen of this size, in this scheme."""
    width, height = SIZES[size]
    page.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    page.send("Emulation.setEmulatedMedia", features=[scheme])


def order_four(page: Page) -> None:
    """Fill in the form of shop/buy: more than there are."""
    page.fill(".detail .parts input", "screw")
    page.fill(".detail .parts [inputmode=decimal]", "4")


def problems(page: Page, axe: str) -> list[object]:
    """What axe finds in the page as it is now."""
    page.run(f"{axe}; 0")
    options = json.dumps({"runOnly": {"type": "tag", "values": TAGS}})
    found: list[object] = page.run(
        f"axe.run(document, {options}).then(({{ violations }}) => violations.map((it) => [it.id, it.nodes.map((node) => node.html)]))"
    )
    return found


def overflow(page: Page) -> int:
    """By how many pixels the page, or a part of it, is wider than its place."""
    parts = "main, .list, .detail, .talk, aside, .events, #dock, .wire, .lines, #questions"
    widest: int = page.run(
        f"Math.max(...[document.documentElement, ...document.querySelectorAll({parts!r})].map((it) => it.scrollWidth - it.clientWidth))"
    )
    return widest


def small(page: Page) -> list[str]:
    """What is touched and less than 44 pixels high, on a phone."""
    touched = "button, select, input:not([type=checkbox]), textarea, summary, nav a, .examples a, .back, .check label"
    found: list[str] = page.run(
        f"[...document.querySelectorAll({touched!r})].filter((it) => it.checkVisibility() && it.getBoundingClientRect().height < 44)"
        ".map((it) => it.outerHTML.slice(0, 100))"
    )
    return found


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One browser for all tests: its start takes longer than most of them."""
    if sys.platform == "win32":
        pytest.skip("drives the browser over POSIX descriptors")
    if CHROMIUM is None:
        missing("chromium is not installed")
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Of a daemon that knows no callers."""
    more = ("./page_app.py:shop", "./page_app.py:stock", "--http-page", "--http-operations")
    with http_daemon(APPS, "./page_app.py:agent", *more) as found:
        yield found


@pytest.fixture
def show(window: Page, url: str) -> Iterator[Show]:
    """`show("#/agent", size="phone", dark=True)`: a new visit. In its end nothing was fetched from elsewhere, no policy was
    violated, and nothing was thrown.
    """
    urls = [url]

    def open_at(where: str = "", *, at: str = url, size: str = "desktop", dark: bool = False) -> Page:
        urls.append(at)
        resize(window, size, dark=dark)
        window.open("about:blank")  # else a new fragment would be no new visit
        window.open(at + where)
        return window

    yield open_at
    asked = [
        each["params"]["request"]["url"] for each in window.events if each["method"] == "Network.requestWillBeSent"
    ]
    hosts = {urlsplit(each).netloc for each in asked if not each.startswith("data:")}
    assert hosts <= {urlsplit(each).netloc for each in urls}
    assert window.faults() == []
    assert window.run("document.hacked") is None
    window.run("sessionStorage.clear()")


@pytest.fixture(scope="session")
def axe() -> str:
    places = [Path(entry) for entry in os.environ.get("NODE_PATH", "").split(os.pathsep) if entry]
    for place in places:
        if (script := place / "axe-core" / "axe.min.js").is_file():
            return script.read_text("utf-8")
    missing("axe-core is not installed where NODE_PATH says")
