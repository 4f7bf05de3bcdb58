"""The chain of a rollout's steps: some inputs are kept whole; the others as their difference from the step before.

Of a rollout of thousands of replicas nearly nothing changes from step to step: whole, the record of n replicas one by
one would grow with the square of n.

    1 whole   2 changed   3 changed   4 whole   5 changed ...
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

Inputs = Mapping[str, Any]
"""The JSON of `domain.cycle.recording.inputs_json`, or its difference from the step before."""

SMALL = 32
"""Up to this number of replicas each step is recorded whole: that takes a few kB."""

_FEWEST = 8
"""The fewest steps between two whole ones; one for each eight replicas, where that is more: they weigh the same."""

_CHANGED = "changed"
_UNREADABLE = (KeyError, TypeError, AttributeError)


class KeptStep(NamedTuple):
    """A step as it is kept. `whole_step`: the one that it builds on; itself where it is whole."""

    rollout_id: UUID
    number: int
    inputs: Inputs
    whole_step: int


def last_of_each(steps: Iterable[KeptStep]) -> dict[UUID, KeptStep]:
    """The last step of each rollout, whole, from the chains that lead to them; without those that are torn."""
    chain, last = Chain(), {}
    for step in steps:
        saw = chain.whole(step.rollout_id, step.number, step.inputs)
        last[step.rollout_id] = None if saw is None else step._replace(inputs=saw)
    return {rollout_id: step for rollout_id, step in last.items() if step}


def changes_kept(last: KeptStep, now: Inputs, number: int) -> bytes | None:
    """The difference that is kept of a step, as JSON text; None for a step that is kept whole."""
    if begins_anew(len(now["deployment"]["routes"]), number - last.whole_step):
        return None
    changes = changes_since(last.inputs, now)
    return None if changes is None else json.dumps(changes, separators=(",", ":")).encode()


def begins_anew(replicas: int, following: int) -> bool:
    """Whether the next step is recorded whole; `following`: the steps since the last whole one."""
    return following >= max(_FEWEST, replicas // 8)


def changes_since(before: Inputs, now: Inputs) -> Inputs | None:
    """The difference of a step's inputs from those before, so that `Chain` restores them.

    None where that cannot be said in this form: another release wrote the one before, say.
    """
    old, new = before["deployment"], now["deployment"]
    fields = _changed_fields(old, new, aside=("routes", "rollout"))
    routes = _changed_routes(old["routes"], new["routes"])
    if fields is None or routes is None:
        return None
    changes = {"deployment": fields, **routes}
    if old["rollout"] != new["rollout"]:
        both = old["rollout"] is not None and new["rollout"] is not None
        within = _changed_fields(old["rollout"], new["rollout"]) if both else None
        if within is None:
            fields["rollout"] = new["rollout"]
        else:
            changes["rollout"] = within
    return {_CHANGED: changes, "now": now["now"]}


@dataclass(slots=True)
class Chain:
    """Folds the steps of rollouts, which it is given in their order; many share the replicas that did not change."""

    _rollout_id: UUID | None = None
    _number: int = 0
    _deployment: dict[str, Any] | None = None
    _routes: dict[str, Inputs] = field(default_factory=dict)

    def whole(self, rollout_id: UUID, number: int, recorded: Inputs) -> Inputs | None:
        """The inputs of this step. None if its predecessor is missing, or is not the recorded one."""
        if (rollout_id, number) != (self._rollout_id, self._number + 1):
            self._deployment = None
        self._rollout_id, self._number = rollout_id, number
        try:
            return self._folded(recorded)
        except _UNREADABLE:  # somebody's hand
            self._deployment = None
            return None

    def _folded(self, recorded: Inputs) -> Inputs | None:
        if _CHANGED not in recorded:
            self._deployment = recorded["deployment"]
            self._routes = {route["id"]: route for route in recorded["deployment"]["routes"]}
            return recorded
        if self._deployment is None:
            return None
        changes, old, routes = recorded[_CHANGED], self._deployment, self._routes
        for route_id in changes["gone"]:
            del routes[route_id]
        last = next(reversed(routes), "")
        is_in_order = all(route_id in routes or route_id > last for route_id in changes["routes"])
        for route_id, other in sorted(changes["routes"].items()):
            routes[route_id] = {**routes.get(route_id, {"id": route_id}), **other}
        if not is_in_order:
            self._routes = routes = dict(sorted(routes.items()))
        new = {**old, **changes["deployment"], "routes": list(routes.values())}
        if within := changes.get("rollout"):
            new["rollout"] = {**old["rollout"], **within}
        self._deployment = new
        return {"deployment": new, "now": recorded["now"]}


def _changed_fields(old: Inputs, new: Inputs, aside: Iterable[str] = ()) -> dict[str, Any] | None:
    """The fields that are other now; None where one is there no more."""
    if not old.keys() <= new.keys():
        return None
    return {name: value for name, value in new.items() if name not in aside and (name not in old or old[name] != value)}


def _changed_routes(old: list[Inputs], new: list[Inputs]) -> dict[str, Any] | None:
    """Replicas that are new or changed, with their changed fields, and those that are gone.

    None where they do not stand in the order of their ids.
    """
    before, after = ({route["id"]: route for route in routes} for routes in (old, new))
    if list(before) != sorted(map(_id, old)) or list(after) != sorted(map(_id, new)):
        return None
    changes = {}
    for route_id, route in after.items():
        previous = before.get(route_id, {"id": route_id})
        if previous != route:
            changes[route_id] = _changed_fields(previous, route)
    if None in changes.values():
        return None
    return {"routes": changes, "gone": [route_id for route_id in before if route_id not in after]}


def _id(route: Inputs) -> str:
    route_id: str = route["id"]
    return route_id
