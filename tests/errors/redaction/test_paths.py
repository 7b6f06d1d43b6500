"""Paths lose their directories, accounts their names, and what only looks like a path stays."""

from __future__ import annotations

import re

import pytest

from discreet.errors.redaction import Scrubber

PLAIN = [
    "/home/alice/project/app.py", "/Users/bob/Library/Application Support/Code/settings.json", "/var/log/nginx/error.txt",
    "/etc/ssl/private/server.pem", "/opt/company/secret-project/bin/run", "/tmp/build-ab12/x", "/root/.ssh/id_rsa",
    "/mnt/c/Users/Alice/Documents/report.docx", "/workspace/acme/src/main.rs", "/app/internal/config.yaml",
    "/data/customers/acme/db.sqlite", "/usr/local/lib/python3.11/site-packages/foo/bar.py", "/srv/www/site/index.php",
    "/private/var/folders/zz/abc/T/tmp.x", "/media/alice/USB/photo.jpg", "/home/alice/.config/app/settings.toml",
    "/builds/group/project/file.go", "/dev/shm/alice/x", "/home/алиса/файл.txt", "/foo/barn/baz.py", "/c/Users/alice/x.txt",
    r"C:\Users\Alice\Documents\report.docx", r"C:\\Users\\Alice\\AppData\\Local\\x.txt", "C:/Users/Alice/dev/app.py",
    r"D:\projects\acme\build\out.dll", r"C:\Program Files\Acme\tool.exe", r"\\?\C:\Users\Alice\x.txt",
    r"\\fileserver\share\finance\q3.xlsx", r"\\\\fileserver\\share\\finance\\q3.xlsx",
    r"\\wsl$\Ubuntu\home\alice\x.py", r"\\wsl.localhost\Ubuntu\home\alice\x.py",
    "file:///home/alice/notes.txt", "file:///C:/Users/Alice/x.txt", "file://server/share/x.txt",
    "~/projects/app/main.py", "~alice/secret/plan.md", "~/.aws/credentials",
]  # fmt: skip

PLACES = [
    "%s", "open %s failed", '"%s"', "'%s'", "path=%s", "(%s)", "[%s]", '  File "%s", line 12, in main', "`%s`", "<%s>",
    "FileNotFoundError: [Errno 2] No such file or directory: '%s'", "%s:12:5: error", "cp %s /var/tmp/other",
    "loaded config from %s.", "cwd=%s pid=12", '{"path": "%s"}', "PATH=/usr/bin:%s", "at foo (%s:10:5)", "host:%s",
    "--config=%s", "gcc -I%s main.c", "error in %s, line 3",
]  # fmt: skip

