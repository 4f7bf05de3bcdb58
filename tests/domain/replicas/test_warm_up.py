"""Whether a replica is warm: answers in a row, and the clock."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from domain.model.states import RouteStatus
from domain.replicas.health import HealthVerdict, ProbeResult
from domain.replicas.warm_up import WarmingRoute, WarmUpAnswer, WarmUpProgress, is_held_back, judge_warm_up
from domain.revisions.warm_start_spec import WarmUp

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
ONE = WarmUp.model_validate({"requests": [{"path": "/v1", "method": "POST", "times": 3}], "at_most_seconds": 60})
TWO = WarmUp.model_validate({"requests": [{"path": "/a", "times": 1}, {"path": "/b?c=d", "under_seconds": 0.5}]})
P, H, U, F = RouteStatus.PROVISIONING, RouteStatus.HEALTHY, RouteStatus.UNHEALTHY, RouteStatus.FAILED
GOOD, SLOW, AT_THE_LIMIT = WarmUpAnswer(0.02, 200), WarmUpAnswer(4.8, 200), WarmUpAnswer(2.0, 204)
BAD, MOVED, NONE = WarmUpAnswer(0.1, 503, "loading"), WarmUpAnswer(0.1, 302), WarmUpAnswer(0, None, "it refused")


def progress(answers: Sequence[WarmUpAnswer], warm_up: WarmUp = ONE) -> WarmUpProgress:
    made = WarmUpProgress(warm_up)
    for answer in answers:
        made = made.with_answer(answer)
    return made


@pytest.mark.parametrize(
    ("answers", "in_a_row", "words"),
    [
        ([], 0, "0 of 3 answers under 2 s"),
        ([GOOD, GOOD], 2, "2 of 3 answers under 2 s, the last took 0.0 s"),
        ([GOOD, GOOD, SLOW], 0, "0 of 3 answers under 2 s, the last took 4.8 s"),
        ([GOOD, AT_THE_LIMIT], 0, "0 of 3 answers under 2 s, the last took 2.0 s"),
        ([GOOD, GOOD, BAD], 0, "0 of 3 answers under 2 s, the last was 503: loading"),
        ([GOOD, MOVED], 0, "0 of 3 answers under 2 s, the last was 302"),
        ([GOOD, NONE], 0, "0 of 3 answers under 2 s, the last failed: it refused"),
        ([SLOW, GOOD, GOOD], 2, "2 of 3 answers under 2 s, the last took 0.0 s"),
    ],
)
def test_only_good_and_fast_answers_in_a_row_count(answers: list[WarmUpAnswer], in_a_row: int, words: str) -> None:
    made = progress(answers)
    assert (made.done, made.in_a_row, made.request, str(made)) == (0, in_a_row, ONE.requests[0], f"warming up: {words}")


def test_it_is_over_after_as_many_as_are_wanted() -> None:
    made = progress([SLOW, GOOD, GOOD, GOOD])
    assert (made.request, str(made)) == (None, "warming up: all requests are answered fast")
    assert made.with_answer(BAD) is made, "nothing is asked any more"


def test_requests_are_sent_one_after_the_other_and_each_has_its_own_limit() -> None:
    assert str(progress([], TWO)) == "warming up: GET /a, request 1 of 2: 0 of 1 answers under 2 s"
    made = progress([GOOD, WarmUpAnswer(0.6, 200)], TWO)
    assert str(made) == "warming up: GET /b, request 2 of 2: 0 of 3 answers under 0.5 s, the last took 0.6 s"
    assert progress([GOOD] * 4, TWO).request is None


def judge(second: float, *, is_warm: bool, answered: bool | None = True, running: bool = True) -> HealthVerdict:
    route = WarmingRoute(BEGAN, BEGAN if is_warm else None, str(progress([SLOW])))
    result = ProbeResult(running=running, is_answered=answered, detail="seen")
    return judge_warm_up(ONE, route, result, BEGAN + timedelta(seconds=second))


COLD = "not warm 60 s after it was healthy: "


@pytest.mark.parametrize(
    ("second", "is_warm", "answered", "expected"),
    [
        (1, False, True, HealthVerdict(P, 0)),
        (1, False, False, HealthVerdict(P, 0)),
        (59.9, False, True, HealthVerdict(P, 0)),
        (60, False, True, HealthVerdict(F, 0, f"{COLD}0 of 3 answers under 2 s, the last took 4.8 s")),
        (1, True, True, HealthVerdict(H, 0, "seen")),
        (1, True, False, HealthVerdict(P, 0)),
        (1, True, None, HealthVerdict(P, 0)),
        (60, True, True, HealthVerdict(H, 0, "seen")),
        (60, True, False, HealthVerdict(F, 0, f"{COLD}seen")),
    ],
)
def test_a_look_at_a_replica_that_is_warmed_up_leads_to(
    second: float,
    is_warm: bool,  # noqa: FBT001
    answered: bool | None,  # noqa: FBT001
    expected: HealthVerdict,
) -> None:
    assert judge(second, is_warm=is_warm, answered=answered) == expected
    assert judge(second, is_warm=is_warm, answered=answered, running=False) == HealthVerdict(F, 0, "seen")


@pytest.mark.parametrize(
    ("was", "status", "is_warm", "held_back"),
    [
        (P, H, False, True),
        (P, U, False, True),
        (P, F, False, False),
        (P, H, True, False),
        (U, H, False, False),
        (H, U, False, False),
    ],
)
def test_only_what_was_never_healthy_is_held_back(
    was: RouteStatus,
    status: RouteStatus,
    is_warm: bool,  # noqa: FBT001
    held_back: bool,  # noqa: FBT001
) -> None:
    assert is_held_back(ONE, was, status, BEGAN if is_warm else None) is held_back
    assert not is_held_back(None, was, status, None)
