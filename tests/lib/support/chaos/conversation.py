"""The client of a conversation: it sends many messages to one task, at any gateways, and notes which were acknowledged or refused.

One whose answer was lost is sent again until it is answered: it may have been taken, and must be in the history once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

import msgspec

from .calls import BrokenError, JsonObject, RefusedError, call
from .client import RETRIED
from .plan import Conversation, Mail
from .record import ENDED, Record, Talk

PAUSE_SECONDS: Final = 0.3
LOST: Final = frozenset({"UNAVAILABLE", "TIMEOUT", "HTTP 503"})
"""Refusals after which the message may have been taken all the same, so that it is sent again."""


class Converser:
    """`ports` are those of the gateways."""

    def __init__(self, plan: Conversation, ports: Sequence[int], record: Record) -> None:
        self._plan = plan
        self._ports = ports
        self._record = record
        self._dice = Random(plan.name)
        self._task_id = ""

    async def run(self) -> None:
        """Until the task has ended."""
        number = 0
        while not self._task_id:
            await self._begin(self._plan.first)
        async with asyncio.TaskGroup() as group:
            for sending in self._plan.sendings:
                group.create_task(self._send(sending.mail, sending.after, waits=sending.waits))
        while not await self._has_ended():
            mail = msgspec.structs.replace(self._plan.last, name=f"{self._plan.last.name}-{number}")
            await self._send(mail, 0.0, waits=True)
            number += 1
            await asyncio.sleep(PAUSE_SECONDS)

    def _port(self) -> int:
        return self._ports[self._dice.randrange(len(self._ports))]

    async def _begin(self, mail: Mail) -> None:
        try:
            result = await call(self._port(), "SendMessage", _params(mail, "", waits=False))
        except (BrokenError, RefusedError) as exc:
            self._note(exc, mail)
            return await asyncio.sleep(PAUSE_SECONDS)
        self._task_id = result["task"]["id"]
        self._record.talks[self._task_id] = Talk(self._plan, {mail.name})

    async def _send(self, mail: Mail, after: float, *, waits: bool) -> None:
        await asyncio.sleep(after)
        talk = self._record.talks[self._task_id]
        while mail.name not in talk.acknowledged | talk.refused.keys():
            try:
                await call(self._port(), "SendMessage", _params(mail, self._task_id, waits=waits))
            except (BrokenError, RefusedError) as exc:
                reason = self._note(exc, mail)
                if reason is not None:
                    talk.refused[mail.name] = reason
                else:
                    await asyncio.sleep(PAUSE_SECONDS)
            else:
                talk.acknowledged.add(mail.name)

    def _note(self, exc: BrokenError | RefusedError, mail: Mail) -> str | None:
        """The reason of a refusal that says that the message was not taken, else None."""
        if isinstance(exc, BrokenError):
            self._record.counts["messages without an answer"] += 1
            return None
        self._record.counts[f"messages refused: {exc.reason}"] += 1
        if exc.reason not in RETRIED and not (mail.last and exc.reason == "UNSUPPORTED_OPERATION"):
            self._record.fail(f"{mail.name} was refused: {exc}")
        return None if exc.reason in LOST else exc.reason

    async def _has_ended(self) -> bool:
        try:
            task = await call(self._port(), "GetTask", {"id": self._task_id, "historyLength": 0})
        except (BrokenError, RefusedError) as exc:
            if isinstance(exc, RefusedError) and exc.reason not in RETRIED:
                self._record.fail(f"GetTask of {self._task_id}: {exc}")
            return False
        return task["status"]["state"] in ENDED


def _params(mail: Mail, task_id: str, *, waits: bool) -> JsonObject:
    message = {"messageId": mail.name, "role": "ROLE_USER", "parts": [{"text": msgspec.json.encode(mail).decode()}]}
    return {
        "message": message | ({"taskId": task_id} if task_id else {}),
        "configuration": {"returnImmediately": not waits},
    }
