"""Nothing but frames on stdout, nothing but the daemon on stdin, and nothing said beside them is lost."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.framing.stdio_guard import hint_for_tty
from discreet.framing.stray_output import (
    AGE_SECONDS,
    CUT_NOTE,
    KEPT_TEXTS,
    REST_SECONDS,
    TEXT_BYTES,
    Gatherer,
    Inbox,
    StrayReader,
    Stream,
    Voice,
)
from discreet.framing.transports.polled import PolledInbox
from discreet.framing.transports.threaded import PumpedInbox
from support.waits import DEADLINE_SECONDS

BUFFERED = {"PYTHONUNBUFFERED": ""}
"""Python as users start it, whatever the test run's own environment says."""

BEGIN = """
import json, os, subprocess, sys
from discreet.framing.stdio_guard import flush_text_streams, release, seize
from discreet.framing.stray_output import StrayReader

streams = seize()
reader = StrayReader(streams.stray_out, streams.stray_err)
reader.start()
texts = []

def listen():
    reader.deliver_to(lambda stream, text: texts.append([stream, text]))

def report(*facts):
    flush_text_streams()
    assert reader.drain(60)
    os.write(streams.stdout, json.dumps([texts, *facts]).encode())
"""


def run(body: str, *, before: str = "", redirection: str = "", stdin: bytes = b"", **environment: str) -> list[Any]:
    """Run a guarded program; returns what it reported: the stray texts, then its own facts.

    Its stdout holds the report alone, or this fails.
    """
    child = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-P", "-c", before + BEGIN + body],
        input=stdin,
        capture_output=True,
        timeout=DEADLINE_SECONDS,
        env={**os.environ, **BUFFERED, **environment},
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert child.stderr == b""
    report: list[Any] = json.loads(child.stdout)  # each test knows the shape that its program reported
    return report


# -- who writes beside the protocol -----------------------------------------------------------------------------------


def test_prints_become_texts_and_never_reach_the_stream() -> None:
    (texts,) = run("""
listen()
print("to stdout")
print("to stderr", file=sys.stderr)
print("no line end", end="", file=sys.__stdout__)
report()
""")
    assert sorted(texts) == [["stderr", "to stderr"], ["stdout", "to stdout\nno line end"]]


def test_a_native_library_is_caught_too() -> None:
    (texts,) = run("""
import ctypes
listen()
os.write(1, b"by number\\n")
libc = ctypes.CDLL(None)
libc.printf(b"by stdio\\n")
libc.fflush(None)
report()
""")
    assert texts == [["stdout", "by number\nby stdio"]]


def test_a_child_process_neither_writes_into_the_stream_nor_eats_from_it() -> None:
    texts, eaten, left = run(
        """
listen()
child = "import sys; print(len(sys.stdin.read())); print('oops', file=sys.stderr)"
subprocess.run([sys.executable, "-c", child], check=True)
report(len(sys.stdin.read()), os.read(streams.stdin, 100).decode())
""",
        stdin=b"a request",
    )
    assert sorted(texts) == [["stderr", "oops"], ["stdout", "0"]]
    assert (eaten, left) == (0, "a request")


