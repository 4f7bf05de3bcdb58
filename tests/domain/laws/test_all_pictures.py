"""What is waited for is known of every wait that any table of these tests draws, and of arbitrary ones."""

import ast
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from hypothesis import given

from domain.handlers.dispatch import cycle
from domain.model.decision import WaitsFor
from domain.model.deployment import Deployment, StartFailures
from domain.model.states import Lifecycle, Verdict
from domain.planning.wait_explanation import why
from tests.support.pictures.pictures import (
    DESTROYING,
    NOW,
    READY,
    RECREATE,
    SCALING,
    V1,
    V2,
    blue_green,
    deploying,
    resting,
    rolling_back,
    rolling_update,
)
from tests.support.pictures.simulation import next_to_happen
from tests.support.pictures.snapshots import Case, cases

FAILED = StartFailures(V2, 3, NOW - timedelta(seconds=2))


def _drawn() -> list[str]:
    """Every picture that any table of these tests draws."""
    drawn = set()
    for file in Path(__file__).parents[1].glob("**/test_*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                drawn.update(re.findall(r"^[■△▲◇✗~□◌▫▣◈|]+$", node.value))
    return sorted(picture for picture in drawn if picture.count("|") <= 1)


POLICIES = (
    rolling_update(),
    rolling_update(1, 0, pacing="continuous"),
    rolling_update(1, 0, min_ready_seconds=30, count_stopping=True),
    blue_green(),
    blue_green(auto_promote=True, promote_delay_seconds=60),
    RECREATE,
)


def _all_of(picture: str) -> list[Deployment]:
    both = [make(picture, 3, policy=policy, status_for=10) for make in (deploying, rolling_back) for policy in POLICIES]
    paused = [replace(deployment, paused_at=NOW) for deployment in both[:2]]
    held = [replace(deployment, start_failures=FAILED) for deployment in both]
    rest = [resting(picture, 3, status, status_for=10) for status in (SCALING, READY, DESTROYING)]
    back = [replace(deployment, start_failures=replace(FAILED, revision_id=V1)) for deployment in both]
    return [*both, *paused, *held, *back, *rest]


def _is_complete(deployment: Deployment, sentence: str) -> bool:
    told = why(deployment, NOW)
    named = told.name or told.blocked_by or told.waits_for in (WaitsFor.TIME, WaitsFor.HOST, WaitsFor.PROXIES)
    is_at_rest = deployment.status.lifecycle is Lifecycle.READY and told.waits_for is WaitsFor.NOTHING
    follows = None if told.waits_for is WaitsFor.PERSON else next_to_happen(deployment, NOW)
    left = None if follows is None else (follows[0] - NOW).total_seconds()
    return bool(sentence and told.then and (named or is_at_rest) and told.left_seconds == left)


def test_no_wait_of_any_picture_lacks_what_it_waits_for_and_the_time_that_is_left() -> None:
    pictures = _drawn()
    waiting = [
        deployment
        for picture in pictures
        for deployment in _all_of(picture)
        if cycle(deployment, NOW).verdict is Verdict.SKIPPED
    ]
    assert len(pictures) > 100
    assert len(waiting) > 1000
    lacking = [told for each in waiting if not _is_complete(each, (told := why(each, NOW)).sentence)]
    assert lacking == []


@given(cases())
def test_no_wait_lacks_it_whatever_the_snapshot(case: Case) -> None:
    if cycle(case.deployment, NOW).verdict is Verdict.SKIPPED:
        assert _is_complete(case.deployment, why(case.deployment, NOW).sentence), why(case.deployment, NOW)
