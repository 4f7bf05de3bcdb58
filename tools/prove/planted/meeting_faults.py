"""Faults that show only where two features meet: a size and a hold, a pause and a drained host, an undo, a rollout."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from domain.cycle.transitions import RevisionMove
from domain.model.decision import Decision, RouteChanges
from domain.model.deployment import Deployment, Route, StartFailures
from domain.model.states import ROLLING_BACK, RolloutOutcome
from domain.steering.activation import Activation, ActivationRequest, decide_activation
from domain.steering.command_effect import Context, Effect
from domain.strategies.budget import Buckets, Budget
from domain.strategies.converge import unproven
from tools.prove.planted.faults import RETRY, Fault, blue_green
from tools.prove.starts import Start

_ONE_STEP = (("steps", ("5%",)),)


def _parked_again(decision: Decision, deployment: Deployment, budget: Budget, now: datetime) -> Decision:
    """The last old ones, also at size 0, and also those that are parked already."""
    drained = decision.changes.drain_route_ids
    old = [route for route in deployment.active_routes if route.revision_id == deployment.current_revision_id]
    if budget.count_stopping or not old or any(route.id not in drained for route in old):
        return decision
    kept = [route.id for route in old][: budget.ceiling - budget.desired]
    stays = tuple(route_id for route_id in drained if route_id not in kept)
    park = RouteChanges.park(kept, now + timedelta(seconds=60))
    return replace(decision, changes=replace(decision.changes, drain_route_ids=stays) + park)


def _all_stay(deployment: Deployment, budget: Budget, now: datetime) -> tuple[Buckets, list[Route], Buckets]:  # noqa: ARG001
    assert deployment.deploying_revision_id is not None
    every = Buckets.of(deployment.routes, deployment.deploying_revision_id, now)
    return every, [], every


def _as_it_will_be(deployment: Deployment) -> Deployment:
    return deployment


def _all_of_them(routes: Iterable[Route], now: datetime) -> tuple[Route, ...]:  # noqa: ARG001
    return tuple(routes)


def _resumed(deployment: Deployment, request: ActivationRequest) -> Activation:
    leads_there = request.revision_id == deployment.deploying_revision_id and deployment.status != ROLLING_BACK
    return Activation.RESUMED if leads_there else decide_activation(deployment, request)


def _as_any_other(
    deployment: Deployment, last: ActivationRequest | None, outcome: RolloutOutcome | None, asking: Context
) -> Effect:
    return RETRY(deployment, replace(last, is_undo=False) if last else None, outcome, asking)


def _also_while_unproven(deployment: Deployment, now: datetime) -> bool:
    is_later = deployment.retry_at is not None and now < deployment.retry_at
    return is_later or unproven(deployment, now) is not None


def _whoever_failed(deployment: Deployment, move: RevisionMove) -> Deployment:  # noqa: ARG001
    return deployment


def _never(failures: StartFailures, now: datetime) -> bool:  # noqa: ARG001
    return False


SHORT_LIVES = Start("rolling_update", (("max_surge", 1), ("max_unavailable", 0)), 1, short_lives=2)

MEETING_FAULTS = (
    Fault(
        "at size 0 what is parked is parked again",
        ("domain.cycle.evaluator.with_old_at_hand",),
        _parked_again,
        Start("canary", _ONE_STEP, 1, in_use=True),
    ),
    Fault("greens too many take the place of blue", ("domain.strategies.blue_green._green",), _all_stay, blue_green(2)),
    Fault(
        "what is held follows the size of the new revision",
        ("domain.strategies.base.sized_as_kept", "domain.strategies.canary.rollback.sized_as_kept"),
        _as_it_will_be,
        Start("canary", (), 2, 1, held=True),
    ),
    Fault(
        "who is exchanged in a pause counts twice",
        ("domain.strategies.canary.sizing.well_placed",),
        _all_of_them,
        Start("canary", (*_ONE_STEP, ("max_surge", 3)), 1, moved=4, paused=True),
    ),
    Fault(
        "an undo to what is under way only resumes it",
        ("domain.steering.activation.decide_activation",),
        _resumed,
        Start("canary", _ONE_STEP, 1),
    ),
    Fault(
        "an undo is tried again as any other rollout",
        ("domain.steering.verbs.retry",),
        _as_any_other,
        Start("canary", _ONE_STEP, 1, is_undo=True),
    ),
    Fault(
        "in the minute after short lives nothing is repaired",
        ("domain.handlers.check_replica._was_given_up",),
        _also_while_unproven,
        SHORT_LIVES,
    ),
    Fault(
        "short lives are held against the revision that comes or goes",
        ("domain.cycle.transitions._with_current",),
        _whoever_failed,
        SHORT_LIVES,
    ),
    Fault(
        "who has lived for a minute lived shortly", ("domain.replicas.status_reports.is_proven",), _never, SHORT_LIVES
    ),
)
