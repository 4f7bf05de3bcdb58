"""Arbitrary snapshots for Hypothesis: any mix of statuses, traffic and revisions, any budget, any strategy."""

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from domain.changes import Decision
from domain.evaluator import EVALUATOR
from domain.model import Deployment, DeploymentLifecycleStatus, Route, RouteStatus, StartFailures, TrafficStatus
from domain.policy import DeploymentPolicy
from domain.strategies import STRATEGIES, parse_policy
from domain.strategies.budget import Budget, resting_budget
from tests.domain.pictures import NOW, PROVISIONING, ROLLING_BACK, SCALING, V1, V2, V3, resting, rollout_of
from tests.domain.simulation import handler_of


class ImaginedStatus(StrEnum):
    """A health state that nobody has thought of yet."""

    MELTED = "melted"

    @property
    def is_active(self) -> bool:
        return True


MELTED: Any = ImaginedStatus.MELTED
REPLICAS = st.integers(0, 12)
AMOUNTS = st.one_of(st.integers(0, 13), st.integers(0, 120).map(lambda percent: f"{percent}%"))
STATUSES = st.sampled_from([*RouteStatus, MELTED])
SECONDS = st.sampled_from([0, 1, 5, 29, 30, 31, 600])


def _can_move(spec: dict[str, Any]) -> bool:
    return not {spec["max_surge"], spec["max_unavailable"]} <= {0, "0%"}


SPECS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "rolling_update": st.fixed_dictionaries(
        {
            "max_surge": AMOUNTS,
            "max_unavailable": AMOUNTS,
            "pacing": st.sampled_from(["wave", "continuous"]),
            "min_ready_seconds": st.sampled_from([0, 0, 10]),
        }
    ).filter(_can_move),
}
"""One line for each registered strategy: what its spec may be."""


@st.composite
def routes(draw: st.DrawFn, statuses: st.SearchStrategy[Any] = STATUSES, most: int = 14) -> tuple[Route, ...]:
    seeds = draw(
        st.lists(
            st.tuples(
                statuses, st.sampled_from(TrafficStatus), st.sampled_from([V1, V1, V2, V2, V3]), SECONDS, SECONDS
            ),
            max_size=most,
        )
    )
    return tuple(
        Route(
            id=UUID(int=number + 1),
            revision_id=revision,
            status=status,
            traffic=traffic,
            created_at=NOW - timedelta(seconds=status_for + older),
            status_changed_at=NOW - timedelta(seconds=status_for),
        )
        for number, (status, traffic, revision, status_for, older) in enumerate(seeds)
    )


@st.composite
def policies(draw: st.DrawFn) -> DeploymentPolicy:
    name = draw(st.sampled_from(sorted(STRATEGIES)))
    return parse_policy({"strategy": name, "spec": draw(SPECS[name])})


FAILURES = st.one_of(
    st.none(), st.none(), st.builds(StartFailures, st.sampled_from([V1, V2]), st.integers(0, 12), st.just(NOW))
)


@dataclass(frozen=True, slots=True)
class Case:
    """A deployment in the status that decides what is done: a strategy, scaling, or the way back."""

    deployment: Deployment

    @property
    def target(self) -> UUID:
        one = self.deployment
        target = one.deploying_revision_id if one.status == PROVISIONING else one.current_revision_id
        assert target is not None
        return target

    @property
    def budget(self) -> Budget:
        if self.deployment.rollout is None:
            return resting_budget(self.deployment.desired_replicas)
        return EVALUATOR.budget(self.deployment)

    def decide(self) -> Decision:
        return handler_of(self.deployment).decide(self.deployment, NOW)

    @property
    def live(self) -> int:
        return len(self.deployment.active_routes)

    @property
    def serving(self) -> set[UUID]:
        return {route.id for route in self.deployment.routes if route.is_serving}


@st.composite
def cases(draw: st.DrawFn, statuses: st.SearchStrategy[Any] = STATUSES) -> Case:
    status: DeploymentLifecycleStatus = draw(st.sampled_from([PROVISIONING, PROVISIONING, SCALING, ROLLING_BACK]))
    deployment = resting(
        "",
        draw(REPLICAS),
        status,
        current_revision_id=V1,
        routes=draw(routes(statuses)),
        start_failures=draw(FAILURES),
    )
    if status == SCALING:
        return Case(deployment)
    return Case(replace(deployment, deploying_revision_id=V2, rollout=rollout_of(draw(policies()))))
