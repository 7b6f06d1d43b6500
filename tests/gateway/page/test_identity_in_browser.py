"""The page in a browser, of a daemon that tells callers apart: who has no token is asked, and the token stays in its tab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser import Page
from support.gateways import http_daemon
from support.vault import SECRET, digest

from .conftest import APPS, Show

FIELD, BUTTON = "main input[type=password]", "main form .primary"
KEYED = """
from discreet.agents import ApiKey, requires
from page_app import Agent, Worker

agent = Agent(Worker(), name="Keyed", description="Has a key.",
    security_schemes={"key": ApiKey(name="X-Key", location="header")}, security=[requires({"key": []})])
"""


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    more = ("./page_app.py:stock", "--http-page", "--http-operations", "--token", f"ada:{digest(SECRET)}")
    with http_daemon(APPS, "./page_app.py:agent", *more) as found:
        yield found


def sign_in(page: Page, token: str) -> None:
    page.fill(FIELD, token)
    page.click(BUTTON)


def stored(page: Page) -> Any:
    return page.run("JSON.stringify([Object.values(sessionStorage), Object.keys(localStorage), document.cookie])")


def test_who_is_not_known_is_asked_and_comes_back_to_the_view(show: Show, guarded: str) -> None:
    page = show("#/tasks", at=guarded)
    assert page.text("main h2") == "Who are you?"
    assert page.run(f"document.activeElement === document.querySelector({FIELD!r})") is True
    sign_in(page, "wrong")
    page.until_text("main .problem", "This was not accepted.")
    page.until_text("#status", "The token was not accepted.")
    assert page.run(f"document.querySelector({FIELD!r}).getAttribute('aria-invalid')") == "true"
    sign_in(page, SECRET)
    page.until("document.querySelector('.tasks')")
    assert page.text("#identity") == "Sign out"
    assert stored(page) == f'[["Bearer {SECRET}"],[],""]'
    page.reload()
    page.until("document.querySelector('.tasks')")
    page.click("#identity")
    page.until_text("main h2", "Who are you?")
    assert stored(page) == '[[],[],""]'


def test_the_token_goes_with_each_request_and_in_no_address(show: Show, guarded: str) -> None:
    page = show("#/agent", at=guarded)
    page.click("#identity", "Sign in")
    sign_in(page, SECRET)
    page.fill(".talk textarea", "Ada")
    page.click(".talk .primary")
    page.until_text(".task .state", "completed")
    sent = [each["params"]["request"] for each in page.events if each["method"] == "Network.requestWillBeSent"]
    posts = [each for each in sent if each["method"] == "POST"]
    assert posts and all(each["headers"]["Authorization"] == f"Bearer {SECRET}" for each in posts)
    assert not any(SECRET in each["url"] for each in sent)
    assert SECRET not in page.run("document.documentElement.outerHTML")


def test_a_token_that_is_not_accepted_any_more_leads_back_to_the_field(show: Show, guarded: str) -> None:
    page = show("#/agent", at=guarded)
    page.click("#identity", "Sign in")
    sign_in(page, SECRET)
    page.until_text("main h2", "Send a message")
    page.run("Object.keys(sessionStorage).forEach((key) => sessionStorage.setItem(key, 'Bearer gone'))")
    page.reload()
    page.until_text("main h2", "Who are you?")
    assert page.text("main .problem") == "This was not accepted."


def test_an_api_key_that_the_card_declares_is_asked_for_and_sent_as_such(show: Show, tmp_path: Path) -> None:
    (tmp_path / "keyed.py").write_text(f"import sys; sys.path.append({str(APPS)!r})\n{KEYED}", "utf-8")
    with http_daemon(tmp_path, "./keyed.py:agent", "--http-page", "--token", f"ada:{digest(SECRET)}") as keyed:
        page = show("#/tasks", at=keyed)
        assert page.text("main label") == "API key"
        sign_in(page, SECRET)
        page.until("document.querySelector('.tasks')")
        assert stored(page) == f'[["ApiKey {SECRET}"],[],""]'
        assert page.run("document.querySelector('#views a').hidden") is True  # operations are not served
        page.run("location.hash = '#/operations'")
        page.until("document.querySelector('main')?.textContent.includes('--http-operations')")
        page.run("sessionStorage.clear()")


def test_what_one_caller_saw_is_gone_when_it_signs_out(show: Show, guarded: str) -> None:
    page = show("#/operations/stock/echo", at=guarded)
    sign_in(page, f"{SECRET} and more")
    page.until_text("main .problem", "Write a token: letters, digits and signs, without spaces.")
    sign_in(page, SECRET)
    page.fill(".detail textarea", '"private"')
    page.click(".detail .primary")
    assert page.text(".outcome pre") == '"private"'
    page.click("#identity", "Sign out")
    page.until_text("#identity", "Sign in")
    page.until_text("main h2", "Who are you?")  # no operation is public
    assert page.run("document.documentElement.outerHTML.includes('private')") is False
    sign_in(page, SECRET)
    page.until("document.querySelector('.detail textarea')?.value === ''")
    assert page.run("document.querySelector('.outcome').hidden") is True
    assert page.run("document.documentElement.outerHTML.includes('private')") is False
