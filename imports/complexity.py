"""Counts the work of checking a value by a schema: validators try each alternative at each level, so few bytes can be much work.

Counts, before a value is checked, how often the validator would apply a schema to a part of it. The schemas that apply to a part
are a state; a member of that part leads to another state, as in a deterministic automaton that is built as values come. Counting
is linear in the value, whatever the schema. Checks no value.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, Literal, TypeAlias, final, get_args
from urllib.parse import unquote

from ..schemas.cycles import circles
from .model import JsonSchema
from .openapi.keywords import Shape

MOST_IN_PLACE: Final = 20_000
"""Schemas that one schema may apply to the same part of a value."""

MOST_SIZE: Final = 1_000_000
"""Entries of all tables of what applies in place."""

MOST_WORK: Final = 1_000_000
"""Schemas that may be applied to a small value: about 0.1 s of a processor."""

WORK_OF_EACH: Final = 50
"""Schemas that may be applied beyond that for each part of a value."""

MOST_EXPLAINED: Final = 100_000
"""Parts of a value, times the schemas applied to what they are in, where what is wrong is told, too: the error of each
alternative copies the value that it is about.
"""

DEEPEST: Final = 8_000
"""Schemas that may be applied inside each other. The validator uses the native stack, of which errors in 40,000 are too many."""

DEEPEST_IN_PLACE: Final = 400
"""Of these, how many may be applied to one part of a value."""

TOO_MANY: Final = "a schema with too many alternatives of alternatives to be checked"

_ALWAYS_LIGHT: Final = 64
_ALWAYS_SHALLOW: Final = 8
"""Bounds of a state: with these no value of 1,000 levels, which is as deep as JSON is read, needs counting."""
_MOST_EXPLORED: Final = 256
"""States that are looked at before a value comes."""
_MOST_STATES: Final = 4096
"""States that are kept."""

_ENUM_SCALARS: Final = 64
"""Scalars of an enumeration that take as long as one schema. An object or an array takes as long by itself."""

RESCANNING: Final = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_FOREIGN: Final = ("$id", "$dynamicRef")
"""Keywords that give references another meaning than a place in the document. Readers have resolved it."""


class Unbounded(ValueError):
    """A schema that can't be used, whatever the value. The message says why."""


class TooMuchWork(Exception):
    """This value would keep the validator busy for too long, or overflow its stack."""


@final
class Workload:
    """Counts the work of one schema, a document of its own. Raises `Unbounded`.

    The validator remembers for each part of a value whether it fits a schema that refers to itself, if it is only to say whether
    a value fits; `explains` is for errors, where it does not.
    """

    def __init__(self, document: JsonSchema, *, remembers: bool = True) -> None:
        self._document: Final = document
        self._explaining: Workload | None = None
        self._nodes: Final = _Nodes(document, remembers=remembers)
        self._states: dict[frozenset[tuple[_Node, int]], _State] = {}
        self._start: _State = self._state({self._nodes.root: 1})
        self._is_light: Final = self._explore()

    def check(self, value: Any) -> None:  # Any: JSON
        """Raise `TooMuchWork` for a value that must not be checked."""
        if not self._is_light:
            self._of(value)

    def explains(self, value: Any) -> bool:
        """Whether it is little work to tell what is wrong with a value."""
        if self._explaining is None:
            self._explaining = Workload(self._document, remembers=False) if self._nodes.has_remembered else self
        try:
            if self._nodes.has_alternatives:
                return self._explaining._of(value) <= MOST_EXPLAINED
            self._explaining.check(value)
            return True
        except TooMuchWork:
            return False

    def _of(self, value: Any) -> int:
        """How many schemas are applied to a value, each times the parts of that."""
        if len(self._states) > _MOST_STATES:
            self._states.clear()
            self._start = self._state({self._nodes.root: 1})
        work, copied, most = 0, 0, MOST_WORK
        pending = [(value, self._start, self._start.depth, 0)]
        while pending:
            part, state, depth, above = pending.pop()
            most += WORK_OF_EACH
            own = state.work_of(part)
            work += own
            above += own
            copied += above
            if work > most or depth > DEEPEST:
                raise TooMuchWork
            if isinstance(part, dict):
                for name, each in part.items():
                    following = self._member(state, name)
                    pending.append((each, following, depth + following.depth, above))
            elif isinstance(part, list):
                for index, each in enumerate(part):
                    following = self._item(state, index)
                    pending.append((each, following, depth + following.depth, above))
        return copied

    def _explore(self) -> bool:
        """Whether every state is light and shallow. A member with another name counts as one that fits every pattern."""
        seen = {self._start}
        waiting = deque(seen)
        while waiting:
            state = waiting.popleft()
            if state.weight > _ALWAYS_LIGHT or state.depth > _ALWAYS_SHALLOW:
                return False
            if len(seen) + len(state.names) + state.prefixed > _MOST_EXPLORED:
                return False
            following = [self._member(state, name) for name in sorted(state.names)]
            following += [self._item(state, index) for index in range(state.prefixed + 1)]
            following.append(self._state(state.members(None)))
            new = [each for each in following if each not in seen]
            seen.update(new)
            waiting += new
        return True

    def _member(self, state: _State, name: str) -> _State:
        key = state.key_of(name)
        if key not in state.following:
            state.following[key] = self._state(state.members(name))
        return state.following[key]

    def _item(self, state: _State, index: int) -> _State:
        at = min(index, state.prefixed)
        if at not in state.following:
            state.following[at] = self._state(state.elements(at))
        return state.following[at]

    def _state(self, entering: Mapping[_Node, int]) -> _State:
        key = frozenset(entering.items())
        if key not in self._states:
            self._states[key] = _State(self._nodes, entering)
        return self._states[key]


