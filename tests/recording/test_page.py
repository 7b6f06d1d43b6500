"""The page of a session: what is in it, that nothing of a recording can run in it, and that it is bounded."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from typing import Any, ClassVar

import pytest
from msgspec import Raw

from discreet.recording import page as rows
from discreet.recording.format import (
    ClosedEntry,
    EndEntry,
    Entry,
    MessageEntry,
    OmittedEntry,
    Sender,
    StartEntry,
    StderrEntry,
)
from discreet.recording.page import page

START = StartEntry(ms=0.0, version=1, framing="newline", command=("discreet", "serve"))
HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>\u2028\u2029\u202e\x7f&amp;'\""


def message(sender: Sender, ms: float, **members: object) -> MessageEntry:
    return MessageEntry(ms=ms, sender=sender, message=Raw(json.dumps({"jsonrpc": "2.0", **members}).encode()))


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text of scripts and styles."""

    RAW: ClassVar = ("script", "style")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("/", {}, ""))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in self.RAW:
            tag, attributes, text = self.found[-1]
            self.found[-1] = tag, attributes, text + data

    def named(self, name: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for tag, attributes, text in self.found if tag == name]


def written(entries: Iterable[Entry]) -> str:
    return "\n".join(page(entries, name="/home/ada/session.jsonl"))


def data(entries: Iterable[Entry]) -> dict[str, Any]:
    scripts = Elements(written(entries)).named("script")
    (text,) = [text for attributes, text in scripts if attributes.get("type") == "application/json"]
    found: dict[str, Any] = json.loads(text)
    return found


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_a_request_is_one_row_with_its_answer_and_its_events() -> None:
    found = data(
        [
            START,
            message("client", 1.0, id=1, method="a", params={"workDoneToken": "t"}),
            message("server", 2.0, method="$/progress", params={"token": "t", "value": 50}),
            message("client", 3.0, method="$/cancelRequest", params={"id": 1}),
            message("server", 4.0, id=1, error={"code": -32800, "message": "cancelled"}),
            message("server", 5.0, id=1, method="b"),
            message("client", 5.5, id=1, result=None),
            message("server", 6.0, method="note", params=[1]),
            message("client", 7.0, id=2, method="c"),
            StderrEntry(ms=8.0, text="a line"),
            OmittedEntry(ms=9.0, sender="client", reason="invalid-json", size=17),
            message("server", 9.5, id=99, result=5),
            MessageEntry(ms=9.6, sender="client", message=Raw(b"[1]")),
            ClosedEntry(ms=10.0, sender="client"),
            EndEntry(ms=11.0, status=-15),
        ]
    )
    shown = [row[:8] for row in found["rows"]]
    assert shown == [
        ["request", "client", 1.0, "a", "1", 4.0, "cancelled", "-32800 cancelled"],
        ["request", "server", 5.0, "b", "1", 5.5, "ok", ""],
        ["notification", "server", 6.0, "note", "", None, "", ""],
        ["request", "client", 7.0, "c", "2", None, "waiting", ""],
        ["stderr", "server", 8.0, "", "", None, "", "a line"],
        ["omitted", "client", 9.0, "", "", None, "", "17 bytes left out: invalid-json"],
        ["answer", "server", 9.5, "", "99", None, "ok", ""],
        ["other", "client", 9.6, "", "", None, "", ""],
        ["closed", "client", 10.0, "", "", None, "", "end of the stream"],
        ["end", "server", 11.0, "", "", None, "", "the server was ended by signal 15"],
    ]
    assert [event[:3] for event in found["rows"][0][10]] == [["progress", "server", 2.0], ["cancel", "client", 3.0]]
    facts = found["facts"]
    assert facts["name"] == "session.jsonl"  # whoever gets the page need not learn where it stood
    assert [facts[name] for name in ("messages", "further")] == [10, 0]


