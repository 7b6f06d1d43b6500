"""Secrets without a fixed place or shape, made at random: tokens, passwords, and the texts in which logs show them.

Each family has benign twins: texts of the same form without a secret. `{T}` stands for a token, `{P}` for a password of one
word, `{W}` for a password of several words or with unusual characters.
"""

from __future__ import annotations

import random
import re
import string
from typing import NamedTuple

ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "L": string.ascii_letters,
    "a": string.ascii_lowercase + string.digits,
    "b": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "d": string.digits,
    "h": "0123456789abcdef",
    "B": string.ascii_letters + string.digits + "+/",
    "E": string.ascii_lowercase + string.digits + "_-",
    "U": string.ascii_uppercase + string.digits,
    "W": string.ascii_letters + string.digits + "_-",
    "w": string.ascii_letters + string.digits + "_",
    "g": "abcdefgh0123456789",
}

TOKENS = {
    "1Password secret key": "A3-{U6}-{U11}-{U5}-{U5}-{U5}", "1Password service account": "ops_" + "eyJ{B250}",
    "Adobe": "p8e-{a32}", "age": "AGE-SECRET-" + "KEY-1{U58}", "Airtable": "pat{A14}.{h64}", "Aiven": "AVNS_{A19}",
    "Alibaba": "LTAI{a20}", "Anthropic": "sk-" + "ant-api03-{W93}AA", "Artifactory": "AKCp{A69}",
    "Artifactory reference": "cmVmd{A59}", "Asaas": "$aact_prod_{A80}", "Asana": "1/{d16}:{h32}",
    "Atlassian": "ATATT3{W186}", "Authress": "sc_{a20}.{a5}.acc_{a20}.{A60}", "AWS": "AK" + "IA{b16}",
    "AWS, temporary": "AS" + "IA{b16}", "Azure AD": "{A3}7Q~{W32}", "Azure DevOps": "{a52}", "bcrypt": "$2b$12${A53}",
    "Bitbucket": "ATBB{A28}", "Bitwarden": "0.{h8}-{h4}-4{h3}-a{h3}-{h12}.{A30}:{A22}==",
    "Braintree": "access_token$production${a16}${h32}", "Brevo": "xkey" + "sib-{h64}-{a16}", "chance alone": "{A48}",
    "CircleCI": "CCIPAT_{A22}_{h40}", "ClickHouse": "4b1d{A38}", "Clojars": "CLOJARS_{a60}", "Cloudflare": "{W40}",
    "Cloudflare origin": "v1.0-{h24}-{h146}", "Cloudsmith": "{h40}", "Codecov": "{h8}-{h4}-4{h3}-a{h3}-{h12}",
    "Cohere": "{A40}", "Confluent": "cflt{A60}", "Contentful": "CFPAT-{W43}", "crates.io": "cio{A32}",
    "Databricks": "dapi{h32}", "Databricks OAuth": "dose{h32}", "DigitalOcean": "dop_v1_{h64}",
    "Discord": "MT{A22}.{W6}.{W38}", "Discord, longer": "O{A25}.G{W5}.{W38}", "Docker": "dckr_pat_{W27}",
    "Doppler": "dp.pt.{A43}", "Dropbox": "sl.{W130}", "Duffel": "duffel_test_{E43}",
    "Dynatrace": "dt0c01.{A24}.{A64}", "EasyPost": "EZAK{A54}", "ElevenLabs": "sk_{h48}", "Expo": "{W40}",
    "Facebook": "{d15}|{W27}", "Facebook page": "EAAM{A100}", "Fastly": "{W32}", "Fernet": "gAAAAA{W90}==",
    "Figma": "figd_{W40}", "Fireworks": "fw_{A24}", "Flutterwave": "FLWSECK_TEST-{g32}-X", "Fly.io": "fm2_{B100}==",
    "Frame.io": "fio-u-{E64}", "GitHub": "gh" + "p_{A36}", "GitHub app": "gh" + "s_{A36}",
    "GitHub fine-grained": "github_" + "pat_{w82}", "GitHub OAuth": "gh" + "o_{A36}", "GitLab": "gl" + "pat-{W20}",
    "GitLab feed": "glft-{W20}", "GitLab routable": "gl" + "pat-{W27}.{a2}{a7}", "GitLab runner": "GR1348941{W20}",
    "Google API": "AI" + "za{W35}", "Google OAuth": "ya29.{W60}", "Google OAuth client": "GOC" + "SPX-{W28}",
    "Grafana": "glsa_{A32}_{h8}", "Grafana Cloud": "glc_{B32}", "Groq": "gsk_{A52}",
    "Harness": "pat.{W22}.{A24}.{A20}", "Heroku": "HRKU-AA{W58}", "Hex": "{h32}", "HubSpot": "pat-na1-{h8}-{h4}-{h4}-{h4}-{h12}",
    "Hugging Face": "hf_{L34}", "Infracost": "ico-{A32}", "JWT": "eyJ{A30}.eyJ{W40}.{W43}",
    "LangSmith": "lsv2_pt_{h32}_{h10}", "Line": "{A43}/{A60}+{A40}=", "Linear": "lin_api_{a40}",
    "Mailchimp": "{h32}-us14", "Mailgun": "key-{h32}", "Mapbox": "sk.eyJ1Ijoi{A40}.{A22}",
    "Matrix": "syt_{A12}_{A20}_{A6}", "Mattermost bot in a header": "{a26}", "MaxMind": "{A6}_{A29}_mmk",
    "MongoDB Atlas": "mdb_sa_sk_{W40}", "Neon": "napi_{a64}", "Netlify": "nfp_{A36}", "New Relic": "NRAK-{U27}",
    "ngrok": "2{A26}_{A21}", "Notion": "ntn_{d11}{A35}", "npm": "npm_{A36}", "NuGet": "oy2{a43}",
    "Octopus Deploy": "API-{U26}", "OpenAI": "sk-{A20}T3Blbk" + "FJ{A20}",
    "OpenAI project": "sk-" + "proj-{W74}T3Blbk" + "FJ{W74}", "OpenShift": "sha256~{W43}",
    "Packagist": "packagist_ack_{h32}", "Paddle": "pdl_live_apikey_{a26}_{A22}_{A3}", "PayPal": "A21AA{W80}",
    "Perplexity": "pplx-{A48}", "Pinecone": "pcsk_{A5}_{A60}", "PlanetScale": "pscale_tkn_{W43}",
    "Polar": "polar_oat_{A43}", "PostHog": "phx_{A40}", "Postman": "PMAK-{h24}-{h34}",
    "Postmark": "{h8}-{h4}-4{h3}-a{h3}-{h12}", "Prefect": "pnu_{a36}", "Pulumi": "pul-{h40}",
    "PyPI": "pypi-" + "AgEIcHlwaS5vcmc{W60}", "ReadMe": "rdme_{a70}", "Replicate": "r8_{A37}", "Rollbar": "{h32}",
    "RubyGems": "rubygems_{h48}", "Scalingo": "tk-us-{W48}", "SendGrid": "SG.{W22}.{W43}", "Sentry": "sntryu_{h64}",
    "SettleMint": "sm_aat_{A16}", "Shippo": "shippo_live_{h40}", "Shopify": "shp" + "at_{h32}",
    "Slack app": "xa" + "pp-1-A{U10}-{d13}-{h64}", "Slack bot": "xo" + "xb-{d12}-{d12}{A24}",
    "Slack user": "xo" + "xp-{d12}-{d12}-{d12}-{h32}", "Snyk": "{h8}-{h4}-4{h3}-a{h3}-{h12}",
    "SonarQube": "squ_{h40}", "Sourcegraph": "sgp_{h40}", "Square": "sq0atp-{W22}", "Stripe": "sk_" + "live_{A30}",
    "Stripe restricted": "rk_" + "live_{A30}", "Stripe webhook": "wh" + "sec_{A32}", "Supabase": "sbp_{h40}",
    "Tailscale": "tskey-auth-{A12}-{A32}", "Telegram": "{d10}:AA{W33}", "Telegram, nine digits": "{d9}:AA{W33}",
    "Terraform": "{a14}.atlasv1.{E65}", "TestPyPI": "pypi-AgENdGVzdC5weXBpLm9yZw{W100}", "Together": "tgp_v1_{W43}",
    "Travis": "{A22}", "Turso": "eyJhbGciOiJFZERTQSJ9.eyJ{A60}.{W86}", "Twilio": "SK{h32}",
    "Twilio account": "AC{h32}", "Twitch": "oauth:{a30}", "Vault": "hvs.{W100}", "Vault before 1.10": "s.{A24}",
    "Vercel": "vcp_{A24}", "Weights & Biases": "{h40}", "xAI": "xai-{A80}", "Zulip": "{A32}",
}  # fmt: skip
SHAPELESS = {
    "Mattermost bot in a header", "Zulip", "Rollbar", "Expo", "Hex", "Cloudsmith", "Travis", "Fastly", "Azure DevOps",
    "Cohere", "Cloudflare", "Snyk", "Postmark", "Weights & Biases", "Codecov",
}  # fmt: skip
"""Tokens that only their names give away."""

