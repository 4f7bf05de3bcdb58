"""Why it waits where no replica is in the way: held, without a worker, until a time, or for nothing."""

from datetime import timedelta

import pytest

from domain.foresight.awaited import next_try
from domain.foresight.blocked import blocked_by, buckets_of
from domain.foresight.ends import End, end_of, promoted_at
from domain.foresight.plan.around import Around
from domain.foresight.why import why
from domain.model.hold import Hold
from domain.model.policy import DeploymentPolicy
from tests.support.pictures.pictures import DESTROYED, NOW, PENDING, V2, blue_green, deploying, resting, rolling_update


def test_what_is_held_says_what_the_last_look_found_and_until_when() -> None:
    held = "held by the freeze xmas until 2 Jan 09:00; then it goes on by itself"
    told = why(deploying("■■■|"), NOW, Around(due_at=NOW + timedelta(hours=3), said=held))
    assert told.sentence == f"web waits, as was found last: {held}; in 3 h a worker looks again"
    assert (told.waits_for, told.left_seconds) == ("time", 3 * 3600)
    assert "found last" not in why(deploying("■■■|"), NOW, Around(due_at=NOW, said=held)).sentence, "it is over"


def test_there_is_no_next_try_where_no_start_has_failed() -> None:
    with pytest.raises(ValueError, match="no start of web has failed"):
        next_try(deploying("■■|◇"), NOW)


def test_nothing_blocks_what_has_no_revision_and_no_clock_ends_what_is_destroyed() -> None:
    assert blocked_by(resting("", status=PENDING, current_revision_id=None), NOW) is None
    destroyed = resting("", status=DESTROYED, current_revision_id=None)
    assert end_of(destroyed, NOW + timedelta(seconds=5), NOW) == End(NOW + timedelta(seconds=5), "a worker looks again")


def test_a_hold_is_what_a_rollout_waits_for_until_it_ends() -> None:
    held = Hold("held by the freeze xmas", NOW + timedelta(hours=3))
    told = why(deploying("■■■|", hold=held), NOW)
    assert told.sentence == "web is not going forward: held by the freeze xmas; in 3 h it is looked at again"
    assert (told.waits_for, told.left_seconds) == ("time", 3 * 3600)


def test_a_replica_that_waits_for_a_worker_says_so() -> None:
    told = why(deploying("■■|◇"), NOW, Around(missing_worker="no worker has been heard of"))
    assert told.waits_for == "worker"
    assert "; but no worker has been heard of, since " in told.sentence


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [
        (blue_green(auto_promote=True, promote_delay_seconds=60), 60),
        (blue_green(auto_promote=True), 0),
        (blue_green(), None),
        (rolling_update(), None),
    ],
)
def test_only_what_is_promoted_by_itself_has_a_time_for_it(policy: DeploymentPolicy, seconds: float | None) -> None:
    green = deploying("|□□□", policy=policy, status_for=0)
    found = promoted_at(green, buckets_of(green, V2, NOW))
    assert found == (None if seconds is None else NOW + timedelta(seconds=seconds))
