"""Rollouts of real processes with two faults each: a few here, twenty in `make soak`."""

import pytest

from tests.support.faults.chaos import Chaos
from tests.support.people.soak_report import leave, size
from tests.support.stack.servers import EmbeddedServer
from tests.support.stack.stack import Fleet

pytestmark = pytest.mark.e2e


def test_every_rollout_ends_as_promised_whatever_is_killed(
    fleet: Fleet, postgres_server: EmbeddedServer, redis_server: EmbeddedServer
) -> None:
    rollouts = size("chaos", quick=2)
    report = Chaos(fleet, postgres_server, redis_server, seed=rollouts).run(rollouts)
    leave(
        "chaos",
        rollouts=report.rollouts,
        faults=sum(report.faults.values()),
        faults_by_kind=dict(report.faults),
        outcomes=dict(report.outcomes),
        worst_recovery_seconds=report.worst_recovery,
    )
    assert report.rollouts == rollouts
    assert sum(report.faults.values()) == 2 * rollouts
