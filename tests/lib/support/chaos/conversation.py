"""The client of a conversation: it sends many messages to one task, at any gateways, and notes which were acknowledged or refused.

One whose answer was lost is sent again until it is answered: it may have been taken, and must be in the history once. Some are sent again
although they were answered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from random import Random
from typing import Final

import msgspec

from .calls import BrokenError, JsonObject, RefusedError, call
from .client import RETRIED, lose_answers
from .plan import Conversation, Mail, Sending
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
                group.create_task(self._send(sending))
        while not await self._has_ended():
            mail = msgspec.structs.replace(self._plan.last, name=f"{self._plan.last.name}-{number}")
            await self._send(Sending(mail=mail, after=0.0, waits=True))
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
        self._record.talks[self._task_id] = Talk(self._plan, {mail.name: time.time()}, {mail.name: 0.0})

    async def _send(self, sending: Sending) -> None:
        await asyncio.sleep(sending.after)
        mail, talk = sending.mail, self._record.talks[self._task_id]
        params = _params(mail, self._task_id, waits=sending.waits)
        talk.sent[mail.name] = time.time()
        await lose_answers(sending.losses, params, self._ports, self._record, self._dice)
        await self._until_answered(mail, params, talk)
        if sending.again and mail.name in talk.acknowledged:
            await self._until_answered(mail, params, talk)

    async def _until_answered(self, mail: Mail, params: JsonObject, talk: Talk) -> None:
        """Send a message until it was taken, or will not be."""
        while True:
            try:
                await call(self._port(), "SendMessage", params)
            except (BrokenError, RefusedError) as exc:
                reason = self._note(exc, mail)
                if reason is not None:
                    talk.refused[mail.name] = reason
                    return
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                talk.acknowledged.setdefault(mail.name, time.time())
                return

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
