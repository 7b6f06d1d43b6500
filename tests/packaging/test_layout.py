"""The tree keeps its shape: no circles among modules, no bare imports, and a first line that says what each is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter

from support.tree import FOLDERS, sources

MODULES = {
    name.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): path for name, path in sources().items()
}
"""Every module by its full name."""


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_bytes())


def imports_of(module: str) -> set[str]:
    """The modules of ours that a module imports: anywhere in it, and for types only too."""
    found: set[str] = set()
    package = module.split(".") if MODULES[module].name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.ImportFrom) and node.level:
            origin = ".".join(package[: len(package) - node.level + 1] + ([node.module] if node.module else []))
            for alias in node.names:
                full = f"{origin}.{alias.name}"
                found.add(full if full in MODULES else origin)
    assert found <= MODULES.keys(), found - MODULES.keys()
    return found - {module, "discreet"}  # the face of the package is imported for its version


def absolute_imports(module: str) -> Iterator[str]:
    for node in ast.walk(parsed(module)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(name), level=0):
                yield name


def test_no_modules_import_each_other_in_a_circle() -> None:
    imports = {module: imports_of(module) for module in MODULES}
    circles: list[list[str]] = []
    while True:
        try:
            TopologicalSorter(imports).prepare()
            break
        except CycleError as error:
            circle: list[str] = error.args[1]
            circles.append(circle[::-1])
            for importing, imported in zip(circles[-1], circles[-1][1:], strict=False):
                imports[importing].discard(imported)
    assert circles == []


def test_every_module_says_what_it_is_for() -> None:
    assert [module for module in MODULES if not ast.get_docstring(parsed(module))] == []


def test_no_module_imports_our_folders_by_their_bare_names() -> None:
    ours = {*FOLDERS, "discreet"}
    bare = {(module, name) for module in MODULES for name in absolute_imports(module) if name.split(".")[0] in ours}
    assert bare == set()
