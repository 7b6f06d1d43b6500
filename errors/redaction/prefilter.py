"""Decides which rules look at a line: those of which a literal is in it. Knows nothing of what the rules do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

RuleT = TypeVar("RuleT")

_JOINTS = "_-.:="
"""Characters that many literals hold and many lines don't: one look at them, and at the pair that they end, spares
many looks at literals."""


class _Automaton(Protocol):
    """The part of `ahocorasick_rs.AhoCorasick` that is used here."""

    def find_matches_as_indexes(self, haystack: str, overlapping: bool = False) -> list[tuple[int, int, int]]: ...


class Prefilter(Generic[RuleT]):
    """Finds the rules whose literals are in a line; in one pass where `ahocorasick_rs` is installed (extra `fast`)."""

    def __init__(self, literals: Iterable[tuple[str, RuleT]], *, automaton: bool = True) -> None:
        pairs = list(literals)
        self._rules = list(dict.fromkeys(rule for _, rule in pairs))
        places = {rule: place for place, rule in enumerate(self._rules)}
        self._places = [places[rule] for _, rule in pairs]
        self._automaton = _build([literal for literal, _ in pairs]) if automaton else None
        groups: dict[str, dict[str, list[tuple[str, int]]]] = {}
        for (literal, _), place in zip(pairs, self._places, strict=True):
            joint = next((joint for joint in _JOINTS if joint in literal[1:]), "")
            pair = literal[(at := literal.index(joint, 1)) - 1 : at + 1] if joint else ""
            groups.setdefault(joint, {}).setdefault(pair, []).append((literal, place))
        self._groups = [(joint, list(group.items())) for joint, group in groups.items()]

    def awake(self, low: str) -> list[RuleT]:
        """The rules to apply to a line in lower case, each once, in the order in which they were given."""
        if self._automaton is not None:
            try:
                found = {self._places[match[0]] for match in self._automaton.find_matches_as_indexes(low, True)}
                return [self._rules[place] for place in sorted(found)]
            except UnicodeEncodeError:
                pass  # a lone surrogate: the automaton wants UTF-8, the loop does not care
        found = {
            place
            for joint, group in self._groups
            if joint in low
            for pair, literals in group
            if pair in low
            for literal, place in literals
            if literal in low
        }
        return [self._rules[place] for place in sorted(found)] if found else []


def _build(literals: list[str]) -> _Automaton | None:
    try:
        from ahocorasick_rs import AhoCorasick  # late and optional
    except ImportError:
        return None
    automaton: _Automaton = AhoCorasick(literals)
    return automaton
