"""A daemon that mounts itself comes to an end."""

from __future__ import annotations

import pytest

from discreet.imports.daemon.calls import MAX_DEPTH, VARIABLE, TooDeep, depth_of_call, depth_of_process, next_depth


def test_each_mount_is_one_deeper_until_the_limit() -> None:
    environ: dict[str, str] = {}
    for depth in range(MAX_DEPTH):
        assert depth_of_process(environ) == depth
        environ[VARIABLE] = next_depth(depth_of_process(environ))
    with pytest.raises(TooDeep):
        next_depth(depth_of_process(environ))


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "٣", "1000000000000"])
def test_what_is_no_depth_counts_as_none(text: str) -> None:
    assert depth_of_call({"mount-depth": text}) == 0