def test_a_banner_at_import_time_is_kept_until_somebody_listens(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text("print('Welcome to noisy 1.0')\n")
    (texts,) = run(f"sys.path.insert(0, {str(tmp_path)!r})\nimport noisy\nflush_text_streams()\nlisten()\nreport()\n")
    assert texts == [["stdout", "Welcome to noisy 1.0"]]


@pytest.mark.parametrize("redirection", ["", "2>/dev/null"])
def test_what_python_held_back_before_the_start_does_not_reach_the_stream(redirection: str) -> None:
    (texts,) = run("listen()\nreport()\n", before="print('early', end='')\n", redirection=redirection)
    assert texts == [["stdout", "early"]]


def test_a_stdout_that_was_a_file_is_guarded_like_any_other(tmp_path: Path) -> None:
    target = tmp_path / "out"
    body = "listen()\nold.write('through the old object')\nold.flush()\nprint('through the new one')\nreport()\n"
    with target.open("wb") as stdout:
        subprocess.run(
            [sys.executable, "-P", "-c", "import sys\nold = sys.stdout\nprint('early')\n" + BEGIN + body],
            stdout=stdout,
            env={**os.environ, **BUFFERED},
            timeout=DEADLINE_SECONDS,
            check=True,
        )
    (texts,) = json.loads(target.read_bytes())
    assert texts == [["stdout", "early\nthrough the old objectthrough the new one"]]


def test_no_text_makes_print_fail_whatever_the_locale() -> None:
    (texts,) = run(
        "listen()\nprint('caf\\u00e9 \\udcff \\U0001f600')\nos.write(1, b'\\xff\\xfe\\n')\nreport()\n",
        PYTHONIOENCODING="ascii:strict",
        LC_ALL="C",
    )
    assert texts == [["stdout", "café \\udcff 😀\n\\xff\\xfe"]]


def test_floods_never_block_the_writer() -> None:
    texts, written = run("""
listen()
line = "x" * 99 + "\\n"
for _ in range(20_000):
    sys.stdout.write(line)
subprocess.run([sys.executable, "-c", "for _ in range(20_000): print('y' * 99)"], check=True)
report(20_000)
""")
    lines = [line for _, text in texts for line in text.splitlines()]
    assert lines == ["x" * 99] * written + ["y" * 99] * written


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a pipe can't be enlarged")
def test_a_native_library_may_write_much_while_it_keeps_every_thread_from_running() -> None:
    (texts,) = run("""
import ctypes
listen()
line = b"z" * 99 + b"\\n"
ctypes.PyDLL(None).write(1, line * 2_000, 200_000)
report()
""")
    assert sum(text.count("z") for _, text in texts) == 99 * 2_000


def test_a_flood_that_nobody_listens_to_blocks_nobody_and_is_bounded() -> None:
    (texts,) = run("""
for _ in range(20_000):
    print("x" * 99)
flush_text_streams()
assert reader.drain(60)
listen()
report()
""")
    assert len(texts) == KEPT_TEXTS + 1


# -- the descriptors ------------------------------------------------------------------------------------------------

MISSING = ["<&-", "2>&-", "<&- 2>&-", "<&- 2>/dev/null"]


@pytest.mark.parametrize("redirection", MISSING)
def test_closed_descriptors_are_filled_and_nothing_private_lands_on_them(redirection: str) -> None:
    texts, numbers, read = run(
        """
listen()
print("out")
print("err", file=sys.stderr)
report([streams.stdin, streams.stdout, streams.stderr, streams.stray_out, streams.stray_err],
       [sys.stdin.read(), os.read(0, 10).decode(), os.read(streams.stdin, 10).decode()])
""",
        redirection=redirection,
    )
    assert sorted(texts) == [["stderr", "err"], ["stdout", "out"]]
    assert min(numbers) > 2
    assert len(set(numbers)) == 5
    assert read == ["", "", ""]


def test_children_inherit_nothing_private() -> None:
    _, inherited = run("""
from discreet.framing.transports.stdio import StdioTransport
transport = StdioTransport(streams.stdin, streams.stdout, closefd=False)
child = '''
import os
for fd in range(3, 100):
    try:
        os.fstat(fd)
    except OSError:
        continue
    print(fd)
'''
done = subprocess.run([sys.executable, "-c", child], close_fds=False, stdout=subprocess.PIPE, check=True)
report(done.stdout.decode())
""")
    assert inherited == ""


def test_the_descriptors_have_one_owner() -> None:
    _, refused = run("""
try:
    seize()
except RuntimeError:
    report("refused")
""")
    assert refused == "refused"


def test_release_puts_everything_back_and_seize_may_follow() -> None:
    before = """
import os, sys
def standing():
    numbers = [(found.st_dev, found.st_ino) for found in map(os.fstat, (0, 1, 2))]
    return numbers, [sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__]
def count():
    return len(os.listdir("/dev/fd"))
first, opened = standing(), count()
"""
    _, facts = run(
        """
changed = standing()[0] != first[0]
print("held back", end="")
assert reader.stop(60)
release()
release()
facts = [standing() == first, changed, count() == opened]
streams = seize()
reader = StrayReader(streams.stray_out, streams.stray_err)
reader.start()
report(facts)
""",
        before=before,
    )
    assert facts == [True, True, True]


def test_a_terminal_gets_a_hint_of_one_line_and_nothing_else_does() -> None:
    controlling, controlled = pty.openpty()
    reading, writing = os.pipe()
    hint = hint_for_tty(controlled)
    assert hint is not None
    assert hint.splitlines() == [hint]
    assert hint_for_tty(reading) is None
    for fd in (controlling, controlled, reading, writing):
        os.close(fd)


def test_the_modules_of_the_first_reply_load_nothing_heavy() -> None:
    script = """
import sys
import msgspec
before = set(sys.modules)
import discreet.framing.stdio_guard, discreet.framing.transports.stdio, discreet.framing.transports.polled, discreet.framing.stray_output
print(*sorted(set(sys.modules) - before))
"""
    child = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, timeout=DEADLINE_SECONDS, check=True
    )
    loaded = {name.partition(".")[0] for name in child.stdout.decode().split()}
    heavy = {"anyio", "asyncio", "json", "logging", "pathlib", "socket", "structlog", "subprocess", "threading"}
    assert "discreet" in loaded
    assert not loaded & heavy