PLACED = (
    "读取，/home/{u}/x.txt", "文件/home/{u}/x.txt", "<b>/home/{u}/x.txt</b>", "&quot;/home/{u}/x.txt&quot;", "&#47;home&#47;{u}&#47;x.txt",
    "\\u002fhome\\u002f{u}\\u002fx.txt", "\\/home\\/{u}\\/x.txt", "smb://nas/home/{u}/x.txt", "sftp://host/home/{u}/x.txt",
    "vscode://file/home/{u}/x.py:3", "vscode-remote://ssh-remote+host/home/{u}/x.py", "（/home/{u}/x.txt）", "→/home/{u}/x.txt",
    "--config=/home/{u}/app/config.toml", "--flag=/home/{u}/x", "-I/home/{u}/include", "--out=C:\\Users\\{u}\\out.txt", "C:\\Users\\{u}\\notes.txt", "C:\\Users\\{u}\\My Documents\\notes.txt",
    "\\\\?\\C:\\Users\\{u}\\x.txt", "\\\\?\\UNC\\srv\\share\\{u}\\x.txt", "C:/Users/{u}/x.txt", "open 'C:\\Users\\{u}\\x y.txt'", "\"C:\\\\Users\\\\{u}\\\\x.txt\"", "D:\\data\\{u}\\file.bin", "file:///C:/Users/{u}/x.txt",
    "file:///home/{u}/x.txt", "/home/{u}/a b/c.txt", "'/home/{u}/a b/c.txt'", "path=/home/{u}/x.py:12", "cd /home/{u} && ls", "HOME=/home/{u}", "PATH=/usr/bin:/home/{u}/bin", "/Users/{u}/Library/Application Support/x/y.db", "~{u}/x.txt",
    "/root/.ssh/{u}/id_rsa", "at Object.<anonymous> (/home/{u}/x.js:1:2)", "(/home/{u}/x)", "[/home/{u}/x]", "</home/{u}/x>", "`/home/{u}/x`", "@/home/{u}/x", "scp /home/{u}/x host:/srv/{u}/y", "host:/home/{u}/y", "/mnt/c/Users/{u}/x", "\\\\wsl$\\Ubuntu\\home\\{u}\\x",
    "\\\\srv\\share\\{u}\\x.doc", "%USERPROFILE%;C:\\Users\\{u}\\bin;C:\\x", "/var/lib/{u}/db.sqlite", "/tmp/{u}/sock", "file=/srv/{u}/data.csv,mode=r", "{{'path': '/home/{u}/x'}}", "path:/home/{u}/x", "path: /home/{u}/x", "(C:\\Users\\{u}\\x.py)", "C:\\Users\\{u}",
    "unix:/run/user/1000/{u}/bus", "sqlite:////home/{u}/x.db", "sqlite:///home/{u}/x.db", "git+file:///home/{u}/repo", "--volume /home/{u}/x:/data", "-v /home/{u}/x:/data/y", "-v C:\\Users\\{u}\\x:/data", "\\\\.\\pipe\\{u}\\x", "c:\\users\\{u}\\x.py", "/c/Users/{u}/x.py",
    "cwd='/home/{u}/work'", "cwd=/home/{u}", "--flag=~/work/{u}/x", "--dir=\"/home/{u}/a b/c\"", "\\\"/home/{u}/x\\\"", "/home/{u}/x, /home/{u}/y and /home/{u}/z", "rsync /home/{u}/ host::mod/", "/home/{u}/file.txt.", "(see /home/{u}/file.txt)",
    "#!/home/{u}/venv/bin/python", "C:\\Program Files\\{u}\\app.exe", "\"C:\\Program Files (x86)\\{u}\\app.exe\" -v", "/opt/{u}/lib/python3.11/site-packages/x.py", "FileNotFoundError: [Errno 2] No such file or directory: '/home/{u}/x'", "%2Fhome%2F{u}%2Fx", "/data/{u}/x.parquet", "/home/{u}//x", "/home/{u}/./x/../y",
)  # fmt: skip
"""Where programs show paths; `{u}` is an account."""

NO_PATHS = [
    "GET /api/v1/users HTTP/1.1", '"GET /static/js/app.js HTTP/2" 200', "POST /login 302", "redirect to /dashboard",
    "ratio 1/2 done", "date 2024/01/02", "and/or", "Content-Type: application/json", "text/html; charset=utf-8",
    "method fs/read called", "textDocument/hover", "$/cancelRequest", "https://example.com/home/alice/x",
    "http://localhost:8080/var/log", "regex /^foo[a-z]+$/g", "s/foo/bar/g", "a / b", "// comment", "/* x */", "</div>",
    "<br/>", "N/A", "I/O error", "TCP/IP", "10.0.0.0/8", "route /users/:id registered", "24/7", "client/server",
    "http://h/a?b=/c/d", "sha256/abc", "curl/7.68.0", "Mozilla/5.0 (X11; Linux x86_64)", "origin/main", "refs/heads/main",
    "@scope/pkg", "docker.io/library/nginx:latest", "/metrics", "/healthz ok", "uri: /v1/chat/completions",
    '"/users/{id}/posts"', "std::string", "12:30:45", "0/1 nodes are available", "pod/web-1 created", "%d/%d", "../up",
    "src/main.py:12", "./run.sh", "~5 min", "a~b", "/", "//", r"\d+\w", r"\n", r"foo\bar", "\\u00e9", r"\alpha\beta", "C:",
    "GET /api/v1/users/42 HTTP/1.1", "fs/read and fs/write", "https://example.org/a/b.html", "text/html, application/json", "and/or 24/7 1/2", "2026/01/31", "method=fs/read", "a / b // c", "--flag=value/other", "s3://bucket/key", "ratio=1/2", "km/h", "refs/heads/main",
    "C: drive", "a:b", "key:/", "x:\\n", "std::vec::Vec", "npm i @scope/package", "image: library/redis:7", "docker.io/library/redis:7", "n/a", "TCP/IP", "he/she", "<br/>", "</div>", "/", "//", "user/repo#12", "path/to/file", "I/O error",
    "> /dev/null 2>&1", "tasks/get", "x: y", "if a > b:\\n", "path /health",
]  # fmt: skip


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    return Scrubber()


