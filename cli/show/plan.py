"""A plan as people see it: what holds, the waves as a table, the doubts."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from cli.terminal.output import columns
from domain.foresight.plan.foreseen import Plan, PlannedWave
from domain.foresight.rehearsal.learned import Span


def plan_page(title: str, plan: Plan) -> RenderableType:
    """The whole plan; of one that does nothing a line."""
    if not any(wave.does for wave in plan.waves):
        return Group(title, "  nothing is created or drained", *_doubts(plan))
    table = columns("  WAVE", "REPLICAS", "BEGINS", "TAKES", "WHAT")
    for wave in plan.waves:
        table.add_row(f"  {wave.number}", wave.picture, _after(wave.begins), _span(wave.takes), _what(wave))
    return Group(title, *(f"  {line}" for line in _summary(plan)), table, *_doubts(plan))


def _summary(plan: Plan) -> Iterator[str]:
    yield plan.guarantee
    beside = f", {plan.most_running} with those that stop or are parked" if plan.most_running > plan.most_live else ""
    yield f"at most {plan.most_live} live{beside}; at least {plan.fewest_serving} serving"
    if plan.seconds is not None:
        yield f"takes {plan.seconds}: half of such rollouts are done after the first, nine of ten after the second"
    if not plan.is_certain:
        yield "the waves are one way that it can go: their order depends on which replica comes up, or is gone, first"


def _doubts(plan: Plan) -> list[Text]:
    return [Text(f"  ! {warning}", "yellow") for warning in plan.warnings]


def _after(begins: Span | None) -> str:
    if begins is None:
        return "-"
    return "at once" if begins.p90 < 1 else f"after {begins}"


def _span(takes: Span | None) -> str:
    return "-" if takes is None or takes.p90 == 0 else str(takes)


def _what(wave: PlannedWave) -> str:
    who = "a person" if wave.waits_for_person else "its judge" if wave.waits_for_judge else ""
    return f"{wave.does or wave.why}{who and f' (once {who} says so)'}"
