"""`rollway receipt`, `replay` and `why`: what a rollout promised and did, and what a deployment waits for."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

import typer

from api.people.paths import DEPLOYMENT
from cli.client import Reader
from cli.completion import deployments_offered
from cli.options import AsJson, DeploymentName
from cli.show.status import warn_of_missing_worker
from cli.terminal.exits import ExitCode, UsageError
from cli.terminal.output import columns, print_json, printer
from db.audit.explanations import ReceiptView, WhyView
from db.views.rollout_views import RolloutView
from db.views.timeline import StepView
from domain.cycle.recording import inputs_from_json
from domain.handlers.dispatch import as_recorded, decided_again, is_same_decision
from domain.model.decision import WaitsFor
from domain.model.deployment import Deployment
from domain.model.picture import picture
from domain.planning.sealed_receipt import Seal
from domain.text.errors import RolloutNotFoundError
from domain.text.numbers import duration

Rollout = Annotated[
    str,
    typer.Argument(
        metavar="ROLLOUT",
        help="Its id; or a deployment, of which the last one is shown.",
        autocompletion=deployments_offered,
    ),
]


def receipt(*, rollout: Rollout, as_json: AsJson = False) -> None:
    """Show the promises of a rollout and what it did, from its recorded steps.

    A worker seals the receipt within a minute after the end: with its SHA-256, and with that of the receipt before of
    the same deployment. From then on it is shown as it was sealed, also when the rollout itself is forgotten.

    Exit code 1 when it, or the one before, was changed since.
    """
    with Reader() as reader:
        view = reader.view(ReceiptView, *_of(rollout))
        deviations = _deviations(reader, view.receipt["rollout"])
    if as_json:
        print_json({**asdict(view), "deviations": deviations})
    else:
        printer().print(receipt_page(view.receipt, view.seal, deviations))
    if view.seal is not None and (not view.seal.is_intact or view.seal.is_joined is False):
        raise typer.Exit(ExitCode.REFUSED)


def _of(name: str) -> tuple[str, str]:
    """The path of the receipt of an id, or of the last one of a deployment, and its name."""
    try:
        return "/v1/rollouts/{rollout}/receipt", str(UUID(name))
    except ValueError:
        return f"{DEPLOYMENT}/receipt", name


def _deviations(reader: Reader, rollout: str) -> list[str]:
    """The deviations from the plan, as far as the rollout's rows are kept."""
    with suppress(RolloutNotFoundError):
        return list(reader.ask("/v1/rollouts/{rollout}/plan", rollout)["deviations"])
    return []


def receipt_page(receipt: dict[str, Any], seal: Seal | None, deviations: Sequence[str]) -> str:
    before, after = (_head, _promises, _waves), (_waits, _acts)
    first, last = ([line for part in parts for line in part(receipt)] for parts in (before, after))
    return "\n".join((*first, *_otherwise(deviations), *last, *_seal(seal)))


def _head(receipt: dict[str, Any]) -> Iterator[str]:
    yield f"# {receipt['deployment']}: {receipt['from']} → {receipt['to']}, {_outcome(receipt)}"
    yield ""
    why = f" ({receipt['reason']})" if receipt["reason"] else ""
    took = f", {duration(timedelta(seconds=receipt['seconds']))}" if receipt["seconds"] is not None else ""
    yield f"Rollout {receipt['rollout']}, {receipt['policy']['strategy']}, by {receipt['actor']}{why}"
    yield f"{receipt['started_at']} to {receipt['ended_at'] or 'now'}{took}"
    if receipt["back_reason"]:
        yield f"turned back: {receipt['back_reason']}"


def _outcome(receipt: dict[str, Any]) -> str:
    return str(receipt["outcome"] or "under way").replace("_", " ")


def _promises(receipt: dict[str, Any]) -> Iterator[str]:
    promised, actual, replayed = receipt["promised"], receipt["measured"], receipt["replayed"]
    yield from _table("promised", "measured", "")
    if actual is not None:
        both = promised["counts_stopping"]
        most = actual["most_live_and_stopping" if both else "most_live"]
        which = "live or stopping" if both else f"live, {actual['most_stopping']} stopping next to them"
        mark = _mark(ok=actual["is_ceiling_kept"])
        yield _row(f"at most {promised['most_live']} live", f"at most {most} {which}", mark)
        least, fewest = promised["fewest_serving"], actual["fewest_serving"]
        mark = _mark(ok=actual["is_floor_kept"])
        yield _row(f"at least {least} serving, unless a replica fails on its own", f"at least {fewest} serving", mark)
    refused = f", {replayed['refused']} refused by Postgres" if replayed["refused"] else ""
    again = f"{replayed['equal']} of {replayed['steps']} come out the same{refused}"
    yield _row("each step can be decided again", again, _mark(ok=not replayed["differing"]))
    yield _row("requests", receipt["requests"]["said"], "")


def _waves(receipt: dict[str, Any]) -> Iterator[str]:
    yield from _table("wave", "begins", "takes", "replicas", "what and why")
    for wave in receipt["waves"]:
        takes = "-" if wave["took_seconds"] is None else f"{wave['took_seconds']:.1f} s"
        begins = f"{wave['begins_seconds']:.1f} s"
        yield _row(str(wave["number"]), begins, takes, wave["picture"], wave["why"])


def _otherwise(deviations: Sequence[str]) -> Iterator[str]:
    if deviations:
        yield from ("", "Differences from the plan:", "")
    for deviation in deviations:
        yield f"- {deviation}"