ANYWHERE = [
    "{T}", "got {T} here", '"{T}"', "x={T}", "got ({T})", "[{T}]", "'{T}',", "a,{T},b", "|{T}|", "| {T} |", "<a>{T}</a>", "bot:{T}",
    "login: {T}", "using key {T}", "failed for {T}: 401", "2026-01-01T00:00:00Z ERROR failed: {T}", "error at token ({T}), retrying",
    "https://api.example.com/v1?k={T}&page=2", "https://api.example.com/{T}/send?x=1", "curl https://api.example.com/x/{T}/getMe",
    'curl -H "X-Thing: {T}" https://example.com', "Authorization: Bearer {T}", "{'v': '{T}', 'n': 1}", '{"a": "{T}", "b": ["{T}"]}',
    '{"text": "one\\n{T}\\nthree"}', "\x1b[32m{T}\x1b[0m",
    'Traceback (most recent call last):\n  File "x.py", line 1, in f\nValueError: bad {T}',
]  # fmt: skip
NAMED = [
    "token: {T}", "API_TOKEN={T}", '"apiToken": "{T}"', "Authorization: Bearer {T}", "Authorization: token {T}",
    "Authorization: Bot {T}", "PRIVATE-TOKEN: {T}", "X-Api-Key: {T}", "--token {T}", "--api-key={T}", "?api_key={T}&x=1",
    "_authToken={T}", "//registry.example.org/:_authToken={T}", "password = {T}", "api_token = \"{T}\"", "secret {T}",
    "token is {T}", "api key {T}", "['--token', '{T}']", "<token>{T}</token>", "| token | {T} |", "token,{T}",
]  # fmt: skip
ASSIGNED = [
    'acmeToken="{T}"', "acmeToken = {T}", "ACME_TOKEN={T}", "export ACME_SECRET_KEY='{T}'", '{\n    "acme_token": "{T}"\n}',
    '{\\"acme_token\\": \\"{T}\\"}', '{"config.ini": "ACME_TOKEN={T}\\nBACKUP=true"}', "<acmeToken>{T}</acmeToken>",
    "<acmeToken>\n    {T}\n</acmeToken>", "acme_token: {T}", "acme_token: '{T}'", "acme_token: |\n  {T}", "acme_token: >\n  {T}",
    'var acmeToken string = "{T}"', "acmeToken := `{T}`", '$acmeToken .= "{T}"', 'System.setProperty("ACME_TOKEN", "{T}")',
    '  "acmeToken" => "{T}"', 'ACME_TOKEN ?= "{T}"', "deploy --acme-token {T} --verbose", "deploy --acme-token={T}",
    "https://example.com/?page=2&access_token={T}", "X-Acme-Token: {T}", "- name: ACME_TOKEN\n  value: {T}",
    '{"name": "ACME_TOKEN", "value": "{T}"}',
]  # fmt: skip


