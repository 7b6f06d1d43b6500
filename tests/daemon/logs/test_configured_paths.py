"""Paths of the settings as the log shows them: whole, but without secrets."""

from __future__ import annotations

import pytest

from discreet.daemon.logs import ConfiguredPath

from .test_render import SECRET, SHAPED, Form, every_form, render


@every_form
@pytest.mark.parametrize("path", ["/home/ann/run/agent.sock", "unix:/var/lib/two words/agent.sock"])
def test_a_path_that_the_operator_has_configured_is_shown_whole_and_no_other(form: Form, path: str) -> None:
    line = render(form, {"url": ConfiguredPath(path), "path": path})
    assert line.count(path) == 1
    assert line.count("<path>/") == 1


@every_form
def test_secrets_in_a_configured_path_are_scrubbed(form: Form) -> None:
    line = render(form, {"url": ConfiguredPath(f"/run/{SHAPED}/{SECRET}.sock")})
    assert SHAPED not in line
    assert SECRET not in line
