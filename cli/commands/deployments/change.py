"""The commands that change a deployment: what each says at the terminal, `rollway activate`, `pause`, ... `destroy`."""

from collections.abc import Mapping

from cli.sending import OfAll, Result, Verb
from cli.show.waiting import destroyed, gone_back, rollout_completed, settled
from db.views.deployment_view import DeploymentView
from domain.commands.deployment import Destroy, Scale
from domain.commands.rollout import Abort, ActivateRevision, Pause, Promote, Restart, Resume, Retry, Undo
from domain.steering.activation import Activation
from domain.words.numbers import number_of

_ACTIVATED = {
    Activation.FIRST: "{revision} is the first revision of {deployment}",
    Activation.BEGUN: "rollout of {deployment} to {revision} begun",
    Activation.RESUMED: "{deployment} is already rolling out {revision}",
    Activation.SUPERSEDED: "rollout of {deployment} to {revision} begun, leaving the one before",
    Activation.MOVED: "{deployment} changes to {revision} without a rollout, since it has no policy",
    Activation.CONVERGING: "{deployment} is already changing to {revision}",
    Activation.ALREADY_ACTIVE: "{revision} is already active in {deployment}; nothing to do",
}


def _activated(result: Result) -> str:
    return _ACTIVATED[Activation(result["activation"])].format(**result)


def _aborted(result: Result) -> str:
    meanwhile = f"; {result['answering']}" if result.get("answering") else ""
    return f"{result['deployment']} is going back{_already(result)}{meanwhile}"


def _undone(result: Result) -> str:
    stays = "".join(f"\nset by itself, and left as it is: {setting}" for setting in result.get("stays", ()))
    return f"{_gone_where(result)}{stays}"


def _gone_where(result: Result) -> str:
    match result.get("activation"):
        case None:
            return _aborted(result)
        case Activation.BEGUN | Activation.SUPERSEDED:
            return f"{result['deployment']} goes back to {result['revision']}"
        case _:
            return _activated(result)


def _retried(result: Result) -> str:
    if result.get("activation"):
        return _activated(result)
    if result["already"]:
        return f"nothing of {result['deployment']} waits for its next try"
    forgotten = number_of(result["forgotten"], "failed start")
    return f"{result['deployment']} is tried again now; {forgotten} forgotten"


def _restarted(result: Result) -> str:
    return f"{result['deployment']} restarts as {result['revision']}"


def _scaled(result: Result) -> str:
    if result["from"] == result["to"]:
        return f"{result['deployment']} has {result['to']} replicas wanted already"
    rules = "".join(f"\nits autoscaling rule may change that: {rule}" for rule in result.get("rules", ()))
    return f"{result['deployment']} scaled from {result['from']} to {result['to']} replicas{rules}"


def _already(result: Result) -> str:
    return " already" if result["already"] else ""


def _is_tired(view: DeploymentView) -> bool:
    return bool(view.failed_starts or view.degraded_reason or view.retry_at)


def _is_under_way(view: DeploymentView) -> bool:
    return view.rollout_id is not None and view.paused_at is None


def _is_paused(view: DeploymentView) -> bool:
    return view.paused_at is not None


RESTART = Verb(Restart, _restarted, rollout_completed)
"""The half of `rollway restart` that is about a deployment."""

VERBS: Mapping[str, Verb] = {
    "activate": Verb(ActivateRevision, _activated, rollout_completed, called={"desired_replicas": "--replicas"}),
    "pause": Verb(
        Pause,
        lambda result: f"{result['deployment']} is paused{_already(result)}",
        of_all=OfAll("every rollout under way", _is_under_way),
    ),
    "resume": Verb(
        Resume,
        lambda result: f"{result['deployment']} goes on",
        rollout_completed,
        of_all=OfAll("every paused rollout", _is_paused),
    ),
    "promote": Verb(
        Promote,
        lambda result: f"{result['deployment']} is promoted as soon as its new replicas are healthy",
        rollout_completed,
    ),
    "abort": Verb(Abort, _aborted, settled),
    "undo": Verb(Undo, _undone, gone_back, called={"revision": "--to"}),
    "retry": Verb(
        Retry,
        _retried,
        rollout_completed,
        of_all=OfAll("every deployment with failed starts", _is_tired, {"now": True}),
    ),
    "scale": Verb(Scale, _scaled, settled),
    "destroy": Verb(
        Destroy,
        lambda result: f"{result['deployment']} is being destroyed{_already(result)}",
        destroyed,
        question="Destroy {deployment} and its {replicas} replicas?",
    ),
}
"""The verbs that say more than their class: what was done, what --wait waits for, whom --all means, what is asked."""
