"""Decides which rules look at a line: those of which a literal is in it. Knows nothing of what the rules do.

Looking for some three hundred literals one after the other would take longer than everything else together. Where
`ahocorasick_rs` is installed (extra `fast`), one pass of it finds them all. Otherwise three expressions do, which hold
the literals as tries and are built to find, at most places of most lines, that nothing can begin there: literals that
end in `_`, `-`, `.` and the like are looked for backwards, and those with capitals apart from those without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Generic, Protocol, TypeAlias, TypeVar

RuleT = TypeVar("RuleT")
_Trie: TypeAlias = "dict[str, _Trie]"


class _Automaton(Protocol):
    """The part of `ahocorasick_rs.AhoCorasick` that is used here."""

    def find_matches_as_indexes(self, haystack: str, overlapping: bool = False) -> list[tuple[int, int, int]]: ...


class Prefilter(Generic[RuleT]):
    """Finds the rules whose literals are in a line."""

    def __init__(self, literals: Iterable[tuple[str, RuleT]], *, automaton: bool = True) -> None:
        pairs = list(literals)
        self._rules = list(dict.fromkeys(rule for _, rule in pairs))
        places = {rule: place for place, rule in enumerate(self._rules)}
        self._places = [places[rule] for _, rule in pairs]
        self._automaton = _build([literal.lower() for literal, _ in pairs]) if automaton else None
        self._backward = _Search((word[::-1].lower(), places[rule]) for word, rule in pairs if _ends_open(word))
        forward = [(word, places[rule]) for word, rule in pairs if not _ends_open(word)]
        self._exact = _Search((word, place) for word, place in forward if word != word.lower())
        self._forward = _Search((word, place) for word, place in forward if word == word.lower())

    def awake(self, text: str, low: str) -> list[RuleT]:
        """The rules to apply to a line, each once, in the order in which they were given; `low` is it in lower case."""
        if self._automaton is not None:
            try:
                found = {self._places[match[0]] for match in self._automaton.find_matches_as_indexes(low, True)}
                return [self._rules[place] for place in sorted(found)]
            except UnicodeEncodeError:
                pass  # a lone surrogate: the automaton wants UTF-8, the expressions do not care
        found = {*self._exact.places(text), *self._forward.places(low), *self._backward.places(low[::-1])}
        return [self._rules[place] for place in sorted(found)] if found else []


def _ends_open(literal: str) -> bool:
    return not literal[-1].isalnum()


class _Search:
    """All of some literals that are in a text, wherever they overlap."""

    def __init__(self, literals: Iterable[tuple[str, int]]) -> None:
        pairs = list(literals)
        words = {word for word, _ in pairs}
        # Finds the longest literal of each place, and with it all literals that it begins with.
        self._wakes = {word: {place for other, place in pairs if word.startswith(other)} for word in words}
        self._findall = re.compile(f"(?=({_expression(_trie(words))}))").findall
        # Finds out, in half the time, whether there is any.
        self._search = re.compile(_expression(_trie(words), shortest=True)).search

    def places(self, text: str) -> Iterable[int]:
        first = self._search(text) if self._wakes else None
        if first is None:
            return ()
        return {place for word in set(self._findall(text, first.start())) for place in self._wakes[word]}


def _trie(literals: Iterable[str]) -> _Trie:
    root: _Trie = {}
    for literal in literals:
        node = root
        for character in literal:
            node = node.setdefault(character, {})
        node[""] = {}
    return root


def _expression(node: _Trie, *, shortest: bool = False) -> str:
    """The trie as a pattern; it matches the longest word of a place, or the shortest."""
    if shortest and "" in node:
        return ""
    branches = [
        re.escape(character) + _expression(below, shortest=shortest) for character, below in node.items() if character
    ]
    if not branches:
        return ""
    joined = branches[0] if len(branches) == 1 and "" not in node else f"(?:{'|'.join(branches)})"
    return f"{joined}?" if "" in node else joined


def _build(literals: list[str]) -> _Automaton | None:
    try:
        from ahocorasick_rs import AhoCorasick  # type: ignore[import-not-found,unused-ignore]  # late and optional
    except ImportError:
        return None
    automaton: _Automaton = AhoCorasick(literals)
    return automaton
