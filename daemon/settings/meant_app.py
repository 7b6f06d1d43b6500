"""Guesses which app was meant where a reference is none, or its file is not there. Reads files, runs none of them."""

from __future__ import annotations

import os
from typing import Final

from ...errors.nearest import closest_match

_HOSTED: Final = ("Service", "Agent")
"""The classes whose instances are apps."""

_SWITCHED: Final = ("true", "false", "yes", "no", "on", "off", "1", "0")
"""Arguments that other programs take behind a switch."""

_MAX_BYTES: Final = 1024 * 1024
"""How much of a file is parsed."""

_MAX_FILES: Final = 1000
"""How many names of a folder are compared."""

_MAX_NAMES: Final = 8


def meant_by(text: str) -> str:
    """The end of a message on a text that is no reference: the references that it may stand for; empty for no idea."""
    if text.lower() in _SWITCHED:
        return "; a switch takes no value"
    text = text.removesuffix(":")
    path = text if text.endswith(".py") else f"{text}.py"
    shown = path if os.path.dirname(path) else os.path.join(os.curdir, path)
    if "\0" in path or not os.path.isfile(path):
        return nearest_file(path) if text.endswith(".py") else ""
    names = _names_of_apps(path)
    return f"; write {' or '.join(f'{shown}:{name}' for name in names or ['name'])}"


def nearest_file(path: str) -> str:
    """The end of a message on a Python file that is not there: the most similar one of its folder; empty for none."""
    folder, file = os.path.split(path)
    try:
        with os.scandir(folder or os.curdir) as entries:
            names = [entry.name for _, entry in zip(range(_MAX_FILES), entries, strict=False)]
    except (OSError, ValueError):
        return ""
    near = closest_match(file, (name for name in names if name.endswith(".py")))
    return f"; nearest: {os.path.join(folder or os.curdir, near)}" if near else ""


def _names_of_apps(path: str) -> list[str]:
    """The names to which a file binds a service or an agent at its top level, as far as its text tells."""
    import ast  # late, as above

    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read(_MAX_BYTES))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: list[str] = []
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call(func=made)):
                pass
            case ast.AnnAssign(target=ast.Name(name), value=ast.Call(func=made)):
                pass
            case _:
                continue
        if getattr(made, "attr", getattr(made, "id", "")) in _HOSTED:
            found.append(name)
    return found[:_MAX_NAMES]
