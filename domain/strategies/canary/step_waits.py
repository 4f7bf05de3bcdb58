"""The waits of a canary: for either of its sides, or for the end of a look; and their sentences."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from domain.model.decision import Decision, Waits, WaitsFor
from domain.strategies.buckets import Buckets
from domain.strategies.budget import Budget
from domain.strategies.canary.judge_step import Judgement
from domain.strategies.messages import for_replicas
from domain.text.numbers import percent


def still_coming(buckets: Buckets, wanted_size: int, baseline_ready: int, fresh: int) -> str:
    """The count of healthy replicas, of the canary and of its baseline."""
    warming = f", {len(buckets.warming)} not for min_ready_seconds yet" if buckets.warming else ""
    its_baseline = f"; {baseline_ready} of {fresh} of its baseline" if fresh else ""
    return (
        f"{len(buckets.ready)} of {wanted_size} canary replicas healthy{warming}, "
        f"{len(buckets.starting)} starting, {len(buckets.sick)} unhealthy{its_baseline}"
    )


def looking(what: str, over_at: datetime | None, judgement: Judgement, now: datetime) -> str:
    """The state of the canary in words: its share, the remaining time, and the finding of its judge."""
    share = f"the canary has {what}"
    if over_at is not None:
        share = f"{share}, for {(over_at - now).total_seconds():.0f} more s"
    return f"{share}; {judgement.sentence}" if judgement.sentence else share


def waits_for_sides(  # noqa: PLR0913
    words: str, buckets: Buckets, sides: tuple[Decision, Decision], wanted_size: int, min_ready: float, now: datetime
) -> Waits:
    """The wait of either side; if both are complete: some of the canary are not warm, or none can be spared."""
    if side_waits := next((side.waits for side in sides if side.waits), None):
        return replace(side_waits, words=words)
    alone = replace(buckets, foreign=(), foreign_stopping=())
    return for_replicas(words, alone, Budget(wanted_size, wanted_size, 0), now, min_ready=min_ready)


def for_proxies(weight: int) -> Waits:
    """All proxies that live must know a weight before anything follows of it."""
    return Waits(WaitsFor.PROXIES, f"every live proxy must acknowledge {percent(weight)} for the canary")


def for_a_look(
    words: str, over_at: datetime | None, judgement: Judgement, times: Sequence[datetime | None], now: datetime
) -> Waits:
    """Wait for a person if nothing else ends the step, and for the judge as soon as it may decide.

    It looks each second, and finds the same if nobody answers. `times`: when something else may change.
    """
    if over_at is None and not judgement.decides:
        return Waits(WaitsFor.PERSON, words)
    kind = WaitsFor.JUDGE if judgement.decides and judgement.decides[0] <= now else WaitsFor.TIME
    return Waits(kind, words, until=soonest((*judgement.decides, *times), now))


def soonest(times: Iterable[datetime | None], now: datetime) -> datetime | None:
    """The first that is still to come."""
    return min((at for at in times if at is not None and at > now), default=None)