# -- the reader of what is stray ----------------------------------------------------------------------------------------


class Stray:
    """A reader over two pipes, and the texts that it handed over."""

    def __init__(self, inbox: Callable[[int, int], Inbox]) -> None:
        self.stray_out, self.out = os.pipe()
        self.stray_err, self.err = os.pipe()
        self.texts: list[tuple[Stream, str]] = []
        self._heard = threading.Condition()
        self.reader = StrayReader(self.stray_out, self.stray_err, inbox=inbox)
        self.reader.start()

    def listen(self) -> None:
        self.reader.deliver_to(self._hear)

    def _hear(self, stream: Stream, text: str) -> None:
        with self._heard:
            self.texts.append((stream, text))
            self._heard.notify_all()

    def wait_for(self, count: int) -> list[tuple[Stream, str]]:
        with self._heard:
            assert self._heard.wait_for(lambda: len(self.texts) >= count, DEADLINE_SECONDS)
            return self.texts

    def end(self) -> None:
        os.close(self.out)
        os.close(self.err)
        assert self.reader.stop(DEADLINE_SECONDS)
        os.close(self.stray_out)
        os.close(self.stray_err)


@pytest.fixture(params=[PolledInbox, PumpedInbox])
def stray(request: pytest.FixtureRequest) -> Iterator[Stray]:
    made = Stray(request.param)
    yield made
    made.end()


@pytest.fixture
def polled_stray() -> Iterator[Stray]:
    """Where there is polling, `drain` is exact; by threads it is a matter of time."""
    made = Stray(PolledInbox)
    yield made
    made.end()


def test_a_rest_ends_a_text_with_and_without_a_line_end(stray: Stray) -> None:
    stray.listen()
    os.write(stray.out, b"one\ntwo\n")
    assert stray.wait_for(1) == [("stdout", "one\ntwo")]
    os.write(stray.err, b"three")
    assert stray.wait_for(2)[1:] == [("stderr", "three")]


def test_one_closed_pipe_does_not_end_the_other(stray: Stray) -> None:
    stray.listen()
    os.write(stray.out, b"last words")
    os.close(stray.out)
    stray.out = os.dup(stray.err)  # for `end`
    assert stray.wait_for(1) == [("stdout", "last words")]
    os.write(stray.err, b"still here")
    assert stray.wait_for(2)[1:] == [("stderr", "still here")]


def test_drain_hands_over_what_is_there_and_waits_for_nobody(polled_stray: Stray) -> None:
    polled_stray.listen()
    os.write(polled_stray.out, b"a\n")
    os.write(polled_stray.err, b"b")
    assert polled_stray.reader.drain(DEADLINE_SECONDS)  # the writing ends are still open
    assert sorted(polled_stray.texts) == [("stderr", "b"), ("stdout", "a")]
    os.write(polled_stray.out, b"later")
    assert polled_stray.reader.drain(DEADLINE_SECONDS)
    assert polled_stray.texts[2:] == [("stdout", "later")]


