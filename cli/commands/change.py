"""The commands that change a deployment, as a table: `rollway activate`, `pause`, ... `destroy`."""

from collections.abc import Mapping
from typing import Annotated

import typer

from cli.options import Supersede
from cli.sending import Result, Verb, option
from cli.show.waiting import destroyed, rollout_completed, settled
from domain.activation import Activation
from domain.commands import (
    MAX_REPLICAS,
    Abort,
    ActivateRevision,
    Destroy,
    Pause,
    Promote,
    Resume,
    Retry,
    Scale,
    Undo,
)

_ACTIVATED = {
    Activation.FIRST: "{revision} is the first revision of {deployment}",
    Activation.BEGUN: "rollout of {deployment} to {revision} begun",
    Activation.RESUMED: "{deployment} is already rolling out {revision}",
    Activation.SUPERSEDED: "rollout of {deployment} to {revision} begun, leaving the one before",
    Activation.MOVED: "{deployment} changes to {revision} without a rollout, since it has no policy",
    Activation.CONVERGING: "{deployment} is already changing to {revision}",
    Activation.ALREADY_ACTIVE: "{revision} is already active in {deployment}; nothing to do",
}

_Revision = Annotated[str, typer.Argument(metavar="REVISION", help="Name of the revision.", show_default=False)]
_EarlierRevision = Annotated[
    str | None, typer.Option("--to", metavar="REVISION", help="A named revision.", show_default="the one before")
]
_Replicas = Annotated[
    int, typer.Argument(metavar="N", min=0, max=MAX_REPLICAS, help="Replicas wanted.", show_default=False)
]
_NewSize = Annotated[
    int | None,
    typer.Option("--replicas", min=0, max=MAX_REPLICAS, help="A new size; rolled back with it.", show_default=False),
]

_Force = Annotated[bool, typer.Option("--force", help="Take its replicas as stopped, at once.")]


def _activated(result: Result) -> str:
    return _ACTIVATED[Activation(result["activation"])].format(**result)


def _undone(result: Result) -> str:
    return _activated(result) if "activation" in result else f"{result['deployment']} is going back"


def _scaled(result: Result) -> str:
    if result["from"] == result["to"]:
        return f"{result['deployment']} has {result['to']} replicas wanted already"
    return f"{result['deployment']} scaled from {result['from']} to {result['to']} replicas"


def _already(result: Result) -> str:
    return " already" if result["already"] else ""


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
            option("desired_replicas", _NewSize, None),
        ),
    ),
    "pause": Verb(
        Pause,
        "Hold a rollout where it is. Nothing is created or drained, and its deadlines stand still.",
        "rollway pause web --reason 'looking at the logs'",
        lambda result: f"{result['deployment']} is paused{_already(result)}",
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
        "Move the traffic to the green set of a blue-green rollout, as soon as it is healthy.",
        "rollway promote web --wait",
        lambda result: f"{result['deployment']} is promoted as soon as green is healthy",
        rollout_completed,
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
        "Go back to the revision that ran before, or to a named one. In the middle of a rollout it is an abort.",
        "rollway undo web\nrollway undo web --to v7 --wait",
        _undone,
        settled,
        options=(option("revision", _EarlierRevision, None),),
    ),
    "retry": Verb(
        Retry,
        "Begin the rollout that was rolled back last once more. One that is just rolling back turns forward again.",
        "rollway retry web --wait",
        _activated,
        rollout_completed,
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
