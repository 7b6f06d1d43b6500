"""The page in a browser: operations are listed, called, and told with what they answer; streams are live."""

from __future__ import annotations

import json

from support.page_app import HOSTILE

from .conftest import Show, order_four

CALL = ".detail .primary"
WHOLE = ".detail textarea[rows='8']"


def test_the_list_is_filtered_and_opened_by_the_keyboard_and_the_way_back_leads_to_the_same_item(show: Show) -> None:
    page = show()
    page.until("document.querySelectorAll('.list li').length === 6")
    assert page.run("location.hash") == "#/operations"
    assert [page.run(f"document.querySelectorAll('.list h2')[{at}].textContent") for at in (0, 1)] == ["shop", "stock"]
    page.press("/")
    assert page.run("document.activeElement.id") == "filter"
    page.type("BUY mut")
    page.until("document.querySelectorAll('.list li:not([hidden])').length === 1")
    page.until_text("#status", "1 operation")
    page.press("Enter")
    page.until_text(".detail h2", "shop/buy")
    assert page.run("document.activeElement.tagName") == "H2"
    assert page.run("document.querySelector('.list a[aria-current=page]').textContent") == "shop/buymutation"
    assert page.run("document.title").startswith("shop/buy \u2013 operations \u2013 Painter")
    page.run("history.back()")
    page.until("document.activeElement.getAttribute('href') === '#/operations/shop/buy'")
    page.run("history.forward()")
    page.until_text(".detail h2", "shop/buy")


def test_a_form_calls_and_its_result_is_shown_with_the_time_that_it_took(show: Show) -> None:
    page = show("#/operations/shop/find")
    assert page.text(".detail label.name") == "name"
    assert page.run("document.querySelector('.detail input').placeholder") == "screw"
    assert "\u2265 1 \u00b7 \u2264 100 \u00b7 default 10" in page.text(".detail .field:nth-child(2)")
    page.fill(".detail input", "nail")
    page.press("Tab")
    page.type("7")
    page.press("Tab")
    page.press("c")
    assert page.run("document.activeElement.value") == '"count"'
    page.press("Tab")
    page.press("Enter")
    result = page.text(".outcome pre")
    assert '"name": "nail by count"' in result
    assert '"count": 7' in result
    assert "onerror" in result
    assert page.text(".outcome-head .muted").startswith("200 \u00b7 ")
    assert " ms \u00b7 " in page.text(".outcome-head .muted")
    page.until("document.getElementById('status').textContent.startsWith('Done, after')")


def test_what_is_wrong_in_a_form_is_told_at_its_control_before_anything_is_sent(show: Show) -> None:
    page = show("#/operations/stock/echo")
    page.click(CALL)
    item = "document.querySelector('.detail textarea')"
    assert page.run(f"document.activeElement === {item}") is True
    assert page.run(f"{item}.getAttribute('aria-invalid')") == "true"
    assert page.text(".detail .problem:not([hidden])") == "This is required."
    page.type('{"name": "screw", }')
    assert page.run("document.querySelector('.detail .problem:not([hidden])')") is None
    page.click(CALL)
    assert page.text(".detail .problem:not([hidden])").startswith("This is no JSON. ")
    described = page.run(f"{item}.getAttribute('aria-describedby')").split(" ")
    assert page.run("document.querySelector('.detail .problem:not([hidden])').id") in described
    assert page.run("document.querySelector('.outcome').hidden") is True


def test_a_declared_error_is_told_with_code_details_and_what_may_be_done(show: Show) -> None:
    page = show("#/operations/shop/buy")
    assert page.text(".detail section .errors tbody tr") == "409OUT_OF_STOCKThere is not enough of it.yes"
    order_four(page)
    page.click(CALL)
    assert page.text(".failure h3") == "OUT_OF_STOCK"
    assert page.text(".failure .muted").startswith("HTTP 409 \u00b7 may be tried again \u00b7 ")
    assert json.loads(page.text(".failure pre")) == {"left": 3, "note": HOSTILE}
    page.until_text("#status", "OUT_OF_STOCK. There is not enough of it")


