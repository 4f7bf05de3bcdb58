"""Canaries under load: their policies, and what befalls the only replica of one."""

import time
from collections.abc import Mapping
from typing import Any

from tools.bench.zero_loss.faults import lose
from tools.bench.zero_loss.frozen import freeze
from tools.bench.zero_loss.picture import Picture, RouteSeen
from tools.bench.zero_loss.service import Service

JUDGED: Mapping[str, Any] = {
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
_SPLIT: Mapping[str, Any] = {"strategy": "canary", "spec": {"steps": ["25%"]}}
_A_FEW_REQUESTS = 3.0


def kill_the_canary(service: Service) -> float:
    """SIGKILL to the only replica of a canary that is asked by a share of the callers; when it was gone.

    Returns when another one has its share, and the canary was taken back. Raises ScenarioError.
    """
    new = service.roll_out(_SPLIT)
    killed_at = lose(service, _only_one(service, new))
    _only_one(service, new)
    _take_back(service)
    return killed_at


def freeze_the_canary(service: Service) -> tuple[float, float]:
    """SIGSTOP to the only replica of such a canary, as `freeze` does it; then the canary is taken back.

    Raises ScenarioError.
    """
    frozen = freeze(service, _only_one(service, service.roll_out(_SPLIT)))
    _take_back(service)
    return frozen


def _only_one(service: Service, revision: str) -> RouteSeen:
    """The canary's replica, once it has been in traffic for a while."""

    def serves(now: Picture) -> bool:
        return sum(route.serves for route in now.of(revision)) == 1

    service.wait(serves, f"one replica of {revision} in traffic")
    time.sleep(_A_FEW_REQUESTS)
    return next(route for route in service.look().of(revision) if route.serves)


def _take_back(service: Service) -> None:
    service.do("abort")
    service.settle()