def _waits(receipt: dict[str, Any]) -> Iterator[str]:
    if receipt["waits"]:
        yield from _table("after wave", "waited", "for", "reason")
    for wait in receipt["waits"]:
        yield _row(str(wait["after_wave"]), f"{wait['seconds']:.1f} s", wait["waits_for"], wait["reason"])


def _acts(receipt: dict[str, Any]) -> Iterator[str]:
    if receipt["acts"]:
        yield from _table("when", "who", "what", "said")
    for act in receipt["acts"]:
        yield _row(act["at"], act["actor"], act["what"], act["said"])


def _seal(seal: Seal | None) -> Iterator[str]:
    yield ""
    if seal is None:
        yield "Not sealed yet: a worker does it within a minute after the end."
        return
    intact = "intact" if seal.is_intact else "CHANGED since it was sealed"
    yield f"Receipt {seal.number}, sha256 {seal.sha256}: {intact}"
    match seal.is_joined:
        case None:
            yield "the one before is not kept, or there is none"
        case joined:
            yield f"the one before, sha256 {seal.previous_sha256}: {'intact' if joined else 'CHANGED since then'}"


def _mark(*, ok: bool) -> str:
    return "kept" if ok else "**broken**"


def _table(*names: str) -> Iterator[str]:
    yield from ("", _row(*names), f"|{'---|' * len(names)}")


def _row(*cells: str) -> str:
    """Escape characters that Markdown would take for a border."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


@dataclass(frozen=True, slots=True)
class Replayed:
    """A step with its snapshot, and the decision of this release on it."""

    step: StepView
    saw: Deployment
    decision: dict[str, Any]

    @property
    def is_same(self) -> bool:
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
    """Re-check every decision of a rollout, from its record. Changes nothing.

    Exit code 1 when a decision differs from the one on record.
    """
    with Reader() as reader:
        view = _rollout(reader, rollout)
        steps = [_replayed(step) for step in reader.views(StepView, "/v1/rollouts/{rollout}/steps", view.id)]
    selected = steps if at is None else [each for each in steps if each.step.step_no == at]
    if not selected:
        remaining = f"its steps are 1 to {steps[-1].step.step_no}" if steps else "its steps are not kept any more"
        raise UsageError(
            f"--at must be a step of the rollout: {remaining}" if at else f"nothing to replay: {remaining}"
        )
    if as_json:
        print_json({"rollout": view.id, "deployment": view.deployment, "steps": [_document(each) for each in selected]})
    else:
        _print(view, selected, in_full=at is not None)
    if not all(each.is_same for each in selected):
        raise typer.Exit(ExitCode.REFUSED)


def _rollout(reader: Reader, name: str) -> RolloutView:
    try:
        return reader.view(RolloutView, "/v1/rollouts/{rollout}", UUID(name))
    except ValueError:
        newest = reader.views(RolloutView, f"{DEPLOYMENT}/rollouts", name, most=1)
        if not newest:
            raise RolloutNotFoundError.of_deployment(name) from None
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


def _print(view: RolloutView, selected: list[Replayed], *, in_full: bool) -> None:
    console = printer()
    same = sum(each.is_same for each in selected)
    console.print(
        f"{view.deployment}: {view.from_revision} → {view.to_revision}, {view.outcome or 'under way'}; "
        f"{same} of {len(selected)} decisions come out as they are stored"
    )
    table = columns("STEP", "REPLICAS", "", "WHY")
    for each in selected:
        mark = "same" if each.is_same else "DIFFERS"
        table.add_row(str(each.step.step_no), each.picture, mark, each.step.decision["reason"])
        if not each.is_same:
            table.add_row("", "", "now", each.decision["reason"])
    console.print(table, soft_wrap=False)
    if in_full:
        _print_routes(selected[0])


def _print_routes(replayed: Replayed) -> None:
    changes = replayed.decision["changes"]
    labels = {"drain_route_ids": "drain", "promote_route_ids": "promote", "park_route_ids": "park"}
    table = columns("ROUTE", "REVISION", "STATUS", "TRAFFIC", "DECIDED")
    woken = [route_id for route_id, _ in changes.get("woken", ())]
    for route in replayed.saw.routes:
        words = [word for field, word in labels.items() if str(route.id) in changes[field]]
        words += ["wake"] * (str(route.id) in woken)
        revision = "new" if route.revision_id == replayed.saw.deploying_revision_id else "old"
        table.add_row(route.id.hex[-8:], revision, route.status, route.traffic, ", ".join(words))
    printer().print(table, soft_wrap=False)
    created = sum(spec["count"] for spec in changes["rollout_specs"])
    if created:
        printer().print(f"create {created}")


def why(*, deployment: DeploymentName, as_json: AsJson = False) -> None:
    """Explain in one sentence why a deployment waits. Changes nothing.

    The replica, host, secret, person or time that it waits for; the inequality that blocks it; how long that usually
    takes, as the deployment's past replicas took; and what happens when, if nothing else happens before. For a rollout
    it also names the differences from its plan so far, and the settings that come with it, with their moment; for a
    certificate, why it is missing or not renewed.
    """
    with Reader() as reader:
        view = reader.view(WhyView, f"{DEPLOYMENT}/why", deployment)
        if as_json:
            return print_json(asdict(view))
        console = printer()
        console.print(f"{view.sentence}.")
        if view.waits_for in (WaitsFor.NOTHING, WaitsFor.PERSON):  # all others say it in their sentence
            warn_of_missing_worker(reader, console)
    if view.brings:
        console.print(f"its rollout brings settings: {view.brings}")
    for deviation in view.deviations:
        console.print(f"different from the plan: {deviation}", style="yellow")
    for fault in view.certificates:
        console.print(fault, style="yellow")
    return None
