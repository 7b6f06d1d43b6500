"""The page in a browser: a message is sent and its task followed to the end, tasks are listed, and the last requests."""

from __future__ import annotations

import pytest

from support.browser import Page

from .conftest import Show

TEXT, SEND = ".talk textarea", ".talk form > .actions .primary"


def send(page: Page, text: str) -> None:
    page.fill(TEXT, text)
    page.click(SEND)


def artifacts(page: Page) -> str:
    return page.text(".artifacts")


def test_the_card_is_shown_with_its_skills_and_an_example_is_taken_over(show: Show) -> None:
    page = show("#/agent")
    about = page.text("aside")
    for said in ("Paints. </script>", "Version1.2.3", "streaming", "JSONRPC 1.0", "art"):
        assert said in about
    assert page.text("#name").startswith("Painter </script>")
    assert page.run("[...document.querySelectorAll('.skills a')].map((it) => it.hash)") == ["#/operations/shop/find"]
    page.click(".example", "ask")
    assert page.run(f"document.activeElement === document.querySelector({TEXT!r})") is True
    assert page.run("document.activeElement.value") == "ask"


def test_a_task_is_shown_from_its_message_to_its_end(show: Show) -> None:
    page = show("#/agent")
    send(page, "Ada")
    page.until_text(".task .state", "completed")
    assert "Hello, Ada!" in artifacts(page)
    said = page.run("[...document.querySelectorAll('.messages li')].map((it) => it.textContent)")
    assert said[:2] == ["UserAda", "AgentReading it."]
    assert said[2].startswith("Agent</script>")
    page.until_text("#status", "Task completed")
    page.click("summary", "Events")
    assert page.text(".task details[open]").startswith("Events")
    assert page.run("document.querySelectorAll('.task .events li').length") >= 3
    page.click("summary", "Task as JSON")
    page.until("document.querySelector('.task pre')?.textContent.includes('TASK_STATE_COMPLETED')")


def test_a_task_is_shown_while_it_works_and_may_be_cancelled(show: Show) -> None:
    page = show("#/agent")
    send(page, "wait")
    page.until("document.querySelector('.artifacts')?.textContent === 'numbersone, two'")
    assert page.text(".task .state") == "working"
    page.click(".task-head button", "Cancel")
    page.until_text(".task .state", "canceled")
    assert page.run("document.querySelector('.task-head button').hidden") is True


def test_a_question_is_answered_in_the_same_task(show: Show) -> None:
    page = show("#/agent")
    send(page, "ask")
    page.until_text(".task .state", "input required")
    task = page.text(".task-head code")
    page.fill(".reply textarea", "Blue")
    page.click(".reply button")
    page.until_text(".task .state", "completed")
    assert artifacts(page) == "answerBlue it is."
    assert page.text(".task-head code") == task
    assert page.run("document.querySelector('.reply').hidden") is True


def test_a_message_may_continue_the_context(show: Show) -> None:
    page = show("#/agent")
    send(page, "Ada")
    page.until_text(".task .state", "completed")
    first = page.text(".task .facts").split(" ")[1]
    page.run("document.querySelector('.check input').click()")
    send(page, "Bob")
    page.until("document.querySelector('.artifacts')?.textContent.includes('Hello, Bob!')")
    assert page.text(".task .facts").split(" ")[1] == first


def test_a_failed_task_and_a_refused_message_are_told(show: Show) -> None:
    page = show("#/agent")
    send(page, "fail")
    page.until_text(".task .state", "failed")
    page.click("summary", "Add data")
    page.fill(".talk details textarea", "{nothing}")
    page.click(SEND)
    assert page.text(".talk .problem:not([hidden])").startswith("This is no JSON.")
    page.fill(".talk details textarea", "")
    page.fill(TEXT, "")
    page.click(SEND)
    page.until_text("#status", "Write something to send.")


