"""Apps of MCP in the page of `discreet inspect`: what they may do is done and shown, and one that attacks gets nowhere."""

from __future__ import annotations

import json
import re

import pytest

from support.browser import Page

from .conftest import ROWS, Inspected, Show, enter, message_of, resize

BOARD = "#/tools/shop_board"
FRAME = ".preview iframe"
SAID = "[...document.querySelectorAll('.preview .messages li .text')].map((it) => it.textContent)"
PROBLEM = ".preview > .problem"


@pytest.fixture(scope="module")
def url(inspected: Inspected) -> str:
    return inspected.url


def answer_of(page: Page, act: str) -> str:
    """What the app says once it has done this."""
    enter(page, act)
    return said(page, act)


def said(page: Page, begin: str) -> str:
    """What the app says of this, once it does."""
    found = f"{SAID}.find((it) => it.startsWith('{begin}: '))"
    page.until(found)
    text: str = page.run(found)
    return text.removeprefix(f"{begin}: ")


def seen(page: Page) -> list[str]:
    """The messages between the app and the page, in short."""
    rows = f"{ROWS}.filter((it) => it.matches('.app, .host')).map((it) => it.className.split(' ')[1] + ' ' + it.querySelector('b')?.textContent)"
    found: list[str] = page.run(rows)
    return found


# -- what an app may -----------------------------------------------------------------------------------------------


def test_an_app_has_the_call_that_it_is_shown_for_and_calls_tools_in_everybodys_sight(tried: Show) -> None:
    page = tried(BOARD)
    assert json.loads(answer_of(page, "look")) == {"name": "pen", "price": 1.5}
    page.run("document.querySelector('#wire').scrollTop = 1e6")
    page.until(f"{ROWS}.some((it) => it.textContent.includes('ui/message') && it.querySelector('.took').textContent)")
    found = seen(page)
    assert found[:5] == [
        "app ui/initialize",
        "app ui/notifications/initialized",
        "host ui/notifications/tool-input",
        "host ui/notifications/tool-result",
        "app ui/notifications/size-changed",
    ]
    assert found[5:] == ["app tools/call", "app ui/message"]
    calls = f"{ROWS}.filter((it) => it.textContent.includes('shop_look')).map((it) => it.className.split(' ')[1])"
    assert page.run(calls) == ["app", "client"]
    assert page.run(f"document.querySelector({FRAME!r}).sandbox.value") == "allow-scripts allow-forms"
    assert page.run(f"document.querySelector({FRAME!r}).clientHeight") == 160


def test_what_an_app_asks_for_is_done_or_shown(tried: Show) -> None:
    page = tried(BOARD)
    assert answer_of(page, "read") == "pen: 1.5"
    assert answer_of(page, "count") == "counted, 2 times told"
    assert answer_of(page, "fullscreen") == "fullscreen"
    page.run("document.exitFullscreen()")
    page.until(f"{SAID}.includes('mode: inline')")
    assert answer_of(page, "form") == "submitted"
    answer_of(page, "context")
    page.click(".preview summary", "Context")
    assert json.loads(page.text(".preview details pre")) == {"chosen": "pen"}
    answer_of(page, "crash")
    page.until("[...document.querySelectorAll('.lines .error')].some((it) => it.textContent.includes('broken'))")
    answer_of(page, "tall")
    page.until(f"document.querySelector({FRAME!r}).offsetHeight === 800")


def test_a_link_is_opened_once_the_user_has_agreed_and_who_refuses_is_not_asked_again(tried: Show) -> None:
    page = tried(BOARD)
    page.run("window.open = (...given) => { window.opened = given; }")
    enter(page, "link")
    assert page.text(".question .text") == "https://example.com/"
    page.press("Tab")
    page.press("Enter")
    said(page, "link")
    assert page.run("window.opened") == ["https://example.com/", "_blank", "noopener,noreferrer"]
    enter(page, "twice")
    page.click(".question .plain", "Refuse")
    assert said(page, "twice") == "-32000 Link opening denied by user"
    assert page.run("document.querySelectorAll('.question').length") == 0


def test_an_app_is_told_of_a_call_that_was_stopped_and_of_the_theme(tried: Show) -> None:
    page = tried(BOARD)
    enter(page, "wait")
    message_of(page, "ui/notifications/tool-input")
    page.click(".detail .actions .plain", "Stop")
    assert said(page, "cancelled") == "The user has stopped it."
    resize(page, "desktop", dark=True)
    assert said(page, "theme") == "dark"
    select = "document.querySelector('.preview select')"
    page.run(f"{select}.value = 'light'; {select}.dispatchEvent(new Event('change'))")
    page.until(f"{SAID}.includes('theme: light')")


