"""Selects the rules to try on a line: those with a literal in it. Never looks at what a rule does.

Searching some three hundred literals one after the other would take longer than all else together. Where `ahocorasick_rs`
is installed (extra `fast`), it finds them all in one pass. Otherwise three regular expressions do, which hold the
literals as tries and fail fast at most positions of most lines: literals that end in `_`, `-`, `.` and the like are
searched backwards, and those with capitals apart from those without.
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
    """Finds the rules with a literal in a line."""

    def __init__(self, literals: Iterable[tuple[str, RuleT]], *, automaton: bool = True) -> None:
        pairs = list(literals)
        self._rules = list(dict.fromkeys(rule for _, rule in pairs))
        places = {rule: place for place, rule in enumerate(self._rules)}
        self._places = [places[rule] for _, rule in pairs]
        # A literal with capitals must be in the line as it is; of others nothing is asked that the automaton did not.
        self._capitals = [
            literal if literal != literal.lower() and not _is_searched_backwards(literal) else ""
            for literal, _ in pairs
        ]
        self._automaton = _build_automaton([literal.lower() for literal, _ in pairs]) if automaton else None
        self._backward = _Search(
            (word[::-1].lower(), places[rule]) for word, rule in pairs if _is_searched_backwards(word)
        )
        forward = [(word, places[rule]) for word, rule in pairs if not _is_searched_backwards(word)]
        self._exact = _Search((word, place) for word, place in forward if word != word.lower())
        self._forward = _Search((word, place) for word, place in forward if word == word.lower())

    def matching_rules(self, text: str, low: str) -> list[RuleT]:
        """The rules to apply to a line, each once, in their original order; `low` is the line in lower case."""
        if self._automaton is not None:
            try:
                matches = self._automaton.find_matches_as_indexes(low, True)
            except UnicodeEncodeError:
                pass  # a lone surrogate: the automaton needs valid UTF-8, the regular expressions do not
            else:
                if not matches:
                    return []
                literals = {match[0] for match in matches}
                return self._rules_at({self._places[at] for at in literals if self._capitals[at] in text})
        found = {*self._exact.places(text), *self._forward.places(low), *self._backward.places(low[::-1])}
        return self._rules_at(found) if found else []

    def _rules_at(self, places: set[int]) -> list[RuleT]:
        return [self._rules[place] for place in sorted(places)]


def _is_searched_backwards(literal: str) -> bool:
    return not literal[-1].isalnum()


class _Search:
    """Finds all literals that are in a text, also where they overlap."""

    def __init__(self, literals: Iterable[tuple[str, int]]) -> None:
        pairs = list(literals)
        words = {word for word, _ in pairs}
        # Finds the longest literal at each position; the mapping adds the literals that are prefixes of it.
        self._places_by_word = {word: {place for other, place in pairs if word.startswith(other)} for word in words}
        self._findall = re.compile(f"(?=({trie_pattern(words)}))").findall
        # Finds out, in half the time, whether there is any literal at all.
        self._search = re.compile(_expression(_trie(words), shortest=True)).search

    def places(self, text: str) -> Iterable[int]:
        first = self._search(text) if self._places_by_word else None
        if first is None:
            return ()
        return {place for word in set(self._findall(text, first.start())) for place in self._places_by_word[word]}


def trie_pattern(literals: Iterable[str]) -> str:
    """A pattern that matches the longest of the literals at a position, and fails faster than an alternation of them."""
    return _expression(_trie(literals))


def _trie(literals: Iterable[str]) -> _Trie:
    root: _Trie = {}
    for literal in literals:
        node = root
        for character in literal:
            node = node.setdefault(character, {})
        node[""] = {}
    return root


def _expression(node: _Trie, *, shortest: bool = False) -> str:
    """The trie as a pattern that matches the longest word at a position, or the shortest."""
    if shortest and "" in node:
        return ""
    branches = [
        re.escape(character) + _expression(below, shortest=shortest) for character, below in node.items() if character
    ]
    if not branches:
        return ""
    joined = branches[0] if len(branches) == 1 and "" not in node else f"(?:{'|'.join(branches)})"
    return f"{joined}?" if "" in node else joined


def _build_automaton(literals: list[str]) -> _Automaton | None:
    try:
        from ahocorasick_rs import AhoCorasick  # type: ignore[import-not-found,unused-ignore]  # late and optional
    except ImportError:
        return None
    automaton: _Automaton = AhoCorasick(literals)
    return automaton
