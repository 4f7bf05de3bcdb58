"""Every command of a person in every state of a canary: what it comes to, and what the next cycles make of it.

The world stands still: nothing starts, and what drains is gone. A cell is the weight and the picture then, old|new:
"rest" past all weights, "held" while paused, "back" on the way back, "ready" when it has ended; "=" where there was
nothing to do, and "-" where it is refused.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment
from domain.model.picture import picture
from domain.model.policy import DeploymentPolicy
from domain.model.states import ROLLING_BACK
from domain.steering.command_effect import Effect
from domain.steering.verbs import abort, promote
from domain.text.errors import WrongStateError
from tests.domain.canary.test_baseline import beside
from tests.domain.canary.test_canary import FIRST, RISING, SECOND, SHORT, at_stage
from tests.support.people.people import activate_revision, ask, asking
from tests.support.pictures.pictures import NOW, V3
from tests.support.pictures.policies import canary
from tests.support.pictures.simulation import all_started, until_it_waits
from tests.support.pictures.values_within import canary_of

COMMANDS: dict[str, Callable[[Deployment], Effect]] = {
    "promote": promote,
    "promote --full": lambda canary: promote(canary, full=True),
    "pause": lambda canary: ask("pause", canary, NOW),
    "resume": lambda canary: ask("resume", canary, NOW),
    "abort": lambda canary: ask("abort", canary, NOW),
    "supersede": lambda canary: activate_revision(canary, V3, SHORT, NOW, supersede=True),
    "scale to 5": lambda canary: ask("scale to 5", canary, NOW),
    "scale to 0": lambda canary: ask("scale to 0", canary, NOW),
}
STARTS = at_stage("■■■|◇", 3)
THERE = at_stage("■■■|■", 3)
UNKNOWN = at_stage("■■■|■", 3, **{**FIRST, "weight_known_at": None})
GROWING = at_stage("■■|■◇", 3, **RISING)
LOOKED_AT = at_stage("■■■|■", 3, **FIRST)
PAUSED = replace(at_stage("■■■|■", 3, **FIRST, clock_stopped_at=NOW), paused_at=NOW)
BACK = replace(at_stage("■■|■", 3, stage=1), status=ROLLING_BACK)
TABLE: list[tuple[str, Deployment, tuple[str, ...]]] = [
    # promote, --full, pause, resume, abort, supersede, scale to 5, scale to 0
    (
        "its first replica starts",
        STARTS,
        ("0 % ■■■|◇", "rest ■■■|◇", "held ■■■|◇", "-", "ready ■■■", "0 % ■■■|◇", "0 % ■■■◇◇|◇", "5 % |"),
    ),
    (
        "proxies learn of it",
        THERE,
        ("0 % ■■■|■", "rest ■■|■◇", "held ■■■|■", "-", "ready ■■■", "0 % ■■■|◇", "5 % ■■■◇◇|■", "5 % |"),
    ),
    (
        "proxies learn its weight",
        UNKNOWN,
        ("5 % ■■■|■", "rest ■■|■◇", "held ■■■|■", "-", "ready ■■■", "0 % ■■■|◇", "5 % ■■■◇◇|■", "5 % ■■■|■"),
    ),
    (
        "it is looked at",
        LOOKED_AT,
        ("33.33 % ■■|■◇", "rest ■■|■◇", "held ■■■|■", "-", "ready ■■■", "0 % ■■■|◇", "5 % ■■■◇◇|■", "5 % |"),
    ),
    (
        "more of it start",
        GROWING,
        (
            *("33.33 % ■■|■◇", "rest ■■|■◇", "held ■■|■◇", "-"),
            *("back ■■◇|■", "0 % ■■■◇|", "33.33 % ■■◇◇|■◇", "33.33 % |"),
        ),
    ),
    (
        "at its last weight",
        at_stage("■■|■■", 3, **SECOND),
        ("rest ■|■■◇", "rest ■|■■◇", "held ■■|■■", "-", "back ■■|■■", "0 % ■■■◇|", "50 % ■■◇|■■◇", "50 % |"),
    ),
    (
        "the rest is rolled",
        at_stage("■|■■◇", 3, stage=3, weight=None),
        ("=", "=", "held ■|■■◇", "-", "back ■◇|■■", "0 % ■■■◇|", "rest ■|■■◇", "rest ■|■■◇"),
    ),
    ("paused", PAUSED, ("-", "-", "=", "5 % ■■■|■", "ready ■■■", "0 % ■■■|◇", "held ■■■◇◇|■", "held |")),
    ("on its way back", BACK, ("-", "-", "held ■■|■", "-", "=", "0 % ■■■◇|", "back ■■◇◇◇|■", "ready ")),
    (
        "with a fresh baseline",
        beside("■■■/■|■", **FIRST),
        ("33.33 % ■■◇|■◇", "rest ■■|■◇◇", "held ■■■■|■", "-", "ready ■■■", "0 % ■■■|◇", "5 % ■■■■◇◇|■", "5 % |"),
    ),
]


def cell(canary: Deployment, command: Callable[[Deployment], Effect]) -> str:
    try:
        steered = command(canary)
    except WrongStateError:
        return "-"
    if steered.already:
        return "="
    left = until_it_waits(steered.deployment, NOW)
    drawn = picture(left.routes, left.current_revision_id, left.deploying_revision_id)
    if left.rollout is None:
        return f"ready {drawn}"
    if left.paused_at is not None or left.status == ROLLING_BACK:
        return f"{'held' if left.paused_at else 'back'} {drawn}"
    weight = canary_of(left.rollout).weight
    return f"{'rest' if weight is None else f'{weight / 100:g} %'} {drawn}"


@pytest.mark.parametrize(("state", "canary", "expected"), TABLE, ids=[state for state, *_ in TABLE])
def test_each_command_in_each_state(state: str, canary: Deployment, expected: tuple[str, ...]) -> None:
    found = {name: cell(canary, command) for name, command in COMMANDS.items()}
    assert found == dict(zip(COMMANDS, expected, strict=True)), state
    assert cell(canary, lambda canary: ask("undo", canary, NOW)) == found["abort"], "it names no revision"


STARTED_SLOWLY, STARTED_FAST = "about 60 s as starts went of late", "about 1 s as starts went of late"


@pytest.mark.parametrize(
    ("drawn", "weight", "verb", "start_seconds", "expected"),
    [
        ("■■■|■", 500, "abort", 20.0, None),
        (
            *("■|■■■", 7500, "abort", 20.0),
            (
                f"the canary keeps 75 % of the requests until 3 more are up, 1 at a time, {STARTED_SLOWLY}; "
                "'rollway abort web --now' takes them away at once, then 1 old replica answers what 4 should"
            ),
        ),
        (
            *("■|■■■", 7500, "abort --now", 0.2),
            f"1 old replica answers what 4 should until 3 more are up, 1 at a time, {STARTED_FAST}",
        ),
        (
            *("■■|■■", 5000, "abort --now", None),
            "2 old replicas answer what 4 should until 2 more are up, 1 at a time",
        ),
    ],
)
def test_an_abort_says_who_answers_and_how_long_the_old_side_takes(
    drawn: str, weight: int, verb: str, start_seconds: float | None, expected: str | None
) -> None:
    canary = at_stage(drawn, 4 if expected else 3, **{**SECOND, "weight": weight})
    aborted = abort(canary, asking(canary, NOW), now="now" in verb, start_seconds=start_seconds)
    assert aborted.details["answering"] == expected


SECONDS = canary(steps=[{"weight": "5%", "seconds": 60}, {"weight": "50%", "seconds": 60}])
JUDGED = canary(steps=["5%", "50%"], judge={"at_least": {"requests": 1}, "if_undecided": "promote"})


@pytest.mark.parametrize("policy", [SECONDS, JUDGED])
def test_at_size_0_a_step_is_over_for_nobody_but_a_person(policy: DeploymentPolicy) -> None:
    """Scaled to none for the night, and up again in the morning, when its step begins anew."""
    begun = at_stage("■■■|■", 3, policy, **FIRST)
    night = until_it_waits(ask("scale to 0", begun, NOW).deployment, NOW)
    late = NOW + timedelta(hours=9)
    assert canary_of(until_it_waits(night, late).rollout) == canary_of(night.rollout)
    assert cycle(night, late).awaited_verb == "promote"
    promoted = until_it_waits(promote(night).deployment, late)
    assert canary_of(promoted.rollout).stage == 2
    up = ask("scale to 3", night, late).deployment
    assert canary_of(up.rollout).weight_known_at is None
    there = until_it_waits(all_started(until_it_waits(up, late), late), late)
    assert (canary_of(there.rollout).stage, canary_of(there.rollout).weight_known_at) == (1, late)


def test_a_promotion_is_not_explained_by_what_a_judge_lacks() -> None:
    judged = at_stage("■■■|■", 3, canary(steps=["5%", "50%"], judge={}), **FIRST)
    said = cycle(promote(judged).deployment, NOW).reason
    assert said == "the canary gets 33.33 % of the requests, on the way to 50 %"
