"""A judge is asked each second. Time jumps over the looks that find nothing, and what is reached is the same."""

from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from domain.model.deployment import Rollout
from tests.support.pictures.pictures import ROLLING_BACK
from tests.support.pictures.values_within import canary_of
from tools.prove import world
from tools.prove.clocks import failures, told
from tools.prove.search import Search
from tools.prove.starts import SEARCHED, Start
from tools.prove.state import Left, State


class Watched(Search):
    """Keeps what each state looks like without its clocks."""

    def __init__(self, start: State) -> None:
        super().__init__(start)
        self.seen: set[tuple[object, ...]] = set()

    def _reached(self, state: State, parent: int, event: int) -> int:
        self.seen.add(without_clocks(state))
        return super()._reached(state, parent, event)


def without_clocks(state: State) -> tuple[object, ...]:
    deployment, rollout = state.deployment, state.deployment.rollout
    stopping = [route for route in deployment.routes if not route.is_active]
    parts = {deployment.deploying_revision_id: 1, deployment.current_revision_id: 0}
    failed = failures(state)
    return (
        deployment.status,
        deployment.desired_replicas,
        deployment.paused_at is None,
        deployment.retry_at is None,
        tuple(
            (_part(parts, route.revision_id), route.status, route.traffic)
            for route in (*deployment.active_routes, *stopping)
        ),
        state.is_due,
        state.held is None,
        failed and (failed.in_a_row, failed.short_lives, failed.came_up_at is None),
        rollout and rollout.clock_stopped_at is None,
        rollout and deployment.status != ROLLING_BACK and _forward(rollout, state.now),
    )


def _forward(rollout: Rollout, now: datetime) -> tuple[object, ...]:
    canary = canary_of(rollout)
    at = canary.weight is not None and (canary.stage, canary.weight, canary.weight_known_at is None)
    return rollout.failed_routes, rollout.promote_requested, at, told(rollout, now)


def _part(parts: dict[UUID | None, int], revision: UUID) -> int:
    return parts.setdefault(revision, len(parts))


def _ends_by_itself(spec: dict[str, Any]) -> bool:
    """The clock of its judge then decides something too."""
    return spec.get("judge", {}).get("if_undecided") in ("promote", "abort")


@pytest.mark.parametrize("spec", [spec for spec in SEARCHED["canary"] if _ends_by_itself(spec)], ids=str)
def test_over_looks_that_find_nothing_time_jumps_and_the_same_is_reached(
    spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Start("canary", tuple(spec.items()), 1).state(Left(misfortunes=1, commands=0, together=1))
    jumping = Watched(start)
    found = jumping.run()
    monkeypatch.setattr(world, "looks_in_vain", lambda *_: False)
    second_by_second = Watched(start)
    found_too = second_by_second.run()
    assert found.law is None
    assert found_too.law is None
    assert 2 * found.states < found_too.states
    assert jumping.seen == second_by_second.seen
