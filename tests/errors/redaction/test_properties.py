"""What holds for every text: no error, a second round changes nothing, size and work are bounded, nothing slips through."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors.redaction import Scrubber, ScrubLimits, scrub, scrub_secrets
from discreet.errors.redaction.pipeline import lower
from discreet.errors.redaction.token_formats import Prefilter

pytestmark = pytest.mark.again  # the rules are woken by another prefilter

PIECES = [
    "password", "token", "key", "secret", "Authorization: ", "Cookie: ", "Bearer ", "=", ":", ": ", " ", '"', "'", "`",
    "\\", '\\"', "\n", "\r\n", "\n  ", "<redacted>", "<path>", "<user>", "<cut>", "<", ">", "/", "//", "@", "://",
    "http://", "postgres://", "user:pa55word@host.org", "eyJ", "gh" + "p_", "AK" + "IA", "sk-", "abc123def456",
    "/home/alice/x", "C:\\Users\\bob\\y", "\\\\srv\\share\\f", "~/a", "~bob/c", "file:///etc/hosts", "a=b", "&", ";", ",",
    "{", "}", "[", "]", "(", ")", "value", "is ", "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----",
    "--password ", "-p", "curl -u ", "mysql ", "9f8e7d6c5b4a39281706", "Aa1Bb2Cc3Dd4Ee5Ff6Gg7Hh8Ii9Jj0Kk1Ll2", "é", "İ",
    "\ud800", "\0", "%3D", "%3a%2f%2f", "%40", "alice", "${X}", "$", "%s", "|", ">\n  ", "- name: ", "GET ", "/api/v1/users",
    ".py", "…", "==", "=>", ":=", 'b"', "\t", "kind: Secret\ndata:\n  a: ", "---\n", "x",
]  # fmt: skip
MIXED = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=14).map("".join)
TEXTS = st.one_of(st.text(max_size=200), MIXED, st.text(alphabet="token=key: \"'/\\\n-_.:@ab1<>", max_size=80))


@given(TEXTS)
@settings(max_examples=400)
def test_a_second_round_changes_nothing(text: str) -> None:
    once = scrub(text)
    assert scrub(once) == once


@given(TEXTS)
@settings(max_examples=150)
def test_secrets_are_counted_once(text: str) -> None:
    clean, hits = scrub_secrets(text)
    assert scrub_secrets(clean) == (clean, 0)
    assert (hits == 0) == (clean == text)


@given(TEXTS, st.integers(min_value=5, max_value=120))
@settings(max_examples=150)
def test_a_capped_text_keeps_to_its_cap_and_stays(text: str, cap: int) -> None:
    once = scrub(text, cap=cap)
    assert len(once) <= cap
    assert scrub(once, cap=cap) == once == scrub(once)


def test_a_cut_says_so_and_cuts_no_word_in_two() -> None:
    text = scrub("several words " * 100, cap=100)
    assert text.endswith("<cut>") and set(text.removesuffix("<cut>").split()) == {"several", "words"}


def test_a_secret_across_the_cut_does_not_survive_in_part() -> None:
    draw = random.Random(1)
    for position in range(60, 120):
        secret = "gh" + "p_" + "".join(draw.choices("abcdef0123456789", k=36))
        text = scrub("x" * (position // 2) + " " + "y" * (position // 2) + " " + secret + " " + "z" * 200, cap=120)
        assert secret[:10] not in text


@given(st.text(max_size=60))
def test_lower_case_keeps_every_character_in_its_place(text: str) -> None:
    assert len(lower(text)) == len(text)


HOSTILE = [
    "a", "=", '"', "'", "/", "\\", "-", " ", "\n", ":", "@", "@:/", "://", "://a@", "-----BEGIN ", "token=", "token: ",
    "key ", "key: a ", '"key": ', "password is ", "eyJ", "sk-", "gh" + "p_", "AK" + "IA", "a/", "/a", "C:\\", "C:\\a ", "a:/",
    "\\\\a\\", "~a/", "/a A ", "../", "file:/", "curl -u ", "mysql -p", "docker login ", "Bearer ", "Authorization: ",
    "Cookie: a=", '{"a":', "[[", "<a>", "&a=", ",a=", '\\"', '\\\\"token\\\\": ', "%3A%2F%2F", "aB1", "1:2", "a.b.", "é",
    "\ud800", "\0", "x=y&", "--password ", "kind: secret\ndata:\n", "---\n", "key\n", "token:\n  ", "=<", "$2a$", "<redacted>",
    "password for a ", "password set to a1 ", "<password a='b' ", "<password a='b'", "<a name=\"password\">",
    "AUTH a ", "AUTH ",
    "insert into a (password) values ('a'),", "insert into a (password", "insert ", "password,a\n", "a,password\nb,c1\n",
    "| password |\n", "| password | a1 ", "password  a\n", "passwords:\n- a1\n", "- a1\n", "tokens = [\n", "echo a ",
    "net use a a ",
    "identified by ", "['mysql', '-p', ", "'-u', 'a:", "a1 as the password ", "&#65;", "%41", "\\u0041", "\\x41",
    "cookie:\n a=b\n",
    "password = \"\"\"\n", "password = a b ", "password=a b;", "a;password=b c", "password: [a1, ", "&lt;password&gt;",
    "token:\n a1b2c3\n",
    "</key><string>", "setuser a >", "<redacted> to ", "://a:b", "://a:b@/",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_come_back_bounded_and_stay(piece: str) -> None:
    text = (piece * (16_384 // len(piece) + 1))[:16_384]
    once = scrub(text)
    assert len(once) <= 3 * len(text)
    assert scrub(once) == once


def test_past_the_work_budget_nothing_is_let_through() -> None:
    draw = random.Random(2)
    text = "\n".join("pw=" + "".join(draw.choices("abcdef0123456789", k=4)) for _ in range(60_000))
    scrubbed = scrub(text)
    assert set(scrubbed.split("\n")) == {"pw=<redacted>", "<cut>"}
    assert scrub(scrubbed) == scrubbed


def test_the_limits_can_be_set() -> None:
    scrubber = Scrubber(limits=ScrubLimits(characters=60, steps=1))
    assert scrubber.scrub("a=1 " * 100).endswith("<cut>") and len(scrubber.scrub("a=1 " * 100)) <= 60
    assert scrubber.scrub("pw=abc1") == "<cut>"
    assert scrubber.scrub("login with pw=abc1 at noon in may") == "login with pw=<redacted> at noon in may"


def test_a_long_text_of_ordinary_secrets_is_within_the_budget() -> None:
    line = "2026-01-01 INFO login of bob with password=hunter2abc from 10.0.0.1 took 12 ms, trying again"
    scrubbed = scrub("\n".join([line] * 10_000))
    assert "<cut>" not in scrubbed and "hunter2" not in scrubbed


def test_what_is_past_the_limit_of_a_text_is_cut() -> None:
    text = "word " * (8 * 1024 * 1024 // 5) + "token=abc123def456"
    scrubbed = scrub(text)
    assert len(scrubbed) <= 8 * 1024 * 1024 and scrubbed.endswith("<cut>")


FAST, SLOW = Scrubber(fast=True), Scrubber(fast=False)


@pytest.mark.needs("ahocorasick_rs")
@given(TEXTS)
@settings(max_examples=120)
def test_both_prefilters_wake_the_same_rules(text: str) -> None:
    assert FAST.scrub(text) == SLOW.scrub(text)


WORDS = st.text(alphabet="abA_-.", min_size=1, max_size=5)


@given(st.lists(st.tuples(WORDS, st.integers(0, 5)), min_size=1, max_size=12), st.text(alphabet="abA_-. ", max_size=40))
def test_the_prefilter_finds_exactly_the_literals_that_are_there(literals: list[tuple[str, int]], text: str) -> None:
    prefilter = Prefilter(literals, automaton=False)
    exact = {rule for literal, rule in literals if (literal if literal[-1].isalnum() else literal.lower()) in (
        text if literal != literal.lower() and literal[-1].isalnum() else text.lower())}  # fmt: skip
    assert set(prefilter.matching_rules(text, text.lower())) == exact


def test_importing_the_scrubber_compiles_and_loads_nothing_yet() -> None:
    code = (
        "import sys, discreet.errors.redaction as r\n"
        "r.register('open sesame'); r.load_environment({'A_TOKEN': 'open sesame two', 'USER': 'quentin'})\n"
        "late = {'pipeline', 'names', 'paths', 'shapes', 'rules', 'values', 'tracebacks'}\n"
        "assert not {f'discreet.errors.redaction.{name}' for name in late} & set(sys.modules)\n"
        "assert not {'logging', 'traceback', 'urllib.parse', 'json', 'ahocorasick_rs', 'asyncio'} & set(sys.modules)\n"
        "assert r.scrub('open sesame two by quentin') == '<redacted> by <user>'\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
