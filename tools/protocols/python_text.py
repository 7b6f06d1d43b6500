"""Writes a model as modules of msgspec structs. Decides nothing about the protocol.

msgspec decodes a union by the JSON type of what it finds: of objects, arrays, strings and numbers it allows one each.
Several structures are allowed if all carry a tag, in the same member. Of other unions the structures are tried one by one.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from model import (
    NONE,
    Enumeration,
    Exactly,
    ListOf,
    MapOf,
    Member,
    Model,
    Named,
    OneOf,
    Plain,
    Structure,
    TupleOf,
    Type,
    camel,
    constant,
    one_of,
    pascal,
    snake,
    without_none,
)


def is_ambiguous(of: Type, model: Model) -> bool:
    """Whether msgspec refuses this union. What stands inside lists and maps is not looked at."""
    if not isinstance(of, OneOf):
        return False
    parts = list(_parts(of, model))
    structures = {part.name for part in parts if isinstance(part, Named) and part.name in model.structures}
    objects = len(structures) + sum(isinstance(part, MapOf) for part in parts)
    arrays = len({part for part in parts if isinstance(part, ListOf | TupleOf)})
    return arrays > 1 or (objects > 1 and not _tagged_apart(structures, objects, model))


def _tagged_apart(structures: set[str], objects: int, model: Model) -> bool:
    tags = {model.tag_of(name) for name in structures}
    return objects == len(structures) == len(tags) and None not in tags and len({tag[0] for tag in tags if tag}) == 1


def _parts(of: Type, model: Model) -> list[Type]:
    of = model.follow(of)
    return [part for item in of.items for part in _parts(item, model)] if isinstance(of, OneOf) else [of]


def candidates(of: Type, model: Model) -> list[tuple[tuple[str, ...], str]]:
    """The structures of a union and of its lists, with the members that each must have; those with most members first."""
    found: list[str] = []
    for part in _parts(of, model):
        inner = model.follow(part.item) if isinstance(part, ListOf) else part
        for leaf in _parts(inner, model):
            if isinstance(leaf, Named) and leaf.name in model.structures:
                if leaf.name not in found:
                    found.append(leaf.name)
            elif isinstance(leaf, ListOf | MapOf):
                raise NotImplementedError(f"{leaf} in a union that msgspec can't tell apart")
    required = [(_required(name, model), name) for name in found]
    return sorted(required, key=lambda pair: -len(pair[0]))


def scalars(of: Type, model: Model) -> list[str]:
    """The names of the plain types beside the structures, in the union and in its lists."""
    found: set[str] = set()
    for part in _parts(of, model):
        for leaf in _parts(part.item, model) if isinstance(part, ListOf) else [part]:
            match leaf:
                case Plain(text) if text != "None":
                    found.add(text)
                case Named(name) if name in model.enumerations:
                    found.add(model.enumerations[name].plain)
                case Exactly(values):
                    found |= {type(value).__name__ for value in values}
                case _:
                    pass
    return sorted(found)


def has_lists(of: Type, model: Model) -> bool:
    return any(isinstance(part, ListOf) for part in _parts(of, model))


def _required(name: str, model: Model) -> tuple[str, ...]:
    tag = model.tag_of(name)
    members = [member.name for member in model.all_members(name) if not member.optional]
    return tuple(sorted([*members, tag[0]] if tag else members))


SOURCES = {
    "typing": ("TYPE_CHECKING", "Annotated", "Any", "ClassVar", "Literal", "TypeAlias"),
    "msgspec": ("UNSET", "Struct", "UnsetType", "field"),
    "msgspec.structs": ("force_setattr",),
    "...structs": ("FrozenWireStruct", "OpenInt", "OpenStr", "StructUnion", "WireStruct"),
}
"""Where a module finds what it uses, beside the modules next to it."""
WRITTEN_BY_HAND = {"Position": "....daemon.documents"}
"""Structs that stand elsewhere in the tree: the module of each. They are not written, and found where they would be."""
BUILTINS = {"str", "int", "float", "bool", "list", "dict", "tuple"}


@dataclass(frozen=True)
class Group:
    """One module: its name, its first sentence, and what it claims with all that this leads to."""

    module: str
    purpose: str
    seeds: Sequence[str]


@dataclass(frozen=True)
class Style:
    source: str
    """From which schema, for the first line."""
    frozen: bool
    """Otherwise structs can be changed, but for those of numbers only."""


def heading(source: str) -> str:
    return f"# Written by tools/protocols from {source}. Do not edit.\n"


def name_ambiguous_unions(model: Model) -> None:
    """Gives every union that msgspec can't tell apart a name."""
    for structure in list(model.structures.values()):
        members = tuple(
            replace(member, type=_extract(member.type, structure.name + pascal(member.name), model))
            for member in structure.members
        )
        model.structures[structure.name] = replace(structure, members=members)
    for name, of in list(model.aliases.items()):
        if not is_ambiguous(of, model):
            model.aliases[name] = _extract(of, name, model)


