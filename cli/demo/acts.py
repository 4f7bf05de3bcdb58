"""The acts of the demo, under load: create, roll out, come back, canary. Each checks its promises."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from api.people.paths import DEPLOYMENT
from cli.demo.demo_run import PATIENCE_SECONDS, REPLICAS, Demo
from cli.show.rollout_log import destroyed, settled
from db.views.rollout_views import RolloutView
from db.views.route_views import RouteView
from domain.commands.deployment_commands import CreateDeployment, Destroy, SetPolicy
from domain.model.states import RolloutOutcome
from domain.text.errors import RollwayError

_BUDGET = {"max_surge": 1, "max_unavailable": 1}
_PARTING_SECONDS = 10.0
_SHORT_TIMEOUT_SECONDS = 3
_CANARY = "v4"


def _create(run: Demo) -> None:
    limits = {"timeout_seconds": PATIENCE_SECONDS}
    run.do(CreateDeployment, desired_replicas=REPLICAS, policy=_policy(limits))
    run.roll_out("v1", {"VERSION": "1"})
    run.load.start()
    run.say("  from now on 100 requests a second through Envoy, some on new connections, some with slow answers")


def _roll_out(run: Demo) -> None:
    rollout = run.roll_out("v2", {"VERSION": "2"})
    if rollout is None or rollout.outcome != RolloutOutcome.COMPLETED:
        run.promise("the rollout to v2 is completed", kept=False, seen=_ending(rollout))
    run.everyone_runs("v2", "after the rollout")
    run.say(f"  under load so far: {run.load.tally}")


def _come_back(run: Demo) -> None:
    run.do(SetPolicy, policy=_policy({"timeout_seconds": _SHORT_TIMEOUT_SECONDS}))
    rollout = run.roll_out("v3", {"BROKEN": "health"})
    turned_back = rollout is not None and rollout.outcome == RolloutOutcome.ROLLED_BACK
    run.promise("the broken v3 goes back by itself", kept=turned_back, seen=_ending(rollout))
    run.settle(settled)
    run.everyone_runs("v2", "after the rollback")
    run.say(f"  under load so far: {run.load.tally}")
    remaining = _wait_for_end_of(run, "v3")
    run.promise(
        "no replica of v3 is left", kept=not remaining, seen=f"{remaining} left" if remaining else "all stopped"
    )


def _judge(run: Demo) -> None:
    run.do(SetPolicy, policy={"strategy": "canary", "spec": {"steps": ["10%"], "judge": {}}})
    rollout = run.roll_out(_CANARY, {"FAIL_EVERY": "5"})
    run.verdict = (rollout.back_reason or "") if rollout is not None else ""
    aborted = rollout is not None and rollout.outcome == RolloutOutcome.ROLLED_BACK
    run.promise(f"the canary {_CANARY} is aborted by its judge", kept=aborted, seen=_ending(rollout))
    run.settle(settled)
    run.everyone_runs("v2", "after the canary")
    _check_budget(run)
    _check_load(run)


def canary_met(run: Demo) -> dict[str, int]:
    """Count the requests that met the canary, and those of them that failed."""
    return {"met": run.load.tally.met(_CANARY), "failed": run.load.tally.answers[500, _CANARY]}


def canary_in_words(run: Demo) -> str:
    """E.g. "31 of 1204 requests met the canary v4, 6 of them failed"."""
    met = canary_met(run)
    return (
        f"{met['met']} of {run.load.tally.requests} requests met the canary {_CANARY}, {met['failed']} of them failed"
    )


def _check_load(run: Demo) -> None:
    """Wait for the last answers. The promises: only the canary's failed, and no replica of v3 got a request."""
    run.load.stop()
    tally = run.load.tally
    good = tally.by_revision(200)
    shares = ", ".join(f"{revision} {count}" for revision, count in sorted(good.items()))
    run.promise("the broken v3 is never asked", kept="v3" not in good, seen=f"good answers: {shares}")
    run.promise(
        "the canary is asked until its judge has seen enough",
        kept=canary_met(run)["met"] > 0,
        seen=canary_in_words(run),
    )
    lost = tally.failed.total() - canary_met(run)["failed"]
    run.promise("under load, no other request is lost", kept=lost == 0, seen=str(tally))


def leave(run: Demo) -> None:
    """Destroy the deployment, so that nothing of it stays in a database that existed before."""
    run.load.stop(waits=False)
    with suppress(RollwayError):
        run.do(Destroy)
        run.settle(destroyed, _PARTING_SECONDS)


ACTS: Sequence[tuple[str, Callable[[Demo], None]]] = (
    (f"Create: {REPLICAS} replicas of examples/http_service.py, revision v1", _create),
    ("Roll out v2 (max_surge 1, max_unavailable 1); old|new, ■ healthy, ◇ starting", _roll_out),
    (f"Roll out v3, which never becomes healthy, with a timeout of {_SHORT_TIMEOUT_SECONDS} s", _come_back),
    (f"Canary of {_CANARY}, which fails every fifth request: a tenth of them, judged as they are answered", _judge),
)


def _policy(limits: dict[str, Any]) -> dict[str, Any]:
    return {"strategy": "rolling_update", "spec": _BUDGET, "limits": limits}


def _ending(rollout: RolloutView | None) -> str:
    if rollout is None or rollout.outcome is None:
        return "it has not ended"
    why = (rollout.back_reason or "").partition("; last:")[0]
    return f"{rollout.outcome.replace('_', ' ')}{': ' if why else ''}{why}"


def _wait_for_end_of(run: Demo, revision: str) -> int:
    """Count the replicas of the revision that still run after a while; 0 as soon as none does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        routes = run.reader.views(RouteView, f"{DEPLOYMENT}/routes", run.name, gone=True, limit=100)
        remaining = sum(route.revision == revision and route.stopped_at is None for route in routes)
        if not remaining or time.monotonic() > deadline:
            return remaining
        time.sleep(0.1)


def _check_budget(run: Demo) -> None:
    """Whether every picture of all rollouts has at most 3 + 1 active and at least 3 - 1 serving."""
    cycles = [cycle for title in ("v2", "v3", _CANARY) for cycle in run.films[title]]
    most, least = max(cycle.active for cycle in cycles), min(cycle.serving for cycle in cycles)
    fits = most <= REPLICAS + _BUDGET["max_surge"] and least >= REPLICAS - _BUDGET["max_unavailable"]
    run.promise(
        "never more than 4 live, never fewer than 2 serving",
        kept=fits,
        seen=f"at most {most} and at least {least}",
    )
