"""Redacts the values of Kubernetes Secrets, whatever their names, in YAML and one-line JSON. Other kinds stay."""

from __future__ import annotations

import re

from ..marks import Replace, nothing_to_redact
from .false_positives import is_placeholder

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
