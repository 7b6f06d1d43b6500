"""Recall over synthetic secrets of every family, whole and cut short, in the places where secrets turn up.

Secrets are made when the tests run, so that none stands in the repository: `{A36}` in a template is 36 characters of the
alphabet A.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable

import pytest

from discreet.errors.redaction import Scrubber
from discreet.errors.redaction.token_formats import PATTERNS, PREFIXES, RuleScrubber, literal_rules

from .families import ALPHABETS, make

UUID = "{h8}-{h4}-{h4}-{h4}-{h12}"

# Recognised by their format.
FORMATS = {
    "1Password secret key": "A3-{U6}-{U11}-{U5}-{U5}-{U5}", "1Password service account": "ops_" + "eyJ{B250}",
    "Adobe": "p8e-{a32}", "age": "AGE-SECRET-" + "KEY-1{U58}", "Airtable": "pat{A14}.{h64}", "Alibaba": "LTAI{a20}",
    "Anthropic": "sk-" + "ant-api03-{W93}AA", "Artifactory": "AKCp{A69}", "Artifactory reference": "cmVmd{A59}",
    "Asana": "1/{d16}:{h32}", "Atlassian": "ATATT3{W186}", "Authress": "sc_{a20}.{a5}.acc_{a20}.{A60}",
    "AWS": "AK" + "IA{b16}", "AWS, temporary": "AS" + "IA{b16}", "Azure AD": "{A3}7Q~{W32}", "Bitbucket": "ATBB{A28}",
    "Brevo": "xkey" + "sib-{h64}-{a16}", "bcrypt": "$2b$12${A53}", "chance alone": "{A48}", "ClickHouse": "4b1d{A38}",
    "Clojars": "CLOJARS_{a60}", "Cloudflare origin": "v1.0-{h24}-{h146}", "Contentful": "CFPAT-{W43}",
    "Databricks": "dapi{h32}", "DigitalOcean": "dop_v1_{h64}", "Discord": "MT{A22}.{W6}.{W38}",
    "Docker": "dckr_pat_{W27}", "Doppler": "dp.pt.{A43}", "Dropbox": "sl.{W130}", "Duffel": "duffel_test_{E43}",
    "Dynatrace": "dt0c01.{A24}.{A64}", "EasyPost": "EZAK{A54}", "Facebook": "{d15}|{W27}",
    "Facebook page": "EAAM{A100}", "Fernet": "gAAAAA{W90}==", "Figma": "figd_{W40}",
    "Flutterwave": "FLWSECK_TEST-{g32}-X", "Fly.io": "fm2_{B100}==", "Frame.io": "fio-u-{E64}",
    "GitHub": "gh" + "p_{A36}", "GitHub OAuth": "gh" + "o_{A36}", "GitHub app": "gh" + "s_{A36}",
    "GitHub fine-grained": "github_" + "pat_{w82}", "GitLab": "gl" + "pat-{W20}",
    "GitLab routable": "gl" + "pat-{W27}.{a2}{a7}", "GitLab runner": "GR1348941{W20}", "Google API": "AI" + "za{W35}",
    "Google OAuth client": "GOC" + "SPX-{W28}", "Google OAuth": "ya29.{W60}", "Grafana": "glsa_{A32}_{h8}",
    "Grafana Cloud": "glc_{B32}", "Groq": "gsk_{A52}", "Harness": "pat.{W22}.{A24}.{A20}", "Heroku": "HRKU-AA{W58}",
    "HubSpot": "pat-na1-" + UUID, "Hugging Face": "hf_{L34}", "Infracost": "ico-{A32}",
    "JWT": "eyJ{A30}.eyJ{W40}.{W43}", "Linear": "lin_api_{a40}", "Mailchimp": "{h32}-us14", "Mailgun": "key-{h32}",
    "MaxMind": "{A6}_{A29}_mmk", "Netlify": "nfp_{A36}", "New Relic": "NRAK-{U27}", "Notion": "ntn_{d11}{A35}",
    "npm": "npm_{A36}", "Octopus Deploy": "API-{U26}", "OpenAI": "sk-{A20}T3Blbk" + "FJ{A20}",
    "OpenAI project": "sk-" + "proj-{W74}T3Blbk" + "FJ{W74}", "OpenShift": "sha256~{W43}", "Perplexity": "pplx-{A48}",
    "PlanetScale": "pscale_tkn_{W43}", "PostHog": "phx_{A40}", "Postman": "PMAK-{h24}-{h34}", "Prefect": "pnu_{a36}",
    "Pulumi": "pul-{h40}", "PyPI": "pypi-" + "AgEIcHlwaS5vcmc{W60}", "ReadMe": "rdme_{a70}", "Replicate": "r8_{A37}",
    "RubyGems": "rubygems_{h48}", "Scalingo": "tk-us-{W48}", "SendGrid": "SG.{W22}.{W43}", "Sentry": "sntryu_{h64}",
    "SettleMint": "sm_aat_{A16}", "Shippo": "shippo_live_{h40}", "Shopify": "shp" + "at_{h32}",
    "Slack app": "xa" + "pp-1-A{U10}-{d13}-{h64}", "Slack bot": "xo" + "xb-{d12}-{d12}{A24}",
    "Slack user": "xo" + "xp-{d12}-{d12}-{d12}-{h32}", "SonarQube": "squ_{h40}", "Sourcegraph": "sgp_{h40}",
    "Square": "sq0atp-{W22}", "Stripe": "sk_" + "live_{A30}", "Stripe restricted": "rk_" + "live_{A30}",
    "Stripe webhook": "wh" + "sec_{A32}", "Supabase": "sbp_{h40}", "Telegram": "{d10}:AA{W33}",
    "Terraform": "{a14}.atlasv1.{E65}", "Twilio": "SK{h32}", "Twilio account": "AC{h32}", "Vault": "hvs.{W100}",
    "Vault before 1.10": "s.{A24}", "xAI": "xai-{A80}",
}  # fmt: skip

WHOLE_ONLY = {
    "Airtable", "Asana", "Authress", "Azure AD", "chance alone", "Discord", "Facebook", "Mailchimp", "MaxMind",
    "Telegram", "Terraform",
}  # fmt: skip
"""Of these the beginning does not suffice."""

# Recognised by the name before them: these tokens have no format of their own.
NAMED = ["{a32}", "{h32}", "{h40}", "{h64}", "{A40}", "{a20}", "{E40}", UUID, "{d18}", "{B40}", "{A15}", "{a25}"]

BARE: list[Callable[[str], str]] = [
    lambda s: s,
    lambda s: f"connecting with {s} now",
    lambda s: f'"{s}"',
    lambda s: f"x={s}",
    lambda s: f"got ({s})",
    lambda s: f"[{s}]",
    lambda s: f"2026-01-01T00:00:00Z ERROR failed: {s}",
    lambda s: f"https://api.example.com/v1?k={s}&page=2",
    lambda s: f"Authorization: Bearer {s}",
    lambda s: f'curl -H "X-Thing: {s}" https://example.com',
    lambda s: f"{{'v': '{s}', 'n': 1}}",
    lambda s: json.dumps({"a": s, "b": [s]}),
    lambda s: json.dumps({"text": f"one\n{s}\nthree"}),
    lambda s: f"<a>{s}</a>",
    lambda s: f"\x1b[32m{s}\x1b[0m",
    lambda s: f'Traceback (most recent call last):\n  File "x.py", line 1, in f\nValueError: bad {s}',
]

ASSIGNED: list[Callable[[str], str]] = [
    lambda s: f'acmeToken="{s}"',
    lambda s: f"acmeToken = {s}",
    lambda s: f"ACME_TOKEN={s}",
    lambda s: f"export ACME_SECRET_KEY='{s}'",
    lambda s: f'{{\n    "acme_token": "{s}"\n}}',
    lambda s: '{\\"acme_token\\": \\"' + s + '\\"}',
    lambda s: '{"config.ini": "ACME_TOKEN=' + s + '\\nBACKUP=true"}',
    lambda s: f"<acmeToken>{s}</acmeToken>",
    lambda s: f"<acmeToken>\n    {s}\n</acmeToken>",
    lambda s: f"acme_token: {s}",
    lambda s: f"acme_token: '{s}'",
    lambda s: f"acme_token: |\n  {s}",
    lambda s: f"acme_token: >\n  {s}",
    lambda s: f'var acmeToken string = "{s}"',
    lambda s: f"acmeToken := `{s}`",
    lambda s: f'$acmeToken .= "{s}"',
    lambda s: f'System.setProperty("ACME_TOKEN", "{s}")',
    lambda s: f'  "acmeToken" => "{s}"',
    lambda s: f'ACME_TOKEN ?= "{s}"',
    lambda s: f"deploy --acme-token {s} --verbose",
    lambda s: f"deploy --acme-token={s}",
    lambda s: f"https://example.com/?page=2&access_token={s}",
    lambda s: f"X-Acme-Token: {s}",
    lambda s: f"- name: ACME_TOKEN\n  value: {s}",
    lambda s: f'{{"name": "ACME_TOKEN", "value": "{s}"}}',
]


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    return Scrubber()


def recall(scrubber: Scrubber, cases: list[tuple[str, str]]) -> float:
    """The share of (text, secret) in whose scrubbed text nothing of the secret's whole is left."""
    return sum(secret not in scrubber.scrub(text) for text, secret in cases) / len(cases)


