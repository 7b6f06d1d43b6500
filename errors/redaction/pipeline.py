"""Runs the layers over one text, in order, line by line, until a round changes nothing. Never exceeds the work budget."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Protocol

from .layers.encodings import MIN_ENCODED_LENGTH, may_hold_encoded, scrub_encoded
from .layers.entropy import MIN_RUN_LENGTH, looks_random, scrub_random_runs
from .layers.false_positives import is_placeholder, is_secret
from .layers.names import scrub_folded_cookies, scrub_named_values, scrub_values_below
from .layers.paths import PathScrubber
from .layers.rules import PATTERNS, PEM, PREFIXES, Pattern, Prefilter, Prefix
from .layers.sensitivity import SENSITIVE_STEMS, Sensitivity
from .layers.tables import scrub_inserts, scrub_tables
from .limits import CUT, REDACTED, BudgetExhaustedError, Replace, ScrubLimits, WorkBudget, nothing_to_redact

# Layer 3: applies the table of token formats. Compiles a rule when a line first contains one of its literals.


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


# Redacts the values of Kubernetes Secrets, whatever their names, in YAML and one-line JSON. Other kinds stay.


_KIND = re.compile(r"(?i)(?<!\w)[\"']?kind[\"']?:[ \t]{0,8}[\"']?secret(?!\w)")
_BLOCK = re.compile(r"(?m)^([ \t]{0,64})(?:stringData|data):[ \t]*\r?\n(?:(?:\1[ \t]+\S.*|[ \t]*\r?)(?:\n|\Z))+")
_ENTRY = re.compile(r"(?m)^([ \t]+[\w.-]{1,253}:[ \t]*|[ \t]+)([^\s#].*?)[ \t]*\r?$")
_OBJECT = re.compile(r"\"(?:stringData|data)\":\s{0,8}\{([^{}\n]*)\}")
_STRING = re.compile(r"(:\s{0,8}\")((?:[^\"\\]|\\.)*+)(\")")
_SCALAR = re.compile(r"[|>][-+0-9]{0,2}|\"\"|''")


def scrub_kubernetes_secrets(text: str, replace: Replace) -> str:
    """The text without the values under `data` and `stringData` of Kubernetes Secrets."""
    if "data" not in text.lower() or not _KIND.search(text):
        return text
    documents = re.split(r"(?m)^(---[ \t]*\r?\n)", text)
    return "".join(_scrub_document(document, replace) if _KIND.search(document) else document for document in documents)


def _scrub_document(document: str, replace: Replace) -> str:
    def entry(match: re.Match[str]) -> str:
        value = match[2]
        if _SCALAR.fullmatch(value) or nothing_to_redact(value) or is_placeholder(value):
            return match[0]
        if not match[1].rstrip().endswith(":") and value.endswith(":"):
            return match[0]  # a name whose value is on the next line
        return match[1] + replace(value)

    def string(match: re.Match[str]) -> str:
        return match[0] if nothing_to_redact(match[2]) else match[1] + replace(match[2]) + match[3]

    def block(match: re.Match[str]) -> str:
        head, newline, body = match[0].partition("\n")
        return head + newline + _ENTRY.sub(entry, body)

    document = _BLOCK.sub(block, document)
    return _OBJECT.sub(lambda match: _STRING.sub(string, match[0]), document)


_MAX_ROUNDS = 6  # over one line or text; two are usual: one that changes it and one that confirms
_CUT_BACK = 256  # characters: how far back a cut looks for white space, so that it splits no secret

# What may stand between the letters of a word and is not seen: escape sequences of terminals, control characters other
# than white space, format characters, variation selectors, fillers. Leaves none, so a second run has nothing to remove.
_INVISIBLE = re.compile(
    r"\x1b(?:\[[0-?]{0,64}+[ -/]{0,8}+[@-~]|\][^\x07\x1b\n]{0,2048}+(?:\x07|\x1b\\)|[()][0-9A-Z]|[@-Z\\^_])?"
    "|[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)

_PLAIN_NAME = re.compile(r"\$?/?_?[A-Za-z]{1,32}\d{0,2}(?:[_./][A-Za-z]{1,32}\d{0,2}){0,8}")

_NAMES_LAYER = "names"  # stands for layer 2 among the rules of the prefilter


class SecretStore(Protocol):
    """Layer 1: known secrets."""

    def scrub(self, text: str, replace: Replace) -> str: ...


class Pipeline:
    """The five layers, with the registered secrets and the known account names."""

    def __init__(self, known: tuple[SecretStore, ...], limits: ScrubLimits, *, fast: bool = True) -> None:
        self._known = known
        self._limits = limits
        self.paths = PathScrubber()
        literals: list[tuple[str, RuleScrubber | str]] = [(stem, _NAMES_LAYER) for stem in SENSITIVE_STEMS]
        literals += literal_rules()
        self._prefilter: Prefilter[RuleScrubber | str] = Prefilter(literals, automaton=fast)
        self._length_rules = length_rules()
        self.redactions = 0
        """How many secrets were replaced. Threads that scrub at the same time may lose a count."""

    def scrub(self, text: str, *, cap: int | None = None) -> str:
        """Run all layers. With `cap`, return at most that many characters."""
        most = self._limits.characters
        limit = most if cap is None else min(most, 16 * cap + _CUT_BACK)
        scrubbed = self._scrub_until_stable(_truncate(text, limit), paths=True)
        if cap is None:
            return scrubbed
        for margin in (0, 4 * len(CUT), cap // 2):  # scrubbing may lengthen the shortened text: the next try cuts more
            if len(scrubbed) <= cap:
                return scrubbed
            scrubbed = self._scrub_until_stable(_truncate(scrubbed, cap - margin), paths=True)
        return scrubbed if len(scrubbed) <= cap else CUT

    def scrub_name(self, text: str) -> str:
        """Run layers 2 to 5 over a name of plain words, and all layers over any other text."""
        if _PLAIN_NAME.fullmatch(text) is None or looks_random(text):
            return self.scrub(text)
        work = self._new_budget(text)
        scrubbed = self._scrub_line_until_stable(text, set(), work, paths=False)
        self.redactions += len(work.replaced)
        return self.paths.scrub(scrubbed, accounts=False)

    def find_secrets(self, text: str) -> tuple[str, list[tuple[str, str]]]:
        """Run layers 1 to 4; returns the text, and what was replaced in it with its names."""
        work = self._new_budget(text)
        scrubbed = self._scrub_until_stable(_truncate(text, self._limits.characters), work, paths=False)
        return scrubbed, work.replaced

    def scrub_secrets(self, text: str) -> tuple[str, int]:
        """Run layers 1 to 4; returns the text and the number of replacements."""
        scrubbed, replaced = self.find_secrets(text)
        return scrubbed, len(replaced)

    def holds_known(self, text: str) -> bool:
        """Whether layer 1 would change the text."""
        return any(store.scrub(text, lambda _: REDACTED) != text for store in self._known)

    def _new_budget(self, text: str) -> WorkBudget:
        return WorkBudget(self._limits.steps, min(len(text), self._limits.characters))

    def _scrub_until_stable(
        self, text: str, work: WorkBudget | None = None, *, paths: bool, split: bool = False
    ) -> str:
        """Repeat rounds over the whole text until one changes nothing. Returns `CUT` if the rounds run out."""
        work = work or self._new_budget(text)
        if not split and (not text.isascii() or "\x1b" in text or "\0" in text) and _INVISIBLE.search(text):
            return self._scrub_split(text, work, paths=paths)
        try:
            if "\n" not in text:  # most texts are one line without anything to replace
                before, text = text, self._scrub_line(self._scrub_blocks(text, work), work, paths=paths)
                if text == before:
                    return text
            return self._rounds(text, work, paths=paths)
        except BudgetExhaustedError:
            return CUT
        finally:
            self.redactions += len(work.replaced)

    def _scrub_split(self, text: str, work: WorkBudget, *, paths: bool) -> str:
        """Scrub a text with invisible characters, which may split a name or a secret. They stay if they hid nothing."""
        scrubbed = self._scrub_until_stable(text, work, paths=paths, split=True)
        visible = _INVISIBLE.sub("", text)
        again = self._new_budget(visible)
        found = self._scrub_until_stable(visible, again, paths=paths)
        if found == _INVISIBLE.sub("", scrubbed):
            return scrubbed
        for secret, _ in work.replaced:  # NUL may also part two texts: what was found before they were joined
            if len(part := _INVISIBLE.sub("", secret)) > 1:
                found = found.replace(part, REDACTED)
        work.replaced += again.replaced
        return self._scrub_until_stable(found, paths=paths)

    def _rounds(self, text: str, work: WorkBudget, *, paths: bool) -> str:
        stable: set[str] = set()  # lines that a round over the line alone leaves unchanged
        for _ in range(_MAX_ROUNDS):
            before = text
            text = self._scrub_blocks(text, work)
            if "\n" in text:
                text = "\n".join(
                    [self._scrub_line_until_stable(line, stable, work, paths=paths) for line in text.split("\n")]
                )
            else:
                text = self._scrub_line_until_stable(text, stable, work, paths=paths)
            if text == before:
                return text
        return CUT

    def _scrub_blocks(self, text: str, work: WorkBudget) -> str:
        """Scrub what may span lines: known secrets, PEM blocks, Kubernetes Secrets, values on the line below their name."""
        try:
            for store in self._known:
                text = store.scrub(text, work.replace)
            if "BEGIN" in text:
                text = scrub_pem(text, work.replace)
            if "kind" in text:
                text = scrub_kubernetes_secrets(text, work.replace)
            if "NSERT" in text or "nsert" in text:
                text = scrub_inserts(text, work)
            if "\n" not in text:
                return text
            text = scrub_values_below(text, lower(text), work)
            return scrub_tables(scrub_folded_cookies(text, work), work)
        except BudgetExhaustedError:
            return CUT

    def _scrub_line_until_stable(self, line: str, stable: set[str], work: WorkBudget, *, paths: bool) -> str:
        if line in stable:
            return line
        try:
            for _ in range(_MAX_ROUNDS):
                before = line
                line = self._scrub_line(line, work, paths=paths)
                if line == before:
                    break
            else:
                line = CUT
        except BudgetExhaustedError:
            line = CUT
        stable.add(line)
        return line

    def _scrub_line(self, line: str, work: WorkBudget, *, paths: bool) -> str:
        words = line.split()
        long_words = [word for word in words if len(word) >= MIN_ENCODED_LENGTH]
        scrubbed = self._scrub_spelled(line, long_words, work, paths=paths)
        if not may_hold_encoded(line, len(words), long_words):
            return scrubbed

        def scrub(text: str) -> str:
            return self._scrub_spelled(text, _long_words(text), work, paths=paths)

        return scrub_encoded(scrubbed, scrub, work.replace)

    def _scrub_spelled(self, line: str, long_words: list[str], work: WorkBudget, *, paths: bool) -> str:
        """Run layers 2 to 5 once over a line as it is spelled."""
        before, low = line, lower(line)
        for rule in self._prefilter.matching_rules(line, low):
            line = scrub_named_values(line, low, work) if isinstance(rule, str) else rule.scrub(line, work.replace)
        if long_words:
            line = self._scrub_long_words(line, long_words if line == before else _long_words(line), work.replace)
        return self.paths.scrub(line) if paths else line

    def _scrub_long_words(self, line: str, words: list[str], replace: Replace) -> str:
        """Apply what reads no further than a word without white space: the rules without a literal, and layer 4."""
        pieces: list[str] = []
        done = end = 0
        for word in words:
            if len(word) < MIN_RUN_LENGTH:
                continue
            scrubbed = word
            for length, rule in self._length_rules:
                if len(word) >= length:
                    scrubbed = rule.scrub(scrubbed, replace)
            scrubbed = scrub_random_runs(scrubbed, replace)
            begin = line.index(word, end)
            end = begin + len(word)
            if scrubbed != word:
                pieces += line[done:begin], scrubbed
                done = end
        return "".join((*pieces, line[done:])) if pieces else line


def _long_words(text: str) -> list[str]:
    return [word for word in text.split() if len(word) >= MIN_ENCODED_LENGTH]


def lower(text: str) -> str:
    """Lower case of the same length: the one letter whose lower case is two characters (U+0130) becomes `i`."""
    return text.lower() if text.isascii() else text.replace("\u0130", "i").lower()


def _truncate(text: str, limit: int) -> str:
    """At most `limit` characters, with the mark at the end. Cuts at white space if there is some nearby."""
    if len(text) <= limit:
        return text
    kept = text[: max(0, limit - len(CUT))]
    head = kept[-_CUT_BACK:].rstrip()
    space = max(head.rfind(" "), head.rfind("\n"), head.rfind("\t"))
    if space > 0:
        kept = kept[: len(kept) - len(kept[-_CUT_BACK:]) + space + 1]
    return kept + CUT
