"""Layer 3: applies the table of shapes. A rule is compiled when a line first holds one of its literals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache

from ..marks import nothing_left
from .entropy import looks_random
from .rules import PATTERNS, PEM, PREFIXES, Pattern, Prefix

Replace = Callable[[str], str]

# What a token may follow: no letter or digit, except that of an escape (`\n`, `%20`, a terminal's colour).
_BEFORE = (r"(?<![A-Za-z0-9]{})", r"(?<=\\[nrtbf0]{})", r"(?<=%[0-9A-Fa-f]{{2}}{})", r"(?<=[;\[][0-9]{{1}}m{})",
           r"(?<=[;\[][0-9]{{2}}m{})")  # fmt: skip
_NO_SECRET_USERS = frozenset({"git", "hg", "svn", "anonymous", "ftp"})
"""Accounts that stand in URLs to choose a protocol, without a password."""


class Shape:
    """One rule of the table, ready to be applied."""

    def __init__(self, rule: Prefix | Pattern) -> None:
        self.rule = rule
        self.random = rule.random

    def __repr__(self) -> str:
        return f"<Shape {self.rule.family}>"

    def scrub(self, text: str, replace: Replace) -> str:
        def judge(match: re.Match[str]) -> str:
            secret = match["s"]
            if nothing_left(secret) or secret in _NO_SECRET_USERS:
                return match[0]
            if self.random and not looks_random(match["t"] if isinstance(self.rule, Prefix) else secret):
                return match[0]
            return text[match.start() : match.start("s")] + replace(secret) + text[match.end("s") : match.end()]

        return _compiled(self.rule).sub(judge, text)


@cache
def _compiled(rule: Prefix | Pattern) -> re.Pattern[str]:
    if isinstance(rule, Pattern):
        return re.compile(rule.pattern.replace("START", _beginning("")), re.ASCII)
    prefixes = [re.escape(prefix) for prefix in sorted(rule.prefixes.split(), key=len, reverse=True)]
    if not rule.anywhere:  # looked at behind the prefix, so that the search can be for the prefix
        prefixes = [prefix + _beginning(prefix) for prefix in prefixes]
    return re.compile(rf"(?P<s>(?:{'|'.join(prefixes)})(?P<t>{rule.tail}{{{rule.shortest},}}+))", re.ASCII)


def _beginning(prefix: str) -> str:
    """Holds behind a prefix (a pattern of fixed length) where a token may begin with it."""
    return f"(?:{'|'.join(before.format(prefix) for before in _BEFORE)})"


def literal_rules() -> Iterable[tuple[str, Shape]]:
    """Every literal with the shape that it wakes."""
    rules: list[Prefix | Pattern] = [*PREFIXES, *PATTERNS]
    for rule in rules:
        shape = Shape(rule)
        literals = rule.prefixes if isinstance(rule, Prefix) else rule.literals
        for literal in literals.split():
            yield literal.replace("^", " "), shape


def length_rules() -> list[tuple[int, Shape]]:
    """The shapes without a literal, each with the length of a word that wakes it."""
    return [(rule.longest, Shape(rule)) for rule in PATTERNS if not rule.literals]


@cache
def _pem() -> re.Pattern[str]:
    return re.compile(PEM, re.DOTALL)


def scrub_pem(text: str, replace: Replace) -> str:
    """PEM blocks of any kind, over as many lines as they take."""
    return _pem().sub(lambda match: replace(match[0]), text)