@pytest.mark.parametrize("family", FORMATS)
def test_a_secret_is_found_by_its_format_wherever_it_stands(scrubber: Scrubber, family: str) -> None:
    draw = random.Random(family)
    secrets = [make(FORMATS[family], draw) for _ in range(4)]
    cases = [(place(secret), secret) for secret in secrets for place in BARE]
    assert recall(scrubber, cases) >= 0.93


def test_at_least_97_of_100_secrets_of_all_families_are_found(scrubber: Scrubber) -> None:
    draw = random.Random(1)
    secrets = [make(template, draw) for template in FORMATS.values() for _ in range(2)]
    cases = [(place(secret), secret) for secret in secrets for place in BARE]
    assert recall(scrubber, cases) >= 0.985


def test_secrets_without_a_shape_are_found_by_their_names(scrubber: Scrubber) -> None:
    draw = random.Random(2)
    secrets = [make(template, draw) for template in NAMED for _ in range(4)]
    cases = [(place(secret), secret) for secret in secrets for place in ASSIGNED]
    assert recall(scrubber, cases) >= 0.99


def test_secrets_with_a_shape_are_found_under_their_names_too(scrubber: Scrubber) -> None:
    draw = random.Random(3)
    cases = [
        (place(secret), secret)
        for template in FORMATS.values()
        for place in ASSIGNED
        if (secret := make(template, draw))
    ]
    assert recall(scrubber, cases) >= 0.99


