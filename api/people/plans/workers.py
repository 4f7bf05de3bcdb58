"""Processes that make plans for a server: each has one plan at a time, and ends when nobody waits for it."""

import asyncio
import pickle
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from struct import Struct
from typing import Any

from domain.planning.plan_input import Planned

QUESTION = Struct(">Q")
"""The length of the question that follows, in bytes."""
ANSWER = Struct(">dQ")
"""The header of an answer: the seconds of processor time it took, and its length in bytes."""


@dataclass(frozen=True, slots=True)
class AskedPlan:
    """A question for the plan of one deployment, on its way to `revision`. `extras`: further fields of the answer."""

    planned: Planned
    deployment: str
    revision: str
    extras: Mapping[str, Any]


_AT_ONCE = 2
"""Each takes a processor."""
_COMMAND = (sys.executable, "-m", "api.people.plans")


class PlanWorkers:
    """Plans made at once; further ones wait."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._idle: list[Process] = []

    async def prepare(self) -> None:
        """Start the first one, so that nobody waits for it."""
        self._idle.append(await _started())

    async def think(self, questions: Sequence[AskedPlan], pay: Callable[[float], None]) -> bytes:
        """The plans, as JSON. Cancelling the call ends the process.

        `pay`: told the seconds that it took, however it ends.
        """
        async with self._places:
            began = time.monotonic()
            process = await self._free()
            try:
                seconds, answer = await _exchange(process, questions)
            except BaseException:
                pay(time.monotonic() - began)
                with suppress(ProcessLookupError):
                    process.kill()
                raise
            pay(seconds)
            self._idle.append(process)
            return answer

    async def _free(self) -> Process:
        while self._idle:
            if (process := self._idle.pop()).returncode is None:
                return process
        return await _started()

    async def end(self) -> None:
        for process in self._idle:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _started() -> Process:
    return await asyncio.create_subprocess_exec(*_COMMAND, stdin=PIPE, stdout=PIPE)


async def _exchange(process: Process, questions: Sequence[AskedPlan]) -> tuple[float, bytes]:
    if process.stdin is None or process.stdout is None:
        raise TypeError(process)
    message = pickle.dumps(list(questions))
    process.stdin.write(QUESTION.pack(len(message)) + message)
    await process.stdin.drain()
    seconds, length = ANSWER.unpack(await process.stdout.readexactly(ANSWER.size))
    return seconds, await process.stdout.readexactly(length)
