"""Where the search starts from: small rollouts by every strategy. A new strategy needs a line in SPECS."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

from domain.strategies import parse_policy
from tests.prove.state import Left, State
from tests.support.people.people import activate_revision
from tests.support.pictures.pictures import NOW, READY, V1, V2, resting

COUNTING = (False, True)
QUICK_JUDGE = {"at_least": {"requests": 1, "seconds": 0}, "at_most": {"seconds": 1}}
"""A judge that needs little and gives up soon."""
SPECS: dict[str, list[dict[str, Any]]] = {
    "rolling_update": [
        {"max_surge": surge, "max_unavailable": unavailable, "pacing": pacing, "count_stopping": counting}
        for surge, unavailable, pacing, counting in product((0, 1, 2), (0, 1, 2), ("wave", "continuous"), COUNTING)
        if surge or unavailable
    ]
    + [
        {"max_surge": "50%", "max_unavailable": "50%"},
        {"max_surge": 1, "max_unavailable": 0, "min_ready_seconds": 10},
        {"max_surge": 1, "max_unavailable": 1, "min_ready_seconds": 10, "pacing": "continuous"},
    ],
    "blue_green": [
        {"auto_promote": auto, "scale_down_delay_seconds": delay, "count_stopping": counting}
        for auto, delay, counting in product((False, True), (0, 60), COUNTING)
    ]
    + [{"auto_promote": True, "promote_delay_seconds": 10}],
    "recreate": [{}],
    "canary": [
        {"steps": ["5%"], "max_surge": surge, "max_unavailable": unavailable, "count_stopping": counting}
        for surge, unavailable, counting in ((1, 0, False), (1, 1, True), (2, 0, False))
    ]
    + [{"steps": [{"weight": "5%", "seconds": 10}, "60%"]}]
    + [
        {"steps": ["5%"], "judge": {**QUICK_JUDGE, "if_undecided": undecided}}
        for undecided in ("hold", "promote", "abort")
    ]
    + [{"steps": ["50%"], "max_surge": 2, "judge": {**QUICK_JUDGE, "baseline": "fresh"}}],
}
PROGRESS_SECONDS = 600
FAILURE_BUDGET = 2
"""As many as there are misfortunes, so that a rollout can be given up."""


@dataclass(frozen=True, slots=True)
class Start:
    """A rollout of v2 over `n` replicas of v1 that begins now.

    `size`: the one that comes with v2. `progress`: the seconds that it may take without progress.
    """

    strategy: str
    spec: tuple[tuple[str, Any], ...]
    n: int
    size: int | None = None
    progress: int | None = None

    @property
    def name(self) -> str:
        """For the table."""
        said = ", ".join(_said(name, value) for name, value in self.spec if value is not False)
        size = f" → {self.size}" if self.size is not None else ""
        progress = f", progress within {self.progress} s" if self.progress else ""
        return f"{self.strategy} n={self.n}{size}" + (f", {said}" if said else "") + progress

    def state(self, left: Left) -> State:
        """Right after the activation."""
        limits = {"failure_budget": FAILURE_BUDGET, "progress_timeout_seconds": self.progress}
        policy = parse_policy({"strategy": self.strategy, "spec": dict(self.spec), "limits": limits})
        ready = resting(
            "■" * self.n + "|",
            self.n,
            READY,
            current_revision_id=V1,
            count_stopping=policy.spec.count_stopping,
        )
        steered = activate_revision(ready, V2, policy, NOW, desired=self.size)
        return State(steered.deployment, NOW, NOW, policy, left)


def starts(most: int) -> Iterator[Start]:
    """Every spec with 1 to `most` replicas; the defaults also with a size for v2, and with a clock for progress."""
    for strategy, specs in SPECS.items():
        for n, spec in product(range(1, most + 1), specs):
            yield Start(strategy, tuple(spec.items()), n)
        for n, size in permutations(range(1, most + 1), 2):
            yield Start(strategy, (), n, size)
        yield Start(strategy, (), most, progress=PROGRESS_SECONDS)


def _said(name: str, value: object) -> str:
    if isinstance(value, dict):
        return f"{name} " + " ".join(f"{key}: {its}" for key, its in value.items() if key not in QUICK_JUDGE)
    return name if value is True else str(value) if isinstance(value, str) else f"{name} {value}"