def test_texts_before_the_listener_are_kept_up_to_a_bound_and_the_rest_counted(polled_stray: Stray) -> None:
    for number in range(KEPT_TEXTS + 3):
        os.write(polled_stray.err, b"%d\n" % number)
        assert polled_stray.reader.drain(DEADLINE_SECONDS)
    polled_stray.listen()
    assert polled_stray.texts[:KEPT_TEXTS] == [("stderr", str(number)) for number in range(KEPT_TEXTS)]
    (stream, note), *more = polled_stray.texts[KEPT_TEXTS:]
    assert (stream, more) == ("stderr", [])
    assert note.startswith("[3 ")


# -- texts ----------------------------------------------------------------------------------------------------------


def test_a_stream_is_heard_when_it_rests_and_at_least_once_in_a_while() -> None:
    voice = Voice("stdout")
    assert voice.due is None
    now = 100.0
    while now < 100 + AGE_SECONDS:  # it never rests
        assert voice.feed(b"tick\n...", now) == []
        assert voice.due_texts(now) == []
        assert voice.due is not None
        assert now < voice.due <= 100 + AGE_SECONDS
        now += REST_SECONDS / 2
    (aged,) = voice.due_texts(100 + AGE_SECONDS)
    assert aged.endswith("...tick")
    assert voice.due == now - REST_SECONDS / 2 + REST_SECONDS
    assert voice.due_texts(voice.due) == ["..."]
    assert voice.due is None


def gather(*chunks: bytes) -> list[str]:
    gatherer = Gatherer()
    texts = [text for chunk in chunks for text in gatherer.feed(chunk)]
    return texts + gatherer.give_all()


@pytest.mark.parametrize(
    ("written", "texts"),
    [
        (b"", []),
        (b"\n\r\n\n", []),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"one\r\ntwo\rthree\n", ["one\ntwo\nthree"]),
        (b"  indented\n\n  apart\n", ["  indented\n\n  apart"]),
        (b"\xff\xc3\xa9", ["\\xffé"]),
        (b"x" * TEXT_BYTES, ["x" * TEXT_BYTES]),
        (b"x" * (TEXT_BYTES + 1), ["x" * TEXT_BYTES + CUT_NOTE]),
        (b"x" * (TEXT_BYTES * 5) + b"\nnext", ["x" * TEXT_BYTES + CUT_NOTE, "next"]),
        (b"short\n" + b"x" * TEXT_BYTES, ["short", "x" * TEXT_BYTES]),
        (b"\n" * TEXT_BYTES + b"late", ["late"]),
    ],
)
def test_texts_of_bytes(written: bytes, texts: list[str]) -> None:
    assert gather(written) == texts
    assert gather(*(written[at : at + 1000] for at in range(0, len(written), 1000))) == texts


def test_lines_that_come_one_by_one_stay_together() -> None:
    assert gather(b"Traceback:\n", b"  line 1\n", b"Error\n") == ["Traceback:\n  line 1\nError"]


def test_whole_lines_can_be_given_without_the_one_that_is_being_written() -> None:
    gatherer = Gatherer()
    gatherer.feed(b"50%\r75%\r100")
    assert gatherer.give_lines() == ["50%\n75%"]
    assert gatherer.give_lines() == []
    gatherer.feed(b"%\n")
    assert gatherer.give_all() == ["100%"]
    assert not gatherer.holds


lines = st.lists(st.text("ab é", max_size=40).map(str.encode) | st.just(b"z" * (TEXT_BYTES - 1)), max_size=30)


@given(lines, st.sampled_from([b"\n", b"\r", b"\r\n"]), st.lists(st.integers(1, 20_000)))
def test_no_split_of_the_bytes_loses_a_line_or_grows_a_text(written: list[bytes], end: bytes, sizes: list[int]) -> None:
    data = b"".join(line + end for line in written)
    chunks: list[bytes] = []
    for size in sizes:
        chunks.append(data[:size])
        data = data[size:]
    texts = gather(*chunks, data)
    assert [line for text in texts for line in text.split("\n") if line] == [line.decode() for line in written if line]
    assert all(len(text.encode()) <= TEXT_BYTES for text in texts)


@given(st.lists(st.binary(max_size=3) | st.just(b"q" * 5000)))
def test_no_bytes_at_all_upset_the_gathering(chunks: list[bytes]) -> None:
    gatherer = Gatherer()
    for chunk in chunks:
        for text in gatherer.feed(chunk):
            assert text.strip("\n") == text != ""
    assert len(gatherer.give_all()) <= 1
    assert not gatherer.holds
