"""Which unions msgspec can't tell apart, and in which order their structures are tried instead.

msgspec decodes a union by the JSON type of what it finds: of objects, arrays, strings and numbers it allows one each.
Several structures are allowed if all carry a tag, in the same member.
"""

from __future__ import annotations

from model import Exactly, ListOf, MapOf, Model, Named, OneOf, Plain, TupleOf, Type


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