def test_every_element_that_runs_or_styles_is_allowed_by_its_hash_and_nothing_else_is() -> None:
    found = Elements(written([START]))
    (policy,) = [text["content"] for text, _ in found.named("meta") if text.get("http-equiv")]
    (style,) = found.named("style")
    (script,) = [text for attributes, text in found.named("script") if not attributes]
    rules = dict(rule.split(" ", 1) for rule in (policy or "").split("; "))
    assert rules == {
        "default-src": "'none'",
        "script-src": hash_of(script),
        "style-src": hash_of(style[1]),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    links = {value for _, attributes, _ in found.found for name, value in attributes.items() if name in ("src", "href")}
    assert links == {"data:,"}
    assert not [name for _, attributes, _ in found.found for name in attributes if name.startswith("on")]


def test_hostile_strings_anywhere_add_no_element_and_no_character_beyond_ascii() -> None:
    plain = Elements(written([START]))
    html = written(
        [
            StartEntry(ms=0.0, version=1, framing="newline", command=(HOSTILE,)),
            message("client", 1.0, id=HOSTILE, method=HOSTILE, params={HOSTILE: HOSTILE}),
            message("server", 2.0, id=HOSTILE, error={"code": 1, "message": HOSTILE}),
            message("server", 3.0, method=HOSTILE),
            StderrEntry(ms=4.0, text=HOSTILE),
            OmittedEntry(ms=5.0, sender="client", reason=HOSTILE, size=1),
            MessageEntry(ms=6.0, sender="client", message=Raw(json.dumps(HOSTILE, ensure_ascii=False).encode())),
        ]
    )
    assert html.isascii()
    found = Elements(html)
    assert [(tag, attributes) for tag, attributes, _ in found.found] == [
        (tag, attributes) for tag, attributes, _ in plain.found
    ]
    (text,) = [text for attributes, text in found.named("script") if attributes]
    assert "<" not in text
    row = json.loads(text)["rows"][0]
    assert row[3].startswith("</script><script>alert(1)")
    assert all(part.isprintable() for part in (row[3], row[4], row[7], row[8][0]))


def test_numbers_keep_their_digits() -> None:
    body = Raw(b'{"method":"m","params":[12345678901234567890123, 1e400, 0.10]}')
    (row,) = data([START, MessageEntry(ms=1.0, sender="client", message=body)])["rows"]
    assert row[8] == ["[12345678901234567890123, 1e400, 0.10]", 38, False]


def test_a_large_value_is_cut_and_its_size_stays() -> None:
    value = "\u20ac" * 100_000
    (row,) = data([START, message("client", 1.0, method="m", params=value)])["rows"]
    text, size, cut = row[8]
    assert (len(text) <= rows.VALUE_CHARACTERS, size, cut) == (True, 600_002, True)


def many(number: int) -> Iterator[Entry]:
    yield START
    for at in range(number):
        yield message("client", at, id=at, method=f"m{at % 3}", params="x" * 100)
        yield message("server", at + 0.5, id=at, result="y" * 100)


def test_rows_and_values_are_bounded_and_everything_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_ROWS", 100)
    monkeypatch.setattr(rows, "TOTAL_CHARACTERS", 3_000)
    monkeypatch.setattr(rows, "SHORT_CHARACTERS", 10)
    found = data(many(1_000))
    assert len(found["rows"]) == 100
    assert (found["facts"]["messages"], found["facts"]["further"]) == (2_000, 900)
    characters = sum(len(row[8][0]) + len(row[9][0]) for row in found["rows"])
    assert 3_000 <= characters <= 3_000 + 102 + 200 * 10


def test_the_events_of_one_request_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_EVENTS", 5)
    events = [message("server", 2.0, method="stream/event", params={"id": 1, "value": at}) for at in range(20)]
    (row,) = data([START, message("client", 1.0, id=1, method="watch"), *events])["rows"]
    assert ([event[4][0] for event in row[10]], row[11]) == (["0", "1", "2", "3", "4"], 15)


def test_the_script_says_nothing_that_ends_its_element() -> None:
    html = written([START])
    assert len(re.findall(r"</script", html)) == 2 and "<!--" not in html
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert forbidden not in html
