"""Logs of replicas, asked for through Redis: a thread of each worker answers from the files of its host.

    asker     RPUSH rollway:logs:gpu-2        which replicas, from which places on    ──▶  a worker on gpu-2
              BLPOP rollway:logs:answer:ID    pieces of their logs                    ◀──

It needs no free worker and no database. An answer has a megabyte at most: what does not fit is asked for again.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import redis
import structlog
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from runtime.process.logs import LogPiece, ProcessLogs
from tasks.hosts.looking import keep_looking
from tasks.settings import KEY_PREFIX

PATIENCE_SECONDS = 3.0
Places = Mapping[UUID, int | None]
"""By route, where to read on; None: the last lines."""
Pieces = dict[UUID, LogPiece]
MOST_BYTES = 2**20
_KEPT_SECONDS = 10
_MOST_WAITING = 100
_LOOK_SECONDS = 1
_log = structlog.get_logger(__name__)


class LogQuestion(BaseModel):
    """The question to a host: which replicas, and how many last lines of those that are asked for the first time."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    answer_to: UUID
    lines: int = Field(ge=0, le=100_000)
    places: dict[UUID, int | None] = Field(max_length=10_000)


_PIECES = TypeAdapter(Pieces)


def ask_hosts(
    client: redis.Redis, asked: Mapping[str, Places], lines: int, patience_seconds: float = PATIENCE_SECONDS
) -> dict[str, Pieces]:
    """By host what its replicas have printed; a host that does not answer in time is missing. Raises RedisError."""
    questions = {
        host: LogQuestion(answer_to=uuid4(), lines=lines, places=dict(places)) for host, places in asked.items()
    }
    for host, question in questions.items():
        with client.pipeline() as pipeline:
            pipeline.rpush(_questions(host), question.model_dump_json())
            pipeline.ltrim(_questions(host), -_MOST_WAITING, -1)
            pipeline.expire(_questions(host), _KEPT_SECONDS)
            pipeline.execute()
    ends_at = time.monotonic() + patience_seconds
    found = {host: _answer(client, question, ends_at) for host, question in questions.items()}
    return {host: pieces for host, pieces in found.items() if pieces is not None}


@dataclass(frozen=True, slots=True)
class LogAnswers:
    """The answers of one worker, for the replicas whose logs are under its home."""

    client: redis.Redis
    host: str
    home: Path
    heard: Callable[[], object]

    def look(self) -> None:
        """Answer a question, or wait a second for one. Raises RedisError."""
        asked: Any = self.client.blpop([_questions(self.host)], timeout=_LOOK_SECONDS)
        self.heard()
        if asked is None:
            return
        try:
            question = LogQuestion.model_validate_json(asked[1])
        except ValidationError as error:
            _log.warning("a question for logs did not fit", host=self.host, faults=error.error_count())
            return
        key = _answers(question)
        with self.client.pipeline() as pipeline:
            pipeline.rpush(key, _PIECES.dump_json(self.pieces(question)))
            pipeline.expire(key, _KEPT_SECONDS)
            pipeline.execute()

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


def keep_answering(
    client: redis.Redis, host: str, home: Path, until: threading.Event, heard: Callable[[], object] = bool
) -> threading.Thread:
    """Answer from a thread of its own, so that busy tasks hold up nobody who reads a log.

    `heard`: called each time that Redis has answered, once a second at least.
    """
    look, trouble = LogAnswers(client, host, home, heard).look, "logs not answered for"
    return keep_looking(look, 0, until, name="answers of logs", trouble=trouble, host=host)


def _answer(client: redis.Redis, question: LogQuestion, ends_at: float) -> Pieces | None:
    """None: there is none in time, or it is none."""
    left = max(0.05, ends_at - time.monotonic())  # 0 would be for ever
    found: Any = client.blpop([_answers(question)], timeout=left)
    try:
        return None if found is None else _PIECES.validate_json(found[1])
    except ValidationError:
        return None


def _questions(host: str) -> str:
    return f"{KEY_PREFIX}logs:{host}"


def _answers(question: LogQuestion) -> str:
    return f"{KEY_PREFIX}logs:answer:{question.answer_to.hex}"
