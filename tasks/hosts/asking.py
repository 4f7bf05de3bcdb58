"""Questions to hosts, asked through Redis: a thread of each worker answers for its host.

    asker     RPUSH rollway:logs:gpu-2     a question      ──▶  a worker on gpu-2
              BLPOP rollway:answer:ID      its answer      ◀──

It needs no free worker and no database.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import redis
import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasks.hosts.looking import keep_looking
from tasks.settings import KEY_PREFIX

TAKEN_SECONDS = 3.0
"""Within so long a worker takes a question, where one runs."""
_KEPT_SECONDS = 10
_MOST_WAITING = 100
_LOOK_SECONDS = 2
_log = structlog.get_logger(__name__)

Reply = Callable[[UUID, bytes], None]
"""Sends the answer to a question, by its `answer_to`."""
Answer = Callable[[bytes, Reply], None]
"""Answers a question, at once or from a thread of its own. Raises ValidationError for what does not fit."""


class HostQuestion(BaseModel):
    """A question to a host, as JSON."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    answer_to: UUID = Field(default_factory=uuid4)


def ask(
    client: redis.Redis, about: str, asked: Mapping[str, HostQuestion], patience_seconds: float
) -> dict[str, bytes]:
    """By host what it answered. Raises RedisError.

    One that does not answer in time is missing; one of which no worker takes the question is not waited for longer.
    """
    for host, question in asked.items():
        with client.pipeline() as pipeline:
            pipeline.rpush(_questions(about, host), question.model_dump_json())
            pipeline.ltrim(_questions(about, host), -_MOST_WAITING, -1)
            pipeline.expire(_questions(about, host), _KEPT_SECONDS)
            pipeline.execute()
    began = time.monotonic()
    ends = (began + min(patience_seconds, TAKEN_SECONDS), began + patience_seconds)
    found = {host: _answer(client, _questions(about, host), question, ends) for host, question in asked.items()}
    return {host: answer for host, answer in found.items() if answer is not None}


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
        asked: Any = self.client.blpop([*matters], timeout=_LOOK_SECONDS)
        self.heard()
        if asked is None:
            return
        about = matters[asked[0].decode()]
        try:
            self.answers[about](asked[1], self._reply)
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
        left = max(0.05, end - time.monotonic())  # 0 would be for ever
        found: Any = client.blpop([_key(question.answer_to)], timeout=left)
        if found is not None:
            return bytes(found[1])
        if client.lrem(questions, 1, question.model_dump_json()):
            return None
    return None


def _questions(about: str, host: str) -> str:
    return f"{KEY_PREFIX}{about}:{host}"


def _key(answer_to: UUID) -> str:
    return f"{KEY_PREFIX}answer:{answer_to.hex}"
