"""The page in a browser: its policy holds, and it copes with what another server, or none, answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from discreet.gateway.page.endpoint import document
from support.waits import DEADLINE_SECONDS

from .conftest import Show

BLOCKED = (
    "new Promise((done) => { addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective)); "
)
HOSTILE = {"text": "<img src=x onerror='document.hacked = 1'>", "style": "color:red", "onclick": "document.hacked = 1"}


def test_the_policy_lets_neither_markup_nor_scripts_nor_styles_nor_requests_in(show: Show) -> None:
    page = show()
    page.text(".list")
    page.events.clear()
    assert page.run("try { document.body.innerHTML = '<b>'; } catch (error) { error.name }") == "TypeError"
    assert page.run("try { document.body.setAttribute('onclick', 'a'); } catch (error) { error.name }") == "TypeError"
    assert page.run("fetch('http://127.0.0.1:9/').catch((error) => error.name)") == "TypeError"
    image = "const it = new Image(); it.src = 'http://127.0.0.1:9/'; document.body.append(it); })"
    assert page.run(BLOCKED + image) == "img-src"
    style = "const it = document.createElement('style'); it.textContent = 'p {}'; document.head.append(it); })"
    assert page.run(BLOCKED + style) in ("style-src-elem", "style-src")
    frame = "const it = document.createElement('iframe'); it.src = location.href; document.body.append(it); })"
    assert page.run(BLOCKED + frame) in ("frame-src", "child-src", "default-src")
    page.events.clear()  # which told of all these


def event(number: int | None, **item: object) -> str:
    return f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': item})}\n" + (
        f"id: {number}\n\n" if number else "\n"
    )


def task(state: str) -> dict[str, object]:
    return {"id": "t", "contextId": "c", "status": {"state": f"TASK_STATE_{state}"}}


def number(text: str) -> dict[str, object]:
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return {"taskId": "t", "contextId": "c", "artifact": artifact, "append": True}


class Stub(BaseHTTPRequestHandler):
    """Serves the page, a card, and what a test has for each method of A2A: a result, or events behind which it hangs up.

    The events may wait for one of threading."""

    protocol_version = "HTTP/1.1"
    answers: dict[str, list[Any]]
    asked: list[tuple[str, str | None]]
    card: dict[str, Any]

    def do_GET(self) -> None:
        if self.path == "/":
            page = document(has_operations=False)
            self._send(page.body, "text/html", ("Content-Security-Policy", page.policy))
        else:
            self._send(json.dumps(self.card).encode(), "application/json")

    def do_POST(self) -> None:
        method = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["method"]
        self.asked.append((method, self.headers["Last-Event-ID"]))
        answers = self.answers[method]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, dict):
            return self._send(json.dumps({"jsonrpc": "2.0", "id": 1, **answer}).encode(), "application/json")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for each in answer:
            if isinstance(each, threading.Event):
                each.wait(DEADLINE_SECONDS)
                continue
            self.wfile.write(b"%x\r\n%b\r\n" % (len(each), each.encode()))
            if not each:
                return  # the end in order
        self.close_connection = True

    def _send(self, body: bytes, media_type: str, *headers: tuple[str, str]) -> None:
        self.send_response(200)
        for name, value in (("Content-Type", media_type), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def stub(answers: dict[str, list[Any]], **card: object) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """Its address, and what it was asked: methods, and the last event that the page had."""
    described = {
        "name": "Stub",
        "version": "1",
        "defaultInputModes": ["text/plain"],
        "capabilities": {"streaming": True},
    }
    more = {"answers": answers, "asked": [], "card": {**described, **card}}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OneStub", (Stub,), more))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", more["asked"]  # type: ignore[misc]
    finally:
        server.shutdown()
        thread.join(DEADLINE_SECONDS)
        server.server_close()


def test_a_task_whose_stream_is_cut_goes_on_behind_the_last_event(show: Show) -> None:
    seen = threading.Event()
    first = [event(None, task=task("WORKING")), event(1, artifactUpdate=number("one")), seen]
    then = [
        event(2, artifactUpdate=number(", two")),
        event(3, statusUpdate={"status": {"state": "TASK_STATE_COMPLETED"}}),
        "",
    ]
    with stub({"SendStreamingMessage": [first], "SubscribeToTask": [then]}) as (url, asked):
        page = show("#/agent", at=url)
        page.fill(".talk textarea", "Go")
        page.click(".talk .primary")
        page.until_text(".artifacts", "one")
        seen.set()
        page.until_text(".task .state", "completed")
        assert page.text(".artifacts") == "one, two"
        assert asked == [("SendStreamingMessage", None), ("SubscribeToTask", "1")]


def test_where_events_are_lost_the_task_is_shown_as_it_is(show: Show) -> None:
    lost = {"error": {"code": -32603, "message": "Events were lost", "data": [{"reason": "EVENTS_LOST"}]}}
    seen = threading.Event()
    answers = {
        "SendStreamingMessage": [[event(None, task=task("WORKING")), event(1, artifactUpdate=number("one")), seen]],
        "SubscribeToTask": [lost],
        "GetTask": [{"result": {**task("COMPLETED"), "artifacts": [{"artifactId": "a", "parts": [{"text": "all"}]}]}}],
    }
    with stub(answers) as (url, asked):
        page = show("#/agent", at=url)
        page.fill(".talk textarea", "Go")
        page.click(".talk .primary")
        page.until_text(".artifacts", "one")
        seen.set()
        page.until_text(".task .state", "completed")
        assert page.text(".artifacts") == "all"
        assert [method for method, _ in asked] == ["SendStreamingMessage", "SubscribeToTask", "GetTask"]


def test_a_message_whose_connection_is_cut_at_once_is_not_sent_again(show: Show) -> None:
    with stub({"SendStreamingMessage": [[": nothing yet\n\n"]]}) as (url, asked):
        page = show("#/agent", at=url)
        page.fill(".talk textarea", "Go")
        page.click(".talk .primary")
        assert page.text(".failure h3") == "CUT_OFF"
        assert len(asked) == 1


def test_an_agent_that_does_not_stream_is_asked_for_its_task(show: Show) -> None:
    answers = {
        "SendMessage": [{"result": {"task": task("WORKING")}}],
        "GetTask": [{"result": task("WORKING")}, {"result": task("COMPLETED")}],
    }
    with stub(answers, capabilities={}) as (url, asked):
        page = show("#/agent", at=url)
        page.fill(".talk textarea", "Go")
        page.click(".talk .primary")
        page.until_text(".task .state", "completed")
        assert [method for method, _ in asked] == ["SendMessage", "GetTask", "GetTask"]


def test_values_of_any_type_are_shown_as_text(show: Show) -> None:
    parts = [
        HOSTILE,
        {"text": HOSTILE},
        {"data": HOSTILE},
        {"url": "javascript:document.hacked=1"},
        {"raw": "aGk=", "filename": HOSTILE["text"]},
    ]
    messages = [{"role": "ROLE_AGENT", "messageId": "1", "parts": parts}]
    with stub({"SendStreamingMessage": [{"result": {"task": {**task("COMPLETED"), "history": messages}}}]}) as (url, _):
        page = show("#/agent", at=url)
        page.fill(".talk textarea", "Go")
        page.click(".talk .primary")
        page.until_text(".task .state", "completed")
        assert "onerror" in page.text(".messages")
        assert page.run("document.querySelectorAll('.messages :is(a, img, [style], [onclick])').length") == 0


def test_a_daemon_that_is_gone_is_told_and_looked_for(show: Show) -> None:
    with stub({"ListTasks": [{"result": {"tasks": [], "totalSize": 0, "nextPageToken": ""}}]}) as (url, _):
        page = show("#/tasks", at=url)
        page.until("document.querySelector('.list-head')?.textContent.includes('0 tasks')")
        page.send(
            "Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1
        )
        page.until_text("#notice", "The daemon can't be reached.")
        page.send(
            "Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1
        )
        page.until_text("#notice", "")
        page.run("history.replaceState(null, '', '#/agent')")
