"""`discreet inspect` in a browser: what an MCP server offers is tried out, and every message of it is shown as it comes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.browser import Page
from support.inspected_app import HOSTILE
from support.programs import environment

from .conftest import ROWS, SIZES, Inspected, Show, enter, message_of, overflow, problems, resize, small

CALL = ".detail .primary"
WHOLE = ".detail textarea[rows='8']"


@pytest.fixture(scope="module")
def url(inspected: Inspected) -> str:
    return inspected.url


def speak(page: Page, revision: str) -> None:
    """Agree on this revision."""
    page.run("location.hash = '#/server'")
    page.until("document.querySelector('.choices select')")
    select = "document.querySelector('.choices select')"
    page.run("document.getElementById('status').textContent = ''")
    page.run(f"{select}.value = '{revision}'; {select}.dispatchEvent(new Event('change'))")
    page.until("document.getElementById('status').textContent === 'Connected again.'")
    page.until(f"document.getElementById('version').textContent.includes('MCP {revision}')")


# -- who may look --------------------------------------------------------------------------------------------------


def test_the_token_leaves_the_address_and_without_it_nothing_is_told(show: Show, inspected: Inspected) -> None:
    page = show()
    assert page.text("main h2") == "Who are you?"
    assert page.run("fetch('mcp', { method: 'POST', body: '{}' }).then((it) => it.status)") == 401
    assert page.run("fetch('page/log').then((it) => it.status)") == 401
    assert page.run("fetch('page/restart', { method: 'POST' }).then((it) => it.status)") == 401
    page.fill("main input", inspected.token)
    page.press("Enter")
    page.until("document.querySelector('.list li')")
    page = show(f"#token={inspected.token}")
    page.until("document.querySelector('.list li')")
    assert page.run("location.href") == f"{inspected.url}#/tools"


# -- tools ---------------------------------------------------------------------------------------------------------


def test_a_tool_is_found_and_called_by_the_keyboard_alone(tried: Show) -> None:
    page = tried()
    page.until_text("#name", "shop")
    assert page.text("#version").startswith("1.2.3 \u00b7 MCP 2026-07-28")
    page.press("/")
    page.type("price of")
    page.press("Enter")
    page.until_text(".detail h2", "shop_look")
    assert page.text(".detail .facts") == "read only"
    for _ in range(3):
        page.press("Tab")
    page.type("pen")
    page.press("Enter")
    assert json.loads(page.text(".outcome pre")) == {"name": "pen", "price": 1.5}
    page.until("document.getElementById('status').textContent.startsWith('Done, after')")
    assert message_of(page, "tools/call").replace("\u2192", "").endswith(" ms")


def test_what_the_model_sees_is_shown_as_it_is(tried: Show) -> None:
    page = tried("#/tools/shop_look")
    page.click("summary", "As the model sees it")
    seen = json.loads(page.text(".detail article > details:last-child pre"))
    assert seen["name"] == "shop_look"
    assert seen["description"].endswith("Fails with: UNKNOWN_ITEM (The shop does not sell this item).")
    assert seen["annotations"] == {"readOnlyHint": True}
    assert {"inputSchema", "outputSchema"} <= set(seen)


def test_a_failed_tool_tells_its_code_and_wrong_arguments_are_told_at_their_control(tried: Show) -> None:
    page = tried("#/tools/shop_look")
    enter(page, "sofa")
    assert page.text(".outcome .failure h3") == "UNKNOWN_ITEM"
    assert json.loads(page.text(".outcome .failure pre"))["details"] == {"known": ["desk", "pen"]}
    page.run("location.hash = '#/tools/shop_order'")
    page.click(".modes button", "JSON")
    page.fill(WHOLE, '{"items": [{"name": "pen", "price": "much"}]}')
    page.click(CALL)
    page.until_text(".outcome .failure h3", "INVALID_INPUT")
    page.click(".modes button", "Form")
    page.click(CALL)
    assert page.text(".detail .parts .problem:not([hidden])") == "Write a number, such as 10."


def test_structures_are_taken_as_forms_and_come_back_as_they_were_sent(tried: Show) -> None:
    page = tried("#/tools/shop_order")
    page.click(".parts button", "Add one")
    page.type("pen")
    page.press("Tab")
    page.type("1.50")
    page.press("Enter")
    assert json.loads(page.text(".outcome pre")) == {"items": [{"name": "pen", "price": 1.5}], "note": ""}


def test_content_of_every_kind_is_shown_and_a_link_leads_to_the_resource(tried: Show) -> None:
    page = tried("#/tools/shop_picture")
    page.click(CALL)
    page.until("document.querySelector('.outcome img')?.naturalWidth === 1")
    assert page.run("document.querySelectorAll('.outcome img').length") == 1
    assert HOSTILE in page.text(".outcome .result")
    page.click(".outcome a")
    page.until_text(".detail h2", "All prices")


def test_progress_is_shown_as_it_comes_and_a_call_can_be_stopped(tried: Show) -> None:
    page = tried("#/tools/shop_count")
    page.run("document.querySelectorAll('.detail select')[0].value = 'true'")
    page.click(CALL)
    page.until("document.querySelector('.outcome progress')?.value === 2")
    assert page.text(".outcome .progress > .muted") == "2 of 2 \u00b7 number 2"
    page.until("[...document.querySelectorAll('.lines .warn')].some((it) => it.textContent.includes('counted 2'))")
    page.click(".detail .actions .plain", "Stop")
    page.until_text(".outcome h3", "Stopped")
    page.until(
        f"{ROWS}.some((it) => it.querySelector('b').textContent === 'tools/call' && it.textContent.includes('cancelled'))"
    )
    assert page.run("document.activeElement.textContent") != "Stop"


def test_a_tool_that_runs_as_a_task_is_followed_to_its_result(tried: Show) -> None:
    page = tried("#/tools/shop_yearly")
    enter(page, "2025")
    page.until_text(".task .state", "completed")
    assert "Report of 2025" in page.text(".task .result")
    page.run("location.hash = '#/tasks'")
    page.until_text("main .task h3", "shop_yearly")


# -- questions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_what_the_server_asks_is_a_form_that_the_keyboard_answers(tried: Show, revision: str) -> None:
    page = tried()
    speak(page, revision)
    page.run("location.hash = '#/tools/shop_send'")
    enter(page, "pen")
    page.until("document.querySelector('.question label')")
    assert page.run("document.activeElement.closest('.question') !== null") is True
    assert HOSTILE in page.text(".question .text")
    page.type("Rue 1")
    page.press("Tab")
    assert page.run("document.activeElement.value") == '"FR"'
    page.press("Tab")
    page.press("Enter")
    page.until("document.querySelector('.outcome .result')?.textContent.includes('pen to Rue 1, FR')")
    assert page.run("document.querySelector('#questions').hidden") is True

    page.run("location.hash = '#/tools/shop_erase'")
    enter(page, "notes.txt")
    page.click(".question .plain", "Decline")
    page.until_text(".outcome .failure h3", "DECLINED")
    speak(page, "")


def test_the_user_answers_for_the_model(tried: Show) -> None:
    page = tried("#/tools/shop_title")
    enter(page, "dogs")
    page.until("document.querySelector('.question textarea')")
    assert "A headline for dogs" in page.text(".question .messages")
    page.type("woof")
    page.click(".question .primary")
    page.until("document.querySelector('.outcome .result')?.textContent.includes('WOOF')")


# -- resources and prompts -----------------------------------------------------------------------------------------


def test_a_resource_is_read_and_read_again_when_it_has_changed(tried: Show) -> None:
    page = tried("#/resources")
    page.click(".list a", "All prices")
    page.click(CALL)
    assert json.loads(page.text(".contents pre"))["desk"] == 120.0
    page.click(".detail .actions .plain", "Subscribe")
    page.until(f"{ROWS}.filter((it) => it.textContent.includes('subscriptions/acknowledged')).length > 1")
    page.run("location.hash = '#/tools/shop_raise_price'")
    enter(page, "desk")
    message_of(page, "notifications/resources/updated")
    page.run("location.hash = '#/resources/' + encodeURIComponent('shop://prices')")
    page.until("document.querySelector('.contents pre')?.textContent.includes('240')")


def test_a_template_is_completed_by_the_server_and_filled_in(tried: Show) -> None:
    page = tried("#/resources")
    page.click(".list a", "shop/item")
    page.fill(".detail input", "p")
    page.until("document.querySelector('datalist option')?.value === 'pen'")
    page.type("en")
    page.press("Enter")
    page.until("document.querySelector('.contents')?.textContent.includes('pen: 1.5')")


def test_a_prompt_is_made_of_its_arguments(tried: Show) -> None:
    page = tried("#/prompts/shop_advertise")
    assert page.text(".detail h2") == "Advertise"
    enter(page, "pens")
    page.until("document.querySelector('.outcome .messages')?.textContent.includes('Write 50 words about pens.')")
    assert HOSTILE in page.text(".outcome .messages")


# -- beside --------------------------------------------------------------------------------------------------------


def test_messages_are_filtered_opened_and_left_by_the_keyboard(tried: Show) -> None:
    page = tried("#/tools/shop_look")
    enter(page, "pen")
    page.text(".outcome .result")
    page.run("document.querySelector('#wire-part input').focus()")
    page.type("=tools/call")
    page.until(f"{ROWS}.length === 1")
    page.press("Enter")
    page.press("Enter")
    page.until_text("#one h2", "tools/call")
    sent, came = (json.loads(page.run(f"document.querySelectorAll('#one pre')[{at}].textContent")) for at in (0, 1))
    assert sent["arguments"] == {"name": "pen"}
    assert came["structuredContent"] == {"name": "pen", "price": 1.5}
    page.press("Escape")
    assert page.run("document.getElementById('one').hidden") is True


def test_the_log_of_the_app_is_beside_without_its_secrets(tried: Show) -> None:
    page = tried("#/tools/shop_look")
    enter(page, "desk")
    line = "[...document.querySelectorAll('.lines .warn')].map((it) => it.textContent).find((it) => it.includes('looks at desk'))"
    page.until(line)
    assert "token=<redacted>" in page.run(line)


def test_saved_messages_are_a_recording(tried: Show, tmp_path: Path, inspected: Inspected) -> None:
    page = tried("#/tools/shop_look")
    enter(page, "pen")
    page.text(".outcome .result")
    page.run("URL.createObjectURL = (blob) => { window.saved = blob.text(); return 'data:,'; }")
    page.click("#wire-part button", "Save")
    recording = tmp_path / "session.jsonl"
    recording.write_text(page.run("window.saved"), "utf-8")
    shown = subprocess.run(
        [sys.executable, "-P", "-m", "discreet", "show", str(recording)],
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr
    assert "tools/call" in shown.stdout


def test_what_grows_is_bounded(tried: Show) -> None:
    page = tried("#/tools/shop_count")
    page.fill(".detail input", "1100")
    page.click(CALL)
    page.until("document.querySelector('.outcome .result')")
    page.until("document.querySelector('#wire-part .muted')?.textContent === '1000'")
    assert page.run("document.querySelectorAll('.lines li').length") == 1000
    assert page.run("document.querySelectorAll('.row').length") < 100
    page.click("#wire-part button", "Clear")
    page.until("document.querySelectorAll('.row').length === 0")


# -- changes -------------------------------------------------------------------------------------------------------


def test_a_changed_file_is_served_and_what_was_written_stays(tried: Show, inspected: Inspected) -> None:
    page = tried("#/tools/shop_look")
    page.fill(".detail input", "pen")
    before = inspected.file.read_text("utf-8")
    try:
        inspected.file.write_text(before.replace("Tell the price of", "Say what it costs:"), "utf-8")
        page.until("document.querySelector('.description')?.textContent.startsWith('Say what it costs:')")
        assert page.run("document.querySelector('.detail input').value") == "pen"
        assert page.run("document.activeElement.value") == "pen"
        page.press("Enter")
        assert json.loads(page.text(".outcome pre"))["name"] == "pen"
        inspected.file.write_text(f"{before}\nthis is (no Python", "utf-8")
        page.until(
            "[...document.querySelectorAll('.lines .error')].some((it) => it.textContent.includes('reload.failed'))"
        )
    finally:
        inspected.file.write_text(before, "utf-8")
        page.until("document.querySelector('.description')?.textContent.startsWith('Tell the price of')")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_server_that_has_died_is_started_again(tried: Show, inspected: Inspected) -> None:
    page = tried("#/tools/shop_look")
    os.kill(inspected.server(), signal.SIGKILL)
    page.until(
        "[...document.querySelectorAll('.lines li')].some((it) => it.textContent.startsWith('The server has ended:'))"
    )
    page.until("document.getElementById('status').textContent === 'Connected again.'")
    enter(page, "pen")
    page.text(".outcome .result")


def test_the_server_is_restarted_on_demand(tried: Show) -> None:
    page = tried("#/server")
    assert HOSTILE in page.text("main")
    begins = "[...document.querySelectorAll('.lines li')].filter((it) => it.textContent.includes('event=daemon.started')).length"
    page.until(f"{begins} > 0")
    page.run(f"window.begins = {begins}")
    page.click("main button", "Restart")
    page.until(f"{begins} > window.begins")
    page.until("document.getElementById('status').textContent === 'Connected again.'")


# -- for everybody -------------------------------------------------------------------------------------------------


def called(page: Page) -> None:
    enter(page, "sofa")
    page.text(".outcome .failure")
    page.run("document.querySelectorAll('.detail details').forEach((it) => { it.open = true; })")


def asked(page: Page) -> None:
    enter(page, "pen")
    page.text(".question label")


def previewed(page: Page) -> None:
    enter(page, "context")
    page.until("document.querySelector('.preview .messages li')")
    page.run("document.querySelectorAll('.detail details').forEach((it) => { it.open = true; })")


def opened(page: Page) -> None:
    page.click(".row")
    page.text("#one pre")


STATES = {
    "#/tools": lambda _: None,
    "#/tools/shop_look": called,
    "#/tools/shop_send": asked,
    "#/tools/shop_board": previewed,
    "#/messages": opened,
    "#/log": lambda _: None,
    "#/server": lambda _: None,
}


@pytest.mark.parametrize("where", STATES)
def test_axe_finds_nothing_everything_fits_and_touch_finds_what_it_needs(axe: str, tried: Show, where: str) -> None:
    page = tried()
    page.run(f"location.hash = {json.dumps(where)}")
    page.until(f"document.body.dataset.view === {json.dumps(where.split('/')[1])}")
    STATES[where](page)
    for size, dark in (("desktop", False), ("desktop", True), ("phone", False), ("phone", True)):
        resize(page, size, dark=dark)
        assert problems(page, axe) == [], (size, dark)
    for size in SIZES:
        resize(page, size)
        assert overflow(page) == 0, size
    assert small(page) == []
