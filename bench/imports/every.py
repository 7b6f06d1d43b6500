"""Calls every operation of documents against a server that answers by the document: `python every.py [--folder DIR] NAME …`.

Prints a row of a table for each document. Nothing that discreet reads decides what the server answers: its statuses, media types
and bodies are made of the document itself, and the request must be of the operation's method and path. An operation is called if
its result is that body, or null. Then the server answers with each error that the operation declares, and the caller must get its
code. Params and bodies are guessed by `samples.py`; where params do not fit, the operation is not called, and counted so. A body
that does not fit the document's own schema is no answer, and counted so, too. Subscriptions are not called.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, NamedTuple

from corpus import fetch
from daemons import Daemon
from probe import METHODS, raw_of
from samples import at, sample
from stub import Stub


class Answer(NamedTuple):
    """What the server says, and what the caller gets of it."""

    status: int
    media_type: str
    body: bytes
    result: Any


def answers_of(operation: dict[str, Any], root: dict[str, Any]) -> Iterator[tuple[str, Answer]]:
    """An answer for each declared response; those of success have an empty code."""
    responses = {str(status).upper(): found for status, found in operation.get("responses", {}).items()}
    fine = [status for status in sorted(responses) if status.startswith("2")]
    for declared, given in responses.items():
        status = _status(declared, responses)
        if status is None or (declared.startswith("2") and declared != fine[0]):
            continue
        response = at(given["$ref"], root) if "$ref" in given else given
        is_success = declared.startswith("2") or (declared == "DEFAULT" and not fine)
        yield (
            "" if is_success else f"HTTP_{declared}",
            _answer(200 if is_success and status > 299 else status, response, root),
        )


def _status(declared: str, responses: dict[str, Any]) -> int | None:
    """A status that a response is declared for, and no other."""
    if declared.isdigit():
        return int(declared)
    if declared == "DEFAULT":
        return next(
            status
            for status in (418, 422, 500, 599)
            if str(status) not in responses and f"{status // 100}XX" not in responses
        )
    if re.fullmatch(r"[2-5]XX", declared):
        return next(status for status in range(int(declared[0]) * 100 + 10, 600) if str(status) not in responses)
    return None


def _answer(status: int, response: dict[str, Any], root: dict[str, Any]) -> Answer:
    content = response.get("content") or {}
    media_type = next((each for each in content if "json" in each), next(iter(content), ""))
    if not media_type or status in (204, 205, 304):
        return Answer(status, "", b"", None)
    name = media_type.partition(";")[0].strip().lower()
    schema = (content[media_type] or {}).get("schema", {})
    if name.endswith(("/json", "+json")):
        value = sample(schema, root)
        return Answer(status, media_type, json.dumps(value).encode(), value)
    if "*" in name and schema.get("type") == "string" and schema.get("format") != "binary":
        return Answer(status, "text/plain", b"text", "text")
    if name.startswith("text/") or name.endswith(("/xml", "+xml")):
        return Answer(status, media_type, b"text", "text")
    sent = "application/octet-stream" if "*" in name else media_type
    return Answer(status, sent, b"bytes", b64encode(b"bytes").decode())


def pattern_of(path: str) -> re.Pattern[str]:
    """The targets of requests to a path."""
    static = re.split(r"\{[^}]*\}", path.partition("#")[0].partition("?")[0])
    return re.compile("[^?]*".join(map(_literal, static)) + r"(\?.*)?")


def _literal(text: str) -> str:
    """Characters that may be percent-encoded, too."""
    return "".join(
        f"(?:{re.escape(each)}|{re.escape(f'%{ord(each):02X}')})" if ord(each) < 128 else ".+" for each in text
    )


def call_all(path: Path, cache: Path) -> dict[str, Any]:
    import jsonschema_rs

    from discreet.imports.archive import ImportArchive, pack
    from discreet.imports.from_openapi import HttpImport, HttpOperation
    from discreet.imports.openapi.reader import read_openapi

    text = path.read_bytes()
    root = raw_of(text)
    imported = read_openapi(text, origin=path.as_uri())
    packed = ImportArchive(pack(imported), HttpImport, HttpOperation)
    declared = {
        (method.upper(), where): operation
        for where, item in root.get("paths", {}).items()
        for method, operation in item.items()
        if method in METHODS and isinstance(operation, dict)
    }
    counts: Counter[str] = Counter(declared=len(declared))
    wrong: list[Any] = []
    began = time.perf_counter()
    with TemporaryDirectory() as folder, Stub() as stub, Daemon(Path(folder), cache, path, stub.url) as daemon:
        for each in imported.operations:
            if each.kind == "subscription":
                counts["subscriptions"] += 1
                continue
            document = packed.document(each.input)
            params = sample(document)
            if not jsonschema_rs.Draft202012Validator(document, validate_formats=False).is_valid(params):
                counts["params not guessed"] += 1
                continue
            target = pattern_of(each.path)
            answers = list(answers_of(declared[each.method, each.path], root))
            if not any(not code for code, _ in answers):
                counts["no success declared"] += 1
            for code, answer in answers:
                stub.answer = answer[:3]
                stub.arrived.clear()
                said = daemon.call(f"x/{each.name}", params)
                arrived = stub.arrived[0] if stub.arrived else None
                is_sent = arrived is not None and arrived.method == each.method and target.fullmatch(arrived.target)
                kind = "errors" if code else "called"
                counts[f"{kind} tried"] += 1
                right = None if each.method == "HEAD" else answer.result
                if is_sent and _is_right(said, code, right):
                    counts[kind] += 1
                elif not code and not _fits(declared[each.method, each.path], answer, root):
                    counts["answers not guessed"] += 1
                else:
                    wrong.append(
                        (kind, each.name, params, answer.status, said.get("error", "another result"), bool(is_sent))
                    )
    return {"counts": counts, "wrong": wrong, "seconds": time.perf_counter() - began}


def _fits(operation: dict[str, Any], answer: Answer, root: dict[str, Any]) -> bool:
    """Whether a body of JSON fits the document's own schema, by a validator alone. `nullable` of 3.0 is not known to it."""
    import jsonschema_rs

    for response in operation.get("responses", {}).values():
        content = (at(response["$ref"], root) if "$ref" in response else response).get("content") or {}
        if answer.media_type in content and "json" in answer.media_type:
            schema = {
                **content[answer.media_type].get("schema", {}),
                **{word: root[word] for word in ("components", "paths") if word in root},
            }
            try:
                return jsonschema_rs.Draft202012Validator(schema, validate_formats=False).is_valid(answer.result)
            except ValueError:  # words of 3.0, such as `exclusiveMinimum: true`
                return True
    return True


