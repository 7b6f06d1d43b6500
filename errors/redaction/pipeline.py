"""Runs the layers over one text, in order, line by line, until a round changes nothing. Never exceeds the work budget.

Layers 2 to 5 also read what a text spells in another way: in escapes that it does not need, in hexadecimal, letter by letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from .known_secrets import KnownSecrets, decode_escapes
from .limits import CUT, PATH, REDACTED, USER, BudgetExhaustedError, Replace, ScrubLimits, WorkBudget, splice
from .names import scrub_folded_cookies, scrub_inserts, scrub_named_values, scrub_tables, scrub_values_below
from .paths import PathScrubber
from .secret_values import MIN_RUN_LENGTH, looks_random, scrub_random_runs
from .sensitivity import SENSITIVE_STEMS
from .token_formats import Prefilter, RuleScrubber, length_rules, literal_rules, scrub_kubernetes_secrets, scrub_pem

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


class Pipeline:
    """The five layers, with the registered secrets and the known account names."""

    def __init__(self, known: tuple[KnownSecrets, ...], limits: ScrubLimits, *, fast: bool = True) -> None:
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
        scrubbed: list[tuple[int, int, str]] = []
        end = 0
        for word in words:
            if len(word) < MIN_RUN_LENGTH:
                continue
            new = word
            for length, rule in self._length_rules:
                if len(word) >= length:
                    new = rule.scrub(new, replace)
            new = scrub_random_runs(new, replace)
            begin = line.index(word, end)
            end = begin + len(word)
            if new != word:
                scrubbed.append((begin, end, new))
        return splice(line, scrubbed)


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


# -- other spellings ---------------------------------------------------------------------------------------------------
#
# Decodes a part of the text, has the other layers read it, and replaces what they would have replaced. Known secrets are not
# looked for here: their encodings are looked for directly.

MIN_ENCODED_LENGTH = 24
"""Characters of the shortest word that is searched for hexadecimal and for spread characters."""
_MIN_SPREAD = 16  # characters with something between each two of them
_MIN_BYTES = 12  # in hexadecimal, one after the other
_SHORT_WORDS = 5  # characters of a word and its space: in lines with longer ones, few characters stand alone
_BEFORE = 256  # characters before an escape that are read with it: its name, the beginning of the token
_AFTER = 512  # characters after an escape

# Letters, digits, and the signs of paths and URLs, which no encoder has to escape: where a text has one of these escaped,
# it may have escaped anything. In a URL the signs may need it.
_CODES = "2[df]|3[0-9ad]|4[0-9a-f]|5[0-9acf]|6[1-9a-f]|7[0-9a]"
_NEEDLESS = re.compile(
    rf"(?i)\\u00(?:{_CODES})|\\x(?:{_CODES})|\\u\{{(?:{_CODES})\}}|%(?:2d|3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9a])"
    rf"|&#x0{{0,4}}(?:{_CODES});|&#0{{0,4}}(?:4[5-9]|5[0-8]|6[14-9]|[78][0-9]|9[0-57-9]|1[01][0-9]|12[0-2]);"
)
# Bytes of printable ASCII only, which random digits hardly ever are.
_HEX_RUN = re.compile(
    rf"[2-7](?<![0-9A-Za-wyz].)(?<![^0]x.)[0-9a-fA-F][ :-]?(?:[2-7][0-9a-fA-F][ :-]?){{{_MIN_BYTES - 1},}}+(?![0-9a-fA-F])"
)
_SPREAD = {
    between: re.compile(
        rf"(?<!\w)(?:[\w$+/=~.:-]{re.escape(between)}){{{_MIN_SPREAD - 1},}}+(?:[\w=](?!\w))?", re.ASCII
    )
    for between in " -."
}
"""Characters one by one, by what stands between two of them."""
_NO_HEX = re.compile(r"[ :-]")


def may_hold_encoded(line: str, words: int, long_words: list[str]) -> bool:
    """Whether `scrub_encoded` could find anything; quick. Gets the number of words, and those of `MIN_ENCODED_LENGTH`."""
    if len(line) < _SHORT_WORDS * words or "\\" in line or "%" in line or "&#" in line:
        return True
    return any(  # a list is made faster than a generator runs
        [  # noqa: C419
            _HEX_RUN.search(word) or word.count("-") >= _MIN_SPREAD - 1 or word.count(".") >= _MIN_SPREAD - 1
            for word in long_words
        ]
    )


def scrub_encoded(line: str, scrub: Callable[[str], str], replace: Replace) -> str:
    """The line without what `scrub` would remove from it if it were not encoded."""

    def run(match: re.Match[str], decode: Callable[[str], str] = _from_hex) -> str:
        decoded = decode(match[0])
        return match[0] if scrub(decoded) == decoded else replace(match[0])

    if "\\" in line or "%" in line or "&#" in line:
        line = _scrub_escaped(line, scrub, replace)
    line = _HEX_RUN.sub(run, line)
    for between, pattern in _SPREAD.items():
        if line.count(between) >= _MIN_SPREAD - 1:
            line = pattern.sub(lambda match: run(match, lambda text: text[::2]), line)
    return line


def _from_hex(run: str) -> str:
    """The text of the bytes; empty if they are no text."""
    try:
        decoded = bytes.fromhex(_NO_HEX.sub("", run)).decode("ascii")
    except ValueError:
        return ""
    return decoded if decoded.isprintable() else ""


def _scrub_escaped(line: str, scrub: Callable[[str], str], replace: Replace) -> str:
    """Decode the surroundings of each escape that is not needed, and scrub them."""
    found = _surroundings(line)
    return splice(line, ((begin, end, _scrub_decoded(line[begin:end], scrub, replace)) for begin, end in found))


def _surroundings(line: str) -> Iterator[tuple[int, int]]:
    """Return the places of needless escapes, with the words around them."""
    begin = end = -1
    for found in _NEEDLESS.finditer(line):
        if found.start() < end:
            end = max(end, min(len(line), found.end() + _AFTER))
            continue
        if begin >= 0:
            yield begin, end
        begin, end = max(0, end, found.start() - _BEFORE), min(len(line), found.end() + _AFTER)
    if begin >= 0:
        yield begin, end


def _scrub_decoded(text: str, scrub: Callable[[str], str], replace: Replace) -> str:
    decoded, ends = decode_escapes(text)
    scrubbed = scrub(decoded)
    if scrubbed == decoded:
        return text
    shortest = min(len(decoded), len(scrubbed))
    first = next((at for at in range(shortest) if decoded[at] != scrubbed[at]), shortest)
    same = next((at for at in range(shortest - first) if decoded[-at - 1] != scrubbed[-at - 1]), shortest - first)
    last = len(decoded) - same
    begin = ends[first - 1] if first else 0
    end = ends[last - 1] if last else 0
    mark = scrubbed[first : len(scrubbed) - (len(decoded) - last)]
    return text[:begin] + (mark if mark in (PATH, USER) else replace(text[begin:end])) + text[end:]
