"""The commands that change a deployment, as a table: `rollway activate`, `pause`, ... `destroy`."""

from collections.abc import Mapping
from typing import Annotated

import typer

from cli.completing import revisions_offered
from cli.options import Supersede, ThroughFreeze
from cli.sending import OfAll, Result, Verb, option
from cli.show.waiting import destroyed, gone_back, rollout_completed, settled
from db.views.deployments import DeploymentView
from domain.commands.base import MAX_REPLICAS
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

_Revision = Annotated[
    str,
    typer.Argument(
        metavar="REVISION", help="Name of the revision.", show_default=False, autocompletion=revisions_offered
    ),
]
_EarlierRevision = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="REVISION",
        help="A named revision.",
        show_default="the one before",
        autocompletion=revisions_offered,
    ),
]
_Replicas = Annotated[
    int, typer.Argument(metavar="N", min=0, max=MAX_REPLICAS, help="Replicas wanted.", show_default=False)
]
_NewSize = Annotated[
    int | None,
    typer.Option("--replicas", min=0, max=MAX_REPLICAS, help="A new size; rolled back with it.", show_default=False),
]

_Now = Annotated[bool, typer.Option("--now", help="Begin nothing: try failed starts again at once.")]
_Full = Annotated[bool, typer.Option("--full", help="Past all weights of a canary; with --reason.")]

_Force = Annotated[bool, typer.Option("--force", help="Take its replicas as stopped, at once.")]
_THROUGH = option("through_freeze", ThroughFreeze, default=False)


def _activated(result: Result) -> str:
    return _ACTIVATED[Activation(result["activation"])].format(**result)


def _undone(result: Result) -> str:
    match result.get("activation"):
        case None:
            return f"{result['deployment']} is going back{_already(result)}"
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
    return f"{result['deployment']} scaled from {result['from']} to {result['to']} replicas"


def _already(result: Result) -> str:
    return " already" if result["already"] else ""


def _is_tired(view: DeploymentView) -> bool:
    return bool(view.failed_starts or view.degraded_reason or view.retry_at)


def _is_under_way(view: DeploymentView) -> bool:
    return view.rollout_id is not None and view.paused_at is None


RESTART = Verb(
    Restart,
    "",
    "rollway restart web --wait\nrollway restart\nrollway restart --part worker1 --part worker2",
    _restarted,
    rollout_completed,
)
"""The half of `rollway restart` that is about a deployment."""

VERBS: Mapping[str, Verb] = {
    "activate": Verb(
        ActivateRevision,
        "Make a revision the running one. With a policy that is a rollout, without one the replicas are just replaced."
        "\n\nWith --wait the exit code is 1 when the rollout was rolled back.",
        "rollway activate web v2 --wait",
        _activated,
        rollout_completed,
        options=(
            option("revision", _Revision),
            option("supersede", Supersede, default=False),
            _THROUGH,
            option("desired_replicas", _NewSize, None),
        ),
    ),
    "pause": Verb(
        Pause,
        "Hold a rollout where it is. Nothing is created or drained, and its deadlines stand still.",
        "rollway pause web --reason 'looking at the logs'\nrollway pause --all --reason 'the network is down'",
        lambda result: f"{result['deployment']} is paused{_already(result)}",
        of_all=OfAll("every rollout under way", _is_under_way),
    ),
    "resume": Verb(
        Resume,
        "Go on with a paused rollout. Its deadlines move by the time it was paused.",
        "rollway resume web --wait",
        lambda result: f"{result['deployment']} goes on",
        rollout_completed,
    ),
    "promote": Verb(
        Promote,
        "Move the traffic to the green set of a blue-green rollout, or to the next weight of a canary, as soon as its"
        " replicas are healthy.\n\nWith --full a canary passes all of its weights by: the rest follows at once.",
        "rollway promote web --wait\nrollway promote web --full --reason 'a fix that cannot wait'",
        lambda result: f"{result['deployment']} is promoted as soon as its new replicas are healthy",
        rollout_completed,
        options=(option("full", _Full, default=False),),
    ),
    "abort": Verb(
        Abort,
        "Leave a rollout: old and new trade places, within the same budget.",
        "rollway abort web --wait",
        lambda result: f"{result['deployment']} is going back{_already(result)}",
        settled,
    ),
    "undo": Verb(
        Undo,
        "Go back to what ran before, at once. A rollout under way turns back; otherwise the revision before gets the"
        " traffic as soon as it is healthy, and nothing waits for 'promote'. What was rolled back itself is passed by."
        "\n\nWhen the last rollout is undone already, this is refused and says what '--to' would go further back to."
        " A revision that is named takes the place of whatever is under way.",
        "rollway undo web --wait\nrollway undo web --to v7 --wait",
        _undone,
        gone_back,
        options=(option("revision", _EarlierRevision, None),),
    ),
    "retry": Verb(
        Retry,
        "Begin the rollout that was rolled back last once more. One that is just rolling back turns forward again."
        "\n\nWithout one, or with --now, nothing begins: failed starts are forgotten and tried again at once, as when a"
        " database is back that they need. --all does that for all deployments.",
        "rollway retry web --wait\nrollway retry --all",
        _retried,
        rollout_completed,
        options=(option("now", _Now, default=False), _THROUGH),
        of_all=OfAll("every deployment with failed starts", _is_tired, {"now": True}),
    ),
    "scale": Verb(
        Scale,
        "Change how many replicas are wanted. It may be done in the middle of a rollout, too.",
        "rollway scale web 5 --wait",
        _scaled,
        settled,
        options=(option("desired_replicas", _Replicas),),
    ),
    "destroy": Verb(
        Destroy,
        "Stop every replica and end the deployment. Asks first, drains first; the history stays."
        "\n\nWith --force it ends at once, its replicas taken as stopped: for those that nobody can stop any more, as"
        " what ran them is gone for good. What still runs of them is ended without a drain, by a sweep of its host.",
        "rollway destroy web --yes --wait\nrollway destroy web --yes --force",
        lambda result: f"{result['deployment']} is being destroyed{_already(result)}",
        destroyed,
        options=(option("force", _Force, default=False),),
        question="Destroy {deployment} and its {replicas} replicas?",
    ),
}