class Family(NamedTuple):
    name: str
    secret: tuple[str, ...]
    benign: tuple[str, ...]


FAMILIES = (
    Family("English", (
        "the password is {P}", "The password is {P}.", "password for bob is {P}", "the password for user bob is {P}",
        "his password was {P}", "login with user bob and password {P}", "login with user bob and password {P}!",
        "login as bob with password {P} failed", "using password {P} to connect", "use the password {P} for now",
        "my new password is: {P}", "set password to {P}", "changed the password to {P}", "password set to {P}",
        "password changed from {P} to {P}", "your temporary password is {P}", "the admin password is '{P}'",
        "the passphrase is {P}", "the secret is {P}", "the token is {P}", "the API key is {P}", "api key: {P}",
        "the pin code for the secret is 1234, password {P}", "password {P} rejected", "wrong password {P} for bob",
        "invalid password '{P}'", "bad password: {P}", "credentials bob/{P}", "credentials: bob:{P}",
        "user=bob, password {P}, host=db", "login bob password {P}", "username bob, password {P}", "passwd {P} is too short",
        "I typed {P} as the password", "tried password \"{P}\"", "with the secret {P}", "pwd is {P}", "password={P} works",
        "Password: {P}", "Password - {P}", "password -> {P}", "password => {P}", "password : {P}",
    ), (
        "the password is wrong", "the password is too short", "the password is required", "password is not set",
        "The password is incorrect.", "your password was changed", "password was reset by admin", "the password is invalid",
        "password must have 8 characters", "password must be at least 12 characters long", "the token is expired",
        "the token is invalid", "the secret is missing", "the token is not valid for 3 days", "login with user bob and password",
        "login with user and password failed", "password for bob is wrong", "wrong password for user bob", "bad password",
        "invalid password for bob", "changed the password of bob", "set password to expire in 90 days", "password expires in 30 days",
        "tried password authentication", "using password: YES", "using password authentication", "using password auth",
        "the secret is stored in vault", "the token is used by 3 workers", "the API key is optional", "credentials are missing",
        "credentials not found", "password rejected", "password set", "password changed", "password accepted for bob",
        "Failed password for root from 10.0.0.1 port 22 ssh2", "Accepted password for bob from 10.0.0.1 port 51022 ssh2",
        "Failed password for invalid user admin from 10.0.0.1", "password prompt shown after 3 tries", "the passphrase is required",
        "Password: ", "Enter password: ", "forgot password?", "password reset requested", "token refresh took 12 ms",
        "secret rotation done in 3 s", "key is 12 bytes long", "the key is index1", "token 5 of 12", "the password is hashed with bcrypt",
        "pull secret not found", "a password was given", "secret is: none", "token was issued at 12:30", "password policy v2 active", "tokens[last.token - 1].kind", "works are identified as \"derived from it\"", "print(f\"password={password!r}\")", "cat passwd | tail -n 1 | cut -d: -f1", "(token | parameter) *( [\";\"] (token | parameter))",
    )),
    Family("arguments", (
        "Command '['mysql', '--password', '{P}']' returned non-zero exit status 1.",
        "Command '['mysql', '-u', 'root', '--password={P}']' returned non-zero exit status 1.",
        "Command '['psql', '--token', '{W}']' timed out after 5 seconds",
        "CalledProcessError: Command '['vault', 'login', '-token', '{P}']' died with <Signals.SIGKILL: 9>.",
        "['mysql', '-uroot', '-p{P}']", '["mysql", "-u", "root", "-p{P}"]', "['sshpass', '-p', '{P}', 'ssh', 'host']",
        '["docker","login","-u","bob","-p","{P}"]', "['redis-cli', '-a', '{P}', 'ping']", "['curl', '-u', 'bob:{P}', 'https://x.org']",
        "['curl', '--user', 'bob:{P}']", "args=('--api-key', '{P}')", '["--client-secret","{W}"]', "['--password', '{W}', '--verbose']",
        "subprocess.run(['tool', '--db-password', '{P}'])", "exec: tool --password '{W}' -v", 'exec: tool --password "{W}" -v',
        "tool --password {P} --user bob", "tool --password={P} --user bob", "tool --password='{W}' --user bob",
        "tool -password {P}", "tool /password:{P} /user:bob", "net use z: \\\\host\\share {P} /user:bob /password:{P}",
        "argv: ['tool', '--secret-key=\"{W}\"']", "CMD [\"tool\", \"--token\", \"{P}\"]", "process.argv = ['node', 'x.js', '--token={P}']",
        "tool --auth bob:{P}", "mysqldump -u root -p'{W}' shop", "PGPASSWORD={P} psql -h db", "PGPASSWORD='{W}' psql -h db",
        "MYSQL_PWD={P} mysql", "echo {P} | docker login --password-stdin", "tool --pass {P}", "tool --pass={P}", "tool --pwd {P}",
        "export DB_PASSWORD=\"{W}\"", "set DB_PASSWORD={P}", "$env:DB_PASSWORD = '{W}'", "setx DB_PASSWORD {P}",
    ), (
        "Command '['mysql', '--version']' returned non-zero exit status 1.", "Command '['ls', '-p', 'build']' timed out after 5 seconds",
        "['mkdir', '-p', 'build/output']", "['pytest', '-p', 'no:cacheprovider']", '["docker","run","-p","8080:80"]', "['ssh', '-p', '2222']",
        "['git', 'push', '-u', 'origin', 'main']", "['tool', '--password-stdin', '--verbose']", "['tool', '--password-file', 'secret.txt']",
        "tool --token-type bearer --verbose", "tool --no-password --user bob", "tool --key-size 2048", "tool --max-tokens 4096",
        "usage: tool [--password PASSWORD] [--token TOKEN]", "  --password TEXT  the password of the user", "  --api-key KEY  key to use",
        "mysqldump -u root -p shop", "psql -h db -p 5432 -U bob", "tool --password $DB_PASSWORD", "tool --password \"$DB_PASSWORD\"",
        "`--token-env`, `--token-file`, `--verbose`", "tool --user bob --verbose", "curl -u bob https://x.org", "tool /user:bob /verbose",
    )),
    Family("markup", (
        "<password>{P}</password>", "<password type=\"clear\">{P}</password>", "<password type='clear' id=\"1\">{W}</password>",
        "<ns:Password Type=\"http://x.org/#PasswordText\">{P}</ns:Password>", "<wsse:Password>{P}</wsse:Password>",
        "<user name=\"bob\" password=\"{P}\"/>", "<user name='bob' password='{W}'/>", "<add key=\"ApiKey\" value=\"{P}\"/>",
        "<add key=\"DbPassword\" value='{P}' />", "<property name=\"password\" value=\"{P}\"/>", "<property name=\"db.password\">{P}</property>",
        "<entry key=\"password\">{P}</entry>", "<string name=\"api_secret\">{P}</string>", "<Setting id=\"token\">{P}</Setting>",
        "<secret><![CDATA[{W}]]></secret>", "<password>\n  {P}\n</password>", "<password type=\"clear\">\n  {P}\n</password>",
        "<key>apiToken</key><string>{P}</string>", "<key>password</key>\n<string>{P}</string>", "&lt;password&gt;{P}&lt;/password&gt;",
        "<input type=\"password\" name=\"password\" value=\"{P}\">", "<token expires=\"3600\">{P}</token>", "<clientSecret>{P}</clientSecret>",
        "<param name=\"password\" type=\"string\">{P}</param>", "<connection user=\"sa\" pwd=\"{P}\" />",
    ), (
        "<password/>", "<password></password>", "<password type=\"clear\"></password>", "<user name=\"bob\" age=\"42\"/>",
        "<add key=\"Theme\" value=\"dark\"/>", "<add key=\"PageSize\" value=\"500\"/>", "<property name=\"user\" value=\"bob42x\"/>",
        "<input type=\"password\" name=\"q\" value=\"\">", "<label for=\"password\">Password</label>", "<key>CFBundleVersion</key><string>1.2.3</string>",
        "<passwordPolicy minLength=\"8\">strong</passwordPolicy>", "<tokenType>bearer</tokenType>", "<author>Jane Doe</author>",
        "<token>${TOKEN}</token>", "<string name=\"app_name\">Shop</string>", "<entry key=\"color\">blue42</entry>",
    )),
    Family("settings", (
        "password = {P}", "password={P}", "password = {W}", "password: {W}", "db_password = {W}", "[db]\npassword = {W}\nuser = bob",
        "db.password={W}", "spring.datasource.password={P}", "password = \"{W}\"", "password = '{W}'", "password: \"{W}\"", "password: '{W}'",
        "password = {P} ; the old one", "password = {P}  # the old one", "PASSWORD={W}", "api_key = \"\"\"\n{P}\n\"\"\"", "password = '''\n{W}'''",
        "token = \"\"\"{P}\"\"\"", "passwords:\n  - {P}\n  - {P}", "tokens:\n- {P}\n- \"{P}\"", "api_keys: [{P}, {P}]", "tokens = [\n  \"{P}\",\n  \"{P}\",\n]",
        "secrets: ['{P}', '{P}']", "password: >-\n  {W}", "password: |\n  {W}", "password: !!str {P}", "password: &pw {P}", "- password: {P}",
        "{{user: bob, password: {P}}}", "{{user: bob, password: {P}, host: db}}", "password\t{P}", "password:{P}", "password :: {P}", "\"password\" : \"{W}\"",
        "requirepass {P}", "masterauth {P}", "rootpw {P}", "password := {P}", "auth.token={P}", "password=\"{P}\" # \"old\"", "bindpw {P}", "secret: {P}",
    ), (
        "password = ${DB_PASSWORD}", "password =", "password = \"\"", "password: null", "password: ",
        "password_min_length = 12", "[password]\nlength = 12", "tokens: 12", "tokens = 4096", "keys: [a, b, c]", "primary_keys:\n  - id\n  - name", "api_keys: []",
        "token_types:\n  - bearer\n  - basic", "user = bob", "requirepass", "key = value", "keys:\n  - name\n  - email", "password: ****", "password: <redacted>",
        "user: bob\nhost: db42.example.org", "description: the password of the user", "authors = [\"Jane Doe\", \"John Roe\"]",
    )),
    Family("databases", (
        "AUTH {P}", "AUTH default {P}", "AUTH bob {P}", "\"AUTH\" \"{P}\"", "\"AUTH\" \"bob\" \"{P}\"", "['AUTH', 'bob', '{P}']", "HELLO 3 AUTH bob {P}",
        "redis: AUTH {P} failed: WRONGPASS", "CONFIG SET requirepass {P}", "CONFIG SET requirepass \"{W}\"", "ACL SETUSER bob on >{P} ~* +@all",
        "Driver={{SQL Server}};Server=db;Uid=bob;Pwd={{{P};x}};", "Server=db;User Id=bob;Password={P};", "Server=db;Pwd={{{W}}};Encrypt=yes",
        "Server=db;Password=\"{W}\";", "Server=db;Password='{W}';", "DSN=x;UID=bob;PWD={P}", "Provider=x;Data Source=db;User ID=sa;Password={W};Timeout=5",
        "CREATE USER bob IDENTIFIED BY '{W}'", "CREATE USER 'bob'@'%' IDENTIFIED BY '{P}'", "ALTER USER bob IDENTIFIED BY {P}", "CREATE USER bob IDENTIFIED BY \"{P}\"",
        "create user bob identified with mysql_native_password by '{P}'", "CREATE USER bob WITH PASSWORD '{W}'", "CREATE ROLE bob LOGIN PASSWORD '{P}'",
        "ALTER ROLE bob WITH ENCRYPTED PASSWORD '{P}'", "SET PASSWORD = PASSWORD('{P}')", "SET PASSWORD FOR 'bob'@'%' = '{P}'", "GRANT ALL ON *.* TO bob IDENTIFIED BY '{P}'",
        "CREATE LOGIN bob WITH PASSWORD = '{W}'", "CREATE LOGIN bob WITH PASSWORD = N'{P}'", "INSERT INTO users (name, password) VALUES ('bob', '{P}')",
        "UPDATE users SET password = '{W}' WHERE id = 1", "UPDATE users SET password='{P}', name='x'", "SELECT * FROM users WHERE password = '{P}'",
        "SELECT dblink_connect('host=db user=bob password={P}')", "host=db port=5432 user=bob password={P} dbname=x", "host=db password='{W}' dbname=x",
        "postgres://u:{P}@ss/w#d@db.example.org/x", "postgres://bob:{P}#1@db:5432/x", "postgres://bob:a/{P}@db/x", "mysql://bob:p@{P}@db.example.org:3306/x",
        "amqp://bob:{P}?x@mq:5672/", "mongodb+srv://bob:{P}@cluster0.ab1cd.mongodb.net/x", "redis://:{P}@cache:6379", "postgresql+asyncpg://bob:{P}@/x?host=/tmp",
        "jdbc:postgresql://db/x?user=bob&password={P}", "jdbc:mysql://db/x?password={P}&user=bob", "jdbc:sqlserver://db;user=bob;password={P};", "https://bob:{P}/x@example.org/a",
        "CREATE SECRET s (TYPE s3, KEY_ID 'x', SECRET '{P}')", "CREATE USER MAPPING FOR bob SERVER s OPTIONS (user 'bob', password '{P}')", "db.auth('bob', '{P}')",
    ), (
        "AUTH failed", "AUTH required", "AUTH LOGIN", "AUTH PLAIN", "AUTH=PLAIN LOGIN CRAM-MD5", "NOAUTH Authentication required.", "250-AUTH LOGIN PLAIN", "AUTH done in 12 ms",
        "CREATE USER bob IDENTIFIED BY %s", "CREATE USER bob IDENTIFIED BY ?", "CREATE USER bob IDENTIFIED EXTERNALLY", "ALTER USER bob PASSWORD EXPIRE", "SELECT password FROM users WHERE id = 12",
        "UPDATE users SET password = $1 WHERE id = 1", "INSERT INTO users (name, password) VALUES (%s, %s)", "INSERT INTO users (name, password) VALUES ($1, $2)",
        "SELECT id, name FROM users WHERE token = :token", "INSERT INTO items (name, size) VALUES ('table', '42x42')", "UPDATE items SET color='blue42' WHERE id = 1",
        "postgres://db.example.org:5432/x", "https://example.org/a/b@c", "https://example.org/@bob/posts/42", "https://example.org/x?email=bob@example.org",
        "mailto:bob@example.org", "redis://cache:6379/0", "amqp://mq:5672/", "git@github.com:acme/web.git", "npm i @types/node@20.1.2 lodash@4.17.21", "Server=db;Database=x;Timeout=5",
        "user bob identified by fingerprint", "identified by 3 witnesses", "http://localhost:8080/path/to/@scope/package@1.2.3",
    )),
    Family("headers", (
        "Authorization:\n Bearer {P}1aZ", "Authorization: Basic\r\n {A24}==", "Authorization: Bearer\n\t{P}9xY", "X-Api-Key:\n  {P}", "X-Auth-Token:\r\n\t{P}", "Cookie:\n sid={P}; theme=dark",
        "Set-Cookie: sid={P};\r\n Path=/", "Cookie: a=1;\n sid={P}", "Proxy-Authorization: Basic {A20}==", "authorization: {P}", "b'Authorization': b'Bearer {P}zZ9'", "(b'x-api-key', b'{P}')",
        "[('Authorization', 'Bearer {P}zZ9')]", "{{'headers': {{'X-Api-Key': '{P}'}}}}", "Authorization: Digest username=\"bob\", response=\"{h32}\"", "WWW-Authenticate ok; Authorization: token {P}",
        "> Authorization: Bearer {P}xX1", "-H 'Authorization: Bearer {P}xX1'", "x-amz-security-token: {P}", "X-Vault-Token: {P}", "set-cookie: session={P}; HttpOnly", "cookie=sid={P}",
    ), (
        "Content-Type:\n text/html", "Authorization: Bearer", "Authorization: Basic realm", "Authorization header missing", "WWW-Authenticate: Bearer realm=\"api42\"", "X-Request-Id:\n 550e8400-e29b-41d4-a716-446655440000",
        "Accept: text/html;\n q=0.9", "Authorization: <redacted>", "Access-Control-Allow-Headers: Authorization, X-Api-Key, X-Auth-Token", "Vary: Cookie, Authorization", "Cookie consent shown in 12 ms", "ETag: \"5d41402abc4b2a76b9719d911017c592\"",
    )),
    Family("tables", (
        "| password | {P} |", "| db_password | {W} |", "|password|{P}|", "| bob | password | {P} |", "password | {P}", "password,{P}", "user,bob\npassword,{P}", "name,password\nbob,{P}", "name,password,role\nbob,{P},admin\neve,{P},user",
        "\"name\",\"password\"\n\"bob\",\"{W}\"", "name;password\nbob;{P}", "name\tpassword\nbob\t{P}", "| name | password |\n| --- | --- |\n| bob | {P} |", "| name | password |\n|------|----------|\n| bob | {W} |\n| eve | {P} |",
        "user     password\n-------  --------\nbob      {P}", "│ password │ {P} │", "password\t{P}\tactive", "\"password\",\"{W}\"", "token;{P};active",
        " id | name | password \n----+------+----------\n  1 | bob  | {P}", "+------+----------+\n| name | password |\n+------+----------+\n| bob  | {P} |",
    ), (
        "| name | bob42 |", "| password | required |", "| token | string |", "name,size\ntable,42x42", "name,token_count\nbob,4211", "| name | keys |\n| --- | --- |\n| bob | 42 |", "id,name,password\n", "password,token,secret", "| password | token | secret |",
        "name;colour\nbob;blue42", "| option | meaning |\n| --- | --- |\n| --password | the password |", "user,password_policy\nbob,strong1", "Name   Keys   Size\n----   ----   ----\ndb     12     42kB", "| password | str | yes |", "| `password` | string | the password of the user |",
    )),
)  # fmt: skip


