"""A command says what follows for its rollout as the next look will find it, and what Postgres holds it to."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cycle.rollout import guard_of
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment
from domain.strategies.builtin import parse_policy
from domain.text.errors import RollwayError
from tests.support.people.people import ask
from tests.support.pictures.pictures import NOW, blue_green, deploying, resting, rolling_back
from tests.support.pictures.snapshots import Case, cases

STOPPED = {"clock_stopped_at": NOW}
CANARY = parse_policy({"strategy": "canary"})
LOOKED_AT = {"stage": 1, "weight": 500, "weight_known_at": NOW, **STOPPED}


@pytest.mark.parametrize(
    ("command", "deployment", "verb"),
    [
        ("pause", deploying("■■|◇"), "resume"),
        ("pause", rolling_back("■■|◇"), "resume"),
        ("resume", deploying("■■■|□□□", policy=blue_green(), paused_at=NOW, rollout=STOPPED), "promote"),
        ("resume", deploying("■■|◇", paused_at=NOW, rollout=STOPPED), None),
        ("promote", deploying("■■■|□□□", policy=blue_green(), rollout=STOPPED), None),
        ("scale to 3", deploying("■■■|■", policy=CANARY, rollout=LOOKED_AT), "promote"),
        ("abort", deploying("■■■|□□□", policy=blue_green(), rollout=STOPPED), None),
        ("scale to 5", resting("■■■"), None),
    ],
)
def test_it_says_what_a_person_must_type_next(command: str, deployment: Deployment, verb: str | None) -> None:
    assert ask(command, deployment, NOW).finished(NOW).waits_for == verb


@given(cases(), st.sampled_from(["pause", "resume", "promote", "abort", "undo", "scale to 2"]), st.booleans())
def test_that_is_what_the_next_look_finds(case: Case, command: str, paused: bool) -> None:  # noqa: FBT001
    before = case.deployment
    if before.rollout is not None:
        stopped = replace(before.rollout, clock_stopped_at=NOW)
        before = replace(before, paused_at=NOW if paused else None, rollout=stopped)
    try:
        steered = ask(command, before, NOW).finished(NOW)
    except RollwayError:
        return
    after, rollout = steered.deployment, steered.deployment.rollout
    if steered.already or rollout is None:
        assert (steered.waits_for, steered.guard) == (None, None)
        return
    assert steered.waits_for == (cycle(after, NOW).awaited_verb if rollout.clock_stopped_at else None)
    assert steered.guard == guard_of(after)
