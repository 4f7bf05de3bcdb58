"""Logs of replicas, asked of their hosts, which answer from their files.

An answer has a megabyte at most: what does not fit is asked for again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import redis
from pydantic import Field, TypeAdapter, ValidationError

from runtime.process.logs import LogPiece, ProcessLogs
from tasks.hosts.asking import HostQuestion, Reply, ask

LOG_PATIENCE_SECONDS = 3.0
LOGS = "logs"
Places = Mapping[UUID, int | None]
"""By route, where to read on; None: the last lines."""
Pieces = dict[UUID, LogPiece]
MOST_BYTES = 2**20


class LogQuestion(HostQuestion):
    """The question to a host: which replicas, and how many last lines of those that are asked for the first time."""

    lines: int = Field(ge=0, le=100_000)
    places: dict[UUID, int | None] = Field(max_length=10_000)


_PIECES = TypeAdapter(Pieces)


def read_logs(
    client: redis.Redis, asked: Mapping[str, Places], lines: int, patience_seconds: float = LOG_PATIENCE_SECONDS
) -> dict[str, Pieces]:
    """By host what its replicas have printed; a host that does not answer in time is missing. Raises RedisError."""
    questions = {host: LogQuestion(lines=lines, places=dict(places)) for host, places in asked.items()}
    found = {host: _pieces(raw) for host, raw in ask(client, LOGS, questions, patience_seconds).items()}
    return {host: pieces for host, pieces in found.items() if pieces is not None}


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


def _pieces(raw: bytes) -> Pieces | None:
    """None: it is none."""
    try:
        return _PIECES.validate_json(raw)
    except ValidationError:
        return None