def test_the_keyboard_reaches_what_stands_in_an_app_and_leaves_it(tried: Show) -> None:
    page = tried(BOARD)
    answer_of(page, "read")
    page.run("document.querySelector('.preview .plain').focus()")
    page.press("Tab")
    page.press("Enter")
    assert json.loads(said(page, "look")) == {"name": "pen", "price": 1.5}
    page.press("Tab")
    assert page.run("document.activeElement.textContent") == "Policy (CSP)"


def test_an_app_is_there_again_where_its_view_is_and_has_the_same_call(tried: Show) -> None:
    page = tried(BOARD)
    answer_of(page, "read")
    page.run("location.hash = '#/server'")
    page.until("document.querySelector('.choices')")
    page.run(f"location.hash = {BOARD!r}")
    page.until("document.querySelector('.detail input')")
    assert said(page, "read") == "pen: 1.5"
    page.run("document.querySelector('.preview .messages').replaceChildren()")
    page.click(".preview .plain", "Reload")
    assert said(page, "read") == "pen: 1.5"


# -- what it may not -----------------------------------------------------------------------------------------------

REFUSED = {
    "erase": "-32000 shop_erase is not for apps",
    "unknown": "-32602 The server lists no tool",
    "method": "-32601 Method not found",
    "script": "-32602 url must begin with",
    "parent": "Blocked a frame with origin .null.",
    "storage": "sandboxed",
    "top": "does not have permission to navigate",
    "popup": "no window",
    "fetch": "Failed to fetch",
    "requests": "Failed to fetch",
    "image": "no image",
}


def test_an_app_that_attacks_gets_nowhere(tried: Show) -> None:
    page = tried(BOARD)
    for act, why in REFUSED.items():
        assert re.search(why, answer_of(page, act)), act
    assert page.run("location.pathname") == "/"
    for told in ("connect-src blocks http://127.0.0.1:9/fetch", "img-src blocks http://127.0.0.1:9/image"):
        page.until(f"[...document.querySelectorAll('.lines .error')].some((it) => it.textContent.includes({told!r}))")


@pytest.mark.parametrize(
    ("act", "why"),
    [
        ("flood", "more than 500 messages"),
        ("large", "a message of more than 2.0 MB"),
        ("leave", "another page"),
        ("post", "another page"),
    ],
)
def test_an_app_that_goes_too_far_is_ended_and_the_page_goes_on(tried: Show, act: str, why: str) -> None:
    page = tried(BOARD)
    enter(page, act)
    page.until(f"document.querySelector({PROBLEM!r})?.textContent.startsWith('The app was ended')")
    assert why in page.text(PROBLEM)
    assert page.run(f"document.querySelector({FRAME!r})") is None
    assert len(seen(page)) < 1000
    assert answer_of(page, "read") == "pen: 1.5"
    page.events.clear()  # the browser tells of a page that the policy has blocked


def test_an_app_can_not_come_back_with_another_policy(tried: Show) -> None:
    page = tried(BOARD)
    enter(page, "loosen")
    message_of(page, "ui/notifications/tool-result")
    assert answer_of(page, "read") == "pen: 1.5"
    assert seen(page).count("app ui/initialize") == 2


# -- changes, and what tools give ----------------------------------------------------------------------------------


def test_a_changed_page_is_shown_with_the_call_as_before(tried: Show, inspected: Inspected) -> None:
    page = tried(BOARD)
    assert answer_of(page, "read") == "pen: 1.5"
    html = inspected.file.with_suffix(".html")
    before = html.read_text("utf-8")
    try:
        html.write_text(before.replace("contents[0].text", "contents[0].text + ' anew'"), "utf-8")
        page.until(f"{SAID}.includes('read: pen: 1.5 anew')")
    finally:
        html.write_text(before, "utf-8")
        page.until(f"{SAID}.includes('read: pen: 1.5')")


def test_a_structure_is_checked_against_the_output_schema(tried: Show) -> None:
    page = tried("#/tools/shop_look")
    enter(page, "pen")
    page.until("document.querySelector('.outcome')?.textContent.includes('The structure fits the output schema.')")
    other = 'body.replace(\'"type":"number"\', \'"type":"string"\')'
    page.run(f"""(() => {{ const real = fetch; window.fetch = (path, given) => {{
        const {{ body }} = given, changed = path === "page/check" ? {other} : body;
        return real(path, {{ ...given, body: changed }});
    }}; }})()""")
    enter(page, "desk")
    assert page.text(".outcome .problem") == (
        "The structure does not fit the output schema: at price, expected string, received number."
    )
