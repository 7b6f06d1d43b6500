"""Names give values away in every notation, and only names that tell do."""

from __future__ import annotations

import pytest

from discreet.errors.redaction import Scrubber
from discreet.errors.redaction.sensitivity import SENSITIVE_STEMS, Sensitivity, name_sensitivity

VALUE = "tr0ub4dor" + "&3"


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


NOTATIONS = [
    "PASSWORD=%s", "export DB_PASSWORD=%s", "password: %s", '"password": "%s"', "'password': '%s'",
    '{"user":"bob","password":"%s","x":1}', '\\"password\\": \\"%s\\"', '{\\\\\\"api_key\\\\\\":\\\\\\"%s\\\\\\"}',
    "--password %s", "--password=%s", "--password '%s' --verbose", "-Dpassword=%s", "https://x.io/?token=%s&b=1",
    "https://x.io/a?b=1&access_token=%s#frag", "X-Api-Key: %s", "Authorization: Token %s", "Authorization: %s",
    "{'Authorization': 'Basic %s'}", "(b'authorization', b'Bearer %s')", '("password", "%s")',
    "Cookie: session=%s; theme=dark", "Set-Cookie: sid=%s; Path=/; HttpOnly", "password => %s", ':password=>"%s"',
    'config["secret_key"] = "%s"', "os.environ['API_TOKEN'] = '%s'", 'clientSecret: "%s"', "client-secret=%s",
    "user[password]=%s", "password%%3D%s", "password%%22%%3A%%22%s", "Server=db;User Id=sa;Password=%s;Encrypt=true",
    "<password>%s</password>", '<add key="Password" value="%s"/>', '{"name": "DB_PASSWORD", "value": "%s"}',
    "- name: API_TOKEN\n  value: %s", 'password = "%s"', "secret=%s,user=bob", 'connect(user="bob", password="%s")',
    "User{name=bob, password=%s}", "the password is %s", 'Login with password "%s" failed', "Password: %s (wrong)",
    "API key: %s", "password=`%s`", 'password="%s', "password=%s\\nNEXT=1", "PASSWORD\t=\t%s", "//r.npmjs.org/:_authToken=%s",
    "\x1b[36mpassword\x1b[0m=\x1b[35m%s\x1b[0m", "ALTER USER bob WITH PASSWORD '%s'", '{"tokens": ["%s"]}',
    "passwords: ['%s', '%s']", 'token="Bearer %s"', "password: |\n  %s\nnext: 1", "password = \\\n    \"%s\"",
    "password=[%s]", "password=x%s<y>z",
    "pass\u200bword=%s", "password\0=%s", "p\u00adass\ufe0fword\u2060: %s", "pass\x1b[1mword\x1b[0m=%s", "\x1b]8;;x\x07to\x1b(Bken\x07=%s",
    "A=b\0PASSWORD=%s\0C=d", "max_\0TOKEN=%s", "Passwort: %s", "DB_KENNWORT=%s", "contrase\u00f1a: %s", "CONTRASE\u00d1A=%s",
    "mot de passe : %s", "senha=%s",
]  # fmt: skip


@pytest.mark.parametrize("notation", NOTATIONS)
def test_a_value_is_hidden_in_every_notation(scrubber: Scrubber, notation: str) -> None:
    scrubbed = scrubber.scrub(notation.replace("%s", VALUE).replace("%%", "%"))
    assert "tr0ub" not in scrubbed and "dor&3" not in scrubbed


@pytest.mark.parametrize(
    "text",
    [
        "token=$TOKEN", "token=${TOKEN}", "--token <token>", "password=********", "password: [REDACTED]", "token={token}",
        "token=%s", "password = getpass()", "token = get_token()", "self.token = token", "if token == '':",
        'api_key = os.environ["API_KEY"]', "def f(password: str, token: str = None) -> None:", "password=None",
        'password=""', "password: null", "token: string;", "tokens=512", "secrets: 3", "pass=10 fail=2",
        "invalid token: unexpected end of input", "Unexpected token } in JSON at position 3", "password is required",
        "secret not found", "missing key: name", "key: value", "cache key=user:123", "key=42", '"key": "name"',
        "Bearer authentication failed", "basic usage of the tool", "auth: basic", "token expired for user bob",
        "password policy: at least 8 characters", "key=550e8400-e29b-41d4-a716-446655440000", "keys=[a, b]",
        "authenticated user bob", "session started", "signature valid", 'accesskey="n"', "id-token: write",
        "\x1b[1mkey\x1b[0m: value", "zero\u200bwidth\ufe0f and \0 stay", "password\u200b is required", "Passwort falsch",
    ],
)  # fmt: skip
def test_what_is_no_value_stays(scrubber: Scrubber, text: str) -> None:
    assert scrubber.scrub(text) == text


def test_only_the_value_goes(scrubber: Scrubber) -> None:
    assert scrubber.scrub(f"a=1 password={VALUE} b=2") == "a=1 password=<redacted> b=2"
    assert scrubber.scrub(f"https://x.io/?token={VALUE[:9]}&page=2") == "https://x.io/?token=<redacted>&page=2"
    assert scrubber.scrub(f"secret={VALUE},user=bob") == "secret=<redacted>,user=bob"
    assert scrubber.scrub(f"(token={VALUE})") == "(token=<redacted>)"
    assert scrubber.scrub("token=a1b2c3\nnext line") == "token=<redacted>\nnext line"


def test_a_mnemonic_goes_to_the_end_of_the_line(scrubber: Scrubber) -> None:
    text = "seed_phrase: gravity machine north sort system female\nnext: 1"
    assert scrubber.scrub(text) == "seed_phrase: <redacted>\nnext: 1"


def test_a_long_value_goes_whole(scrubber: Scrubber) -> None:
    value = "x1" * 50_000
    assert scrubber.scrub(f"token={value}") == "token=<redacted>"
    assert scrubber.scrub(f'token="{value}"') == 'token="<redacted>"'
