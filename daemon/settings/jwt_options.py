"""The settings of JSON Web Tokens: rows of the table of settings.

The annotations are evaluated by it, so it must not use `from __future__ import annotations`.
"""

from typing import Annotated, TypeAlias

from .option import SERVICES, OptionInfo

JwtIssuer: TypeAlias = Annotated[
    str | None,
    OptionInfo(
        group=SERVICES,
        found_file="no",
        kind="word",
        help="accept the JSON Web Tokens of this issuer: the value of their iss",
        default_text="none",
    ),
]

JwtAudience: TypeAlias = Annotated[
    str | None,
    OptionInfo(
        group=SERVICES,
        found_file="no",
        kind="word",
        help="what the tokens must be issued for: a value of their aud",
        default_text="none; needed with jwt-issuer",
    ),
]

JwtKeys: TypeAlias = Annotated[
    str | None,
    OptionInfo(
        group=SERVICES,
        found_file="no",
        kind="keys",
        help="the issuer's public keys, a JSON Web Key Set, as a file or an address",
        default_text="none; needed with jwt-issuer",
    ),
]

JwtAlgorithms: TypeAlias = Annotated[
    tuple[str, ...] | None,
    OptionInfo(
        group=SERVICES,
        found_file="no",
        kind="words",
        key="jwt-algorithm",
        help="an algorithm of the tokens' signatures, of public keys; may be repeated",
        default_text="RS256 and ES256",
    ),
]
