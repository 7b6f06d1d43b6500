"""What the files of examples/scaled say: commands, variables and objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

SCALED: Final = Path(__file__).parents[3] / "examples" / "scaled"
KUBERNETES: Final = SCALED / "kubernetes"

_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::\?[^}]*|:-([^}]*))\}")


def container() -> str:
    return (SCALED / "Containerfile").read_text(encoding="utf-8")


def entrypoint() -> list[str]:
    """The command of the image, to which a container's arguments are appended."""
    (found,) = re.findall(r"^ENTRYPOINT (.*)$", container(), re.MULTILINE)
    command: list[str] = json.loads(found)
    return command


def services(variables: Mapping[str, str]) -> dict[str, Any]:
    """The services of the compose file, in which these variables are put in as docker does it."""
    text = (SCALED / "compose.yaml").read_text(encoding="utf-8")
    whole = yaml.safe_load(_VARIABLE.sub(lambda found: variables.get(found[1]) or found[2], text))
    found: dict[str, Any] = whole["services"]
    return found


def objects() -> Iterator[Any]:
    """What the manifests declare."""
    for name in yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]:
        yield from yaml.safe_load_all((KUBERNETES / name).read_text(encoding="utf-8"))


def declared(kind: str) -> dict[str, Any]:
    """Those of one kind, by name."""
    return {each["metadata"]["name"]: each for each in objects() if each["kind"] == kind}
