"""Arbitrary snapshots for Hypothesis: any mix of statuses, traffic and revisions, any budget, any strategy."""

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from domain.handlers.dispatch import handler_of
from domain.model.decision import Decision
from domain.model.deployment import Deployment, Route, StartFailures
from domain.model.policy import DeploymentPolicy
from domain.model.states import DeploymentLifecycleStatus, RouteStatus, TrafficStatus
from domain.strategies.builtin import STRATEGIES, parse_policy
from tests.support.pictures.pictures import NOW, PROVISIONING, ROLLING_BACK, SCALING, V1, V2, V3, resting, rollout_of
from tests.support.pictures.safety import counted, is_parked, target_of
from tests.support.pictures.specs import SPECS
from tests.support.worlds.promised import Promised, promised


class ImaginedStatus(StrEnum):
    """A health state that nobody has thought of yet."""

    MELTED = "melted"

    @property
    def is_active(self) -> bool:
        return True


MELTED: Any = ImaginedStatus.MELTED
REPLICAS = st.integers(0, 12)
STATUSES = st.sampled_from([*RouteStatus, MELTED])
SECONDS = st.sampled_from([0, 1, 5, 29, 30, 31, 600])


_IN_TRAFFIC = [(TrafficStatus.ACTIVE, None)] * 4
_OUT_OF_TRAFFIC = [(TrafficStatus.INACTIVE, parked_for) for parked_for in (None, None, 0, 60)]


@st.composite
def routes(draw: st.DrawFn, statuses: st.SearchStrategy[Any] = STATUSES, most: int = 14) -> tuple[Route, ...]:
    seeds = draw(
        st.lists(
            st.tuples(
                statuses,
                st.sampled_from([*_IN_TRAFFIC, *_OUT_OF_TRAFFIC]),
                st.sampled_from([V1, V1, V2, V2, V3]),
                SECONDS,
                SECONDS,
                st.sampled_from([False, False, True]),
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
            parked_until=None if parked_for is None else NOW + timedelta(seconds=parked_for),
            is_misplaced=is_misplaced,
        )
        for number, (status, (traffic, parked_for), revision, status_for, older, is_misplaced) in enumerate(seeds)
    )


@st.composite
def policies(draw: st.DrawFn) -> DeploymentPolicy:
    name = draw(st.sampled_from(["rolling_update", *sorted(STRATEGIES)]))
    return parse_policy({"strategy": name, "spec": draw(SPECS[name].arbitrary)})


FAILURES = st.one_of(
    st.none(), st.none(), st.builds(StartFailures, st.sampled_from([V1, V2]), st.integers(0, 12), st.just(NOW))
)

WEIGHTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "stage": st.integers(0, 3),
        "weight": st.sampled_from([None, 0, 500, 500, 9990]),
        "weight_known_at": st.sampled_from([None, NOW, NOW - timedelta(seconds=10)]),
    }
)
"""What proxies are told of a rollout that has weights; others never get one."""


@dataclass(frozen=True, slots=True)
class Case:
    """A deployment in the status that decides what is done: a strategy, scaling, or the way back."""

    deployment: Deployment

    @property
    def target(self) -> UUID:
        return target_of(self.deployment)

    @property
    def wanted(self) -> int:
        return self.deployment.desired_replicas

    @property
    def budget(self) -> Promised:
        return promised(self.deployment)

    @property
    def strategy(self) -> str | None:
        """The one that decides, while there is one."""
        deployment = self.deployment
        return deployment.rollout.policy.strategy if deployment.rollout and deployment.status == PROVISIONING else None

    def decide(self) -> Decision:
        return handler_of(self.deployment).decide(self.deployment, NOW)

    def parked(self, route: Route) -> bool:
        return is_parked(route, self.target, NOW)

    @property
    def counted(self) -> int:
        return counted(self.deployment, NOW)

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
        count_stopping=draw(st.booleans()),
        may_surge=draw(st.booleans()),
    )
    if status == SCALING:
        return Case(deployment)
    policy = draw(policies())
    rollout = rollout_of(
        policy,
        desired_at_start=deployment.desired_replicas if status == ROLLING_BACK else draw(REPLICAS),
        started_at=NOW - timedelta(seconds=draw(st.sampled_from([0, 10]))),
        failed_routes=draw(st.sampled_from([0, 0, 0, 1, 3])),
        promote_requested=draw(st.booleans()),
        **(draw(WEIGHTS) if STRATEGIES[policy.strategy].weighs else {}),
    )
    return Case(replace(deployment, deploying_revision_id=V2, rollout=rollout))
