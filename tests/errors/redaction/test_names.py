"""Names give values away, and only names that tell do."""

from __future__ import annotations

import pytest

from discreet.errors.redaction import Scrubber
from discreet.errors.redaction.sensitivity import SENSITIVE_STEMS, Sensitivity, name_sensitivity


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    return Scrubber()


@pytest.mark.parametrize(
    "name",
    [
        "password", "PASSWORD", "db_password", "dbPassword", "DB-PASSWORD", "spring.datasource.password", "mysqlpwd",
        "userPassword", "password2", "password_old", "PGPASSWORD", "passphrase", "secret", "client_secret",
        "clientSecret", "clientsecret", "SECRET_KEY_BASE", "token", "accessToken", "refresh_token", "GITHUB_TOKEN",
        "id-token", "authToken", "_authToken", "api_key", "apiKey", "APIKey", "apikey", "X-Api-Key", "private_key",
        "privateKey", "access_key", "secretAccessKey", "AWS_SECRET_ACCESS_KEY", "encryption_key", "signing-key",
        "AccountKey", "SharedAccessKey", "credential", "credentials", "aws_credentials", "creds", "authorization",
        "Proxy-Authorization", "cookie", "Set-Cookie", "jwt", "dsn", "SENTRY_DSN", "otp", "mnemonic", "smtp_pass",
        "bearerToken", "session_token", "csrf_token", "token_value", "API_KEY_PROD", "stripe_key",
    ],
)  # fmt: skip
def test_a_telling_last_word_tells(name: str) -> None:
    assert name_sensitivity(name) is Sensitivity.CERTAIN
    assert any(stem in name.lower() for stem in SENSITIVE_STEMS), "the prefilter would skip the line"


@pytest.mark.parametrize(
    "name",
    [
        "token_count", "tokenCount", "key_name", "secret_type", "public_key", "publicKey", "max_tokens", "primary_key",
        "prompt_tokens", "foreign_key", "sort_key", "cache_key", "key_id", "api_key_id", "secret_name", "keyboard",
        "monkey", "author", "authority", "tokenizer", "compass", "passing", "bypass", "token_type", "token_endpoint",
        "password_length", "password_policy", "passwordFile", "credentials_path", "cookie_domain", "cookie_consent_name",
        "is_secret", "has_password", "requires_token", "auth_method", "session_timeout", "keyspace", "hotkey",
        "pad_token", "secretsmanager_arn", "user_name", "message", "status", "", "---", "_", "1234",
    ],
)  # fmt: skip
def test_words_around_it_take_the_verdict_back(name: str) -> None:
    assert name_sensitivity(name) is Sensitivity.NONE


@pytest.mark.parametrize(
    "name", ["key", "keys", "auth", "session_id", "signature", "salt", "client_id", "password_hash"]
)
def test_names_of_both_kinds_leave_it_to_the_value(scrubber: Scrubber, name: str) -> None:
    assert name_sensitivity(name) is Sensitivity.POSSIBLE
    assert "q7Zk39x" not in scrubber.scrub(f"{name}=q7Zk39xV2mB8n1")
    assert scrubber.scrub(f"{name}=user:1234") == f"{name}=user:1234"
