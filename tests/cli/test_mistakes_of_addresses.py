"""What people get wrong where HTTP is served and called, and the one line that each of them reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from discreet.cli.main import main

ADDRESS: Final = "--http: expected HOST:PORT or unix:PATH"
TOKEN_FLAG: Final = (
    "--token: no flag holds a token; --token-env NAME names the variable that does, --token-file FILE the file"
)

MISTAKES: Final[dict[str, tuple[str, str]]] = {
    "an address without a port": ("serve --http localhost", f"{ADDRESS}; the port is missing, such as 127.0.0.1:8000"),
    "a port alone": ("serve --http 8000", f"{ADDRESS}; the host is missing, such as 127.0.0.1:8000"),
    "a URL to listen on": ("serve --http http://127.0.0.1:8000", f"{ADDRESS}; without http://, and without a path"),
    "a port beyond the last": ("serve --http 127.0.0.1:65536", f"{ADDRESS}; the port is a number from 0 to 65535"),
    "an IPv6 address without brackets": (
        "serve --http ::1:8000",
        f"{ADDRESS}; an IPv6 address stands in brackets, such as [::1]:8000",
    ),
    "all addresses as a star": ("serve --http *:8000", f"{ADDRESS}; all addresses of this machine are 0.0.0.0"),
    "a path to listen on": (
        "serve --http ./agent.sock",
        f"{ADDRESS}; the path of a unix socket is written unix:PATH",
    ),
    "a unix socket without a path": ("serve --http unix:", f"{ADDRESS}; the path is missing"),
    "the port as another server has it": (
        "serve --port 8000",
        "--port: where to listen is given with --http HOST:PORT",
    ),
    **{
        f"{flags.partition(' ')[0]} without HTTP": (
            f"serve {flags}",
            f"{flags.partition(' ')[0]} is for HTTP; add --http HOST:PORT",
        )
        for flags in (
            "--http-cert shop.py",
            "--http-open",
            "--http-url http://x/",
            "--http-max-requests 3",
            "--no-stdio",
        )
    },
    "a token as a flag": ("call GetTask --token X", TOKEN_FLAG),
    "an address in the place of the method": (
        "call http://127.0.0.1:8000/ GetTask",
        ("http://127.0.0.1:8000/: an address is given with --url: discreet call METHOD --url http://127.0.0.1:8000/"),
    ),
}
"""The command line, and the line."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_and_status_2(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop.py").touch()
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("DISCREET_")]:
        monkeypatch.delenv(name)
    words, line = MISTAKES[mistake]
    assert main(words.split()) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"discreet: {line}\n")