def test_what_was_begun_goes_on_when_its_view_is_shown_again(show: Show) -> None:
    page = show("#/agent")
    send(page, "wait")
    page.until("document.querySelector('.artifacts')?.textContent === 'numbersone, two'")
    task = page.text(".task-head code")
    page.run(f"location.hash = '#/tasks/{task}'")
    page.until_text(".detail .task-head code", task)
    page.until_text(".detail .artifacts", "numbersone, two")
    page.click(".task-head button", "Cancel")
    page.until_text(".detail .state", "canceled")
    page.run("location.hash = '#/agent'")
    page.until_text(".task .state", "canceled")


def test_tasks_are_listed_by_state_and_page_and_shown_one_by_one(show: Show) -> None:
    page = show("#/agent")
    send(page, "wait")
    page.until("document.querySelector('.artifacts')?.textContent === 'numbersone, two'")
    working = page.text(".task-head code")
    page.run(
        """Promise.all(Array.from({ length: 30 }, (_, at) => fetch("./", { method: "POST",
        headers: { "Content-Type": "application/json", "A2A-Version": "1.0" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage",
            params: { message: { messageId: `m${at}`, role: "ROLE_USER", parts: [{ text: "Ada" }] } } }) })))"""
    )
    page.run("location.hash = '#/tasks'")
    page.until("document.querySelectorAll('.tasks li').length === 25")
    page.click(".pager a", "Older")
    page.until("/[?]page=/.test(location.hash) && document.querySelector('.pager')?.textContent.includes('Newest')")
    page.run("history.back()")
    page.until("document.querySelector('.pager')?.textContent === 'Older'")
    page.run(
        "{ const it = document.querySelector('.list select'); it.value = 'TASK_STATE_WORKING'; it.dispatchEvent(new Event('change')); }"
    )
    page.until("location.hash === '#/tasks?state=TASK_STATE_WORKING'")
    page.click(f".tasks a[href*='{working}']")
    assert page.run("[...document.querySelectorAll('.tasks li .state')].every((it) => it.textContent === 'working')")
    page.until_text(".detail .artifacts", "numbersone, two")
    assert page.run("location.hash") == f"#/tasks/{working}?state=TASK_STATE_WORKING"
    assert page.run("document.querySelector('.list select').value") == "TASK_STATE_WORKING"
    page.click(".task-head button", "Cancel")
    page.until_text(".detail .state", "canceled")
    page.until(f"!document.querySelector('.tasks a[href*=\"{working}\"]')")  # the list is live, too


def test_an_operator_sees_the_tasks_of_all_callers_by_pages_and_filters(show: Show) -> None:
    page = show("#/agent")
    page.run(
        """Promise.all(Array.from({ length: 120 }, (_, at) => fetch("./", { method: "POST",
        headers: { "Content-Type": "application/json", "A2A-Version": "1.0" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage",
            params: { message: { messageId: `all${at}`, role: "ROLE_USER", parts: [{ text: at ? "Ada" : "fail" }] } } }) })))"""
    )
    page.click("#views a", "All tasks")
    page.until("document.querySelectorAll('.tasks li').length === 50")
    assert "of anonymous" in page.text(".tasks li .row-text")
    page.click(".pager a", "Older")
    page.until("/[?]page=/.test(location.hash) && document.querySelector('.pager')?.textContent.includes('Newest')")
    page.click(".pager a", "Newest")
    page.until("document.querySelector('.pager')?.textContent === 'Older'")
    choose = "{{ const it = document.querySelector('.filters [aria-label={}]'); it.value = '{}'; it.dispatchEvent(new Event('change')); }}"
    page.run(choose.format("State", "failed"))
    page.until("location.hash === '#/all-tasks?state=failed'")
    page.until(
        "[...document.querySelectorAll('.tasks li .state')].map((it) => it.textContent).every((it) => it === 'failed') && document.querySelector('.tasks li')"
    )
    page.run(choose.format("Caller", "nobody"))
    page.until_text(".total", "No task here.")
    assert page.run("location.hash") == "#/all-tasks?state=failed&caller=nobody"


