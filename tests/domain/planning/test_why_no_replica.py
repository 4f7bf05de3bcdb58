"""Why it waits where no replica is in the way: held, without a worker, until a time, or for nothing."""

from datetime import timedelta

import pytest

from domain.handlers.dispatch import cycle
from domain.model.decision import Decision
from domain.model.deployment import Hold, StartFailures
from domain.model.states import Verdict
from domain.planning.plan_input import WaitContext
from domain.planning.wait_explanation import end_of, why
from domain.strategies.builtin import parse_policy
from tests.support.pictures.autoscaling_rules import DOWN, rule, seen
from tests.support.pictures.pictures import NOW, PENDING, READY, V2, blue_green, deploying, resting

TOO_LONG = "it is called degraded and tried again later: the 30 minutes that scaling may take has passed"


def test_what_is_held_says_what_the_last_look_found_and_until_when() -> None:
    held = "held by the freeze xmas until 2 Jan 09:00; then it continues by itself"
    told = why(deploying("■■■|"), NOW, WaitContext(due_at=NOW + timedelta(hours=3), last_reason=held))
    assert told.sentence == f"web waits, as was found last: {held}; in 3 h a worker looks again"
    assert (told.waits_for, told.left_seconds) == ("time", 3 * 3600)
    assert "found last" not in why(deploying("■■■|"), NOW, WaitContext(due_at=NOW, last_reason=held)).sentence, (
        "it is over"
    )


def test_nothing_blocks_what_has_no_revision() -> None:
    told = why(resting("", status=PENDING, current_revision_id=None), NOW)
    assert (told.blocked_by, told.name) == (None, "rollway activate web REVISION")
    assert told.sentence.startswith(
        "web waits for a person, since it has no revision yet: 'rollway activate web REVISION' gives it one; "
    )


def test_a_hold_is_what_a_rollout_waits_for_until_it_ends() -> None:
    held = Hold("held by the freeze xmas", NOW + timedelta(hours=3))
    told = why(deploying("■■■|", hold=held), NOW)
    assert told.sentence == "web is not going forward: held by the freeze xmas; in 3 h it is looked at again"
    assert (told.waits_for, told.left_seconds) == ("hold", 3 * 3600)


def test_a_replica_that_waits_for_a_worker_says_so() -> None:
    told = why(deploying("■■|◇"), NOW, WaitContext(missing_worker="no worker has been heard of"))
    assert told.waits_for == "worker"
    assert "; but no worker has been heard of, since " in told.sentence


def test_only_what_is_promoted_by_itself_has_a_time_for_it() -> None:
    delayed, asked = blue_green(auto_promote=True, promote_delay_seconds=60), blue_green()
    told = [why(deploying("■■■|□□□", policy=policy, status_for=0), NOW) for policy in (delayed, asked)]
    assert [(each.waits_for, each.left_seconds) for each in told] == [("time", 60), ("person", None)]
    assert told[0].then.startswith("it completes: promoted: 3 green in")


def test_a_start_is_not_promised_while_one_is_being_tried() -> None:
    failed = StartFailures(V2, 2, NOW - timedelta(seconds=2))
    told = why(resting("■◇", 4, start_failures=failed), NOW)
    assert told.sentence.startswith("web waits for route 00000002, starting for 1 h, since 1 being tried + 1 > 1")
    assert (told.then, told.left_seconds) == (TOO_LONG, 1800)


def test_a_replacement_is_not_promised_while_starts_are_held_back() -> None:
    failed = StartFailures(V2, 9, NOW - timedelta(seconds=2))
    told = why(resting("■■■■△", 5, status_for=5, start_failures=failed), NOW)
    assert (told.then, told.left_seconds) == ("the next step: creating 1 (5 live + 1 ≤ 6)", 510)


def test_an_inequality_is_true_though_the_next_second_has_almost_come() -> None:
    failed = StartFailures(V2, 1, NOW - timedelta(seconds=1.9))
    assert why(resting("■■", 3, start_failures=failed), NOW).blocked_by == "1 s after the last failure < 2 s"


def test_proxies_that_have_not_acknowledged_a_weight_are_what_is_waited_for() -> None:
    policy = parse_policy({"strategy": "canary", "spec": {"steps": ["5%"]}})
    told = why(deploying("■■■|■", policy=policy, rollout={"stage": 1, "weight": 500}), NOW)
    assert told.waits_for == "proxies"
    assert told.sentence.startswith("web waits: every live proxy must acknowledge 5 % for the canary; in 30 min")


def test_a_wait_that_says_nothing_of_what_for_is_no_decision() -> None:
    with pytest.raises(ValueError, match="a decision that waits says what for: for the moon"):
        Decision(Verdict.SKIPPED, "for the moon")


def test_at_rest_what_is_looked_at_again_and_again_comes_to_nothing() -> None:
    ruled = resting("■■■", status=READY, rules=(rule(DOWN),), metrics=(seen(rule(DOWN), 9),))
    told = why(ruled, NOW)
    assert (told.waits_for, told.then, told.left_seconds) == ("nothing", "it is looked at again", 30)


def test_what_has_answered_nobody_at_rest_waits_for_what_proxies_tell() -> None:
    unproven = "not proven yet: v2 has answered nobody, and goes back at 20, counted for 40 s more"
    told = why(resting("■■■", status=READY), NOW, WaitContext(unproven=unproven, last_reason="3 of 3 healthy"))
    assert (told.waits_for, told.left_seconds) == ("proxies", None)
    assert told.sentence == f"web waits for what proxies tell: {unproven}; no clock ends this wait"


def test_what_is_known_of_a_wait_is_said_after_it_in_this_order() -> None:
    around = WaitContext(failure="no port", back="ann aborted it", unproven="v2 has answered nobody", paused="by ben")
    told = why(deploying("■■|◇"), NOW, around)
    assert (
        "; the last start failed: no port; it goes back: ann aborted it; v2 has answered nobody; by ben; in 30 min "
        in told.sentence
    )
    assert told.brief == told.sentence


def test_a_page_with_a_button_says_what_is_waited_for_without_the_command() -> None:
    told = why(deploying("■■|◇", paused_at=NOW), NOW)
    assert told.sentence.startswith("web waits for a person, since it is paused: 'rollway resume web' continues; ")
    assert told.brief == "it is paused; no clock of the rollout runs until then"
    assert told.as_json()["brief"] == told.brief


def test_what_changes_something_has_no_end_of_a_wait() -> None:
    with pytest.raises(ValueError, match="web does not wait: creating 1"):
        end_of(cycle(deploying("■■■|"), NOW), NOW)
