"""What a program that calls `serve` gets wrong, and the one line that it reads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.programs import finished


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("shop, loglevel='info'", "there is no setting loglevel; nearest: log_level"),
        ("shop, scopes='a b'", "scopes must be a list of strings, not one string"),
        ("shop, reload=True", "reload: only for the command line, `discreet serve`"),
        ("'./shop.py:shop'", "neither a Service nor an Agent but of type str"),
        ("shop, max_threads='3'", "max_threads: expected a number, not str"),
        ("shop, ordered='yes'", "ordered: expected True or False, not str"),
        ("shop, log_level='verbose'", "log_level: expected one of "),
        ("shop, http='localhost'", "http: expected HOST:PORT or unix:PATH; the port is missing"),
        ("shop, http_cert='shop.py'", 'http_cert is for HTTP; add http="HOST:PORT"'),
        ("shop, no_stdio=True", 'no_stdio is for HTTP; add http="HOST:PORT"'),
        ("shop, isolated=True, config='x.toml'", "isolated reads no file, and config names one"),
    ],
)
def test_a_program_that_serves_wrongly_is_told_in_one_line(tmp_path: Path, arguments: str, line: str) -> None:
    program = f"import discreet\nfrom shop import shop\ndiscreet.serve({arguments})\n"
    (tmp_path / "shop.py").write_text('from discreet import Service\nshop = Service("shop")\n')
    (tmp_path / "program.py").write_text(program)
    done = finished([sys.executable, "program.py"], tmp_path)
    assert done.stderr.startswith(f"discreet: {line}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
