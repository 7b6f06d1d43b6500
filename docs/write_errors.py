"""Writes the tables of errors.md from the table of errors: `python docs/write_errors.py`."""

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import get_args

from discreet.daemon.rpc.envelope import NESTED_TOO_DEEPLY, NO_OBJECT
from discreet.errors.codes import (
    A2A_REASONS,
    BATCH_MESSAGE,
    ERROR_TABLE,
    INVALID_REQUEST,
    MEMBER_RULES,
    PARSE_ERROR,
    REASON_RULES,
    RESERVED_CODES,
    ErrorRow,
    grpc_of_http,
    row_of,
)
from discreet.errors.failures import OPERATION_TYPE_REASON, ParseReason, RequestReason

PAGE = Path(__file__).with_name("errors.md")
BEGIN = "<!-- The tables are written by write_errors.py. -->\n"
END = "<!-- End of the tables. -->\n"

REASONS = {
    PARSE_ERROR: get_args(ParseReason),
    INVALID_REQUEST: (*get_args(RequestReason), OPERATION_TYPE_REASON),
}


def with_tables(page: str) -> str:
    """The page with the tables of the code."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n".join(_tables()) + "\n\n" + END + after


def _dialect_row(row: ErrorRow) -> str:
    codes = " | ".join(_number(row.code_in(dialect)) for dialect in ("lsp", "mcp", "acp"))
    return f"| {row.protocol_code or 'a declared error without a number'} | {row.message} | {codes} |"


def _tables() -> Iterator[str]:
    yield "\n## On the wire\n"
    yield "| code | message | protocol code | when | `error.data` | retryable |"
    yield "| --- | --- | --- | --- | --- | --- |"
    yield from map(_wire_row, ERROR_TABLE)
    yield "\nOf the methods of A2A 1.0, `data` is a list of objects with an `@type`. The first is a `google.rpc.ErrorInfo`, whose"
    yield "`metadata` holds the same facts as strings. Its `domain` is `a2a-protocol.org` for the reasons of this table. For all"
    yield "other errors it is `discreet`, and the `reason` is the protocol code.\n"
    yield "| code | message | `reason` in A2A 1.0 |"
    yield "| --- | --- | --- |"
    yield from (
        f"| {_number(row.code)} | {row.message} | `{A2A_REASONS[row.failure]}` |"
        for row in ERROR_TABLE
        if row.failure in A2A_REASONS
    )
    yield "\nWrong params come with a `google.rpc.BadRequest` too, a time to wait with a `google.rpc.RetryInfo`, and the"
    yield "details of a declared error with a `google.protobuf.Value` that holds them as they are. Over HTTP+JSON the same"
    yield "list is `error.details`."
    yield f"\nA refused batch has the message `{BATCH_MESSAGE}` instead. If a member of the envelope is missing or wrong, or the"
    yield "message can't be read for another reason that has a remedy, the text goes on with what must be sent:\n"
    rules = [*MEMBER_RULES.values(), *REASON_RULES.values(), NO_OBJECT.hint, NESTED_TOO_DEEPLY.hint]
    yield from (f"- `{row_of(NO_OBJECT).message}: {rule}`" for rule in rules)
    yield ""
    yield "## In other dialects\n"
    yield "The codes above are those of `plain`. Where clients speak another dialect, these differ:\n"
    yield "| protocol code | message | LSP | MCP | ACP |"
    yield "| --- | --- | --- | --- | --- |"
    yield from (_dialect_row(row) for row in ERROR_TABLE if row.codes)
    yield ""
    yield "## Reasons\n"
    yield "| code | `reason` |"
    yield "| --- | --- |"
    for code, reasons in REASONS.items():
        yield f"| {_number(code)} | {', '.join(f'`{reason}`' for reason in reasons)} |"
    yield "\n## HTTP, gRPC and the log\n"
    yield "| protocol code | message | HTTP | gRPC | logged at |"
    yield "| --- | --- | --- | --- | --- |"
    yield from map(_gateway_row, ERROR_TABLE)
    yield "\nThe gRPC status of a declared error follows its HTTP status, and is INTERNAL if this table does not list it:\n"
    yield "| gRPC | HTTP |"
    yield "| --- | --- |"
    by_status = sorted((grpc_of_http(http), http) for http in range(400, 600) if grpc_of_http(http) != "INTERNAL")
    for grpc, pairs in groupby(by_status, lambda pair: pair[0]):
        yield f"| {grpc} | {', '.join(str(http) for _, http in pairs)} |"
    yield f"\nNo operation can declare these codes: {', '.join(f'`{code}`' for code in sorted(RESERVED_CODES))}."


def _wire_row(row: ErrorRow) -> str:
    data = (
        row.data.replace("{code} of", "`{code}` of") if " of " in row.data else f"`{row.data}`" if row.data else "none"
    )
    declared = not row.protocol_code
    retryable = "as declared" if declared else "yes" if row.retryable else "no"
    return _line(_number(row.code), row.message or "its own", _code(row), row.when, data, retryable)


def _gateway_row(row: ErrorRow) -> str:
    if not row.protocol_code:
        return _line(_code(row), "its own", f"as declared, else {row.http_status}", "see below", row.log_level)
    return _line(_code(row), row.message, str(row.http_status), row.grpc_status, row.log_level)


def _code(row: ErrorRow) -> str:
    return f"`{row.protocol_code}`" if row.protocol_code else "its own"


def _number(code: int) -> str:
    return f"−{-code}"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name}: {len(ERROR_TABLE)} rows\n")
