"""The text that declares a bearer token: its form, and its parts. Hashes nothing, compares nothing."""

from typing import Final

from msgspec import Struct

TOKEN_FORM: Final = "SUBJECT:SHA256[:SCOPE+SCOPE], with the SHA-256 of the token in 64 hex digits"
_DIGEST_DIGITS: Final = 64
_HEX: Final = frozenset("0123456789abcdef")


class TokenText(Struct, frozen=True):
    """The parts of a declared token. The digest is in lower case."""

    subject: str
    digest: str
    scopes: frozenset[str]


def read_token(text: str) -> TokenText | None:
    """The parts of `SUBJECT:SHA256[:SCOPE+SCOPE…]`; None for a text of another form."""
    subject, _, rest = text.partition(":")
    digest, _, scopes = rest.partition(":")
    digest = digest.lower()
    if not subject or len(digest) != _DIGEST_DIGITS or not _HEX.issuperset(digest):
        return None
    return TokenText(subject, digest, frozenset(filter(None, scopes.split("+"))))
