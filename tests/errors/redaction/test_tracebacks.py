"""Exceptions are rendered with their causes and contexts, and without locals and secrets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.errors.redaction import scrub, scrub_exception


def raised(exc: BaseException) -> BaseException:
    local_of_the_frame = "a local that nobody may see"
    try:
        raise exc
    except type(exc) as caught:
        assert local_of_the_frame
        return caught


def test_a_traceback_names_files_lines_and_functions_without_directories() -> None:
    text = scrub_exception(raised(ValueError("no such thing")))
    lines = text.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith('  File "<path>/test_tracebacks.py", line ')
    assert lines[1].endswith(", in raised")
    assert lines[-1] == "ValueError: no such thing"


def test_neither_locals_nor_source_lines_are_shown() -> None:
    text = scrub_exception(raised(ValueError("x")))
    assert "local_of_the_frame" not in text and "nobody may see" not in text and "raise exc" not in text


def test_messages_and_notes_are_scrubbed() -> None:
    exc = ValueError("login with password=hunter2 at /home/alice/x.py")
    exc.add_note("token=abc123def")
    assert scrub_exception(exc) == "ValueError: login with password=<redacted> at <path>/x.py\ntoken=<redacted>"


def test_causes_and_contexts_come_first() -> None:
    first, second, third = KeyError("a"), ValueError("b"), OSError("c")
    second.__cause__ = first
    third.__context__ = second
    assert scrub_exception(third).splitlines() == [
        "KeyError: 'a'",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        "ValueError: b",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "OSError: c",
    ]


def test_a_suppressed_context_stays_out() -> None:
    exc = ValueError("b")
    exc.__context__ = KeyError("password=hunter2")
    exc.__suppress_context__ = True
    assert scrub_exception(exc) == "ValueError: b"


def test_members_of_a_group_are_shown_and_counted() -> None:
    group = ExceptionGroup("many", [ValueError("token=abc123"), ExceptionGroup("inner", [KeyError("k")])])
    text = scrub_exception(group)
    assert "ExceptionGroup: many (2 sub-exceptions)" in text
    assert "  | ValueError: token=<redacted>" in text
    assert "  |   | KeyError: 'k'" in text


@pytest.mark.parametrize("links", [1, 100])
def test_cycles_and_long_chains_end(links: int) -> None:
    first = last = ValueError("0")
    for number in range(links):
        newer = ValueError(str(number))
        newer.__context__, last = last, newer
    first.__context__ = last
    assert scrub_exception(last).count("ValueError") <= 17


def test_size_is_bounded_and_both_ends_are_kept() -> None:
    def deep(depth: int) -> None:
        if depth == 0:
            raise RuntimeError("the end " + "word " * 100_000)
        deep(depth - 1)

    with pytest.raises(RuntimeError) as info:
        deep(300)
    exc: BaseException = info.value
    for number in range(12):
        newer = ValueError(f"{number} " + "many words " * 500)
        newer.__context__, exc = exc, newer
    text = scrub_exception(exc)
    assert len(text) <= 16_384
    assert text.startswith("Traceback") and "<cut>" in text and "ValueError: 11" in text
    assert scrub(text) == text


def test_groups_within_groups_end() -> None:
    exc: Exception = ValueError("x")
    for _ in range(200):
        exc = ExceptionGroup("g", [exc] * 3)
    assert len(scrub_exception(exc)) <= 16_384


def test_exceptions_that_cannot_be_shown_are_shown_as_their_type() -> None:
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("never shown")

    text = scrub_exception(BrokenError())
    assert text.endswith("BrokenError: <unprintable>") and "never shown" not in text


def test_source_text_is_shown_on_demand_and_scrubbed() -> None:
    try:
        raise ValueError("no password=abcdefgh12345678")  # a line of this file
    except ValueError as exc:
        shown, plain = scrub_exception(exc, source=True), scrub_exception(exc)
    assert 'raise ValueError("no password=<redacted>' in shown
    assert "raise" not in plain


@pytest.mark.parametrize(("depth", "shown"), [(1, "  … 1 frame of discreet"), (3, "  … 3 frames of discreet")])
def test_frames_of_this_package_are_counted_where_the_program_s_follow(depth: int, shown: str) -> None:
    def handler() -> None:
        raise ValueError

    lines = scrub_exception(raised_through_the_package(handler, depth)).splitlines()
    assert shown in lines
    assert lines[-2].endswith("handler")


def test_frames_of_this_package_are_shown_where_it_raised() -> None:
    lines = scrub_exception(raised_through_the_package(int, 2)).splitlines()
    assert [line for line in lines if "inside.py" in line]


def raised_through_the_package(handler: Callable[[], object], depth: int) -> BaseException:
    """What comes of a handler that code of the package calls, `depth` frames deep. `int` raises nothing: then the code does."""
    source = "def call(depth):\n    if depth > 1:\n        call(depth - 1)\n    else:\n        handler() or int('x')\n"
    names: dict[str, Any] = {"handler": handler}
    exec(compile(source, str(Path(discreet.__file__).with_name("inside.py")), "exec"), names)
    try:
        names["call"](depth)
    except ValueError as exc:
        return exc
    raise AssertionError


class _Hinted:
    near = 1
    _near = 2


def test_an_attribute_that_nearly_is_there_is_named() -> None:
    with pytest.raises(AttributeError) as raised:
        _ = _Hinted().nearr  # type: ignore[attr-defined]
    assert scrub_exception(raised.value).endswith("has no attribute 'nearr'; nearest: near")
    with pytest.raises(AttributeError) as raised:
        _ = _Hinted().quite_different  # type: ignore[attr-defined]
    assert scrub_exception(raised.value).endswith("'quite_different'")
