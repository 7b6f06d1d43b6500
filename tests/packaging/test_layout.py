"""The tree keeps its shape: no circles among modules, and a first line that says what each is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = {
    "discreet": ROOT / "src" / "discreet",
    **{
        f"discreet.{name}": ROOT / name
        for name in (
            "a2a",
            "agents",
            "client",
            "daemon",
            "dialects",
            "errors",
            "files",
            "framing",
            "gateway",
            "imports",
        )
    },
}


def modules() -> dict[str, Path]:
    """Every module by its full name. The links in `src/discreet` are not followed."""
    found: dict[str, Path] = {}
    for package, place in PLACES.items():
        for path in files_below(place):
            parts = path.relative_to(place).with_suffix("").parts
            found[".".join((package, *parts)).removesuffix(".__init__")] = path
    return found


def files_below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            yield from files_below(path)
        elif path.suffix == ".py":
            yield path


MODULES = modules()


def imports_of(module: str) -> set[str]:
    """The modules of ours that a module imports: anywhere in it, and for types only too."""
    found: set[str] = set()
    package = module.split(".") if MODULES[module].name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(MODULES[module].read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.level:
            origin = ".".join(package[: len(package) - node.level + 1] + ([node.module] if node.module else []))
            for alias in node.names:
                full = f"{origin}.{alias.name}"
                found.add(full if full in MODULES else origin)
    assert found <= MODULES.keys(), found - MODULES.keys()
    return found - {module, "discreet"}  # the face of the package is imported for its version


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
    silent = [name for name, path in MODULES.items() if not ast.get_docstring(ast.parse(path.read_bytes()))]
    assert silent == []