def _is_right(said: dict[str, Any], code: str, result: Any) -> bool:
    if code:
        return bool(said.get("error", {}).get("data", {}).get("code") == code)
    return "result" in said and said["result"] == result


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Calls every operation of OpenAPI documents against a server that answers by them."
    )
    parser.add_argument("names", nargs="*", help="documents; all of them without")
    parser.add_argument("--folder", type=Path, default=Path(gettempdir()) / "discreet-openapi-documents")
    options = parser.parse_args()
    print(
        "| document | operations | called | params not guessed | answer not guessed | subscriptions | other | errors told | s |"
    )
    print("| --- |" + " ---: |" * 8)
    for name, path in fetch(options.folder, tuple(options.names)).items():
        with TemporaryDirectory() as cache:
            found = call_all(path, Path(cache))
        counts = found["counts"]
        row = [
            f"{counts['declared']:,}",
            f"{counts['called']:,}",
            f"{counts['params not guessed']:,}",
            f"{counts['answers not guessed']:,}",
            f"{counts['subscriptions']:,}",
            f"{counts['called tried'] - counts['called'] - counts['answers not guessed'] + counts['no success declared']:,}",
            f"{counts['errors']:,} of {counts['errors tried']:,}",
            f"{found['seconds']:.0f}",
        ]
        print(f"| {name} | {' | '.join(row)} |", flush=True)
        for each in found["wrong"][:20]:
            print(name, *each, file=sys.stderr)


if __name__ == "__main__":
    main()
