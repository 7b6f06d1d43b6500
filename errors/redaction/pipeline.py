"""The layers in their order over one text, line by line, within a work budget, until a round changes nothing."""

from __future__ import annotations

from .layers.entropy import RUN_LENGTH, scrub_runs
from .layers.known import KnownSecrets
from .layers.manifests import scrub_manifests
from .layers.names import scrub_names, scrub_names_above
from .layers.paths import Paths
from .layers.prefilter import Prefilter
from .layers.shapes import Shape, length_rules, literal_rules, scrub_pem
from .layers.words import STEMS
from .marks import CUT
from .scrubber import ScrubLimits
from .work_budget import BudgetExhaustedError, WorkBudget

_ROUNDS = 6  # of one line or text; two are the rule: one that changes it and one that confirms
_CUT_BACK = 256  # characters: how far back a cut looks for white space, so that no secret is cut in two

_NAMES = "names"  # wakes layer 2


class Pipeline:
    """The five layers, with the secrets and names that were made known."""

    def __init__(self, known: KnownSecrets, limits: ScrubLimits, *, fast: bool = True) -> None:
        self._known = known
        self._limits = limits
        self.paths = Paths()
        literals: list[tuple[str, Shape | str]] = [(stem, _NAMES) for stem in STEMS]
        literals += literal_rules()
        self._prefilter: Prefilter[Shape | str] = Prefilter(literals, automaton=fast)
        self._long = length_rules()

    def scrub(self, text: str, *, cap: int | None = None) -> str:
        """All layers; at most `cap` characters."""
        most = self._limits.characters
        limit = most if cap is None else min(most, 16 * cap + _CUT_BACK)
        scrubbed = self._settle(_shorten(text, limit), paths=True)
        if cap is None:
            return scrubbed
        for margin in (0, 4 * len(CUT), cap // 2):  # a round can lengthen what it shortens: the next one gets less
            if len(scrubbed) <= cap:
                return scrubbed
            scrubbed = self._settle(_shorten(scrubbed, cap - margin), paths=True)
        return scrubbed if len(scrubbed) <= cap else CUT

    def scrub_secrets(self, text: str) -> tuple[str, int]:
        """Layers 1 to 4, and the number of replacements."""
        work = self._work(text)
        return self._settle(_shorten(text, self._limits.characters), work, paths=False), work.hits

    def _work(self, text: str) -> WorkBudget:
        return WorkBudget(self._limits.steps, min(len(text), self._limits.characters))

    def _settle(self, text: str, work: WorkBudget | None = None, *, paths: bool) -> str:
        """Rounds over the whole text until one changes nothing; cut where that does not come to an end."""
        work = work or self._work(text)
        settled: set[str] = set()  # lines that a round over them alone leaves as they are
        for _ in range(_ROUNDS):
            before = text
            text = self._blocks(text, work)
            if "\n" in text:
                text = "\n".join([self._settle_line(line, settled, work, paths=paths) for line in text.split("\n")])
            else:
                text = self._settle_line(text, settled, work, paths=paths)
            if text == before:
                return text
        return CUT

    def _blocks(self, text: str, work: WorkBudget) -> str:
        """What may take more than one line: known secrets, PEM blocks, manifests, values below their names."""
        try:
            text = self._known.scrub(text, work.replace)
            if "BEGIN" in text:
                text = scrub_pem(text, work.replace)
            if "kind" in text:
                text = scrub_manifests(text, work.replace)
            return scrub_names_above(text, lower(text), work) if "\n" in text else text
        except BudgetExhaustedError:
            return CUT

    def _settle_line(self, line: str, settled: set[str], work: WorkBudget, *, paths: bool) -> str:
        if line in settled:
            return line
        try:
            for _ in range(_ROUNDS):
                before = line
                line = self._line(line, work, paths=paths)
                if line == before:
                    break
            else:
                line = CUT
        except BudgetExhaustedError:
            line = CUT
        settled.add(line)
        return line

    def _line(self, line: str, work: WorkBudget, *, paths: bool) -> str:
        replace = work.replace
        low = lower(line)
        for rule in self._prefilter.awake(line, low):
            line = scrub_names(line, low, work) if isinstance(rule, str) else rule.scrub(line, replace)
        if (longest := max(map(len, line.split()), default=0)) >= RUN_LENGTH:
            for length, shape in self._long:
                if longest >= length:
                    line = shape.scrub(line, replace)
            line = scrub_runs(line, replace)
        return self.paths.scrub(line) if paths else line


def lower(text: str) -> str:
    """Lower case, character for character: the one letter that would become two is spelt with one."""
    return text.lower() if text.isascii() else text.replace("\u0130", "i").lower()


def _shorten(text: str, limit: int) -> str:
    """At most `limit` characters with the mark at the end, cut at white space where there is some nearby."""
    if len(text) <= limit:
        return text
    kept = text[: max(0, limit - len(CUT))]
    head = kept[-_CUT_BACK:].rstrip()
    space = max(head.rfind(" "), head.rfind("\n"), head.rfind("\t"))
    if space > 0:
        kept = kept[: len(kept) - len(kept[-_CUT_BACK:]) + space + 1]
    return kept + CUT