@final
class _State:
    """All schemas that apply to a part of a value, and how often each does. `depth` is how far they apply each other in place."""

    def __init__(self, nodes: _Nodes, entering: Mapping[_Node, int]) -> None:
        applied: Counter[_Node] = Counter()
        for node, times in entering.items():
            for each, again in nodes.closure(node).items():
                applied[each] += times * again
        self.depth = max((node.depth for node in entering), default=0) + 1
        known: set[_Node] = set()
        while left := {each.remembered for each in applied if each.remembered is not None} - known:
            known |= left
            for circle in left:
                applied.update(nodes.closure(circle))
            self.depth += max(circle.depth for circle in left)
        self._applied: Final = applied
        self.weight: Final = sum(node.weight * times for node, times in applied.items())
        self.names: Final = frozenset[str]().union(*(node.names for node in applied))
        self.prefixed: Final = max((len(node.lists["prefix"]) for node in applied), default=0)
        self.following: dict[object, _State] = {}
        self._patterns: Final = [(node, times) for node, times in applied.items() if node.patterns]
        self._for_names: Final = sum(
            len(node.patterns) * times + sum(nodes.cost(each) * times for each in node.lists["property-names"])
            for node, times in applied.items()
        )

    def work_of(self, part: Any) -> int:
        """The work on a part itself, without its members."""
        return self.weight + (self._for_names * len(part) if self._for_names and isinstance(part, dict) else 0)

    def key_of(self, name: str) -> object:
        """Names with the same key lead to the same state."""
        if not self._patterns:
            return name if name in self.names else None
        fits = tuple(match(name) for node, _ in self._patterns for match, _ in node.patterns)
        return (name if name in self.names else None, fits)

    def members(self, name: str | None) -> Counter[_Node]:
        """Return the schemas of the member with this name; for None, to one that is not declared and fits all patterns."""
        found: Counter[_Node] = Counter()
        for node, times in self._applied.items():
            own = [node.names[name]] if name in node.names else []
            fitting = [each for match, each in node.patterns if name is None or match(name)]
            is_other = not own and (name is None or not fitting)
            for each in (*fitting, *own, *node.lists["any-member"], *(node.lists["additional"] if is_other else ())):
                found[each] += times
        return found

    def elements(self, index: int) -> Counter[_Node]:
        """Return the schemas of the element with this index, or to those behind the last that has a schema of its own."""
        found: Counter[_Node] = Counter()
        for node, times in self._applied.items():
            prefix = node.lists["prefix"]
            own = prefix[index : index + 1] if index < len(prefix) else node.lists["items"]
            for each in (*node.lists["any-element"], *own):
                found[each] += times
        return found


