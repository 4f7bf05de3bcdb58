"""Policies as clients send them; ROLLING stands with the deployments that are given it."""

from typing import Any

from domain.model.policy import DeploymentPolicy
from domain.strategies.builtin import parse_policy

BLUE_GREEN = {"strategy": "blue_green", "spec": {"auto_promote": True}}
PARKING = {"strategy": "blue_green", "spec": {"auto_promote": True, "scale_down_delay_seconds": 3600}}
CANARY = {"strategy": "canary", "spec": {"steps": ["5%", {"weight": "50%", "seconds": 60}]}}
STICKY = {"strategy": "canary", "spec": {"steps": ["20%", "50%"], "sticky": True}}
MIRRORING = {"strategy": "canary", "spec": {"mirror": "50%", "steps": ["5%"]}}
BASELINE = {
    "strategy": "canary",
    "spec": {"steps": ["5%", "50%"], "max_surge": 2, "judge": {"baseline": "fresh"}},
}
RECREATE = {"strategy": "recreate"}
CONTINUOUS = {
    "strategy": "rolling_update",
    "spec": {"max_surge": "50%", "max_unavailable": "25%", "pacing": "continuous"},
}
COUNTING = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 1, "count_stopping": True}}
COUNTING_BLUE_GREEN = {"strategy": "blue_green", "spec": {"auto_promote": True, "count_stopping": True}}


def canary(**spec: Any) -> DeploymentPolicy:
    return parse_policy({"strategy": "canary", "spec": spec})
