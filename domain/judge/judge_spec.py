"""Settings of a judge: its measures, their limits, and its chances of error."""

import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

_PERCENT = re.compile(r"[0-9]{1,2}(\.[0-9]{1,3})?%")
_MORE = re.compile(r"[0-9]{1,3}(\.[0-9]{1,2})?%|[0-9]{1,5}ms")
_OF = re.compile(r"p[5-9][0-9](\.[0-9]{1,2})?")
_SECONDS = re.compile(r"[0-9]{1,5}s")
_TIMES = re.compile(r"[0-9]{1,3}(\.[0-9]{1,2})?x")


def _check_percent(value: object) -> object:
    if isinstance(value, str) and _PERCENT.fullmatch(value) and part(value) > 0:
        return value
    raise ValueError('must be a percent above 0 and below 100, such as "1%" or "0.1%"')


def _check_times(value: object) -> object:
    if isinstance(value, str) and _TIMES.fullmatch(value) and times(value) >= 1:
        return value
    raise ValueError('must be how many times as often, from "1x" to "999x", such as "1.2x"')


def _check_more(value: object) -> object:
    if isinstance(value, str) and _MORE.fullmatch(value) and value[0] != "0":
        return value
    raise ValueError('must be how much later, from "1%" to "999.99%" or "1ms" to "99999ms", such as "20%" or "50ms"')


def _check_of(value: object) -> object:
    if isinstance(value, str) and _OF.fullmatch(value):
        return value
    raise ValueError('must be a percentile from "p50" to "p99.99", such as "p95"')


def _check_seconds(value: object) -> object:
    if isinstance(value, str) and _SECONDS.fullmatch(value):
        return value
    raise ValueError('must be seconds from "0s" to "99999s", such as "60s"')


def part(percent: str) -> float:
    """0.01 for "1%"."""
    return float(percent[:-1]) / 100


def times(ratio: str) -> float:
    """1.2 for "1.2x"."""
    return float(ratio[:-1])


Percent = Annotated[str, BeforeValidator(_check_percent), Field(description='"0.001%" to "99.999%"')]
More = Annotated[str, BeforeValidator(_check_more), Field(description='"1%" to "999.99%", or "1ms" to "99999ms"')]
Percentile = Annotated[str, BeforeValidator(_check_of), Field(description='"p50" to "p99.99"')]
Seconds = Annotated[str, BeforeValidator(_check_seconds), Field(description='"0s" to "99999s"')]
Times = Annotated[str, BeforeValidator(_check_times), Field(description='"1x" to "999x"')]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Errors(_Settings):
    """Requests that failed: 5xx, resets, time-outs, no connection, and callers that left before an answer began."""

    worse_than: Times = "1.2x"
    """The canary may fail this many times as often as the control; it is aborted if it fails more often."""
    allowed: Percent = "1%"
    """A rate of failures that is good enough, whatever the control's is."""


class Refused(_Settings):
    """Requests that were refused: 4xx, and what gRPC calls a mistake of the caller.

    They are compared with what the control refused or failed: a 400 in place of a 500 is no harm.
    """

    worse_than: Times = "1.5x"
    """The canary may refuse this many times as often as the control refuses or fails; it is aborted if it refuses more
    often.
    """
    allowed: Percent = "1%"
    """A rate of refusals that is good enough, whatever the control's is."""


class Redirected(_Settings):
    """Requests that were redirected: 3xx other than 304, such as to a login page in place of an answer."""

    worse_than: Times = "1.5x"
    """The canary may redirect this many times as often as the control; it is aborted if it redirects more often."""
    allowed: Percent = "1%"
    """A rate of redirections that is good enough, whatever the control's is."""


class Slow(_Settings):
    """First bytes that come later than the control's, by a size that matters."""

    by_at_least: More = "20%"
    """The allowed delay of the canary after the control, in percent or in ms. It is aborted for more alone: times
    are counted in buckets, so 20% is 30 % at 100 ms and 35 % at 20 ms."""
    of: Percentile = "p95"
    """The percentile of the control's times to the first byte that is compared."""
    worse_than: Times = "1x"
    """The canary may exceed that time this many times as often as the control exceeds it."""
    allowed: Percent = "10%"
    """A rate of slow answers that is good enough, whatever the control's is."""
    warm_up: Seconds = "30s"
    """The time after its first request, or after a replica of the canary came up, in which nothing is called slow."""

    @model_validator(mode="before")
    @classmethod
    def _has_an_earlier_spelling(cls, value: object) -> object:
        if not isinstance(value, dict) or not isinstance(value.get("percentile"), int | float) or "of" in value:
            return value
        return {"of": f"p{value['percentile']:g}"} | {name: its for name, its in value.items() if name != "percentile"}

    def above(self, edge: float) -> float:
        """The time in ms beyond which the canary is slow, where the control is beyond this edge of a bucket.

        Proxies count whole ms: what is at the edge may be nearly one later.
        """
        if self.by_at_least.endswith("ms"):
            return edge + 1 + float(self.by_at_least[:-2])
        return (edge + 1) * (1 + part(self.by_at_least))


class AtLeast(_Settings):
    """The least that there must be before the canary is found good enough."""

    requests: int = Field(default=100, ge=1, le=1_000_000)
    """Answers of the canary at this weight."""
    seconds: float = Field(default=30, ge=0, le=86_400)
    """Time at this weight."""


class AtMost(_Settings):
    """The longest that the judge waits for evidence."""

    seconds: float = Field(default=1800, gt=0, le=30 * 86_400)
    """Time at this weight, after which `if_undecided` applies."""


class Judge(_Settings):
    """The judge decides each step from the counts of proxies: abort, continue, or undecided."""

    errors: Errors | None = Errors()
    """Null: errors are not judged."""
    refused: Refused | None = Refused()
    """Null: refusals are not judged."""
    redirected: Redirected | None = Redirected()
    """Null: redirections are not judged."""
    slow: Slow | None = None
    """Left out: slow answers are not judged. `slow: {}` has the defaults."""
    baseline: Literal["old", "fresh"] = "old"
    """The replicas with which the canary is compared. old: the running ones of the old revision; fresh: new ones of the
    old revision, the same number as the canary has, which start with the canary and get the same number of requests.
    """
    chance_of_false_abort: Percent = "1%"
    """The chance that a canary which is no worse is ever aborted, at any weight, however often the judge looks."""
    chance_of_false_promotion: Percent = "5%"
    """The chance that a canary which is worse than allowed is found good enough at one weight."""
    at_least: AtLeast = AtLeast()
    """The least that the judge must see before a step ends well."""
    at_most: AtMost = AtMost()
    """The most that the judge waits for before it is undecided."""
    if_undecided: Literal["hold", "promote", "abort"] = "hold"
    """hold: wait for a person. A canary without traffic is undecided, and never failed."""
    dry_run: bool = False
    """The judge only shows its verdict: the steps' seconds and people decide."""

    @model_validator(mode="after")
    def _has_a_measure(self) -> Self:
        if not any((self.errors, self.refused, self.redirected, self.slow)):
            raise ValueError("errors, refused, redirected and slow cannot all be null: nothing would be judged")
        return self
