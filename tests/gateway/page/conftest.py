"""A daemon with the page, and a browser that looks at it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import support
from support.browser import CHROMIUM, Page, browser
from support.gateways import http_daemon
from support.programs import environment
from support.requirements import missing
from support.waits import DEADLINE_SECONDS

APPS = Path(support.__path__[0])
INSPECTED = APPS / "inspected_app.py"
ROWS = "[...document.querySelectorAll('.row')]"
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
    """What axe finds in the page as it is now. What stands in frames is not the page's."""
    page.run(f"{axe}; 0")
    options = json.dumps({"runOnly": {"type": "tag", "values": TAGS}, "iframes": False})
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


# -- `discreet inspect` --------------------------------------------------------------------------------------------


def message_of(page: Page, method: str) -> str:
    """What the row of the last such message shows."""
    found = f"{ROWS}.filter((it) => it.querySelector('b')?.textContent === {json.dumps(method)}).at(-1)"
    page.until(found)
    text: str = page.run(f"{found}.textContent")
    return text


def enter(page: Page, text: str) -> None:
    """Fill in the first field of the form, and send it."""
    page.fill(".detail input", text)
    page.press("Enter")


class Inspected:
    """A process of `discreet inspect`. `file` is that of the app."""

    def __init__(self, process: subprocess.Popen[str], address: str, file: Path) -> None:
        self.process = process
        self.file = file
        self.url, _, self.token = address.partition("#token=")

    def server(self) -> int:
        """The number of the app's process."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text("ascii")
        return int(children.split()[0])


@pytest.fixture(scope="session")
def inspected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspected]:
    folder = tmp_path_factory.mktemp("inspected")
    file = Path(shutil.copy(INSPECTED, folder / "app.py"))
    shutil.copy(INSPECTED.with_suffix(".html"), folder / "app.html")
    command = [sys.executable, "-P", "-m", "discreet", "inspect", "./app.py:shop", "--no-browser"]
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            address = None
            while address is None:
                line = process.stderr.readline()
                assert line, "it ended"
                address = re.search(r"inspect at (http://127\.0\.0\.1:\d+/#token=\S+)", line)
            yield Inspected(process, address[1], file)
        finally:
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=DEADLINE_SECONDS)[1]
    assert process.returncode == 0
    assert address[1].partition("token=")[2] not in said
    assert "k7Qzp2LwX9" not in said


@pytest.fixture
def tried(show: Show, inspected: Inspected) -> Show:
    """`tried("#/tools")`: a visit with the token, at a view."""

    def visit(where: str = "", *, size: str = "desktop", dark: bool = False) -> Page:
        page = show(f"#token={inspected.token}", size=size, dark=dark)
        page.until("document.querySelector('.list li')")
        if where:
            page.run(f"location.hash = {json.dumps(where)}")
            page.until(f"location.hash === {json.dumps(where)} && document.querySelector('main h2')")
        return page

    return visit


@pytest.fixture(scope="session")
def axe() -> str:
    places = [Path(entry) for entry in os.environ.get("NODE_PATH", "").split(os.pathsep) if entry]
    for place in places:
        if (script := place / "axe-core" / "axe.min.js").is_file():
            return script.read_text("utf-8")
    missing("axe-core is not installed where NODE_PATH says")
