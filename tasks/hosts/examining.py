"""Examinations of replicas, asked of their hosts, which try how each answers."""

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

import redis
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from domain.replicas.examined import PATIENCE_SECONDS, advice, seen
from domain.revisions.health_check import HealthCheck
from domain.traffic.tls import ReplicaTls
from runtime.base import Runtime
from runtime.probing.examine import examine
from runtime.process.table import listening_of
from tasks.hosts.asking import HostQuestion, Reply, ask

EXAMINATIONS = "examinations"
MOST_REPLICAS = 20
_PATIENCE_SECONDS = 4 * PATIENCE_SECONDS
"""A replica is asked twice in a row at most, and each time a handshake may follow."""
_AT_ONCE = 4


class ExaminedReplica(BaseModel):
    """A replica to examine. `callers_host`: the name by which callers reach it. `tls`: None: asked in clear text."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    route: UUID
    runtime: str
    check: HealthCheck
    callers_host: str = Field(max_length=253)
    tls: ReplicaTls | None = None


class ExaminationQuestion(HostQuestion):
    """The question to a host: which replicas."""

    replicas: tuple[ExaminedReplica, ...] = Field(max_length=MOST_REPLICAS)


@dataclass(frozen=True, slots=True)
class Examined:
    """What came of one. `advice`: what mends it; None where nothing is wrong."""

    route: UUID
    saw: str
    advice: str | None


_FOUND = TypeAdapter(list[Examined])


def examine_replicas(
    client: redis.Redis, asked: Mapping[str, tuple[ExaminedReplica, ...]]
) -> dict[str, list[Examined]]:
    """By host what it found; a host that does not answer, or is busy with others, is missing. Raises RedisError."""
    questions = {host: ExaminationQuestion(replicas=replicas) for host, replicas in asked.items()}
    found = {host: _found(raw) for host, raw in ask(client, EXAMINATIONS, questions, _PATIENCE_SECONDS).items()}
    return {host: examined for host, examined in found.items() if examined is not None}


@dataclass(frozen=True, slots=True)
class ExaminationAnswers:
    """Answers for the replicas of these runtimes, each question in a thread of its own: replicas may be slow."""

    runtimes: Mapping[str, Runtime]
    _room: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(_AT_ONCE))

    def __call__(self, raw: bytes, reply: Reply) -> None:
        """Raises ValidationError for what is no such question."""
        question = ExaminationQuestion.model_validate_json(raw)
        if self._room.acquire(blocking=False):
            threading.Thread(target=self._answer, args=(question, reply), name="examination", daemon=True).start()

    def _answer(self, question: ExaminationQuestion, reply: Reply) -> None:
        try:
            found = asyncio.run(self._all(question.replicas))
            reply(question.answer_to, _FOUND.dump_json([each for each in found if each]))
        finally:
            self._room.release()

    async def _all(self, replicas: tuple[ExaminedReplica, ...]) -> list[Examined | None]:
        return await asyncio.gather(*map(self._examined, replicas))

    async def _examined(self, asked: ExaminedReplica) -> Examined | None:
        """None: it does not run here. Only what this host itself runs is asked, wherever a question points."""
        replica = self.runtimes[asked.runtime].find(asked.route) if asked.runtime in self.runtimes else None
        if replica is None or not replica.running or replica.address is None:
            return None
        is_container = asked.runtime == "docker"
        listening = () if is_container else listening_of(replica.handle)
        found = await examine(
            *(replica.address, asked.check, asked.callers_host, listening), is_container=is_container, tls=asked.tls
        )
        return Examined(asked.route, seen(found), advice(found))


def _found(raw: bytes) -> list[Examined] | None:
    """None: it is none."""
    try:
        return _FOUND.validate_json(raw)
    except ValidationError:
        return None