def _extract(of: Type, name: str, model: Model) -> Type:
    match of:
        case OneOf(items) if is_ambiguous(of, model):
            if name in model.aliases or name in model.structures:
                raise ValueError(f"{name} is taken")
            model.aliases[name] = without_none(of)
            model.unnamed.add(name)
            return one_of(Named(name), *(item for item in items if item == Plain("None")))
        case OneOf(items):
            return one_of(*(_extract(item, name, model) for item in items))
        case ListOf(item):
            return ListOf(_extract(item, f"{name}Item", model))
        case MapOf(value):
            return MapOf(_extract(value, f"{name}Value", model))
        case _:
            return of


def quoted_lines(names: Iterable[str], separator: str) -> str:
    """The names on as few lines as they need: each a text, or, with a blank for the separator, all of a line one text."""
    lines = textwrap.wrap(separator.join(f'"{name}"' if separator != " " else name for name in names), 112)
    return "\n".join(f'    "{line} "' if separator == " " else f"    {line}" for line in lines)


def group_modules(model: Model, groups: Sequence[Group]) -> dict[str, set[str]]:
    """What each module holds. A module imports only from those before it: whatever a name leads to is claimed with it."""
    claimed: set[str] = set()
    found: dict[str, set[str]] = {}
    for group in groups:
        found[group.module] = model.reachable(*group.seeds) - claimed
        claimed |= found[group.module]
    return found


def write_modules(model: Model, groups: Sequence[Group], style: Style) -> dict[str, str]:
    """The text of every module by its name."""
    held = group_modules(model, groups)
    homes = {name: module for module, names in held.items() for name in names}
    return {group.module: _Module(model, group, style, held[group.module], homes).text() for group in groups}


