"""What reads answer, as JSON Schema has it: a view, alone or in a list, and what stands beside its fields."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from pydantic import TypeAdapter

from api.people.reads import applied, decided, logs, revisions, set_up
from api.people.reads import deployments as reads
from db.audit.receipts import AgainstPlan
from db.audit.shown import ReceiptView, WhyView
from db.commands.apply.difference import DocumentDifference
from db.proxies.acks import ProxyView
from db.views.ahead.cycles import Cycle
from db.views.ahead.foresight import LearnedView
from db.views.deployments import DeploymentView
from db.views.fleet.entrances import ReachedView
from db.views.fleet.hosts import HostView
from db.views.fleet.signs import SignsOfLife
from db.views.fleet.subscriptions import SubscriptionView
from db.views.fleet.windows import FreezeView, GroupView
from db.views.progress import Progress
from db.views.rollouts import RolloutView
from db.views.routes import RouteView
from db.views.timeline import HistoryView, RevisionView, StepView
from domain.commands.answers import PolicySet, RulesSet, TrafficSet
from domain.commands.registry import Button
from domain.cycle.standing import Tone
from domain.foresight.plan.foreseen import Plan
from domain.foresight.rehearsal.learned import Learned
from traffic.table import TrafficTable

REF = "#/components/schemas/{model}"
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """`listed`: whether it is a whole list of views, or a page of one; `more`: further fields and what they are."""

    views: tuple[type, ...]
    listed: Literal["", "whole", "page"] = ""
    more: Mapping[str, object] = field(default_factory=dict)
    beside: Mapping[str, object] = field(default_factory=dict)


_SUMMARY: Mapping[str, object] = {
    **dict.fromkeys(("state", "word", "said", "picture", "overdue"), str),
    "tone": Tone,
    "waits_for": Literal["", "resume", "promote", "abort"],
}

_AHEAD = {
    "deployment": str,
    "from_revision": str,
    "to_revision": str,
    "has_health_check": bool,
    "inputs": dict[str, Any],
    "learned": Learned,
}

SHAPES: Mapping[Callable[..., Any], Shape] = {
    reads.deployments: Shape((DeploymentView,), "page", _SUMMARY),
    reads.deployment: Shape((DeploymentView, ReachedView), more={**_SUMMARY, "revisions": list[RevisionView]}),
    revisions.revisions: Shape((RevisionView,), "page"),
    revisions.revision: Shape((RevisionView,)),
    revisions.difference: Shape((), more={"before": RevisionView, "after": RevisionView, "hidden": list[str]}),
    applied.difference: Shape((DocumentDifference,), "whole"),
    applied.ahead: Shape((), "whole", _AHEAD),
    reads.rollouts: Shape((RolloutView,), "page"),
    reads.rollout: Shape((RolloutView,)),
    reads.steps: Shape((StepView,), "whole"),
    reads.cycles: Shape((Cycle,), "whole", {"step_no": int, "at": datetime, "verdict": str}),
    set_up.policy: Shape((PolicySet,)),
    set_up.autoscaling: Shape((RulesSet,)),
    set_up.traffic: Shape((TrafficSet,)),
    decided.why: Shape((WhyView,)),
    decided.offered: Shape((Button,), "whole"),
    decided.plan: Shape((Plan,)),
    decided.learned: Shape((LearnedView,)),
    decided.receipt: Shape((ReceiptView,)),
    decided.last_receipt: Shape((ReceiptView,)),
    reads.against: Shape((AgainstPlan,)),
    reads.history: Shape((HistoryView,), "page"),
    reads.routes: Shape((RouteView,), "whole", beside={"last_failed": RouteView | None}),
    logs.routes_like: Shape((RouteView,), "whole", {"deployment": str}),
    logs.logs: Shape((logs.LogView,), "whole", beside={"silent": list[str]}),
    reads.progress: Shape((Progress,)),
    reads.hosts: Shape((HostView,), "whole", {"state": Literal["up", "down"]}),
    reads.table: Shape((TrafficTable,)),
    reads.proxies: Shape((ProxyView,), "whole"),
    reads.subscriptions: Shape((SubscriptionView,), "whole"),
    reads.freezes: Shape((FreezeView,), "whole"),
    reads.groups: Shape((GroupView,), "whole"),
    reads.signs: Shape((SignsOfLife,)),
}


def schema_of(shape: Shape, components: dict[str, Schema]) -> Schema:
    """The JSON Schema of a shape; what that refers to goes into `components`."""
    parts = [schema_of_type(view, components) for view in shape.views]
    item: Schema = (
        parts[0] if len(parts) == 1 and not shape.more else {"allOf": [*parts, *_object(shape.more, components)]}
    )
    if not shape.listed:
        return item
    (around,) = _object({**shape.beside, **({"next": str | None} if shape.listed == "page" else {})}, components) or [
        {"type": "object", "properties": {}, "required": []}
    ]
    around["properties"]["items"] = {"type": "array", "items": item}
    around["required"].append("items")
    return around


def schema_of_type(
    kind: Any,  # noqa: ANN401  (any type that Pydantic knows)
    components: dict[str, Schema],
    mode: Literal["validation", "serialization"] = "serialization",
) -> Schema:
    """The JSON Schema of a type."""
    schema = TypeAdapter(kind).json_schema(ref_template=REF, mode=mode)
    components.update(schema.pop("$defs", {}))
    return schema


def _object(fields: Mapping[str, object], components: dict[str, Schema]) -> Iterable[Schema]:
    if not fields:
        return []
    properties = {name: schema_of_type(kind, components) for name, kind in fields.items()}
    return [{"type": "object", "properties": properties, "required": list(fields)}]