def test_what_the_daemon_says_of_a_param_is_told_at_its_control(show: Show) -> None:
    page = show("#/operations/shop/find")
    page.fill(".detail input", "a")
    page.fill(".detail [inputmode=decimal]", "101")
    page.click(CALL)
    assert page.text(".failure h3") == "INVALID_INPUT"
    assert page.run("document.activeElement.inputMode") == "decimal"
    assert page.text(".detail .problem:not([hidden])") == "Expected integer >= 1 and <= 100."


def test_params_may_be_written_as_json_and_numbers_keep_their_digits(show: Show) -> None:
    page = show("#/operations/stock/echo")
    page.click(".mode", "JSON")
    page.fill(WHOLE, '{"value": 12345678901234567890}')
    page.click(CALL)
    assert page.text(".outcome pre") == "12345678901234567890"
    page.click(".mode", "Form")
    assert page.run("document.querySelector('.detail textarea').value") == "12345678901234567890"
    page.fill(".detail textarea", "[0.10, 1e3]")
    page.click(CALL)
    page.until("document.querySelector('.outcome pre').textContent.includes('[')")
    page.click(".mode", "JSON")
    page.fill(WHOLE, "[]")
    page.click(".mode", "Form")
    assert page.text(".detail .problem:not([hidden])") == "Params have names: write a JSON object."


def test_objects_and_arrays_have_fields_of_their_own_and_faults_are_told_there(show: Show) -> None:
    page = show("#/operations/shop/buy")
    page.click(CALL)
    assert page.text(".detail .problem:not([hidden])") == "This is required."
    page.fill(".detail .parts input", "nail")
    for tag in ("long", "thin"):
        page.click(".detail .parts .parts > button")
        page.type(tag)
    page.fill(".detail .parts [inputmode=decimal]", "two")
    page.click(CALL)
    assert page.run("document.activeElement.value") == "two"
    assert page.text(".detail .parts .problem:not([hidden])") == "Write an integer, such as 10."
    page.fill(".detail .parts [inputmode=decimal]", "2")
    page.click(".item button", "Remove")
    page.click(CALL)
    assert json.loads(page.text(".outcome pre")) == {"name": "nail", "count": 2, "tags": ["thin"]}
    page.click(".modes button", "JSON")
    page.fill(WHOLE, '{"item": {"name": "a", "tags": ["b", "c"], "other": 1}}')
    page.click(".modes button", "Form")
    values = "[...document.querySelectorAll('.detail .parts input')].map((each) => each.value)"
    assert page.run(values) == ["a", "", "b", "c"]
    page.click("summary", "curl")
    assert '"other":1' in page.text(".detail details[open] pre")  # what no field stands for is sent, too


def test_an_operation_without_result_says_that_it_is_done(show: Show) -> None:
    page = show("#/operations/shop/clear")
    assert page.text("form .muted") == "It takes no params."
    page.click(CALL)
    assert page.text(".outcome p") == "Done. There is no result."


def test_a_stream_is_live_until_it_is_stopped(show: Show) -> None:
    page = show("#/operations/shop/watch")
    page.click(CALL, "Start")
    page.until("document.querySelectorAll('.events li').length === 2")
    assert page.text(".outcome .state") == "live"
    assert "document.hacked = 1" in page.text(".events code")
    page.run("document.querySelector('.actions .plain').focus()")
    page.press("Enter")
    page.until_text(".outcome .state", "stopped")
    page.until_text("#status", "Stopped")
    assert page.run("document.activeElement.textContent") == "Start"


def test_a_stream_that_ends_says_how(show: Show) -> None:
    page = show("#/operations/shop/watch")
    page.fill(".detail input", "3")
    page.press("Enter")
    page.until_text(".outcome .state", "completed")
    assert page.run("document.querySelectorAll('.events li').length") == 3
    page.fill(".detail input", "300")
    page.click(CALL)
    page.until_text(".outcome .state", "failed")
    assert page.run("document.querySelectorAll('.events li').length") == 200
    assert page.text(".outcome-head .muted") == "300 events, the last 200 are shown"
    assert page.text(".outcome .failure h3") == "INTERNAL"  # it is not declared


def test_leaving_a_view_ends_its_stream_and_keeps_what_was_written(show: Show) -> None:
    page = show("#/operations/shop/watch")
    page.click(CALL)
    page.until("document.querySelectorAll('.events li').length === 2")
    page.run("location.hash = '#/requests'")
    page.until(
        "[...document.querySelectorAll('.requests tr')].some((it) => /shop.watch.*CANCELLED/.test(it.textContent))"
    )
    page.run("location.hash = '#/operations/shop/watch'")
    page.until_text(".outcome .state", "stopped")


