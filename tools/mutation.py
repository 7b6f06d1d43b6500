"""Changes the code in small ways and counts how many of the changes the tests notice.

    python -P tools/mutation.py --samples 40 framing=tests/framing errors=tests/errors

For each FOLDER=TESTS it draws changes with a seed (a comparison turned round, a condition negated, a number off by one,
a loop that never runs …), runs the tests with each in a copy of the tree, and prints those that no test noticed. The last
line of a folder is its score. Needs cosmic-ray and what the tests need. The same tree, seed and number give the same
changes, so that two trees can be compared.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from cosmic_ray.ast import get_ast, is_none
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT: Final = Path(__file__).parents[1]

LEFT_OUT: Final = re.compile(
    r"Variable(Inserter|Replacer)"  # needs names of the code's own
    r"|BinaryOperator_BitOr|BinaryOperator_.*_BitOr"  # `str | None` in annotations, which no test can notice
)
FAMILY: Final = re.compile(r"core/([A-Za-z]+)")

Change = tuple[Path, str, int]
"""A file, the name of an operator, and which of the places where it applies."""


def main() -> int:
    options = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(
            ROOT, tree, symlinks=True, ignore=shutil.ignore_patterns(".git", "__pycache__", ".venv", "dist")
        )
        for pair in options.pairs:
            product, _, tests = pair.partition("=")
            if not _passes(tree, tests, options.timeout):
                print(f"{tests}: red or too slow without a change", file=sys.stderr)
                return 1
            changes = _drawn(tree / product, options.samples, random.Random(options.seed))
            noticed = sum(_is_noticed(tree, change, tests, options.timeout) for change in changes)
            print(f"{product}: {noticed} of {len(changes)} noticed", flush=True)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("pairs", nargs="+", metavar="FOLDER=TESTS")
    parser.add_argument("--samples", type=int, default=40, help="changes for each folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--timeout", type=float, default=300, help="seconds for one run; one that lasts longer has noticed"
    )
    return parser.parse_args()


def _drawn(folder: Path, count: int, dice: random.Random) -> list[Change]:
    """Changes of all families alike: by number alone, nearly all would be exchanged comparisons."""
    families: dict[str, list[Change]] = {}
    for change in _changes(folder):
        families.setdefault(FAMILY.match(change[1])[1], []).append(change)  # type: ignore[index]
    drawn: list[Change] = []
    while families and len(drawn) < count:
        for name in sorted(families):
            changes = families[name]
            change = changes.pop(dice.randrange(len(changes)))
            if _changed(*change) is not None:
                drawn.append(change)
            if not changes:
                del families[name]
    return drawn[:count]


def _changes(folder: Path) -> Iterator[Change]:
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    for file in files:
        if "generated" in file.parts:
            continue
        code = file.read_text(encoding="utf-8")
        for name in sorted(operator_names()):
            if not LEFT_OUT.search(name):
                yield from ((file, name, place) for place in range(_places(code, name)))


def _places(code: str, operator: str) -> int:
    def below(node: Any) -> int:
        own = sum(1 for _ in found.mutation_positions(node))
        return own + sum(below(child) for child in getattr(node, "children", ()) if not is_none(child))

    found = get_operator(operator)()
    return below(get_ast(code))


def _is_noticed(tree: Path, change: Change, tests: str, timeout: float) -> bool:
    file, name, place = change
    code = file.read_text(encoding="utf-8")
    changed = _changed(file, name, place) or ""
    file.write_text(changed, encoding="utf-8")
    try:
        if not _passes(tree, tests, timeout):
            return True
    finally:
        file.write_text(code, encoding="utf-8")
    lines = difflib.unified_diff(
        code.splitlines(), changed.splitlines(), str(file.relative_to(tree)), name, n=0, lineterm=""
    )
    print("\n".join(lines), flush=True)
    return False


def _changed(file: Path, name: str, place: int) -> str | None:
    """The file's text with the change; None where that is no Python (`/` among params is no division), or means the same."""
    code = file.read_text(encoding="utf-8")
    changed = mutate_code(code, get_operator(name)(), place)
    try:
        return changed if changed and ast.dump(ast.parse(changed)) != ast.dump(ast.parse(code)) else None
    except SyntaxError:
        return None


def _passes(tree: Path, tests: str, timeout: float) -> bool:
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "auto",
        "-p",
        "no:cacheprovider",
        *tests.split(","),
    ]
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
