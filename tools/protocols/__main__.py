"""Writes dialects/*/generated and gateway/grpc/a2a.binpb from published schemas.

`python -P tools/protocols FOLDER`, where FOLDER holds mcp/<revision>.json, mcp/apps/schema.json, acp/v*.json and
a2a/a2a.binpb. Without FOLDER, LSP alone is written: its meta model is in this folder (`lsp_source.py`). What is written
holds names, types and numbers, and none of the schemas' sentences.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import a2a
import acp
import clients
import lsp
import mcp

ROOT = Path(__file__).parents[2]
DIALECTS = ROOT / "dialects"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -P tools/protocols", description=__doc__.partition("\n")[0])
    parser.add_argument("schemas", type=Path, nargs="?", help="the folder with mcp/*.json, acp/v*.json, a2a/a2a.binpb")
    parser.add_argument("--to", type=Path, default=DIALECTS, help="write into another folder")
    arguments = parser.parse_args()
    texts = {"lsp": lsp.generate()}
    if arguments.schemas:
        texts |= {"mcp": mcp.generate(arguments.schemas), "acp": acp.generate(arguments.schemas)}
    written = []
    for name, modules in texts.items():
        modules["client"] = clients.client_module(name, arguments.schemas, modules)
        folder = arguments.to / name / "generated"
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.glob("*.py"):
            stale.unlink()
        for module, text in modules.items():
            path = folder / f"{module}.py"
            path.write_text(text, encoding="utf-8", newline="\n")
            written.append(str(path))
    if arguments.schemas and (arguments.schemas / a2a.SOURCE).exists():
        described = ROOT / a2a.MODULE if arguments.to == DIALECTS else arguments.to / a2a.MODULE.name
        described.write_bytes(a2a.generate(arguments.schemas))
    ruff = [sys.executable, "-P", "-m", "ruff"]
    rules = ["--config", str(ROOT / "pyproject.toml"), "--quiet", "--no-cache"]
    subprocess.run([*ruff, "check", *rules, "--select", "I", "--fix", *written], check=True)
    subprocess.run([*ruff, "format", *rules, *written], check=True)


if __name__ == "__main__":
    main()