def test_schemas_are_shown_with_the_types_that_they_refer_to(show: Show) -> None:
    page = show("#/operations/shop/buy")
    page.click("summary", "Schemas")
    page.until("document.querySelectorAll('details[open] pre').length === 3")
    text = page.text("details[open]")
    assert "InputOutput" not in text
    assert '"$types": {\n\t\t"Item": {' in page.text("details[open] pre")
    page.click("summary", "Errors of every operation")
    assert "OVERLOADED" in page.text("details[open] .errors")


def test_an_operation_that_is_not_there_is_told_so(show: Show) -> None:
    page = show("#/operations/no/such")
    assert page.text("main h2") == "Not here"
    page.click("main a", "Back")
    page.until("document.querySelector('.list li')")


def test_markup_in_results_errors_names_and_descriptions_stays_text(show: Show) -> None:
    added = (
        "document.querySelectorAll('img, iframe, object, script:not(:first-of-type), main :is(script, style)').length"
    )
    page = show("#/operations/shop/find")
    page.fill(".detail input", HOSTILE)
    page.click(CALL)
    assert page.text(".outcome pre").count("<img") == 2  # of the caller and of the handler
    assert "<img" in page.text(".detail .field .muted:not([id$=hint])")
    assert page.run(added) == 0
    page.run("location.hash = '#/operations/shop/buy'")
    page.until_text(".detail h2", "shop/buy")
    assert page.text(".detail .field .muted") == "Item \u00b7 required"
    order_four(page)
    page.click(CALL)
    assert "<img" in page.text(".failure pre")
    assert page.run(added) == 0
    for where in ("#/agent", "#/tasks", "#/requests"):
        page.run(f"location.hash = '{where}'")
        page.until(f"document.querySelector('#views [aria-current=page]').getAttribute('href') === '{where}'")
        assert page.run(added) == 0
    assert "<img" in page.run("document.getElementById('name').textContent")


def test_points_in_time_have_fields_of_their_own(show: Show) -> None:
    page = show("#/operations/stock/plan")
    page.until_text(".detail h2", "stock/plan")
    types = "[...document.querySelectorAll('.detail .field input')].map((each) => each.type).join(' ')"
    assert page.run(types) == "datetime-local date time text"
    for at, value in enumerate(("2026-11-23T08:30", "2026-11-24", "08:30:01")):
        page.run(f"document.querySelectorAll('.detail .field input')[{at}].value = '{value}'")
    page.click(CALL)
    told = json.loads(page.text(".outcome pre"))
    assert (told[0][:19], told[1]) == ("2026-11-23T08:30:00", "2026-11-24")
    assert told[2].startswith("08:30:01")
    page.click(".modes button", "JSON")
    assert json.loads(page.run(f"document.querySelector({json.dumps(WHOLE)}).value"))["day"] == "2026-11-24"
    page.click(".modes button", "Form")
    values = "[...document.querySelectorAll('.detail .field input')].map((each) => each.value).join(' ')"
    assert page.run(values).startswith("2026-11-23T08:30")


def test_a_fault_in_a_field_comes_along_to_the_json(show: Show) -> None:
    page = show("#/operations/shop/find")
    page.fill(".detail .field:nth-child(2) input", "ten")
    page.click(".modes button", "JSON")
    assert json.loads(page.run(f"document.querySelector({json.dumps(WHOLE)}).value")) == {"name": "", "limit": "ten"}


def test_an_example_fills_the_form_and_a_shell_and_the_headers_are_told(show: Show) -> None:
    page = show("#/operations/shop/find")
    page.click(".modes button", "Example")
    assert page.run("document.querySelector('.detail input').value") == "screw"
    page.fill(".detail input", "it's")
    page.click("summary", "curl")
    told = page.text(".detail details[open] pre")
    assert "/operations/shop/find'" in told
    assert r"""'{"name":"it'\''s"}'""" in told
    page.click(CALL)
    page.text(".outcome pre")
    page.click(".outcome summary", "Headers")
    assert "content-type: application/json" in page.text(".outcome details[open] pre")
