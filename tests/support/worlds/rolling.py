"""A rollout under way whose answers a real Envoy counts: one replica of each revision, in this process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx

from db.connection.transactions import in_transaction
from db.proxies.recorded_answers import intervals_of
from domain.model.answer_counts import Answers, Interval
from tests.support.pictures.pictures import PROVISIONING
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import Replica, replicas
from tests.support.rows.deployments import Made
from tests.support.stack.waiting import eventually


@dataclass
class Rolling:
    """A rollout under way: a replica of the old revision and one of the new, both in traffic."""

    edge: Edge
    made: Made
    old: Replica
    new: Replica

    def intervals(self) -> list[Interval]:
        assert self.made.rollout_id is not None
        return in_transaction(self.edge.routes.engine, partial(intervals_of, rollout_id=self.made.rollout_id))

    def answers(self) -> tuple[Answers, Answers]:
        """The answers of the old and of the new revision in all intervals."""
        found = self.intervals()
        old, new = (
            sum((interval.of.get(revision, Answers()) for interval in found), Answers())
            for revision in (self.made.v1, self.made.v2)
        )
        return old, new

    def looked_at(self) -> None:
        """Wait until all that was answered before this is in an interval."""
        begun = self.intervals()[-1].id
        eventually(lambda: self.intervals()[-1].id >= begun + 2)

    def ask(self, times: int = 1) -> list[httpx.Response]:
        return [self.edge.ask(f"/{self.made.name}/") for _ in range(times)]

    def came(self) -> Callable[[], tuple[Answers, Answers]]:
        """What has been answered since this call."""
        self.looked_at()
        before = self.answers()

        def since() -> tuple[Answers, Answers]:
            old, new = self.answers()
            return old - before[0], new - before[1]

        return since


@contextmanager
def rolling(edge: Edge, **settings: Any) -> Iterator[Rolling]:
    with replicas("old", "new") as (old, new):
        this = Rolling(edge, edge.make("■|■", old, new, status=PROVISIONING, **settings), old, new)
        eventually(lambda: this.ask()[0].status_code == 200)
        eventually(lambda: {answer.json()["replica"] for answer in this.ask(20)} == {"old", "new"})
        eventually(lambda: bool(this.intervals()) and this.intervals()[-1].reporting == 1)
        yield this


def served(this: Rolling) -> tuple[int, int]:
    return this.old.served["GET"], this.new.served["GET"]
