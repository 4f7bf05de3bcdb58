"""`rollway rehearse`."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any

import typer

from cli.foresight.asked import AskedAhead, Otherwise, asked_for
from cli.foresight.plan import NOTHING, Deployment, File, Revision
from cli.options import AsJson
from cli.servers import Reader
from cli.terminal.output import print_json, printer
from domain.foresight.plan.course import course
from domain.foresight.plan.drawn import LearnedFates
from domain.foresight.plan.warnings import about_slow_starts
from domain.foresight.rehearsal.learned import in_words
from domain.foresight.rehearsal.rehearse import Rehearsal
from domain.foresight.rehearsal.rehearse import rehearse as run_it
from domain.words.numbers import duration, number_of

_ENOUGH = 18
"""Fewer past starts do not show how times change."""


def rehearse(
    *,
    deployment: Deployment = None,
    revision: Revision = None,
    file: File = None,
    otherwise: Otherwise = None,
    runs: Annotated[int, typer.Option("--runs", min=1, max=100_000, help="How many runs.")] = 2000,
    by: Annotated[
        float | None,
        typer.Option(
            "--by", metavar="SECONDS", min=0, help="Also say how likely it is done so soon.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Other draws; the same number gives the same answer.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Run a change many times in a simulated world, and count what comes of it. Touches nothing.

    The decisions are those that the workers would make. How long each replica starts and stops, and whether its start
    fails, is drawn from what the deployment's past replicas did.
    """
    with Reader() as reader:
        asked = asked_for(reader, deployment, revision, file, otherwise)
    found = [(each, run_it(each.subject, each.now, each.learned, each.chance(seed), runs)) for each in asked]
    if as_json:
        documents = [_document(each, rehearsal, by) for each, rehearsal in found]
        return print_json(documents[0] if file is None else documents)
    for each, rehearsal in found:
        printer().print(each.title)
        if not any(map(any, course(each.subject.deployment, each.now, LearnedFates(learned=each.learned)).moves)):
            printer().print(NOTHING)
            continue
        slow = (f"! {warning}" for warning in about_slow_starts(each.subject.deployment, each.now, each.learned))
        for line in (*_lines(rehearsal), *_by(rehearsal, by), *slow):
            printer().print(f"  {line}")
    return None


def _document(asked: AskedAhead, rehearsal: Rehearsal, by: float | None) -> dict[str, Any]:
    chance = {} if by is None else {"by": by, "chance_to_be_done_by": rehearsal.chance_to_be_done_by(by)}
    return {"deployment": asked.name, "to": asked.to_revision, **rehearsal.as_json(), **chance}


def _lines(rehearsal: Rehearsal) -> Iterator[str]:
    yield f"{rehearsal.runs} runs: {_share(rehearsal.completed, rehearsal)} completed"
    yield f"chance to go back: {_share(rehearsal.went_back, rehearsal)}"
    yield from (f"  {reason}" for reason in rehearsal.why_back)
    if rehearsal.unsettled:
        yield f"{_share(rehearsal.unsettled, rehearsal)} neither completed nor went back"
    if rehearsal.is_learned and rehearsal.band is not None:
        band = rehearsal.band
        yield f"nine of ten that complete take {in_words(band.low)} to {in_words(band.high)} s"
        done = [f"{share[1:]} % by {_when(at)}" for share, at in rehearsal.done.items() if at is not None]
        never = ", the others never" if len(done) < len(rehearsal.done) else ""
        yield f"done: {', '.join(done)}{never}"
    worst, often = next(iter(rehearsal.fewest_serving.items()))
    yield f"fewest serving: {worst}, in {_share(often, rehearsal)} of the runs"
    if 0 < rehearsal.learned_starts < _ENOUGH:
        yield f"! times are those of only {number_of(rehearsal.learned_starts, 'past start')}: it may well take longer"
    if not rehearsal.is_learned:
        yield "! no start of a replica is on record yet: how long it takes cannot be said, and no start fails"


def _by(rehearsal: Rehearsal, by: float | None) -> Iterator[str]:
    if by is not None:
        yield f"done within {duration(timedelta(seconds=by))}: {rehearsal.chance_to_be_done_by(by):.1%}"


def _share(count: int, rehearsal: Rehearsal) -> str:
    return f"{count / rehearsal.runs:.1%}"


def _when(at: float) -> str:
    return f"{in_words(at)} s"