@final
class _Node:
    """One schema, and the schemas that it applies: `lists` by the group that they are in, those for members of one name by it."""

    __slots__ = ("depth", "lists", "names", "patterns", "remembered", "rescans", "weight")

    def __init__(self) -> None:
        self.weight = self.depth = 1
        self.lists: dict[_Group, list[_Node]] = {group: [] for group in get_args(_Group)}
        self.names: dict[str, _Node] = {}
        self.patterns: list[tuple[Callable[[str], bool], _Node]] = []
        self.rescans = False
        self.remembered: _Node | None = None
        """What this is a reference to, if that is applied only once to a part."""

    @property
    def in_place(self) -> list[_Node]:
        return self.lists["in-place"]

    def applies(self) -> Iterator[_Node]:
        """All schemas that this one applies itself."""
        yield from chain.from_iterable(self.lists.values())
        yield from self.names.values()
        yield from (each for _, each in self.patterns)

    def refer(self, to: _Node, by: _Node) -> None:
        """Apply one schema by the reference to it, wherever it is applied."""

        def instead(node: _Node) -> _Node:
            return by if node is to else node

        self.lists = {group: [*map(instead, nodes)] for group, nodes in self.lists.items()}
        self.names = {name: instead(each) for name, each in self.names.items()}
        self.patterns = [(match, instead(each)) for match, each in self.patterns]


_Group: TypeAlias = Literal[
    "in-place", "additional", "any-member", "property-names", "prefix", "items", "any-element"
]  # fmt: skip
"""Schemas for the same value, for members or names of them, and for elements. `additional` is for members that no other is for,
`items` for elements behind those of `prefix`."""

_GROUPS: Final[Mapping[str, tuple[_Group, Shape]]] = {
    "additionalProperties": ("additional", "one"),
    "unevaluatedProperties": ("any-member", "one"),
    "propertyNames": ("property-names", "one"),
    "prefixItems": ("prefix", "list"),
    "items": ("items", "one"),
    **dict.fromkeys(("contains", "unevaluatedItems"), ("any-element", "one")),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), ("in-place", "list")),
    **dict.fromkeys(("not", "if", "then", "else"), ("in-place", "one")),
    "dependentSchemas": ("in-place", "map"),  # as if each name were there
}
"""The group of the schemas that a keyword holds, and how it holds them."""

_Closure: TypeAlias = Mapping[_Node, int]