def directories(path: str) -> list[str]:
    parts = [part for part in re.split(r"[\\/]+", path) if part and part != "file:"]
    return [part for part in parts[:-1] if len(part) > 2]


def test_97_of_100_paths_lose_their_directories(scrubber: Scrubber) -> None:
    kept = []
    for path in PLAIN:
        for place in PLACES:
            scrubbed = scrubber.scrub(place.replace("%s", path))
            rest = scrubbed.replace("<path>", "")
            if path in scrubbed or any(
                re.search(rf"(?<!\w){re.escape(name)}(?!\w)", rest) for name in directories(path)
            ):
                kept.append(scrubbed)
    assert len(kept) <= 0.03 * len(PLAIN) * len(PLACES), kept


def test_no_account_of_a_path_is_left(scrubber: Scrubber) -> None:
    users = ("alice", "jdoe42")
    texts = [place.replace("{u}", user).replace("{{", "{").replace("}}", "}") for place in PLACED for user in users]
    left = [text for text in texts if any(user in scrubber.scrub(text) for user in users)]
    assert len(left) <= 0.03 * len(texts), left


@pytest.mark.parametrize("text", NO_PATHS)
def test_what_only_looks_like_a_path_stays(scrubber: Scrubber, text: str) -> None:
    assert scrubber.scrub(text) == text


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("open /home/alice/a.py failed", "open <path>/a.py failed"),
        ("/etc/passwd:12", "<path>/passwd:12"),
        (r"open C:\Users\Alice\a b\c.txt now", "open <path>/c.txt now"),
        (r"\\server\share\x.txt", "<path>/x.txt"),
        ("file:///etc/hosts", "<path>/hosts"),
        ("~/.ssh/id_rsa", "<path>/id_rsa"),
        ("/home/alice", "<path>/<user>"),
        (r"C:\Users\Alice", "<path>/<user>"),
        ("PATH=/usr/bin:/usr/sbin", "PATH=<path>/bin:<path>/sbin"),
        ("'/home/alice/My Files/a.txt'", "'<path>/a.txt'"),
        ("/home/alice/x/ and more", "<path>/x and more"),
    ],
)
def test_the_last_part_stays(scrubber: Scrubber, text: str, scrubbed: str) -> None:
    assert scrubber.scrub(text) == scrubbed


def test_a_route_that_names_a_home_is_still_a_path(scrubber: Scrubber) -> None:
    assert "alice" not in scrubber.scrub("GET /home/alice/.ssh/id_rsa HTTP/1.1")


def test_paths_stay_where_only_secrets_are_asked_for(scrubber: Scrubber) -> None:
    text = "/home/alice/a.py token=a1b2c3d4"
    assert scrubber.scrub_secrets(text) == ("/home/alice/a.py token=<redacted>", 1)


def test_the_environment_names_the_account_and_its_home() -> None:
    scrubber = Scrubber()
    scrubber.load_environment({"USER": "quentin", "HOME": "/strange/place/quentin"})
    assert scrubber.scrub("run by quentin on node1") == "run by <user> on node1"
    assert scrubber.scrub("saved quentinette") == "saved quentinette"
    assert scrubber.scrub("in /strange/other/thing") == "in <path>/thing"


def test_an_environment_can_also_come_after_the_first_text() -> None:
    scrubber = Scrubber()
    assert scrubber.scrub("by quentin") == "by quentin"
    scrubber.load_environment({"LOGNAME": "quentin"})
    assert scrubber.scrub("by quentin") == "by <user>"


@pytest.mark.parametrize("name", ["root", "admin", "app", "ubuntu", "user", "ci", "path"])
def test_accounts_with_the_name_of_a_common_word_are_not_hidden(name: str) -> None:
    scrubber = Scrubber()
    scrubber.load_environment({"USER": name})
    assert scrubber.scrub(f"the {name} said") == f"the {name} said"