def test_an_operator_follows_a_task_cancels_it_and_tries_it_again_by_the_keyboard_alone(show: Show) -> None:
    page = show("#/agent", size="phone", dark=True)
    send(page, "wait")
    page.until("document.querySelector('.artifacts')?.textContent === 'numbersone, two'")
    task = page.text(".task-head code")
    page.run("location.hash = '#/all-tasks?state=working'")
    page.until(f"document.querySelector('.tasks a[href*=\"{task}\"]')")
    page.run(f"document.querySelector('.tasks a[href*=\"{task}\"]').focus()")
    page.press("Enter")
    page.until_text(".task-head code", task)
    page.until("document.querySelectorAll('.timeline li').length >= 4")
    assert f"task={task}" in page.text(".task")
    assert "numbers: one" in page.text(".timeline")
    page.until("document.activeElement.textContent === 'Task'")
    page.press("Tab")
    assert page.run("document.activeElement.textContent") == "Cancel"
    page.press("Enter")
    page.until_text(".detail .state", "canceled")
    page.until_text("#status", "Task canceled")
    page.until("document.activeElement.textContent === 'Task'")  # the button is gone
    page.press("Tab")
    assert page.run("document.activeElement.textContent") == "Try again"
    page.press("Enter")
    page.until(f"document.querySelector('.task-head code')?.textContent !== {task!r}")
    page.until_text(".detail .state", "working")
    page.until("document.querySelector('.back').textContent.endsWith('All tasks')")
    page.click(".task-head button", "Cancel")
    page.until_text(".detail .state", "canceled")


def test_a_task_of_all_that_is_not_there_is_told_so(show: Show) -> None:
    page = show("#/all-tasks/none")
    assert page.text(".detail .failure h3") == "TASK_NOT_FOUND"


def test_a_task_that_is_not_there_is_told_so(show: Show) -> None:
    page = show("#/tasks/none")
    assert page.text(".detail .failure h3") == "TASK_NOT_FOUND"
    page.until("document.getElementById('status').textContent.startsWith('TASK_NOT_FOUND.')")


def test_the_last_requests_are_told_with_outcome_and_time(show: Show) -> None:
    page = show("#/tasks/none")
    page.text(".detail .failure h3")
    page.run("location.hash = '#/requests'")
    rows = "[...document.querySelectorAll('.requests tbody tr')].map((it) => [...it.children].map((cell) => cell.textContent))"
    page.until(f"{rows}.some(([, method, outcome]) => method === 'GetTask' && outcome === 'TASK_NOT_FOUND')")
    assert all(each[3].endswith(("ms", "s")) for each in page.run(rows))
    assert " failed \u00b7 median " in page.text("main .facts")


@pytest.mark.parametrize("where", ["#/nothing", "#/agent/x", "#/__proto__", "#/requests/%"])
def test_an_address_that_names_no_view_is_told_so(show: Show, where: str) -> None:
    page = show(where)
    assert page.text("main h2") == "Not here"
    page.click("#views a", "Agent")
    page.until_text("main h2", "Send a message")
    assert page.run("document.activeElement.textContent") == "Send a message"


def test_of_a_task_that_has_ended_the_row_shows_the_request_and_its_events_are_asked_for(show: Show) -> None:
    page = show("#/agent")
    send(page, "somebody with a long name")
    page.until_text(".task .state", "completed")
    page = show("#/tasks")
    page.until_text(".tasks .row-text", "somebody with a long name")
    page.click(".tasks li a")
    page.until_text(".task .state", "completed")
    page.click("summary", "Events")
    page.until(
        "document.querySelector('.task details[open]').textContent.includes('any more')"
    )  # in memory none are kept


def test_while_the_agent_waits_for_an_answer_there_is_one_box(show: Show) -> None:
    page = show("#/agent")
    send(page, "ask")
    page.until_text(".task .state", "input required")
    shown = "[...document.querySelectorAll('textarea')].filter((each) => each.offsetParent).length"
    page.until(f"{shown} === 1")
    page.click(".talk button", "Send another message")
    page.until(f"{shown} > 1")
