"""Looks, news and commands, of arbitrary snapshots too: what they leave is what their rules say a second time."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from domain.cycle.effects import after
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment, StartFailures
from domain.model.policy import DeploymentPolicy
from domain.model.states import RouteStatus
from domain.planning.simulator import with_status
from domain.text.errors import RollwayError
from tests.support.pictures.pictures import NOW, V1, V2, V3
from tests.support.pictures.snapshots import REPLICAS, STATUSES, cases, policies
from tools.prove.laws.people import COMMANDS, Command
from tools.prove.laws.spelled import after_look, after_news, unlike
from tools.prove.laws.spelled_commands import after_command
from tools.prove.state import Left, RolledBack, State

SIZES = st.sampled_from([None, 0, 3, 12])
SECONDS = st.sampled_from([0, 1, 45, 1800, 7200])


@st.composite
def of_some_age(draw: st.DrawFn, statuses: st.SearchStrategy[Any] = STATUSES) -> Deployment:
    """With clocks that may stand still, progress, failing starts that came up, and a size that came with v2."""
    deployment: Deployment = draw(cases(statuses)).deployment
    ago = st.sampled_from([None, *(NOW - timedelta(seconds=seconds) for seconds in (0, 20, 90))])
    failures, rollout = (
        deployment.start_failures or StartFailures(draw(st.sampled_from([V1, V2])), 2, NOW),
        deployment.rollout,
    )
    deployment = replace(deployment, start_failures=replace(failures, came_up_at=draw(ago)))
    if rollout is None:
        return deployment
    stopped_at, with_v2 = draw(ago), draw(SIZES)
    rollout = replace(rollout, clock_stopped_at=stopped_at, desired_with_revision=with_v2, is_undo=draw(st.booleans()))
    rollout = replace(rollout, last_progress_at=draw(ago) or rollout.started_at)
    return replace(deployment, paused_at=draw(st.sampled_from([None, stopped_at])), rollout=rollout)


@given(of_some_age(), SECONDS)
def test_a_look_leaves_what_its_rules_say(deployment: Deployment, seconds: int) -> None:
    now = NOW + timedelta(seconds=seconds)
    decision = cycle(deployment, now)
    assert unlike("a look", after_look(decision, now), after(decision, now)) is None


@given(st.data(), SECONDS)
def test_news_of_a_replica_leave_what_their_rules_say(data: st.DataObject, seconds: int) -> None:
    live = st.sampled_from([status for status in RouteStatus if status.is_active])
    before, blame, now = data.draw(of_some_age(live)), data.draw(st.booleans()), NOW + timedelta(seconds=seconds)
    for route in before.routes:
        for status in {RouteStatus.HEALTHY, RouteStatus.UNHEALTHY, RouteStatus.DEGRADED, RouteStatus.FAILED}:
            if status is not route.status:
                left = with_status(before, [route.id], status, now, blame=blame)
                assert unlike("news of a replica", after_news(before, route, status, now, blame=blame), left) is None


@given(of_some_age(), SIZES, st.sampled_from([None, V1, V3]), st.one_of(st.none(), policies()), st.data())
def test_a_command_leaves_what_its_ladder_says(
    deployment: Deployment,
    size: int | None,
    previous: UUID | None,
    policy: DeploymentPolicy | None,
    data: st.DataObject,
) -> None:
    now = NOW + timedelta(seconds=45)
    last = RolledBack(V2, size, data.draw(REPLICAS), data.draw(st.booleans()))
    state = State(deployment, now, now, policy, Left(0, 1, 1), previous, last)
    for name, command in COMMANDS.items():
        assert unlike(name, after_command(name, state), left_by(state, command)) is None


def left_by(state: State, command: Command) -> Deployment | None:
    """None where it is refused, or nothing changes."""
    try:
        left = command(state).deployment
    except RollwayError:
        return None
    return None if replace(left, version=state.deployment.version) == state.deployment else left