def password(draw: random.Random) -> str:
    """One word: as people choose them and as programs make them, always with a digit."""
    words = "hunter summer dragon letmein winter secret monkey qwerty shadow orange welcome".split()
    kinds = [
        lambda: draw.choice(words) + str(draw.randint(10, 9999)),
        lambda: draw.choice(words).capitalize() + str(draw.randint(10, 9999)) + draw.choice("!@#$%&*?"),
        lambda: draw.choice(["s3cr3t", "p4ssw0rd", "tr0ub4dor", "l3tm31n", "h4ckm3"]) + draw.choice(["!", "&3", "$1", "#9", ""]),
        lambda: "".join(draw.choices(string.ascii_letters + string.digits, k=draw.randint(9, 20))) + str(draw.randint(0, 9)),
        lambda: draw.choice(words) + draw.choice("-_.") + draw.choice(words) + draw.choice("-_.") + str(draw.randint(10, 99)),
    ]  # fmt: skip
    return draw.choice(kinds)()


def unusual_password(draw: random.Random) -> str:
    """Several words, or characters that mean something elsewhere; without quotes, which the places add."""
    words = ["correct", "horse", "battery", "staple", "purple", "monkey", "garden", "velvet", "thunder", "lemon"]
    kinds = [
        lambda: " ".join(draw.sample(words, draw.randint(3, 5))),
        lambda: "".join(draw.choices("abcdefgh23456789$&%!#@^*()+=~", k=draw.randint(10, 16))) + "7Q",
        lambda: f"{draw.choice(words)} {draw.choice('$&%!#')}{draw.randint(10, 999)} {draw.choice(words)}",
        lambda: f"{draw.choice(words)}&{draw.choice(words)}${draw.randint(10, 999)}",
        lambda: f"Pa$${draw.choice(words)}{draw.randint(10, 99)}, {draw.choice(words)}",
    ]
    return draw.choice(kinds)()


def make(template: str, draw: random.Random) -> str:
    return re.sub(r"\{(.)(\d+)\}", lambda m: "".join(draw.choices(ALPHABETS[m[1]], k=int(m[2]))), template)


def fill(place: str, draw: random.Random) -> tuple[str, list[str]]:
    """The text of a place, and the secrets in it."""
    secrets: list[str] = []
    kinds = {"P": password, "W": unusual_password}

    def chosen(match: re.Match[str]) -> str:
        secrets.append(kinds[match[1]](draw) if match[1] in kinds else make(match[0], draw))
        return secrets[-1]

    text = re.sub(r"\{([PW]|[AahdU]\d+)\}", chosen, place)
    return text.replace("{{", "{").replace("}}", "}"), secrets


def leaked(scrubbed: str, secret: str) -> bool:
    """Whether the secret, most of it, or one of its longer words is still there."""
    if secret in scrubbed or (len(secret) >= 10 and secret[: len(secret) * 2 // 3] in scrubbed):
        return True
    return " " in secret and any(len(word) >= 5 and word in scrubbed for word in secret.split())