@final
class _Nodes:
    """The schemas of a document. Needs no stack: references may be as many in a row as they like."""

    def __init__(self, document: JsonSchema, *, remembers: bool) -> None:
        self._document: Final = document
        self._of: dict[int, _Node] = {}
        self._unread: list[tuple[Mapping[str, Any], _Node]] = []
        self._closures: dict[_Node, _Closure] = {}
        self._marks: dict[_Node, _Closure] = {}
        self._size = 0
        self._references: list[_Node] = []
        self.has_alternatives = False
        self.root: Final = self._node(document)
        while self._unread:
            schema, node = self._unread.pop()
            self._read(schema, node)
        self._has_rescans: Final = any(node.rescans for node in self._of.values())
        all_nodes = [*self._of.values()]
        for node in all_nodes:
            self._close(node)
        self.has_remembered = False
        if remembers and not self._has_rescans:
            self._remember({*all_nodes})
        if self.has_remembered:
            self._closures.clear()
            self._size = 0
            for node in (*all_nodes, *self._references):
                self._close(node)

    def closure(self, node: _Node) -> _Closure:
        """The schemas that apply to a value because this one does, it among them, and how often each."""
        return self._closures[node]

    def cost(self, node: _Node) -> int:
        return sum(each.weight * times for each, times in self._closures[node].items())

    def _node(self, schema: Any) -> _Node:
        if id(schema) not in self._of or isinstance(schema, bool):
            node = _Node()
            if not isinstance(schema, Mapping):
                return self._of.setdefault(id(schema), node)
            self._of[id(schema)] = node
            self._unread.append((schema, node))
        return self._of[id(schema)]

    def _read(self, schema: Mapping[str, Any], node: _Node) -> None:
        if any(word in schema for word in _FOREIGN):
            raise Unbounded("a schema with $id or dynamic references in it")
        enum = schema.get("enum", ())
        node.weight += sum(isinstance(each, dict | list) for each in enum) + len(enum) // _ENUM_SCALARS
        node.names = {name: self._node(each) for name, each in _table(schema, "properties")}
        node.patterns = [(_matcher(text), self._node(each)) for text, each in _table(schema, "patternProperties")]
        for word, (group, shape) in _GROUPS.items():
            if word in schema:
                value = schema[word]
                inner = [value] if shape == "one" else dict(_table(schema, word)).values() if shape == "map" else value
                node.lists[group] += map(self._node, inner)
        if "$ref" in schema:
            node.lists["in-place"].append(self._node(self._target(schema["$ref"])))
        self.has_alternatives = self.has_alternatives or "anyOf" in schema or "oneOf" in schema
        node.rescans = not RESCANNING.isdisjoint(schema)

    def _target(self, reference: Any) -> Any:
        place: Any = self._document
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise Unbounded("a schema with a reference that leads out of it")
        for step in unquote(reference).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            try:
                place = place[int(name) if isinstance(place, list) else name]
            except (KeyError, IndexError, ValueError, TypeError):
                raise Unbounded("a schema with a reference that leads nowhere") from None
        return place

    def _remember(self, among: set[_Node]) -> None:
        """Mark the references whose targets the validator remembers: those to a schema that it is just compiling. These are known
        where a circle of references is entered at one schema alone.
        """
        applies = {node: [each for each in node.applies() if each in among] for node in among}
        components = circles(applies)
        if not components:
            return
        entries: dict[int, set[_Node]] = {}
        for node in self._of.values():
            for each in node.applies():
                if each in components and components.get(node) != components[each]:
                    entries.setdefault(components[each], set()).add(each)
        if self.root in components:
            entries.setdefault(components[self.root], set()).add(self.root)
        inner: set[_Node] = set()
        for component, (entry, *others) in entries.items():
            if others:
                continue
            circle = {node for node, own in components.items() if own == component}
            reference = _Node()
            reference.remembered = entry
            self._of[id(reference)] = reference
            self._references.append(reference)
            self.has_remembered = True
            for node in circle:
                node.refer(entry, reference)
            inner |= circle - {entry}
        if inner:
            self._remember(inner)

    def _close(self, start: _Node) -> None:
        """Compute the closures of a schema and of all that it applies in place, the inner ones first."""
        path, on_path = [start], {start}
        while path:
            node = path[-1]
            ahead = next((each for each in node.in_place if each not in self._closures), None)
            if node in self._closures or ahead is None:
                self._finish(node)
                on_path.discard(path.pop())
            elif ahead in on_path:
                raise Unbounded("a schema that refers to itself before it says anything of a value")
            else:
                path.append(ahead)
                on_path.add(ahead)

    def _finish(self, node: _Node) -> None:
        """`unevaluated...` makes the validator look once more, at each level, for what has been evaluated."""
        if node in self._closures:
            return
        closure: Counter[_Node] = Counter({node: 1})
        mark: Counter[_Node] = Counter({node: 1})
        for each in node.in_place:
            closure.update(self._closures[each])
            if self._has_rescans:
                mark.update(self._closures[each])
                mark.update(self._marks[each])
        if node.rescans:
            closure.update(mark)
        node.depth = 1 + max((each.depth for each in node.in_place), default=0)
        self._size += len(closure) + len(mark)
        work = max(closure.total(), mark.total())
        if work > MOST_IN_PLACE or self._size > MOST_SIZE or node.depth > DEEPEST_IN_PLACE:
            raise Unbounded(TOO_MANY)
        self._closures[node], self._marks[node] = closure, mark


def _table(schema: Mapping[str, Any], word: str) -> Iterator[tuple[str, Any]]:
    found = schema.get(word)
    if isinstance(found, Mapping):
        yield from found.items()


def _matcher(pattern: str) -> Callable[[str], bool]:
    import jsonschema_rs  # late: an extra

    try:
        matches: Callable[[str], bool] = jsonschema_rs.Draft202012Validator({"pattern": pattern}).is_valid
    except (ValueError, jsonschema_rs.ValidationError):
        raise Unbounded("a schema with a pattern that is no regular expression") from None
    return matches
