"""The meta model of LSP that the structs are written from."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final  # Any: the meta model is JSON

META_MODEL: Final[dict[str, Any]] = json.loads(
    gzip.decompress(Path(__file__).parents[3].joinpath("tools", "protocols", "lsp_3_18.json.gz").read_bytes())
)
