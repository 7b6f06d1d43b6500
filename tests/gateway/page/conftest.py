"""A daemon with the page, and a browser that looks at it."""

from __future__ import annotations

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
SIZES = {"desktop": (1280, 800), "tablet": (800, 1000), "phone": (390, 844), "narrow": (320, 568)}

Show = Callable[..., Page]


def resize(page: Page, size: str, *, dark: bool = False) -> None:
    """Show the page on a screen of this size, in this scheme."""
    width, height = SIZES[size]
    page.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    page.send("Emulation.setEmulatedMedia", features=[scheme])


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
