"""Questions to hosts through Redis: what replicas print, and how they answer. A thread of each worker answers.

    asker     RPUSH rollway:logs:gpu-2     a question      ──▶  a worker on gpu-2
              BLPOP rollway:answer:ID      its answer      ◀──

It needs no free worker and no database.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

import redis
import structlog
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from domain.replicas.diagnosis import PATIENCE_SECONDS, advice, summary_of
from domain.revisions.health_check import HealthCheck
from domain.traffic.tls import ReplicaTls
from runtime.probing.examine import examine
from runtime.process.process_logs import LogPiece, ProcessLogs
from runtime.process.process_table import listening_of
from runtime.protocol import Runtime
from tasks.hosts.background import keep_looking
from tasks.task_settings import KEY_PREFIX

TAKEN_SECONDS = 3.0
"""The seconds within which a worker takes a question, where one runs."""
_KEPT_SECONDS = 10
_MOST_WAITING = 100
_LOOK_SECONDS = 2
_log = structlog.get_logger(__name__)

_T = TypeVar("_T")
Reply = Callable[[UUID, bytes], None]
"""Sends the answer to a question, by its `answer_to`."""
Answer = Callable[[bytes, Reply], None]
"""Answers a question, at once or from a thread of its own. Raises ValidationError for what does not fit."""


class HostQuestion(BaseModel):
    """A question to a host, as JSON."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    answer_to: UUID = Field(default_factory=uuid4)


def ask(
    client: redis.Redis, about: str, questions: Mapping[str, HostQuestion], patience_seconds: float
) -> dict[str, bytes]:
    """The answers by host. Raises RedisError.

    One that does not answer in time is missing; one of which no worker takes the question is not waited for longer.
    """
    for host, question in questions.items():
        with client.pipeline() as pipeline:
            pipeline.rpush(_questions(about, host), question.model_dump_json())
            pipeline.ltrim(_questions(about, host), -_MOST_WAITING, -1)
            pipeline.expire(_questions(about, host), _KEPT_SECONDS)
            pipeline.execute()
    began = time.monotonic()
    ends = (began + min(patience_seconds, TAKEN_SECONDS), began + patience_seconds)
    answers = {host: _answer(client, _questions(about, host), question, ends) for host, question in questions.items()}
    return {host: answer for host, answer in answers.items() if answer is not None}


def _parsed_answers(kind: TypeAdapter[_T], answers: Mapping[str, bytes]) -> dict[str, _T]:
    """The answers by host; one that is no such answer is missing."""
    valid: dict[str, _T] = {}
    for host, raw in answers.items():
        with suppress(ValidationError):
            valid[host] = kind.validate_json(raw)
    return valid


@dataclass(frozen=True, slots=True)
class HostAnswers:
    """The answers of one worker, for its host. `answers`: what answers questions about a matter, by its name.

    `heard`: called each time that Redis has answered, every other second at least.
    """

    client: redis.Redis
    host: str
    answers: Mapping[str, Answer]
    heard: Callable[[], object] = bool

    def look(self) -> None:
        """Answer a question, or wait two seconds for one. Raises RedisError."""
        matters = {_questions(about, self.host): about for about in self.answers}
        popped: Any = self.client.blpop([*matters], timeout=_LOOK_SECONDS)
        self.heard()
        if popped is None:
            return
        about = matters[popped[0].decode()]
        try:
            self.answers[about](popped[1], self._reply)
        except ValidationError as error:
            _log.warning("a question did not fit", about=about, host=self.host, faults=error.error_count())

    def _reply(self, answer_to: UUID, answer: bytes) -> None:
        with self.client.pipeline() as pipeline:
            pipeline.rpush(_key(answer_to), answer)
            pipeline.expire(_key(answer_to), _KEPT_SECONDS)
            pipeline.execute()


def answer_for_host(answers: HostAnswers, until: threading.Event) -> threading.Thread:
    """Answer from a thread of its own, so that busy tasks hold up nobody who asks."""
    return keep_looking(
        answers.look, 0, until, name="answers of the host", trouble="questions not answered", host=answers.host
    )


