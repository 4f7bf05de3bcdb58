"""Refuses a rollout that could never end, since its replicas would wait for devices that nothing makes free.

the hosts together have no room for n replicas, even if nothing else ran there     -> refused
a second set is needed, and there is no room for all of it                         -> refused: roll in place
room for one more, or all old ones stop first                                      -> it can move
as many replicas may be missing as must leave before a new one has room           -> it moves in place
otherwise                                                                          -> refused: a policy that would do,
                                                                                      or one more host
"""

from dataclasses import dataclass, replace
from datetime import datetime

from domain.cycle.evaluator import EVALUATOR
from domain.devices.ledger import Demand, Ledger, device_room
from domain.devices.needs import in_words
from domain.devices.room import DeviceRoom
from domain.model.deployment import Deployment, Rollout
from domain.strategies.budget import Budget, surge_budget
from domain.strategies.in_place import kept_in_place
from domain.text.errors import RollwayError
from domain.text.numbers import number_of


class NoDevicesError(RollwayError):
    """No host can give the replicas of the revision the devices that they need."""


@dataclass(frozen=True, slots=True)
class DeviceCase:
    """The demand of a revision, and the ledger of devices."""

    demand: Demand
    ledger: Ledger


def with_room(after: Deployment, case: DeviceCase, now: datetime) -> Deployment:
    """The deployment, with the room for the revision that it is to run."""
    target = after.deploying_revision_id or after.current_revision_id
    if target is None:
        return after
    live = {route.id: route.revision_id for route in after.active_routes}
    room = device_room(case.ledger, {target: case.demand}, after.desired_replicas, live, target, now)
    known = after.devices or DeviceRoom()
    free, shortage = {**known.free, **room.free}, {**known.shortage, **room.shortage}
    sleepers = tuple({*known.sleepers, *room.sleepers})
    return replace(after, devices=replace(room, free=free, shortage=shortage, sleepers=sleepers))


def check_devices(after: Deployment, revision: str, case: DeviceCase, now: datetime) -> None:
    """Raises NoDevicesError if the rollout could never end. `after`: the deployment after the activation."""
    if why := _why_never(after, case, now):
        message = f"{after.name} cannot move to {revision}: {why}"
        raise NoDevicesError(message, deployment=after.name, revision=revision)


def _why_never(after: Deployment, case: DeviceCase, now: datetime) -> str:
    """Why the rollout could never end, and what would help; empty if it can."""
    desired, ledger, rollout = after.desired_replicas, case.ledger, after.rollout
    each = " and ".join(in_words(kind, count) for kind, count in case.demand.needs.items())
    if (most := ledger.fits_ever(case.demand)) < desired:
        return (
            f"each replica needs {each}, and all hosts have room for {most} of {desired}, even if nothing else ran "
            "there; let it need less, or add a host ('rollway hosts' shows what each one has)"
        )
    if rollout is None:
        return ""
    policy, room = rollout.policy, ledger.room(case.demand)
    budget = EVALUATOR.strategy_of(policy).bounds_of(after, policy.spec)
    if budget.keep_in_place is None and not budget.alone:
        own = [route for route in after.active_routes if route.revision_id == after.deploying_revision_id]
        if room + sum(not route.has_lent for route in own) >= desired:
            return ""
        return (
            f"{policy.strategy} runs {number_of(desired, 'new replica')} next to the old ones, each needs "
            f"{each}, and there is room for {room}; roll in place ({_in_place(after.name, 1)}), or add a host"
        )
    if room or budget.alone or not desired:
        return ""
    return _why_not_in_place(after, rollout, budget, case, now)


def _why_not_in_place(after: Deployment, rollout: Rollout, budget: Budget, case: DeviceCase, now: datetime) -> str:
    """Why a rollout that makes room where old replicas are could never end; empty if it can."""
    old = [route.id for route in after.active_routes if route.revision_id != after.deploying_revision_id]
    fewest, spare = case.ledger.fewest_leaves(case.demand, old), _spare(rollout, budget)
    needs = f"a new replica needs {case.ledger.shortage(case.demand, now)}"
    if fewest is None:
        return f"{needs}, and no old one that leaves makes room; add a host ('rollway hosts' shows what each one has)"
    if fewest <= spare:
        return ""
    is_enough = _spare(rollout, surge_budget(after.desired_replicas, 1, fewest)) >= fewest
    missing = f"let {fewest} be missing ({_in_place(after.name, fewest)})"
    remedy = missing if is_enough else f"let all old ones stop first ({_policy(after.name, 'strategy: recreate')})"
    return (
        f"{needs}, {number_of(fewest, 'old one')} must leave before a new one finds room, and {spare} may be missing "
        f"(max_unavailable); {remedy}, or add a host"
    )


def _spare(rollout: Rollout, budget: Budget) -> int:
    """The number of replicas that may be missing in place."""
    return max(0, rollout.desired_at_start - kept_in_place(budget, goes_back=False))


def _in_place(name: str, missing: int) -> str:
    return _policy(name, f"strategy: rolling_update, spec: {{max_unavailable: {missing}}}")


def _policy(name: str, settings: str) -> str:
    return f"'rollway policy {name} --set \"{{{settings}}}\"'"