def test_secrets_that_were_cut_short_are_found(scrubber: Scrubber) -> None:
    draw = random.Random(4)
    cases = []
    for template in FORMATS.values():
        secret = make(template, draw)
        for share in (0.35, 0.5, 0.7, 0.9):
            part = secret[: max(12, int(len(secret) * share))]
            cases += [(part, part), (f"connecting with {part}", part), (f'"{part}', part)]
    assert recall(scrubber, cases) >= 0.88


def test_the_first_half_of_a_token_with_a_prefix_is_found(scrubber: Scrubber) -> None:
    draw = random.Random(5)
    parts = [
        secret[: max(14, len(secret) // 2)]
        for family, template in FORMATS.items()
        if family not in WHOLE_ONLY and (secret := make(template, draw))
    ]
    assert recall(scrubber, [(f"got {part}", part) for part in parts]) >= 0.95


def test_every_rule_of_the_table_compiles_and_is_woken_by_something(scrubber: Scrubber) -> None:
    for rule in (*PREFIXES, *PATTERNS):
        assert RuleScrubber(rule).scrub("nothing to see", lambda _: "x") == "nothing to see"
    reachable = {scrubber.rule.family for _, scrubber in literal_rules()} | {
        rule.family for rule in PATTERNS if rule.min_word
    }
    assert reachable == {rule.family for rule in (*PREFIXES, *PATTERNS)}


@pytest.mark.parametrize("prefix", sorted({word for rule in PREFIXES for word in rule.prefixes.split()}))
def test_every_prefix_of_the_table_is_found(scrubber: Scrubber, prefix: str) -> None:
    draw = random.Random(prefix)
    rule = next(rule for rule in PREFIXES if prefix in rule.prefixes.split())
    allowed = [char for char in ALPHABETS["A"] if re.fullmatch(rule.tail, char)]
    tokens = [prefix + "".join(draw.choices(allowed, k=max(32, rule.min_tail))) for _ in range(10)]
    assert sum("<redacted>" in scrubber.scrub(f"got {token} here") for token in tokens) >= 9


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("https://hooks.slack.com/services/T0000/B0000/{A24}", "{A24}"),
        ("https://discord.com/api/webhooks/123456789012345678/{W60}", "{W60}"),
        ("https://acme.webhook.office.com/webhookb2/{h32}@{h32}/IncomingWebhook/{h32}", "{h32}"),
        ("https://hooks.zapier.com/hooks/catch/{d7}/{a6}/", "{d7}"),
        ("https://api.telegram.org/bot{d10}:AA{W33}/getMe", "{W33}"),
        ("https://bob:{A20}@example.com/path", "{A20}"),
        ("https://{h32}@o12.ingest.sentry.io/34", "{h32}"),
        ("postgres://bob:pa/{A12}@db.example.com:5432/x", "{A12}"),
        ("redis://:{A20}@cache:6379/0", "{A20}"),
        ("jdbc:oracle:thin:bob/{A12}@//db:1521/x", "{A12}"),
        ("connect to bob:{A14}@db.example.com failed", "{A14}"),
        ("next=postgres%3A%2F%2Fbob%3A{A20}%40db%2Fx", "{A20}"),
        ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey={B86}==;EndpointSuffix=x", "{B86}"),
        ("https://a.blob.core.windows.net/c?sv=2020&sig={A40}%3D&se=2026", "{A40}"),
        ("otpauth://totp/x?secret={b16}&issuer=x", "{b16}"),
        ('Authorization: Digest username="bob", realm="x", response="{h32}"', "{h32}"),
        ("Authorization: AWS4-HMAC-SHA256 Credential=x/y, Signature={h64}", "{h64}"),
        ("Cookie: theme=dark; sid={A26}; lang=en", "{A26}"),
        ("Set-Cookie: x={A26}; Path=/; HttpOnly", "{A26}"),
        ("curl -u bob:{A14} https://example.com", "{A14}"),
        ("mysql -u root -p{A14} shop", "{A14}"),
        ("sshpass -p {A14} ssh host", "{A14}"),
        ("docker login -u bob -p {A14} registry", "{A14}"),
        ("redis-cli -h cache -a {A14} ping", "{A14}"),
        ("ldapsearch -D cn=x -w {A14} -b dc=x", "{A14}"),
        ("openssl rsa -in k.pem -passin pass:{A14}", "{A14}"),
        ("machine example.com login bob password {A14}", "{A14}"),
        ("smbclient //host/share -U bob%{A14}", "{A14}"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{B43} bob", "{B43}"),
        ("-----BEGIN RSA PRIVATE KEY-----\n{B64}\n{B64}\n-----END RSA PRIVATE KEY-----", "{B64}"),
        ("-----BEGIN PRIVATE KEY-----\n{B64}\n{B20}", "{B20}"),
        ('{"key": "-----BEGIN EC PRIVATE KEY-----\\n{B64}\\n-----END EC PRIVATE KEY-----\\n"}', "{B64}"),
        ("apiVersion: v1\nkind: Secret\ndata:\n  extra: {B20}=\ntype: Opaque", "{B20}"),
        ('{"kind":"Secret","data":{"extra":"{B20}="}}', "{B20}"),
        ("_gitlab_session={h32}", "{h32}"),
        ("GET /x?sessionid={a32} 200", "{a32}"),
    ],
)
def test_credentials_in_urls_headers_commands_and_files_are_found(scrubber: Scrubber, text: str, secret: str) -> None:
    for seed in range(20):
        draw = random.Random(seed)
        made: dict[str, str] = {}
        filled = re.sub(r"\{(.)(\d+)\}", lambda m: made.setdefault(m[0], make(m[0], draw)), text)
        assert made[secret] not in scrubber.scrub(filled), filled


def test_what_stands_around_a_secret_stays(scrubber: Scrubber) -> None:
    draw = random.Random(6)
    token = make("gh" + "p_{A36}", draw)
    assert scrubber.scrub(f"before {token} after") == "before <redacted> after"
    assert scrubber.scrub("https://bob:abc123@example.com/a?b=c") == "https://<redacted>@example.com/a?b=c"
    assert scrubber.scrub(f'{{"token": "{token}", "n": 1}}') == '{"token": "<redacted>", "n": 1}'
    assert scrubber.scrub(f"Authorization: Bearer {token}") == "Authorization: Bearer <redacted>"


@pytest.mark.parametrize(
    "between", ["\x1b[0m", "\x1b[38;5;1m", "\0", "\u200b", "\u00ad", "\ufeff", "\U000e0041", "\x1b]8;;x\x1b\\"]
)
def test_nothing_invisible_hides_a_token(between: str) -> None:
    token = "gh" + "p_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
    scrubber = Scrubber()
    for at in range(1, len(token)):
        scrubbed = scrubber.scrub(f"got {token[:at]}{between}{token[at:]} here")
        assert scrubbed == "got <redacted> here"
        assert scrubber.scrub(scrubbed) == scrubbed
