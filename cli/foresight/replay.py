"""`rollway replay`."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any
from uuid import UUID

import typer

from cli.completing import deployments_offered
from cli.options import AsJson
from cli.servers import Reader
from cli.terminal.exits import ExitCode, UsageError
from cli.terminal.output import columns, print_json, printer
from db.views.rollouts import RolloutView
from db.views.timeline import StepView
from domain.commands.base import DEPLOYMENT
from domain.cycle.recording import inputs_from_json
from domain.handlers.replay import as_recorded, decided_again, is_same_decision
from domain.model.deployment import Deployment
from domain.model.picture import picture
from domain.words.errors import RolloutNotFoundError


@dataclass(frozen=True, slots=True)
class Replayed:
    """A step with the snapshot that it saw, and the decision that this release makes of it."""

    step: StepView
    saw: Deployment
    decision: dict[str, Any]

    @property
    def is_same(self) -> bool:
        """Whether what is stored comes out again."""
        return is_same_decision(self.step.decision, self.decision)

    @property
    def picture(self) -> str:
        """The replicas of the snapshot, such as ■■|◇."""
        return picture(self.saw.routes, self.saw.current_revision_id, self.saw.deploying_revision_id)


def replay(
    *,
    rollout: Annotated[
        str,
        typer.Argument(
            metavar="ROLLOUT",
            help="Its id, or a deployment: its last one.",
            show_default=False,
            autocompletion=deployments_offered,
        ),
    ],
    at: Annotated[
        int | None, typer.Option("--at", metavar="STEP", min=1, help="One step in full.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Decide every step of a rollout once more, from what is on record of it. Touches nothing.

    Exit code 1 when a decision comes out otherwise than it is stored.
    """
    with Reader() as reader:
        view = _rollout(reader, rollout)
        steps = [_replayed(step) for step in reader.views(StepView, "/v1/rollouts/{rollout}/steps", view.id)]
    chosen = steps if at is None else [each for each in steps if each.step.step_no == at]
    if not chosen:
        kept = f"its steps are 1 to {steps[-1].step.step_no}" if steps else "its steps are not kept any more"
        raise UsageError(f"--at must be a step of the rollout: {kept}" if at else f"nothing to replay: {kept}")
    if as_json:
        print_json({"rollout": view.id, "deployment": view.deployment, "steps": [_document(each) for each in chosen]})
    else:
        _print(view, chosen, in_full=at is not None)
    if not all(each.is_same for each in chosen):
        raise typer.Exit(ExitCode.REFUSED)


def _rollout(reader: Reader, asked: str) -> RolloutView:
    try:
        return reader.view(RolloutView, "/v1/rollouts/{rollout}", UUID(asked))
    except ValueError:
        newest = reader.views(RolloutView, f"{DEPLOYMENT}/rollouts", asked, most=1)
        if not newest:
            raise RolloutNotFoundError.of_deployment(asked) from None
        return newest[0]


def _replayed(step: StepView) -> Replayed:
    deployment, now = inputs_from_json(step.inputs)
    return Replayed(step, deployment, as_recorded(decided_again(deployment, now, step.phase)))


def _document(replayed: Replayed) -> dict[str, Any]:
    return {
        **asdict(replayed.step),
        "picture": replayed.picture,
        "replayed": replayed.decision,
        "same": replayed.is_same,
    }


def _print(view: RolloutView, chosen: list[Replayed], *, in_full: bool) -> None:
    console = printer()
    same = sum(each.is_same for each in chosen)
    console.print(
        f"{view.deployment}: {view.from_revision} → {view.to_revision}, {view.outcome or 'under way'}; "
        f"{same} of {len(chosen)} decisions come out as they are stored"
    )
    table = columns("STEP", "REPLICAS", "", "WHY")
    for each in chosen:
        mark = "same" if each.is_same else "DIFFERS"
        table.add_row(str(each.step.step_no), each.picture, mark, each.step.decision["reason"])
        if not each.is_same:
            table.add_row("", "", "now", each.decision["reason"])
    console.print(table, soft_wrap=False)
    if in_full:
        _print_routes(chosen[0])


def _print_routes(replayed: Replayed) -> None:
    changes = replayed.decision["changes"]
    done = {"drain_route_ids": "drain", "promote_route_ids": "promote", "park_route_ids": "park"}
    table = columns("ROUTE", "REVISION", "STATUS", "TRAFFIC", "DECIDED")
    for route in replayed.saw.routes:
        decided = [word for field, word in done.items() if str(route.id) in changes[field]]
        revision = "new" if route.revision_id == replayed.saw.deploying_revision_id else "old"
        table.add_row(route.id.hex[-8:], revision, route.status, route.traffic, ", ".join(decided))
    printer().print(table, soft_wrap=False)
    created = sum(spec["count"] for spec in changes["rollout_specs"])
    if created:
        printer().print(f"create {created}")
