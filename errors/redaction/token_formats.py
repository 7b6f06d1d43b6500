"""Layer 3: redacts tokens by their format, PEM blocks, and the values of Kubernetes Secrets.

The table of formats comes first; a rule is compiled when a line first contains one of its literals. It gives the shortest part
of a token that must be redacted, not the length of a whole token: a limit may have cut tokens short.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from .limits import Replace, nothing_to_redact
from .secret_values import is_placeholder, is_secret, looks_random
from .sensitivity import Sensitivity


class Prefix(NamedTuple):
    """A family of tokens with fixed prefixes. It is tried only on lines that contain one of the prefixes."""

    family: str
    prefixes: str
    """Separated by spaces."""
    tail: str = r"[\w-]"
    """The character class of what follows the prefix."""
    min_tail: int = 4
    """The fewest characters after the prefix that make a token or the beginning of one."""
    random: bool = False
    """True if words may follow the prefix too: what follows must then look random."""
    anywhere: bool = False
    """True if no word ends with the prefix, so that it may follow a letter or a digit."""


class Pattern(NamedTuple):
    """A token format that is more than a prefix. Group `s` of the pattern is the secret; `START` is where a token may begin."""

    family: str
    literals: str
    """Separated by spaces; `^` stands for a space. One of them must be in the line. If empty, `min_word` decides."""
    pattern: str
    random: bool = False
    """True if the secret must also look random."""
    password: bool = False
    """True if the secret must also look random or like a password."""
    min_word: int = 0
    """Characters that the longest word of a line must have for the rule to be tried."""


# Patterns that begin with a class of characters, and look back after it, are searched for faster than those with START.
BASE64 = r"[\w+/=-]"
LETTERS = r"[A-Za-z0-9]"
DOTTED = r"[\w.=-]"
HEX = r"[0-9a-f-]"

PREFIXES: tuple[Prefix, ...] = (
    Prefix("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_", r"\w"),
    Prefix("GitHub fine-grained", "github_pat_", r"\w", anywhere=True),
    Prefix("GitLab", "glpat- gldt- glft- glffct- glimt- glagent- gloas- glptt- glrt- glcbt- glsoat-", r"[\w.-]"),
    Prefix("GitLab runner registration", "GR1348941", min_tail=3, anywhere=True),
    Prefix("Slack", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxc- xoxd- xoxe. xapp- xwfp-", r"[\w%.-]", anywhere=True),
    Prefix("Stripe, Paystack, Clerk", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_", BASE64),
    Prefix("OpenAI, Anthropic, OpenRouter", "sk-proj- sk-svcacct- sk-admin- sk-ant- sk-or- sk-lf-"),
    Prefix("OpenAI and look-alikes", "sk- sess-", min_tail=8, random=True),
    Prefix("other AI services", "gsk_ xai- pplx- nvapi- tvly- lsv2_pt_ lsv2_sk_ ABSK r8_ e2b_ csk- jina_", BASE64, 8, True),
    Prefix("Google", "AIza GOCSPX- ya29. 1//0", r"[\w.-]"),
    Prefix("npm, PyPI, RubyGems", "npm_ rubygems_ pypi-Ag", min_tail=8, random=True),
    Prefix("Packagist", "packagist_ack_ packagist_ort_ packagist_oub_ packagist_uut_", LETTERS),
    Prefix("NuGet", "oy2", r"[a-z0-9]", 12, True),
    Prefix("crates.io", "cio", LETTERS, 12, True),
    Prefix("Neon, Vercel, Render", "napi_ vcp_ vca_ vci_ vcr_ vck_ vercel_blob_rw_ rnd_", r"\w", 8, True),
    Prefix("CircleCI", "CCIPAT_ CCIPRJ_", r"\w"),
    Prefix("Matrix", "syt_ mct_", r"\w", 8, True),
    Prefix("Aiven, Confluent, RunPod, Apify", "AVNS_ cflt rpa_ apify_api_", r"[\w+/-]", 8, True),
    Prefix("Fireworks, Pinecone, Together", "fw_ pcsk_ tgp_v1_ fc-", r"[\w-]", 10, True),
    Prefix("Tailscale", "tskey-auth- tskey-api- tskey-client- tskey-scim- tskey-webhook-"),
    Prefix("MongoDB Atlas, Ory, Cloudflare", "mdb_sa_sk_ ory_pat_ ory_at_ ory_rt_ cfut_ cfat_", min_tail=8),
    Prefix("Asaas", "$aact_", r"[\w:$=+/-]", anywhere=True),
    Prefix("Clojars", "CLOJARS_ clojars_", LETTERS, 10, True),
    Prefix("DigitalOcean", "dop_v1_ doo_v1_ dor_v1_", anywhere=True),
    Prefix("SendGrid", "SG.", r"[\w.-]", 8, True),
    Prefix("Shopify", "shpat_ shpca_ shppa_ shpss_", anywhere=True),
    Prefix("Hugging Face", "hf_ api_org_", LETTERS, 8, True),
    Prefix("Databricks", "dapi dkea", HEX, 8),
    Prefix("Databricks OAuth", "dose", r"[0-9a-f]", 12),
    Prefix("ElevenLabs, WorkOS, Liveblocks", "sk_", r"\w", 14, True),
    Prefix("PayPal, Braintree", "access_token$production$ access_token$sandbox$", r"[\w$]", anywhere=True),
    Prefix("PayPal OAuth", "A21AA", min_tail=20, random=True),
    Prefix("Paddle, Polar", "pdl_live_apikey_ pdl_sdbx_apikey_ polar_oat_ polar_pat_", r"\w"),
    Prefix("CockroachDB, Honeycomb, Axiom", "CCDB1_ hcaik_ hcbik_ hcxik_ xaat- xapt-", min_tail=8, random=True),
    Prefix("Anyscale, n8n, Trigger, Inngest", "esecret_ n8n_api_ tr_dev_ tr_prod_ signkey-prod- signkey-test-", r"\w", 8, True),
    Prefix("OneSignal, Browserbase, Mercury", "os_v2_app_ bb_live_ secret-token:mercury_", r"\w", 8, True),
    Prefix("Doppler", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[\w.-]"),
    Prefix("Linear", "lin_api_ lin_oauth_", anywhere=True),
    Prefix("Notion", "ntn_", LETTERS, 8),
    Prefix("Notion before 2024", "secret_", LETTERS, 16, True),
    Prefix("Atlassian", "ATATT3 ATCTT3 ATSTT3 ATBB", r"[\w=-]", 8),
    Prefix("Trello", "ATTA", r"[0-9a-f]", 12),
    Prefix("Grafana", "glsa_ glc_", BASE64, 8, True),
    Prefix("New Relic", "NRAK- NRII- NRJS- NRIQ- NRBR- NRSP- NRRA-"),
    Prefix("Sentry", "sntrys_ sntryu_ sntrya_ sntryi_", BASE64, anywhere=True),
    Prefix("age", "AGE-SECRET-KEY-", anywhere=True),
    Prefix("Vault", "hvs. hvb. hvr.", r"[\w.-]"),
    Prefix("Vault before 1.10", "s.", LETTERS, 12, True),
    Prefix("Pulumi, Infracost, Mailgun", "pul- ico- key- pubkey-", LETTERS, 8, True),
    Prefix("Sourcegraph, SonarQube", "sgp_ slk_ squ_ sqp_ sqa_", r"\w", 8, True),
    Prefix("SettleMint", "sm_aat_ sm_pat_ sm_sat_", min_tail=4),
    Prefix("Shippo, Duffel", "shippo_live_ shippo_test_ duffel_live_ duffel_test_", r"[\w=-]"),
    Prefix("Lob, GoCardless", "live_ test_ live_pub_ test_pub_", LETTERS, 14, True),
    Prefix("PlanetScale", "pscale_tkn_ pscale_pw_ pscale_oauth_", DOTTED),
    Prefix("Prefect, ReadMe, Typeform", "pnu_ pnb_ rdme_ tfp_", DOTTED, 8, True),
    Prefix("Postman", "PMAK- PMAT-"),
    Prefix("Scalingo, Intra42", "tk-us- s-s4t2ud- s-s4t2af-"),
    Prefix("Brevo", "xkeysib- xsmtpsib-", anywhere=True),
    Prefix("Flutterwave", "FLWSECK_TEST- FLWSECK- FLWPUBK_TEST- FLWPUBK-", min_tail=2, anywhere=True),
    Prefix("EasyPost", "EZAK EZTK", LETTERS, 10),
    Prefix("Dynatrace", "dt0c01. dt0s01. dt0s02. dt0s08. dt0s16.", r"[\w.-]", anywhere=True),
    Prefix("Octopus Deploy", "API-", r"[A-Z0-9]", 8, True),
    Prefix("Adobe", "p8e-", LETTERS, 8),
    Prefix("1Password", "ops_eyJ", BASE64),
    Prefix("Heroku", "HRKU-"),
    Prefix("Alibaba, Tencent", "LTAI AKID", LETTERS, 8, True),
    Prefix("AWS", "AKIA", r"[A-Z0-9]", 8),
    Prefix("Artifactory", "AKCp cmVmd", LETTERS, 10),
    Prefix("Frame.io", "fio-u-", r"[\w=-]"),
    Prefix("Fly.io", "fo1_ fm1a_ fm1r_ fm2_", BASE64),
    Prefix("Razorpay", "rzp_live_ rzp_test_", min_tail=3),
    Prefix("Square", "sq0atp- sq0csp- sq0idp-", anywhere=True),
    Prefix("Square, Facebook", "EAA", min_tail=18, random=True),
    Prefix("Supabase, Figma", "sbp_ sb_secret_ figd_ figo_"),
    Prefix("Contentful", "CFPAT-"),
    Prefix("Docker", "dckr_pat_ dckr_oat_", min_tail=3, anywhere=True),
    Prefix("Netlify, PostHog, Adafruit", "nfp_ nfc_ phx_ phs_ aio_", LETTERS, 8, True),
    Prefix("Resend", "re_", LETTERS, 8, True),
    Prefix("Buildkite, MailerSend", "bkua_ bkct_ mlsn."),
    Prefix("OpenShift", "sha256~"),
    Prefix("Cloudflare origin", "v1.0-", HEX, 12),
    Prefix("Yandex", "AQVN y0_ t1.9eu", DOTTED, 12, True),
    Prefix("HubSpot", "pat-na1- pat-eu1- pat-na2-"),
    Prefix("Harness, Dropbox", "pat. sat. sl.", r"[\w.-]", 18, True),
    Prefix("Plaid, Stytch", "access-sandbox- access-development- access-production- secret-test- secret-live-", HEX, 8),
    Prefix("Twilio", "AC SK", r"[0-9a-f]", 10),
    Prefix("ClickHouse Cloud", "4b1d", LETTERS, 16, True),
    Prefix("Fernet", "gAAAAA", r"[\w=-]", 12),
    Prefix("JWT, JWE", "eyJ", DOTTED, 8, True),
    Prefix("JWT in base64", "ZXlK", BASE64, 12, True),
    Prefix("extended private keys", "xprv tprv", LETTERS, 20),
)  # fmt: skip

_ARGUMENT = r"(?P<s>'[^'\n]*+'|\"[^\"\n]*+\"|[^\s\"'<-][^\s\"']*+)"

# In JSON, `/` may be escaped. Of a URL taken for a path, one slash is left.
_SCHEME_END = r":(?<!file:)(?:(?:\\{0,4}/){2}|(?<=[A-Za-z0-9+.-]{2}:)\\{0,4}/)"

PATTERNS: tuple[Pattern, ...] = (
    Pattern("auth schemes", "bearer^ basic^ negotiate^ ntlm^",
            r"(?i)(?<![a-z0-9])(?:bearer|basic|negotiate|ntlm)\s{1,4}(?P<s>[\w.~+/%:=-]{8,}+)", True),
    Pattern("signed headers", "digest^username= aws4-hmac- hawk^id= oauth_ signature^keyid=",
            r"(?i)(?:digest\s+username|aws4-hmac-sha256\s+credential|hawk\s+id|signature\s+keyid|oauth\s+oauth_\w{3,40})"
            r"=(?P<s>[^\r\n<]++)"),
    Pattern("SSH keys", "ssh-rsa^ ssh-dss^ ssh-ed25519^ ecdsa-sha2-",
            r"(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-\w{1,20})\s{1,4}(?P<s>AAAA[\w+/=]{8,}+)"),
    Pattern("Slack webhooks", "hooks.slack. hooks.slack-",
            r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers|commands)/(?P<s>[\w+/-]{4,}+)"),
    Pattern("Discord webhooks", "/api/webhooks/", r"/api/webhooks/(?P<s>\d{4,}(?:/[\w-]*+)?)"),
    Pattern("Teams webhooks", "/webhook/ /webhookb2/", r"office\.com/webhook(?:b2)?/(?P<s>[\w@/-]{8,}+)"),
    Pattern("other webhooks", "hooks.zapier. ifttt.com/",
            r"(?:hooks\.zapier\.com/hooks/catch|maker\.ifttt\.com/trigger/[\w-]{1,80}/with/key)/(?P<s>[\w/-]{4,}+)"),
    Pattern("Telegram", ":AA", r":(?<=\d{6}:)(?P<s>AA[\w-]{6,}+)"),
    Pattern("Telegram of other kinds", "", r":(?<=\d{6}:)(?P<s>[\w-]{30,}+)", min_word=37),
    Pattern("Discord", "", r"(?P<s>[MNO](?<![\w.-].)[\w-]{22,27}\.[\w-]{5,7}\.[\w-]{8,}+)", True, min_word=37),
    Pattern("Discord users", "mfa.", r"START(?P<s>mfa\.[\w-]{12,}+)", True),
    Pattern("Twitch", "oauth:", r"START(?<!\w)oauth:(?P<s>[a-z0-9]{20,}+)", True),
    Pattern("Bitwarden", "",
            r"(?P<s>0(?:(?<![A-Za-z0-9].)|(?<=\\[nrt].))\.[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}"
            r"[0-9a-f]{12}\.[\w+/=:]{8,}+)", min_word=47),
    Pattern("1Password", "A3-", r"START(?P<s>A3-(?=[A-Z0-9-]{0,40}?\d)[A-Z0-9]{6}-[A-Z0-9-]{2,}+)"),
    Pattern("AWS, temporary", "ASIA ABIA ACCA A3T",
            r"START(?P<s>(?:ASIA|ABIA|ACCA|A3T[A-Z0-9])(?:[A-Z0-9]{16}(?![A-Za-z0-9])|(?=[A-Z]{0,16}\d)[A-Z0-9]{7,}+))"),
    Pattern("Terraform", ".atlasv1.", r"(?P<s>[A-Za-z0-9]{4,40}\.atlasv1\.[\w=-]*+)"),
    Pattern("Mailchimp", "-us", r"(?<![0-9a-f])(?P<s>[0-9a-f]{16,40}-us\d{1,2})\b"),
    Pattern("Mailgun signing key", "",
            r"(?P<s>[0-9a-h](?:(?<![A-Za-z0-9].)|(?<=\\[nrt].))[0-9a-h]{31}-[0-9a-h]{8}-[0-9a-h]{8})(?![\w-])", min_word=50),
    Pattern("MaxMind", "_mmk", r"(?P<s>[A-Za-z0-9]{6}_[A-Za-z0-9]{20,40}_mmk)"),
    Pattern("Azure AD", "q~", r"(?<![\w~.])(?P<s>(?:(?<=\\)[nrt])?[\w~.]{3}\dQ~[\w~.-]{8,}+)"),
    Pattern("Facebook", "|", r"(?<!\d)(?P<s>\d{13,17}(?:\||%7C)[\w-]{16,}+)", min_word=30),
    Pattern("Airtable", "pat", r"START(?P<s>pat[A-Za-z0-9]{14}\.[0-9a-f]{8,}+)"),
    Pattern("Asana", "1/ 0/ 2/", r"/(?<![\w/.][0-2]/)(?<=[0-2]/)(?P<s>\d{12,}(?:/\d{12,})?:[0-9a-f]{8,}+)"),
    Pattern("Okta", "ssws^", r"(?i)\bssws\s{1,4}(?P<s>[\w=-]{8,}+)"),
    Pattern("Authress", ".acc_ .acc-",
            r"START(?P<s>(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][\w+/=.-]{10,}+)"),
    Pattern("Sidekiq", "contribsys", r"(?i)contribsys(?:__|\.)com[\"'\s:=]{1,4}(?P<s>[0-9a-f]{8}:[0-9a-f]{1,8})"),
    Pattern("Twitter", "AAAAAAAAAAAAAAAAAA", r"(?P<s>A{18,22}[A-Za-z0-9%]{20,}+)", True),
    Pattern("password hashes", "$",
            r"(?P<s>\$(?:2[abxy]|[156y]|apr1|argon2(?:id?|d)|scrypt|pbkdf2[\w-]{0,20})\$[\w./$=,+-]{12,}+)"),
    Pattern("LDAP hashes", "{ssha {sha {md5 {smd5", r"\{S?(?:SHA|MD5)\d{0,3}\}(?P<s>[\w+/=]{12,}+)"),
    Pattern("passwords of URLs", "@",
            _SCHEME_END + r"(?P<s>[\w.%+~-]{0,64}:(?!\d{1,5}(?:[/\\?#]|$)|\$?\{|\$[A-Z_]{2,40}\b|%[sdr(])[^\s\"'`<>]{1,200})@(?="
            r"[\w.-]{1,253}(?:[^\w.@-]|$)|\[|/[\w-]{0,64}(?:\?|$))"),
    Pattern("user info of URLs", "@",
            _SCHEME_END + r"(?P<s>[^\s/?#@\"'`<>\\]{1,256}(?:@[^\s/?#@\"'`<>\\]{1,256}){0,4})@"),
    Pattern("encoded URLs", "%3a%2f%2f",
            r"(?i)%3a%2f%2f(?P<s>[^\s\"'<>&%]{1,80}%3a[^\s\"'<>&]{1,200})%40(?=[\w-])"),
    Pattern("user:password@host", "@",
            r"(?<![\w.:/@+-])[\w.+-]{1,64}:(?P<s>[^\s:@/\"'<>,;()]{4,128})"
            r"@(?=[A-Za-z][\w-]{0,62}(?:\.[A-Za-z]|[:/])|\d{1,3}(?:\.\d{1,3}){3})", True),
    Pattern("Oracle", "jdbc:oracle:", r"jdbc:oracle:\w{2,8}:(?P<s>[^\s/@\"'<]{1,64}/[^\s@\"'<]{1,64})@"),
    Pattern("curl", "-u --user --proxy-user",
            r"(?<=\s)(?:-u|-U|--user|--proxy-user)[\s=]{0,4}(?P<s>\"[^\"\n]{1,128}\"(?::\"[^\"\n]{1,128}\")?|'[^'\n]{1,256}'"
            r"|[^\s\"':<]{0,128}:(?:'[^'\n]{1,128}'|\"[^\"\n]{1,128}\"|[^\s\"'<]{1,256}))"),
    Pattern("MySQL clients", "-p",
            r"\b(?:mysql|mariadb)\w{0,12}\s[^\n|;]{0,100}?(?<=\s)-p(?P<s>[^\s\"'<-][^\s\"']*+|'[^'\n]*+'|\"[^\"\n]*+\")"),
    Pattern("sshpass", "sshpass^", r"\bsshpass\s+-p\s*" + _ARGUMENT),
    Pattern("logins", "login^",
            r"\b(?:docker|podman|helm|oc|az|npm|crane|skopeo|nerdctl)\s[^\n|;]{0,40}?\blogin\s[^\n|;]{0,100}?(?<=\s)-p[\s=]\s?"
            + _ARGUMENT),
    Pattern("database clients", "^-a^ ^-p^",
            r"\b(?:redis-cli\s[^\n|;]{0,100}?(?<=\s)-a|mongo\w{0,8}\s[^\n|;]{0,100}?(?<=\s)-p)\s{1,2}" + _ARGUMENT),
    Pattern("LDAP clients", "^-w^",
            r"\bldap(?:search|add|modify|delete|whoami|passwd)\s[^\n|;]{0,100}?(?<=\s)-w\s{1,2}" + _ARGUMENT),
    Pattern("Samba clients", "-u", r"(?<=\s)-U\s{0,2}[\w.\\/-]{1,64}%(?P<s>[^\s\"'<]{1,128})"),
    Pattern("OpenSSL", "pass:", r"(?<=\s)pass:(?P<s>[^\s\"'<]{3,128})"),
    Pattern("argument lists of clients", "',^'- ','- \",^\"- \",\"-",
            r"[\"'](?:mysql\w{0,12}|mariadb\w{0,12}|sshpass|docker|podman|nerdctl|redis-cli|mongo\w{0,8}|ldap\w{3,8})[\"']\s?,"
            r"[^\n\]]{0,160}?[\"']-[pawW](?:[\"']\s?,\s{0,2}[\"'])?(?P<s>[^\"'\n,\[\]<]{1,128})(?=[\"'])", password=True),
    Pattern("argument lists of curl", "-u --user --proxy-user",
            r"[\"'](?:-u|-U|--user|--proxy-user)[\"']\s?,\s{0,2}[\"'](?P<s>[^\s\"':<]{0,128}:[^\"'\n<]{1,256})(?=[\"'])"),
    Pattern("net use", "net^use^", r"(?i)\bnet\s+use\s+\S{1,64}\s+\S{1,256}\s+(?P<s>[^\s/<]\S{0,127})(?=\s+/user)"),
    Pattern("echo into a login", "--password-stdin", r"\becho\s+(?:-n\s+)?" + _ARGUMENT + r"(?=\s*\|)"),
    Pattern("Redis", "auth",
            r"(?<![\w-])AUTH[\"']?[,\s]{1,3}[\"']?(?P<s>[^\s\"',\]<]{4,128})", password=True),
    Pattern("Redis with a user", "auth",
            r"(?<![\w-])AUTH[\"']?[,\s]{1,3}[\"']?[\w.@-]{1,64}[\"']?[,\s]{1,3}[\"']?(?P<s>[^\s\"',\]<]{4,128})", password=True),
    Pattern("Redis access lists", "setuser^", r"(?i)\bsetuser\s[^\n]{0,128}?\s>(?P<s>[^\s<\"']{1,128})"),
    Pattern("SQL, quoted", "identified^", r"(?i)\bidentified\s+(?:by|with\s+\S{1,64}\s+(?:by|as))\s+(?:password\s+)?[\"']?(?P<s>"
            r"(?<=')[^'\n<]{1,256}|(?<=\")[^\"\n<]{1,256})"),
    Pattern("SQL", "identified^", r"(?i)\bidentified\s+(?:with\s+\S{1,64}\s+)?by\s+(?P<s>[^\s\"'<;,)]{6,128})", password=True),
    Pattern("SQL for a user", "password^for^", r"(?i)\bpassword\s+for\s+\S{1,128}\s*=\s*(?:password\()?'(?P<s>[^'\n<]{1,256})"),
    Pattern("MongoDB shell", ".auth(", r"\.auth\(\s?[\"'][^\"'\n]{1,64}[\"']\s?,\s{0,2}[\"'](?P<s>[^\"'\n<]{1,128})"),
    Pattern("changed passwords", "from^<redacted>",
            r"(?i)(?:password|passwd|passphrase|secret|token)\s[a-z ]{0,32}from\s+<redacted>\S{0,2}\s+to\s+[\"']?"
            r"(?P<s>[^\s\"'<]{4,128})", password=True),
    Pattern("named after", "password passphrase passwd",
            r"(?<![^\s\"'])(?P<s>[^\s\"'<]{6,128})[\"']?\s{1,4}as\s{1,4}(?:the|an?|my|his|her|your|their|its)\s{1,4}pass(?:word|phrase|wd)\b",
            password=True),
    Pattern("netrc", "machine^", r"\bmachine\s+\S{1,253}\s+login\s+\S{1,128}\s+password\s+(?P<s>[^\s<]++)"),
)  # fmt: skip

PEM = r"-{4,5} ?BEGIN[A-Z0-9 ]{1,64}+(?:-|\Z).*?(?:-{4,5} ?END[A-Z0-9 ]{0,64}+-{0,5}|\Z)"
"""A PEM block over many lines, or over one with escaped line ends. Without its END, to the end of the text."""


# What may stand before a token: no letter or digit, except that of an escape (`\n`, `%20`, a terminal's colour).
_BEFORE = (r"(?<![A-Za-z0-9]{})", r"(?<=\\[nrtbf0]{})", r"(?<=%[0-9A-Fa-f]{{2}}{})", r"(?<=[;\[][0-9]{{1}}m{})",
           r"(?<=[;\[][0-9]{{2}}m{})")  # fmt: skip
_PUBLIC_USERS = frozenset({"git", "hg", "svn", "anonymous", "ftp"})
"""User names in URLs that choose a protocol and need no password."""


class RuleScrubber:
    """Applies one rule of the table."""

    def __init__(self, rule: Prefix | Pattern) -> None:
        self.rule = rule

    def scrub(self, text: str, replace: Replace) -> str:
        rule = self.rule

        def replacement(match: re.Match[str]) -> str:
            secret = match["s"]
            if nothing_to_redact(secret) or secret in _PUBLIC_USERS:
                return match[0]
            if rule.random and not looks_random(match["t"] if isinstance(rule, Prefix) else secret):
                return match[0]
            if isinstance(rule, Pattern) and rule.password and not is_secret(secret, Sensitivity.PROBABLE):
                return match[0]
            return text[match.start() : match.start("s")] + replace(secret) + text[match.end("s") : match.end()]

        return _pattern_of(rule).sub(replacement, text)


@cache
def _pattern_of(rule: Prefix | Pattern) -> re.Pattern[str]:
    if isinstance(rule, Pattern):
        return re.compile(rule.pattern.replace("START", _token_start("")), re.ASCII)
    prefixes = [re.escape(prefix) for prefix in sorted(rule.prefixes.split(), key=len, reverse=True)]
    if not rule.anywhere:  # checked after the prefix, so that `re` can search for the prefix itself
        prefixes = [prefix + _token_start(prefix) for prefix in prefixes]
    return re.compile(rf"(?P<s>(?:{'|'.join(prefixes)})(?P<t>{rule.tail}{{{rule.min_tail},}}+))", re.ASCII)


def _token_start(prefix: str) -> str:
    """A pattern that matches after `prefix` (a pattern of fixed length) if a token may begin there."""
    return f"(?:{'|'.join(before.format(prefix) for before in _BEFORE)})"


def literal_rules() -> Iterable[tuple[str, RuleScrubber]]:
    """Every literal with the rule to apply to lines that contain it."""
    rules: list[Prefix | Pattern] = [*PREFIXES, *PATTERNS]
    for rule in rules:
        scrubber = RuleScrubber(rule)
        literals = rule.prefixes if isinstance(rule, Prefix) else rule.literals
        for literal in literals.split():
            yield literal.replace("^", " "), scrubber


def length_rules() -> list[tuple[int, RuleScrubber]]:
    """The rules without a literal, each with the length of the shortest word that it can match."""
    return [(rule.min_word, RuleScrubber(rule)) for rule in PATTERNS if not rule.literals]


def scrub_pem(text: str, replace: Replace) -> str:
    """Replace PEM blocks of any kind, over any number of lines."""
    return re.sub(PEM, lambda match: replace(match[0]), text, flags=re.DOTALL)


# Redacts the values of Kubernetes Secrets, whatever their names, in YAML and one-line JSON. Other kinds stay.


_KIND = re.compile(r"(?i)(?<!\w)[\"']?kind[\"']?:[ \t]{0,8}[\"']?secret(?!\w)")
_BLOCK = re.compile(r"(?m)^([ \t]{0,64})(?:stringData|data):[ \t]*\r?\n(?:(?:\1[ \t]+\S.*|[ \t]*\r?)(?:\n|\Z))+")
_ENTRY = re.compile(r"(?m)^([ \t]+[\w.-]{1,253}:[ \t]*|[ \t]+)([^\s#].*?)[ \t]*\r?$")
_OBJECT = re.compile(r"\"(?:stringData|data)\":\s{0,8}\{([^{}\n]*)\}")
_STRING = re.compile(r"(:\s{0,8}\")((?:[^\"\\]|\\.)*+)(\")")
_SCALAR = re.compile(r"[|>][-+0-9]{0,2}|\"\"|''")


def scrub_kubernetes_secrets(text: str, replace: Replace) -> str:
    """The text without the values under `data` and `stringData` of Kubernetes Secrets."""
    if "data" not in text.lower() or not _KIND.search(text):
        return text
    documents = re.split(r"(?m)^(---[ \t]*\r?\n)", text)
    return "".join(_scrub_document(document, replace) if _KIND.search(document) else document for document in documents)


def _scrub_document(document: str, replace: Replace) -> str:
    def entry(match: re.Match[str]) -> str:
        value = match[2]
        if _SCALAR.fullmatch(value) or nothing_to_redact(value) or is_placeholder(value):
            return match[0]
        if not match[1].rstrip().endswith(":") and value.endswith(":"):
            return match[0]  # a name whose value is on the next line
        return match[1] + replace(value)

    def string(match: re.Match[str]) -> str:
        return match[0] if nothing_to_redact(match[2]) else match[1] + replace(match[2]) + match[3]

    def block(match: re.Match[str]) -> str:
        head, newline, body = match[0].partition("\n")
        return head + newline + _ENTRY.sub(entry, body)

    document = _BLOCK.sub(block, document)
    return _OBJECT.sub(lambda match: _STRING.sub(string, match[0]), document)


# Selects the rules to try on a line: those with a literal in it. Never looks at what a rule does.
#
# Searching some three hundred literals one after the other would take longer than all else together. Where `ahocorasick_rs`
# is installed (extra `fast`), it finds them all in one pass. Otherwise three regular expressions do, which hold the
# literals as tries and fail fast at most positions of most lines: literals that end in `_`, `-`, `.` and the like are
# searched backwards, and those with capitals apart from those without.


RuleT = TypeVar("RuleT")
_Trie: TypeAlias = "dict[str, _Trie]"


class _Automaton(Protocol):
    """The part of `ahocorasick_rs.AhoCorasick` that is used here."""

    def find_matches_as_indexes(self, haystack: str, overlapping: bool = False) -> list[tuple[int, int, int]]: ...


class Prefilter(Generic[RuleT]):
    """Finds the rules with a literal in a line."""

    def __init__(self, literals: Iterable[tuple[str, RuleT]], *, automaton: bool = True) -> None:
        pairs = list(literals)
        self._rules = list(dict.fromkeys(rule for _, rule in pairs))
        places = {rule: place for place, rule in enumerate(self._rules)}
        self._places = [places[rule] for _, rule in pairs]
        # A literal with capitals must be in the line as it is; of others nothing is asked that the automaton did not.
        self._capitals = [
            literal if literal != literal.lower() and not _is_searched_backwards(literal) else ""
            for literal, _ in pairs
        ]
        self._automaton = _build_automaton([literal.lower() for literal, _ in pairs]) if automaton else None
        self._backward = _Search(
            (word[::-1].lower(), places[rule]) for word, rule in pairs if _is_searched_backwards(word)
        )
        forward = [(word, places[rule]) for word, rule in pairs if not _is_searched_backwards(word)]
        self._exact = _Search((word, place) for word, place in forward if word != word.lower())
        self._forward = _Search((word, place) for word, place in forward if word == word.lower())

    def matching_rules(self, text: str, low: str) -> list[RuleT]:
        """The rules to apply to a line, each once, in their original order; `low` is the line in lower case."""
        if self._automaton is not None:
            try:
                matches = self._automaton.find_matches_as_indexes(low, True)
            except UnicodeEncodeError:
                pass  # a lone surrogate: the automaton needs valid UTF-8, the regular expressions do not
            else:
                if not matches:
                    return []
                literals = {match[0] for match in matches}
                return self._rules_at({self._places[at] for at in literals if self._capitals[at] in text})
        found = {*self._exact.places(text), *self._forward.places(low), *self._backward.places(low[::-1])}
        return self._rules_at(found) if found else []

    def _rules_at(self, places: set[int]) -> list[RuleT]:
        return [self._rules[place] for place in sorted(places)]


def _is_searched_backwards(literal: str) -> bool:
    return not literal[-1].isalnum()


class _Search:
    """Finds all literals that are in a text, also where they overlap."""

    def __init__(self, literals: Iterable[tuple[str, int]]) -> None:
        pairs = list(literals)
        words = {word for word, _ in pairs}
        # Finds the longest literal at each position; the mapping adds the literals that are prefixes of it.
        self._places_by_word = {word: {place for other, place in pairs if word.startswith(other)} for word in words}
        self._findall = re.compile(f"(?=({trie_pattern(words)}))").findall
        # Finds out, in half the time, whether there is any literal at all.
        self._search = re.compile(_expression(_trie(words), shortest=True)).search

    def places(self, text: str) -> Iterable[int]:
        first = self._search(text) if self._places_by_word else None
        if first is None:
            return ()
        return {place for word in set(self._findall(text, first.start())) for place in self._places_by_word[word]}


def trie_pattern(literals: Iterable[str]) -> str:
    """A pattern that matches the longest of the literals at a position, and fails faster than an alternation of them."""
    return _expression(_trie(literals))


def _trie(literals: Iterable[str]) -> _Trie:
    root: _Trie = {}
    for literal in literals:
        node = root
        for character in literal:
            node = node.setdefault(character, {})
        node[""] = {}
    return root


def _expression(node: _Trie, *, shortest: bool = False) -> str:
    """The trie as a pattern that matches the longest word at a position, or the shortest."""
    if shortest and "" in node:
        return ""
    branches = [
        re.escape(character) + _expression(below, shortest=shortest) for character, below in node.items() if character
    ]
    if not branches:
        return ""
    joined = branches[0] if len(branches) == 1 and "" not in node else f"(?:{'|'.join(branches)})"
    return f"{joined}?" if "" in node else joined


def _build_automaton(literals: list[str]) -> _Automaton | None:
    try:
        from ahocorasick_rs import AhoCorasick  # type: ignore[import-not-found,unused-ignore]  # late and optional
    except ImportError:
        return None
    automaton: _Automaton = AhoCorasick(literals)
    return automaton