def _answer(client: redis.Redis, questions: str, question: HostQuestion, ends: tuple[float, float]) -> bytes | None:
    """`ends`: until when a worker is waited for, and until when its answer."""
    for end in ends:
        remaining = max(0.05, end - time.monotonic())  # 0 would be for ever
        popped: Any = client.blpop([_key(question.answer_to)], timeout=remaining)
        if popped is not None:
            return bytes(popped[1])
        if client.lrem(questions, 1, question.model_dump_json()):
            return None
    return None


def _questions(about: str, host: str) -> str:
    return f"{KEY_PREFIX}{about}:{host}"


def _key(answer_to: UUID) -> str:
    return f"{KEY_PREFIX}answer:{answer_to.hex}"


LOG_PATIENCE_SECONDS = 3.0
LOGS = "logs"
Places = Mapping[UUID, int | None]
"""The place to read on from, by route; None: the last lines."""
Pieces = dict[UUID, LogPiece]
MOST_BYTES = 2**20
"""An answer has no more: what does not fit is asked for again."""


class LogQuestion(HostQuestion):
    """The question to a host: which replicas, and how many last lines of those that are asked for the first time."""

    lines: int = Field(ge=0, le=100_000)
    places: dict[UUID, int | None] = Field(max_length=10_000)


_PIECES = TypeAdapter[Pieces](Pieces)


def read_logs(
    client: redis.Redis, by_host: Mapping[str, Places], lines: int, patience_seconds: float = LOG_PATIENCE_SECONDS
) -> dict[str, Pieces]:
    """The output of replicas by host; a host that does not answer in time is missing. Raises RedisError."""
    questions = {host: LogQuestion(lines=lines, places=dict(places)) for host, places in by_host.items()}
    return _parsed_answers(_PIECES, ask(client, LOGS, questions, patience_seconds))


@dataclass(frozen=True, slots=True)
class LogAnswers:
    """Answers for the replicas whose logs are under `home`."""

    home: Path

    def __call__(self, raw: bytes, reply: Reply) -> None:
        """Raises ValidationError for what is no such question."""
        question = LogQuestion.model_validate_json(raw)
        reply(question.answer_to, _PIECES.dump_json(self.pieces(question)))

    def pieces(self, question: LogQuestion) -> Pieces:
        """The pieces of the replicas that have a log here; the first of them fits however long it is."""
        logs, pieces, room = ProcessLogs(self.home), Pieces(), MOST_BYTES
        for route_id, place in question.places.items():
            if not logs.path(route_id).exists():
                continue
            piece = logs.read_on(route_id, place, question.lines)
            if pieces and len(piece.text) > room:
                break
            pieces[route_id] = piece
            room -= len(piece.text)
        return pieces


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
    client: redis.Redis, by_host: Mapping[str, tuple[ExaminedReplica, ...]]
) -> dict[str, list[Examined]]:
    """The findings by host; a host that does not answer, or is busy with others, is missing. Raises RedisError."""
    questions = {host: ExaminationQuestion(replicas=replicas) for host, replicas in by_host.items()}
    return _parsed_answers(_FOUND, ask(client, EXAMINATIONS, questions, _PATIENCE_SECONDS))


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
            diagnoses = asyncio.run(self._all(question.replicas))
            reply(question.answer_to, _FOUND.dump_json([each for each in diagnoses if each]))
        finally:
            self._room.release()

    async def _all(self, replicas: tuple[ExaminedReplica, ...]) -> list[Examined | None]:
        return await asyncio.gather(*map(self._examine, replicas))

    async def _examine(self, question: ExaminedReplica) -> Examined | None:
        """None: it does not run here. Only what this host itself runs is asked, wherever a question points."""
        replica = self.runtimes[question.runtime].find(question.route) if question.runtime in self.runtimes else None
        if replica is None or not replica.running or replica.address is None:
            return None
        is_container = question.runtime == "docker"
        listening = () if is_container else listening_of(replica.handle)
        diagnosis = await examine(
            *(replica.address, question.check, question.callers_host, listening),
            is_container=is_container,
            tls=question.tls,
        )
        return Examined(question.route, summary_of(diagnosis), advice(diagnosis))
