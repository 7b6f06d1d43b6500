"""The page in a browser: axe finds nothing, the keyboard does it all, everything fits, and touch finds what it needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files

import pytest

import discreet.pages
from discreet.gateway import page as page_package
from support.browser import Page
from support.contrast import contrast, schemes_of

from .conftest import SIZES, Show, order_four, overflow, problems, resize, small


def listed(page: Page) -> None:
    page.text(".list li")


def called(page: Page) -> None:
    page.fill(".detail input", "nail")
    page.click(".detail .primary")
    page.text(".outcome pre")


def wrong(page: Page) -> None:
    page.click(".detail .primary")
    page.text(".problem:not([hidden])")


def refused(page: Page) -> None:
    order_four(page)
    page.click(".detail .primary")
    page.text(".failure")
    opened(page)


def opened(page: Page) -> None:
    page.run("document.querySelectorAll('details').forEach((it) => { it.open = true; })")


def live(page: Page) -> None:
    page.click(".detail .primary")
    page.until("document.querySelectorAll('.events li').length === 2")


def asked(page: Page) -> None:
    page.fill(".talk textarea", "ask")
    page.click(".talk form > .actions .primary")
    page.until_text(".task .state", "input required")
    opened(page)


def a_task(page: Page) -> None:
    asked(page)
    page.run("location.hash = '#/tasks'")
    page.click(".tasks li a")
    page.text(".detail .state")
    opened(page)


def one_of_all(page: Page) -> None:
    asked(page)
    task = page.text(".task-head code")
    page.run(f"location.hash = '#/all-tasks/{task}'")
    page.text(".timeline li")


def all_of_them(page: Page) -> None:
    asked(page)
    page.run("location.hash = '#/all-tasks'")
    page.text(".tasks li a")


def known(page: Page) -> None:
    asked(page)
    page.run("location.hash = '#/requests'")
    page.text(".requests td")


def unknown(page: Page) -> None:
    page.text(".agent")
    page.run("document.getElementById('identity').click()")
    page.text("main input[type=password]")


VIEWS: dict[str, tuple[str, Callable[[Page], None]]] = {
    "list": ("", listed),
    "call": ("#/operations/shop/find", called),
    "wrong": ("#/operations/shop/buy", wrong),
    "error": ("#/operations/shop/buy", refused),
    "live": ("#/operations/shop/watch", live),
    "agent": ("#/agent", asked),
    "task": ("#/agent", a_task),
    "all": ("#/agent", all_of_them),
    "timeline": ("#/agent", one_of_all),
    "requests": ("#/agent", known),
    "token": ("#/agent", unknown),
}


every_view = pytest.mark.parametrize("view", VIEWS)


@every_view
def test_axe_finds_nothing_in_a_view_in_both_schemes_and_on_a_phone(axe: str, show: Show, view: str) -> None:
    where, do = VIEWS[view]
    page = show(where)
    do(page)
    for size, dark in (("desktop", False), ("desktop", True), ("phone", False)):
        resize(page, size, dark=dark)
        assert problems(page, axe) == [], (size, dark)


@every_view
def test_a_view_fits_every_window_and_what_is_touched_is_44_pixels_high(show: Show, view: str) -> None:
    where, do = VIEWS[view]
    page = show(where)
    do(page)
    for size in SIZES:
        resize(page, size)
        assert overflow(page) == 0, size
    assert small(page) == []


def test_the_keyboard_alone_reaches_and_does_everything(show: Show) -> None:
    page = show()
    listed(page)
    page.press("Tab")
    assert page.run("document.activeElement.textContent") == "Skip to the content"
    assert page.run("document.activeElement.getBoundingClientRect().top") >= 0
    page.press("Enter")
    assert page.run("document.activeElement.id") == "main"
    page.press("Tab")
    assert page.run("document.activeElement.id") == "filter"
    page.press("Tab")
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.press("Enter")
    page.until_text(".detail h2", "shop/find")
    focused = []
    for _ in range(11):
        page.press("Tab")
        focused.append(page.run("document.activeElement.textContent.slice(0, 9) || document.activeElement.tagName"))
    assert focused[:3] == ["Form", "JSON", "Example"]
    assert {"INPUT", "Call", "curl", "Errors of", "Schemas"} <= set(focused)


def test_nothing_moves_for_who_wants_no_motion_and_everything_has_a_name(show: Show) -> None:
    page = show("#/agent")
    asked(page)
    unnamed = "[...document.querySelectorAll('input, textarea, select')].filter((it) => !it.labels?.length && !it.ariaLabel).length"
    assert page.run(unnamed) == 0
    assert page.run("document.getAnimations().length") == 0


def test_every_text_has_a_contrast_of_four_and_a_half_and_every_control_of_three() -> None:
    css = [files(discreet.pages).joinpath("palette.css"), files(page_package).joinpath("page.css")]
    for scheme in schemes_of(*(each.read_text("ascii") for each in css)):
        for text in ("text", "muted", "accent", "error", "warn"):
            for ground in ("ground", "raised", "hover", "chosen"):
                assert contrast(scheme[text], scheme[ground]) >= 4.5, (text, ground)
        assert contrast(scheme["edge"], scheme["ground"]) >= 3


def test_the_page_is_written_in_files_of_at_most_400_lines() -> None:
    for place in (page_package, discreet.pages):
        for each in files(place).iterdir():
            if re.search(r"\.(js|css|html)$", each.name):
                assert len(each.read_text("ascii").splitlines()) <= 400, each.name