class _Module:
    def __init__(self, model: Model, group: Group, style: Style, names: set[str], homes: dict[str, str]) -> None:
        self._model = model
        self._group = group
        self._style = style
        self._names = names
        self._homes = homes

    def text(self) -> str:
        model = self._model
        written = model.structures.keys() - WRITTEN_BY_HAND.keys()
        parts = [
            *(
                self._enumeration(model.enumerations[name])
                for name in sorted(self._names)
                if name in model.enumerations
            ),
            *(self._structure(model.structures[name]) for name in self._in_order() if name in written),
            *(self._alias(name) for name in self._in_order() if name in model.aliases),
        ]
        body = "\n\n".join(parts)
        exported = sorted(self._names & model.public)
        return "\n".join(
            [
                f'{heading(self._style.source)}"""{self._group.purpose}"""\n',
                "from __future__ import annotations\n",
                *self._imports(body),
                f"__all__ = [\n{quoted_lines(exported, ', ')},\n]  # fmt: skip\n\n",
                body,
                "",
            ]
        )

    def _imports(self, body: str) -> Iterator[str]:
        words = set(re.findall(r"\w+", body))
        for module, names in SOURCES.items():
            if used := [name for name in names if name in words]:
                yield f"from {module} import {', '.join(used)}"
        for name, module in WRITTEN_BY_HAND.items():
            if name in self._names:
                yield f"from {module} import {name}"
        others: dict[str, set[str]] = {}
        for name, module in self._homes.items():
            if module != self._group.module:
                others.setdefault(module, set()).update({name, _union_name(name)} & words)
        for module, found in sorted(others.items()):
            if found:
                yield f"from .{module} import {', '.join(sorted(found))}"

    def _in_order(self) -> list[str]:
        """What a class statement or an alias needs comes before it."""
        done: list[str] = []

        def visit(name: str) -> None:
            if name in done or name not in self._names:
                return
            if name in self._model.aliases:
                needed = self._model.mentioned(name)
            else:
                base = self._model.structures[name].base if name in self._model.structures else None
                needed = {base} if base else set()
            for other in sorted(needed):
                visit(other)
            done.append(name)

        for name in sorted(self._names):
            visit(name)
        return done

    def _enumeration(self, enumeration: Enumeration) -> str:
        lines = [f"class {enumeration.name}(Open{enumeration.plain.capitalize()}):"]
        lines += [f"    {constant(name)} = {_quoted(value)}" for name, value in enumeration.values]
        return "\n".join(lines) + "\n"

    def _alias(self, name: str) -> str:
        of = self._model.aliases[name]
        if not is_ambiguous(of, self._model):
            return f"{name}: TypeAlias = {type_text(of)}"
        plain = "".join(f"{scalar}, " for scalar in scalars(of, self._model))
        structs = "".join(
            f"    ({_quoted(' '.join(required))}, {struct}),\n" for required, struct in candidates(of, self._model)
        )
        return (
            f"{_union_name(name)} = StructUnion(({plain}), (\n{structs}), lists={has_lists(of, self._model)})\n"
            f"if TYPE_CHECKING:\n    {name}: TypeAlias = {type_text(of)}\n"
            f"else:\n    {name} = Annotated[Any, {_union_name(name)}]\n"
        )

    def _structure(self, structure: Structure) -> str:
        values = not self._style.frozen and is_of_numbers(structure.name, self._model)
        if values:
            options = ['Struct, rename="camel", frozen=True, order=True']
        else:
            frozen = self._style.frozen
            base = structure.base or ("FrozenWireStruct" if frozen else "WireStruct")
            options = [base, *(["frozen=True"] if frozen else []), "kw_only=True"]
        if structure.tag:
            options.append(f"tag_field={_quoted(structure.tag[0])}, tag={_quoted(structure.tag[1])}")
        lines = [f"class {structure.name}({', '.join(options)}):"]
        if structure.tag:
            value = _quoted(structure.tag[1])
            lines.append(f"    {snake(structure.tag[0])}: ClassVar[Literal[{value}]] = {value}")
        lines += [f"    {self._member(member)}" for member in structure.members]
        used = {word for member in structure.members for word in re.findall(r"\w+", type_text(member.type))}
        if hidden := BUILTINS & used & {snake(member.name) for member in structure.members}:
            raise ValueError(f"{structure.name} hides {hidden}")
        lines += self._post_init(structure)
        return "\n".join([*lines, "    pass"] if len(lines) == 1 else lines) + "\n"

    def _member(self, member: Member) -> str:
        name = snake(member.name)
        wire = "" if camel(name) == member.name else f"name={_quoted(member.name)}"
        text = type_text(member.type)
        if not member.optional:
            return f"{name}: {text}" + (f" = field({wire})" if wire else "")
        default = "UNSET" if member.three_states else "None"
        text = _joined(text, "UnsetType" if member.three_states else "None")
        return f"{name}: {text} = " + (f"field(default={default}, {wire})" if wire else default)

    def _post_init(self, structure: Structure) -> Iterator[str]:
        """Makes structs of what msgspec left as it was."""
        members = self._model.all_members(structure.name)
        found = {member.name: code for member in members if (code := self._reading_member(member))}
        if not found.keys() & {member.name for member in structure.members}:
            return  # nothing to do, or the base does it
        yield "\n    def __post_init__(self) -> None:"
        for name, code in found.items():
            if self._style.frozen:
                yield f"        force_setattr(self, {_quoted(snake(name))}, {code})"
            else:
                yield f"        self.{snake(name)} = {code}"

    def _reading_member(self, member: Member) -> str:
        of = one_of(member.type, NONE) if member.optional else member.type
        code = self._reading(f"self.{snake(member.name)}", of)
        if code and member.three_states:
            raise NotImplementedError(f"{member}")
        return code

    def _reading(self, expression: str, of: Type) -> str:
        """The expression that reads a value of this type; empty if msgspec has read it."""
        match of:
            case Named(name) if name in self._model.aliases:
                inner = self._model.aliases[name]
                if is_ambiguous(inner, self._model):
                    return f"{_union_name(name)}.read({expression})"
                return self._reading(expression, inner)
            case ListOf(item) if code := self._reading("item", item):
                return f"[{code} for item in {expression}]"
            case MapOf(value) if code := self._reading("item", value):
                return f"{{key: {code} for key, item in {expression}.items()}}"
            case OneOf(items) if code := next(filter(None, (self._reading(expression, item) for item in items)), ""):
                others = [item for item in items if not self._reading(expression, item)]
                if others != [NONE]:
                    raise NotImplementedError(f"{of}")
                return f"None if {expression} is None else {code}"
            case _:
                return ""


def _union_name(name: str) -> str:
    return f"{snake(name).upper()}_UNION"


def _joined(text: str, further: str) -> str:
    return text if text == "Any" or text.endswith(f"| {further}") else f"{text} | {further}"


def is_of_numbers(name: str, model: Model) -> bool:
    """Whether all its members must be there and are numbers, or such structures."""
    structure = model.structures[name]
    return (
        bool(structure.members)
        and not structure.tag
        and not structure.base
        and all(
            not member.optional
            and (
                member.type in {Plain("int"), Plain("float")}
                or (
                    isinstance(member.type, Named)
                    and member.type.name in model.structures
                    and is_of_numbers(member.type.name, model)
                )
            )
            for member in structure.members
        )
    )


def _quoted(value: str | int) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def type_text(of: Type) -> str:
    """An annotation."""
    match of:
        case Plain(text) | Named(text):
            return text
        case Exactly(values):
            return f"Literal[{', '.join(map(_quoted, values))}]"
        case ListOf(item):
            return f"list[{type_text(item)}]"
        case MapOf(value):
            return f"dict[str, {type_text(value)}]"
        case TupleOf(items):
            return f"tuple[{', '.join(map(type_text, items))}]"
        case OneOf(items):
            return " | ".join(map(type_text, items))
