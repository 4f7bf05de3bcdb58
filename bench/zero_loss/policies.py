"""The policies of the rollouts under load."""

from collections.abc import Mapping
from typing import Any

ROLLING: Mapping[str, Any] = {
    "strategy": "rolling_update",
    "spec": {"max_surge": 1, "max_unavailable": 1},
    "limits": {"timeout_seconds": 120},
}
BLUE_GREEN: Mapping[str, Any] = {"strategy": "blue_green", "spec": {"auto_promote": False}, "limits": {}}
CANARY: Mapping[str, Any] = {
    "strategy": "canary",
    "spec": {
        "steps": ["5%", "50%"],
        "judge": {
            "errors": {"allowed": "10%"},
            "refused": {"allowed": "10%"},
            "redirected": {"allowed": "10%"},
            "at_least": {"requests": 30, "seconds": 1},
        },
    },
}
