"""Refuses a rollout that could never end, since its replicas would wait for devices that nothing makes free.

the hosts together have no room for n replicas, even if nothing else ran there     -> refused
a second set is needed, and there is no room for all of it                         -> refused: roll in place
room for one more, or all old ones stop first                                      -> it can move
as many replicas may be missing as must leave before a new one has room           -> it moves in place
otherwise                                                                          -> refused: one may be missing, or
                                                                                      one more device
"""

from dataclasses import dataclass, replace
from datetime import datetime

from domain.cycle.evaluator import EVALUATOR
from domain.devices.ledger import Demand, Ledger, device_room
from domain.devices.needs import in_words
from domain.devices.room import DeviceRoom
from domain.model.deployment import Deployment
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
    name, desired, ledger = after.name, after.desired_replicas, case.ledger
    each = " and ".join(in_words(kind, count) for kind, count in case.demand.needs.items())
    if (most := ledger.fits_ever(case.demand)) < desired:
        raise _refusal(
            name,
            revision,
            f"each replica needs {each}, and all hosts have room for {most} of {desired}, even if nothing else ran "
            "there; let it need less, or add a host ('rollway hosts' shows what each one has)",
        )
    rollout = after.rollout
    if rollout is None:
        return
    policy, room = rollout.policy, ledger.room(case.demand)
    budget = EVALUATOR.strategy_of(policy).bounds_of(after, policy.spec)
    if budget.keep_in_place is None and not budget.alone:
        own = [route for route in after.active_routes if route.revision_id == after.deploying_revision_id]
        if room + sum(not route.has_lent for route in own) < desired:
            raise _refusal(
                name,
                revision,
                f"{policy.strategy} runs {number_of(desired, 'new replica')} next to the old ones, each needs "
                f"{each}, and there is room for {room}; roll in place ({_in_place(name, 1)}), or add a host",
            )
        return
    if room or budget.alone or not desired:
        return
    old = [route.id for route in after.active_routes if route.revision_id != after.deploying_revision_id]
    fewest, spare = (
        ledger.fewest_leaves(case.demand, old),
        max(0, rollout.desired_at_start - kept_in_place(budget, goes_back=False)),
    )
    if fewest is None or fewest > spare:
        leave = "" if fewest is None else f", {number_of(fewest, 'old one')} must leave before a new one finds room"
        raise _refusal(
            name,
            revision,
            f"a new replica needs {ledger.shortage(case.demand, now)}{leave}, and {spare} may be missing "
            f"(max_unavailable); let {fewest or 1} be missing ({_in_place(name, fewest or 1)}), or add a host",
        )


def _in_place(name: str, missing: int) -> str:
    return f"'rollway policy {name} --set \"{{strategy: rolling_update, spec: {{max_unavailable: {missing}}}}}\"'"


def _refusal(name: str, revision: str, why: str) -> NoDevicesError:
    return NoDevicesError(f"{name} cannot move to {revision}: {why}", deployment=name, revision=revision)
