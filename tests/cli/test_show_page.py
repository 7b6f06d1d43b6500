"""`discreet show --html` in a browser: nothing of a recording runs, nothing is fetched, and the keyboard does it all."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from discreet import pages, recording
from discreet.cli.main import main
from support.browser import CHROMIUM, Page, browser
from support.contrast import contrast, schemes_of
from support.requirements import missing

HOSTILE = (
    "</script><script>document.hacked = 1</script><img src='http://127.0.0.1:9/x' onerror='document.hacked = 1'>\u2028"
)
START = {"type": "start", "ms": 0, "version": 1, "framing": "newline", "command": ["discreet", HOSTILE]}


def said(sender: str, ms: float, **message: object) -> dict[str, object]:
    return {"type": "message", "ms": ms, "from": sender, "message": {"jsonrpc": "2.0", **message}}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if sys.platform == "win32":
        pytest.skip("drives the browser over POSIX descriptors")
    if CHROMIUM is None:
        missing("chromium is not installed")
    with browser(tmp_path_factory.mktemp("browser") / "profile") as found:
        yield found


class Shown:
    """The page of a session in the browser."""

    def __init__(self, page: Page, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.page = page
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *entries: dict[str, Any]) -> Page:
        recording = self.folder / "session.jsonl"
        recording.write_text("".join(json.dumps(entry) + "\n" for entry in (START, *entries)), "utf-8")
        assert main(["show", str(recording), "--html"]) == 0
        (self.folder / "page.html").write_text(self._capsys.readouterr().out, "ascii")
        self.open(1280, 800)
        return self.page

    def open(self, width: int, height: int) -> None:
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.page.send("Emulation.setDeviceMetricsOverride", **screen)
        self.page.open(self.folder / "page.html")
        self.page.until("document.querySelector('.row')")


@pytest.fixture
def shown(opened: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shown:
    return Shown(opened, tmp_path, capsys)


def test_hostile_strings_are_shown_and_do_not_run_and_nothing_is_fetched(shown: Shown) -> None:
    entries = [
        said("client", 1, id=HOSTILE, method=HOSTILE, params={HOSTILE: [HOSTILE], "workDoneToken": 1}),
        said("server", 2, method="$/progress", params={"token": 1, "value": HOSTILE}),
        said("server", 3, id=HOSTILE, error={"code": -1, "message": HOSTILE}),
        said("server", 4, method=HOSTILE, params=HOSTILE),
        {"type": "stderr", "ms": 5, "text": HOSTILE},
        {"type": "omitted", "ms": 6, "from": "client", "reason": HOSTILE, "bytes": 1},
    ]
    page = shown(*entries)
    page.run("document.getElementById('list').focus()")
    for _ in range(4):
        page.press("ArrowDown")
        page.press("Enter")
        page.run("document.querySelectorAll('#detail details').forEach((it) => { it.open = true; })")
        assert "onerror" in page.run("document.getElementById('detail').textContent")
    page.run("document.querySelector('[data-view=methods]').click()")
    assert page.run("document.querySelector('#latencies button').textContent").startswith("</script><script>")
    assert page.run("document.querySelectorAll('img, iframe, object').length") == 0
    assert page.run("document.scripts.length") == 2
    assert page.run("document.hacked") is None
    assert page.faults() == []
    requests = [
        event["params"]["request"]["url"] for event in page.events if event["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in requests if not url.startswith("data:")] == [(shown.folder / "page.html").as_uri()]


def test_the_policy_lets_neither_markup_nor_requests_nor_scripts_in(shown: Shown) -> None:
    page = shown(said("client", 1, method="a"))
    assert page.run("try { document.body.innerHTML = '<b>'; } catch (error) { error.name }") == "TypeError"
    assert page.run("fetch('http://127.0.0.1:9/').catch((error) => error.name)") == "TypeError"
    blocked = "new Promise((done) => { addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective)); "
    assert (
        page.run(blocked + "document.body.append(new Image()); document.images[0].src = 'http://127.0.0.1:9/'; })")
        == "img-src"
    )
    assert page.run(
        blocked + "const it = document.createElement('style'); it.textContent = 'p {}'; document.head.append(it); })"
    ) in ("style-src-elem", "style-src")


def test_the_keyboard_filters_moves_opens_and_goes_back(shown: Shown) -> None:
    requests = [
        said("client", at, id=at, method="a" if at % 10 else "needle", params={"at": [at]}) for at in range(3_000)
    ]
    page = shown(*requests, said("server", 4_000, id=10, error={"code": -5, "message": "in the haystack"}))
    count = "document.getElementById('count').textContent"
    assert page.run(count) == "3,000 rows"
    assert page.run("document.querySelectorAll('.row').length") < 100  # only those in sight

    page.press("/")
    assert page.run("document.activeElement.id") == "filter"
    page.type("NEEDLE haystack")
    page.until(f"{count} === '1 of 3,000 rows'")
    page.press("Enter")
    assert page.run("document.activeElement.id") == "list"
    page.press("Enter")
    detail = "document.getElementById('detail')"
    assert page.run(f"{detail}.querySelector('h2').textContent") == "needle"
    assert [page.run(f"{detail}.querySelectorAll('pre')[{at}].textContent") for at in (0, 1)] == [
        '{\n\t"at": [\n\t\t10\n\t]\n}',
        '{\n\t"code": -5,\n\t"message": "in the haystack"\n}',
    ]
    page.press("Escape")
    assert page.run(f"{detail}.hidden") is True
    page.press("Escape")
    page.until(f"{count} === '3,000 rows'")

    page.press("/")
    page.type("=needl")
    page.until(f"{count} === '0 of 3,000 rows'")
    page.press("Escape")
    page.run("document.querySelectorAll('#latencies button')[1].click()")
    page.until(f"{count} === '300 of 3,000 rows'")
    page.press("Escape")
    page.until(f"{count} === '3,000 rows'")

    page.press("End")
    chosen = "document.querySelector('[aria-selected=true]')"
    assert page.run(f"{chosen}.getAttribute('aria-posinset')") == "3000"
    assert page.run(f"document.getElementById('list').getAttribute('aria-activedescendant') === {chosen}.id") is True
    for key in ("ArrowUp", "PageUp", "Home", "ArrowDown"):
        page.press(key)
    assert page.run(f"{chosen}.getAttribute('aria-posinset')") == "2"
    assert page.faults() == []


def test_the_table_of_methods_has_median_p95_and_maximum_of_the_nearest_rank(shown: Shown) -> None:
    entries: list[dict[str, Any]] = [said("server", 1, id=1, method="b")]
    for took in range(100, 0, -1):
        answer = {"error": {"code": 1}} if took > 98 else {"result": 1}
        entries += [said("client", 0, id=took, method="a"), said("server", took, id=took, **answer)]
    page = shown(*entries)
    rows = "[...document.querySelectorAll('#latencies tr')].map((row) => [...row.children].map((it) => it.textContent))"
    assert page.run(rows) == [
        ["a", "client", "100", "2", "50.0 ms", "95.0 ms", "100.0 ms", ""],
        ["b", "server", "1", "", "", "", "", ""],
    ]


def test_nothing_is_wider_than_the_window(shown: Shown) -> None:
    page = shown(said("client", 1, id="x" * 500, method="m/" * 300, params=["y" * 5_000]))
    widest = "Math.max(...[document.documentElement, ...document.querySelectorAll('main, #list, #methods, #detail')].map((it) => it.scrollWidth - it.clientWidth))"
    for width, height in ((320, 568), (390, 844), (800, 600), (1280, 800)):
        shown.open(width, height)
        assert page.run(widest) == 0, width
        page.run("document.querySelector('.row').click()")
        assert page.run(widest) == 0, width
        page.press("Escape")
        page.run("document.querySelector('[data-view=methods]').click()")
        assert page.run(widest) == 0, width


def test_every_text_has_a_contrast_of_four_and_a_half_to_every_ground_in_both_schemes() -> None:
    css = [
        files(pages).joinpath("palette.css"),
        files(pages).joinpath("messages.css"),
        files(recording).joinpath("page.css"),
    ]
    for scheme in schemes_of(*(each.read_text("ascii") for each in css)):
        for text in ("text", "muted", "accent", "server", "error", "warn"):
            for ground in ("ground", "raised", "hover", "chosen"):
                assert contrast(scheme[text], scheme[ground]) >= 4.5, (text, ground)
