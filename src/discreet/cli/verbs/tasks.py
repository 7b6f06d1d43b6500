"""`discreet tasks`: lists, shows, follows, cancels and repeats the tasks of a store. Executes none, and disturbs no daemon.

What reads owns nothing in the store. What changes something opens the store as a daemon that takes no task, and deletes none.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import Raw

from ...a2a.types import STATE_OF_WORD, TERMINAL, Role, Task, TaskQuery, ceil_timestamp
from ...agents.operating import (
    NotCancelledError,
    UnknownTaskError,
    WrongStateError,
    cancel,
    fork,
    load,
    require_task,
    retry,
)
from ...agents.stores.checks import COVERED_EVENTS_KEPT, Retention
from ...agents.stores.factory import create_store, open_reader
from ...agents.stores.interface import LoggedEvent, LogTruncatedError, StoredTask, StoreError, TaskStore
from ...agents.stores.threaded_store import StoreReader
from ...agents.timeline import (
    Entry,
    Shown,
    Summary,
    count_copied,
    current_task,
    entries_after,
    entries_of,
    scrubbed,
    starts_of,
    summary_of,
)
from ...daemon.lifecycle import EXIT_OK
from ...daemon.memory import MemoryBudget
from ...daemon.settings import UsageError
from ...daemon.settings.option import SQLITE
from ...errors.printable import cut, printable
from ...errors.redaction import load_environment, scrub, scrub_fields
from ..exit_status import EXIT_DOMAIN, EXIT_TIMEOUT, run_until_signal
from ..output import print_json, require_stdout, write_stderr, write_stdout

EXIT_NO_TASK: Final = 4
EXIT_STORE: Final = 8

PAGE_SIZE: Final = 100
"""Tasks that are read at once. What is found is printed before the next are read."""

TEXT_CHARACTERS: Final = 160
"""How much of a text is shown."""

TAIL_LINES: Final = 10
"""Events that `tail` shows of what was before."""

POLL_SECONDS: Final = 0.25
"""How often `tail` looks for events."""

MAX_FOLLOWED: Final = 10_000
"""Tasks of which `tail` remembers what it has shown. Of one that it has forgotten it shows the last event again."""

_FOR_ONE: Final = frozenset({"show", "cancel", "retry", "fork"})
_FOR_MANY: Final = frozenset({"list"})

_encode: Final = msgspec.json.Encoder().encode


def run(args: argparse.Namespace) -> int:
    """Do what the action says. Raises `UsageError`."""
    require_stdout()
    setting = _setting(args.store or os.environ.get("DISCREET_STORE", ""))
    try:
        "".join(each for each in vars(args).values() if isinstance(each, str)).encode()
    except UnicodeEncodeError:
        raise UsageError("the arguments must be UTF-8") from None
    if args.text == "":
        raise UsageError("--text: what shall the message say? It is empty")
    if args.action in _FOR_ONE and not args.id:
        raise UsageError(f"{args.action}: which task? discreet tasks list shows their ids")
    if args.action != "fork" and (args.message or args.text is not None):
        raise UsageError(f"--message and --text are for fork, not for {args.action}")
    if args.action in _FOR_MANY and args.id:
        raise UsageError(f"{args.id}: {args.action} takes no task; discreet tasks show {args.id} shows one")
    load_environment(os.environ)
    try:
        if args.action in _CHANGES:
            return _change(setting, args)
        reader = _opened(lambda: open_reader(setting))
        with closing(reader):
            _READS[args.action](reader, args)
    except UnknownTaskError as exc:
        return _failed(exc, EXIT_NO_TASK)
    except WrongStateError as exc:
        return _failed(exc, EXIT_DOMAIN)
    except NotCancelledError as exc:
        return _failed(exc, EXIT_TIMEOUT)
    except StoreError as exc:
        return _failed(exc, EXIT_STORE)
    return EXIT_OK


def _failed(exc: Exception, status: int) -> int:
    write_stderr(str(exc))
    return status


def _setting(text: str) -> str:
    if not text:
        raise UsageError(
            "which store? --store sqlite:PATH, postgresql://… or redis://…, or the variable DISCREET_STORE"
        )
    if text.partition(":")[0] == "memory":
        raise UsageError("--store: tasks in memory are those of one daemon, and can't be seen from outside")
    if text.startswith(SQLITE):
        return SQLITE + os.path.abspath(os.path.expanduser(text.removeprefix(SQLITE)))
    return text


def _opened(open_it: Callable[[], StoreReader[Any]]) -> StoreReader[Any]:  # Any: what it reads from
    try:
        return open_it()
    except StoreError as exc:
        raise UsageError(f"--store: {exc}") from None


# -- the tasks that the filters tell ---------------------------------------------------------------------------


def _query(args: argparse.Namespace) -> TaskQuery:
    after = None
    if args.newer:
        after = ceil_timestamp(datetime.now(UTC) - timedelta(seconds=min(args.newer, 1e9)))
    return TaskQuery(
        scope=args.caller,
        state=None if args.state is None else STATE_OF_WORD[args.state],
        status_timestamp_after=after,
        page_size=PAGE_SIZE,
        include_artifacts=False,
    )


def _found(reader: StoreReader[Any], args: argparse.Namespace) -> Iterator[Summary]:  # Any: as above
    """Yield the tasks, the last changed first, as they are read. One that is damaged is told on stderr."""
    query = _query(args)
    before = "9999"
    if args.older:
        before = ceil_timestamp(datetime.now(UTC) - timedelta(seconds=min(args.older, 1e9)))
    shown = 0
    while True:
        page = reader.list(query)
        for damaged in page.unreadable:
            write_stderr(f"{damaged.id} can't be read: it is not as it was stored")
        for task, scope, owner in zip(page.tasks, page.scopes, page.owners, strict=True):
            summary = summary_of(task, scope, owner)
            if summary.since <= before and args.operation in (None, summary.operation):
                yield summary
                shown += 1
                if shown == args.limit:
                    return
        if not page.next_page_token:
            return
        query = msgspec.structs.replace(query, page_token=page.next_page_token)


# -- list ------------------------------------------------------------------------------------------------------


def _list(reader: StoreReader[Any], args: argparse.Namespace) -> None:  # Any: as above
    if not args.json:
        write_stdout(_row("ID", "STATE", "SINCE", "OWNER", "CALLER", "OPERATION"))
    for summary in _found(reader, args):
        write_stdout(_json(summary) if args.json else _line(summary))


def _line(summary: Summary) -> str:
    shown = (summary.owner or "-", summary.caller or "-", summary.operation or "-")
    return _row(summary.id, summary.state, summary.since, *(cut(scrub(each), TEXT_CHARACTERS) for each in shown))


def _row(task_id: str, state: str, since: str, owner: str, caller: str, operation: str) -> str:
    return printable(f"{task_id:<36}  {state:<14}  {since:<24}  {owner:<18}  {caller:<16}  {operation}".rstrip())


def _json(value: object) -> str:
    return _encode(scrub_fields(msgspec.to_builtins(value))).decode()


# -- show ------------------------------------------------------------------------------------------------------


def _show(reader: StoreReader[Any], args: argparse.Namespace) -> None:  # Any: as above
    stored = _loaded(reader, args.id)
    task = current_task(stored)
    summary = summary_of(task, stored.scope, stored.owner)
    start = _first_of_log(reader, stored)
    missing, log = start - 1, f"task={task.id}"
    copied = count_copied(stored, _events(reader, task.id, start))
    entries = (_as_asked(each, args) for each in entries_of(stored, _events(reader, task.id, start), copied))
    if args.json:
        return print_json(Raw(_encode(Shown(summary, log, missing, [*entries]))), one_line=False)
    for name, value in (
        ("task", task.id),
        ("context", task.context_id),
        ("state", f"{summary.state} since {summary.since or 'unknown'}"),
        ("owner", {None: "none", "queue": "none: it waits in the queue"}.get(summary.owner, summary.owner)),
        ("caller", scrub(summary.caller) or "-"),
        ("operation", scrub(summary.operation) or "-"),
        ("log lines", log),
    ):
        write_stdout(printable(f"{name:<10} {value}"))
    for entry in entries:
        if entry.number > 1 and missing > 0:
            write_stdout(f"{'':6}  ({missing} events are no longer in the log)")
            missing = 0
        write_stdout(_event_line(entry))


def _loaded(reader: StoreReader[Any], task_id: str) -> StoredTask:  # Any: as above
    return require_task(reader.load(task_id), task_id)


def _first_of_log(reader: StoreReader[Any], stored: StoredTask) -> int:  # Any: as above
    """The generation after which the log can be read."""
    for after in starts_of(stored):
        try:
            reader.read(stored.snapshot.id, after=after, limit=1)
        except LogTruncatedError:
            continue
        return after
    return stored.snapshot_generation


def _events(reader: StoreReader[Any], task_id: str, after: int) -> Iterator[LoggedEvent]:  # Any: as above
    """Yield the events after a generation that there are now."""
    while batch := reader.read(task_id, after=after):
        yield from batch
        after = batch[-1].generation


def _as_asked(entry: Entry, args: argparse.Namespace) -> Entry:
    """The entry with as much of its text as may be shown."""
    return entry if args.raw else scrubbed(entry, TEXT_CHARACTERS)


def _event_line(entry: Entry) -> str:
    who = f"{entry.who}: " if entry.who else ""
    message = f"  [{entry.message}]" if entry.message else ""
    return printable(f"{entry.number:>6}  {entry.time:<24}  {entry.what:<14}  {who}{entry.text}{message}".rstrip())


# -- tail ------------------------------------------------------------------------------------------------------


def _tail(reader: StoreReader[Any], args: argparse.Namespace) -> None:  # Any: as above
    """Show the last events of a task, or of all, and those that come, until the task has ended or a signal comes."""
    if args.id:
        return _tail_one(reader, args)
    since, known = ceil_timestamp(datetime.now(UTC)), dict[str, int]()
    for number, summary in reversed([*enumerate(_found(reader, _limited(args, PAGE_SIZE)))]):
        with suppress(UnknownTaskError):  # it was deleted meanwhile
            known[summary.id] = _loaded(reader, summary.id).generation
            if number < (args.limit or TAIL_LINES):
                _print_event(summary.id, _history(reader, summary.id)[-1], args)
    while True:
        time.sleep(POLL_SECONDS)
        _tail_changed(reader, args, known, since)


def _limited(args: argparse.Namespace, limit: int) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(args), "limit": limit})


def _tail_changed(
    reader: StoreReader[Any], args: argparse.Namespace, known: dict[str, int], since: str
) -> None:  # Any: as above
    """Show what the last changed tasks have that was not shown. The list is read until a task has nothing new."""
    for summary in _found(reader, _limited(args, 0)):
        before = known.pop(summary.id, None)
        try:
            if before is None:
                entries = _history(reader, summary.id)
                is_new = next((each.time for each in entries if each.time), "") >= since
                entries = entries if is_new else entries[-1:]
            else:
                entries = [*entries_after(_events(reader, summary.id, before))]
        except LogTruncatedError:
            entries = _history(reader, summary.id)[-1:]
        except UnknownTaskError:  # it was deleted meanwhile
            continue
        known[summary.id] = entries[-1].number if entries else before or 0
        if not entries:
            return
        for entry in entries:
            _print_event(summary.id, entry, args)
        while len(known) > MAX_FOLLOWED:
            del known[next(iter(known))]


def _history(reader: StoreReader[Any], task_id: str) -> list[Entry]:  # Any: as above
    """The entries of a task; of one with many events, the last ones."""
    stored = _loaded(reader, task_id)
    after = max(_first_of_log(reader, stored), stored.generation - COVERED_EVENTS_KEPT)
    return [*entries_of(stored, _events(reader, task_id, after))]


def _tail_one(reader: StoreReader[Any], args: argparse.Namespace) -> None:  # Any: as above
    entries = _history(reader, args.id)
    for entry in entries[-(args.limit or TAIL_LINES) :]:
        _print_event(args.id, entry, args)
    after = entries[-1].number if entries else 1
    while current_task(_loaded(reader, args.id)).status.state not in TERMINAL or reader.read(
        args.id, after=after, limit=1
    ):
        for entry in entries_after(_events(reader, args.id, after)):
            _print_event(args.id, entry, args)
            after = entry.number
        time.sleep(POLL_SECONDS)


def _print_event(task_id: str, entry: Entry, args: argparse.Namespace) -> None:
    entry = _as_asked(entry, args)
    if args.json:
        return write_stdout(_encode({"task": task_id, **msgspec.to_builtins(entry)}).decode())
    write_stdout(_event_line(entry) if args.id else f"{printable(task_id)}  {_event_line(entry)}")


# -- export ----------------------------------------------------------------------------------------------------


def _export(reader: StoreReader[Any], args: argparse.Namespace) -> None:  # Any: as above
    for task_id in [args.id] if args.id else (summary.id for summary in _found(reader, args)):
        stored = reader.load(task_id)
        if stored is None and args.id:
            _loaded(reader, task_id)
        if stored is not None:
            _export_one(reader, stored, raw=args.raw)


def _export_one(reader: StoreReader[Any], stored: StoredTask, *, raw: bool) -> None:  # Any: as above
    task = current_task(stored)
    summary = summary_of(task, stored.scope, stored.owner)
    _write_record(
        {
            "type": "task",
            "caller": summary.caller,
            "owner": summary.owner,
            "generation": stored.generation,
            "task": msgspec.to_builtins(task),
        },
        raw=raw,
    )
    for logged in _events(reader, task.id, _first_of_log(reader, stored)):
        record = {"type": "event", "task": task.id, "number": logged.generation}
        _write_record({**record, "event": msgspec.to_builtins(logged.event)}, raw=raw)


def _write_record(record: dict[str, Any], *, raw: bool) -> None:  # Any: JSON
    write_stdout(_encode(record if raw else scrub_fields(record, cap=sys.maxsize)).decode())


_READS: Final[dict[str, Callable[[StoreReader[Any], argparse.Namespace], None]]] = {  # Any: as above
    "list": _list,
    "show": _show,
    "tail": _tail,
    "export": _export,
}


# -- changes ---------------------------------------------------------------------------------------------------


def _cancel(store: TaskStore, args: argparse.Namespace) -> Coroutine[Any, Any, Task]:  # Any: as coroutines have it
    return cancel(store, args.id, args.timeout)


def _retry(store: TaskStore, args: argparse.Namespace) -> Coroutine[Any, Any, Task]:  # Any: as above
    return retry(store, args.id, args.scope)


def _fork(store: TaskStore, args: argparse.Namespace) -> Coroutine[Any, Any, Task]:  # Any: as above
    return fork(store, args.id, args.message, args.text, args.scope)


_CHANGES: Final = {"cancel": _cancel, "retry": _retry, "fork": _fork}


def _tell_of_others(task: Task, before: str) -> None:
    """Say on stderr which message is tried again, where there are several."""
    said = [message.message_id for message in task.history if message.role is Role.USER]
    if len(said) > 1:
        write_stderr(
            f"{before} has {len(said)} messages of its caller, and the last one is tried again; from the first one:"
            f" discreet tasks fork {before} --message {printable(said[0])}"
        )


def _change(setting: str, args: argparse.Namespace) -> int:
    _opened(
        lambda: open_reader(setting)
    ).close()  # no store is created, and none is asked for a change that has no task

    async def change() -> tuple[Task, Summary]:
        store = create_store(setting, MemoryBudget(0), Retention(sys.maxsize, None))  # it deletes no task
        await store.open()
        try:
            task = await _CHANGES[args.action](store, args)
            stored = await load(store, task.id)
            return task, summary_of(task, stored.scope, stored.owner)
        finally:
            await store.close()

    task, summary = run_until_signal(change)
    if args.action == "retry":
        _tell_of_others(task, args.id)
    if args.json:
        write_stdout(_json(summary))
    else:
        write_stdout(task.id if args.action != "cancel" else f"{task.id} {task.status.state.word}")
    return EXIT_OK
