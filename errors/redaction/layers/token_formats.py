"""Layer 3: applies the table of token formats. Compiles a rule when a line first contains one of its literals."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from ..marks import Replace, nothing_to_redact
from .entropy import looks_random
from .false_positives import is_secret
from .rules import PATTERNS, PEM, PREFIXES, Pattern, Prefix
from .sensitivity import Sensitivity

# What may stand before a token: no letter or digit, except that of an escape (`\n`, `%20`, a terminal's colour).
_BEFORE = (r"(?<![A-Za-z0-9]{})", r"(?<=\\[nrtbf0]{})", r"(?<=%[0-9A-Fa-f]{{2}}{})", r"(?<=[;\[][0-9]{{1}}m{})",
           r"(?<=[;\[][0-9]{{2}}m{})")  # fmt: skip
_PUBLIC_USERS = frozenset({"git", "hg", "svn", "anonymous", "ftp"})
"""User names in URLs that choose a protocol and need no password."""


class RuleScrubber:
    """Applies one rule of the table."""

    def __init__(self, rule: Prefix | Pattern) -> None:
        self.rule = rule

    def __repr__(self) -> str:
        return f"<RuleScrubber {self.rule.family}>"

    def scrub(self, text: str, replace: Replace) -> str:
        rule = self.rule

        def replacement(match: re.Match[str]) -> str:
            secret = match["s"]
            if nothing_to_redact(secret) or secret in _PUBLIC_USERS:
                return match[0]
            if rule.random and not looks_random(match["t"] if isinstance(rule, Prefix) else secret):
                return match[0]
            if isinstance(rule, Pattern) and rule.password and not is_secret(secret, Sensitivity.PROBABLE):
                return match[0]
            return text[match.start() : match.start("s")] + replace(secret) + text[match.end("s") : match.end()]

        return _pattern_of(rule).sub(replacement, text)


@cache
def _pattern_of(rule: Prefix | Pattern) -> re.Pattern[str]:
    if isinstance(rule, Pattern):
        return re.compile(rule.pattern.replace("START", _token_start("")), re.ASCII)
    prefixes = [re.escape(prefix) for prefix in sorted(rule.prefixes.split(), key=len, reverse=True)]
    if not rule.anywhere:  # checked after the prefix, so that `re` can search for the prefix itself
        prefixes = [prefix + _token_start(prefix) for prefix in prefixes]
    return re.compile(rf"(?P<s>(?:{'|'.join(prefixes)})(?P<t>{rule.tail}{{{rule.min_tail},}}+))", re.ASCII)


def _token_start(prefix: str) -> str:
    """A pattern that matches after `prefix` (a pattern of fixed length) if a token may begin there."""
    return f"(?:{'|'.join(before.format(prefix) for before in _BEFORE)})"


def literal_rules() -> Iterable[tuple[str, RuleScrubber]]:
    """Every literal with the rule to apply to lines that contain it."""
    rules: list[Prefix | Pattern] = [*PREFIXES, *PATTERNS]
    for rule in rules:
        scrubber = RuleScrubber(rule)
        literals = rule.prefixes if isinstance(rule, Prefix) else rule.literals
        for literal in literals.split():
            yield literal.replace("^", " "), scrubber


def length_rules() -> list[tuple[int, RuleScrubber]]:
    """The rules without a literal, each with the length of the shortest word that it can match."""
    return [(rule.min_word, RuleScrubber(rule)) for rule in PATTERNS if not rule.literals]


@cache
def _pem() -> re.Pattern[str]:
    return re.compile(PEM, re.DOTALL)


def scrub_pem(text: str, replace: Replace) -> str:
    """Replace PEM blocks of any kind, over any number of lines."""
    return _pem().sub(lambda match: replace(match[0]), text)
