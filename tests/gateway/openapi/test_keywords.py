"""Keywords of schemas that others have written, in documents of ours."""

from __future__ import annotations

import pytest

from discreet.gateway.openapi.keywords import to_openapi


@pytest.mark.parametrize(
    "wrong",
    [
        {"propertyName": "kind", "type": "string"},
        {"mapping": {}},
        {"propertyName": 1},
        {"propertyName": "k", "mapping": []},
    ],
)
def test_a_discriminator_that_openapi_does_not_know_is_left_out(wrong: object) -> None:
    schema = {"oneOf": [{"type": "object"}], "discriminator": wrong}
    right = {"oneOf": [{"type": "object"}], "discriminator": {"propertyName": "kind", "mapping": {"a": "#/x"}}}
    left = to_openapi(schema)
    assert left == {"oneOf": [{"type": "object"}]}
    assert to_openapi(right) == right
