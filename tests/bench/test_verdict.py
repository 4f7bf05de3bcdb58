"""The verdict of `make zero-loss`: what is allowed is little, and everything else is told."""

from dataclasses import replace

import pytest

from cli.demo.load.tally import FailedRequest, FailureKind, PhaseReport, Seen
from tools.bench.zero_loss.phases import PHASES, Noted
from tools.bench.zero_loss.verdict import Played, drains_within, judge

KILLED_AT = 1010.0
SEEN = Seen(answers=10, first_started=1000.0, last_started=1005.0, first_answered=1000.0, last_answered=1005.1)
CALM = PhaseReport(
    name="calm",
    began_at=1000.0,
    ended_at=1020.0,
    requests=100,
    answered=100,
    failed={},
    failures=(),
    kinds={"get": 100},
    revisions={"v1": SEEN},
    p50=0.001,
    p99=0.002,
    worst=0.003,
    lag_p99=0.0,
    lag_worst=0.0,
)
IN_FLIGHT = FailedRequest(
    kind=FailureKind.STATUS,
    request="slow post",
    idempotent=False,
    due_at=1009.0,
    started_at=1009.0,
    failed_at=1010.0,
    detail="503 upstream connect error",
)


def with_failures(*failures: FailedRequest) -> PhaseReport:
    return replace(CALM, failures=failures, failed={"503": len(failures)}, answered=100 - len(failures))


def played(noted: Noted = Noted(), error: str = "") -> Played:  # noqa: B008  (frozen)
    return Played(PHASES[0], 1.0, noted, error)


def test_a_phase_without_failures_is_as_promised() -> None:
    assert judge(played(), CALM, []).broken == ()


def test_a_request_in_flight_on_the_killed_replica_is_allowed_when_it_is_not_idempotent() -> None:
    verdict = judge(played(Noted(killed_at=KILLED_AT)), with_failures(IN_FLIGHT), [])
    assert (verdict.allowed, verdict.forbidden, verdict.broken) == (1, 0, ())


@pytest.mark.parametrize(
    ("failure", "killed_at"),
    [
        (IN_FLIGHT, None),
        (replace(IN_FLIGHT, idempotent=True), KILLED_AT),
        (replace(IN_FLIGHT, started_at=1010.1, failed_at=1010.2), KILLED_AT),
        (replace(IN_FLIGHT, started_at=1001.0, failed_at=1002.0), KILLED_AT),
        (replace(IN_FLIGHT, started_at=None), KILLED_AT),
    ],
    ids=["nothing was killed", "idempotent", "sent after the kill", "over before the kill", "never sent"],
)
def test_any_other_failure_is_forbidden(failure: FailedRequest, killed_at: float | None) -> None:
    verdict = judge(played(Noted(killed_at=killed_at)), with_failures(failure), [])
    assert (verdict.allowed, verdict.forbidden) == (0, 1)
    assert verdict.broken == ("1 of 100 requests failed",)


@pytest.mark.parametrize(
    ("failure", "allowed"),
    [
        (IN_FLIGHT, 1),
        (replace(IN_FLIGHT, started_at=1012.0, failed_at=1022.0), 1),
        (replace(IN_FLIGHT, idempotent=True), 0),
        (replace(IN_FLIGHT, started_at=1001.0, failed_at=1002.0), 0),
        (replace(IN_FLIGHT, started_at=1014.0, failed_at=1015.0), 0),
    ],
    ids=["when it froze", "before it was noticed", "idempotent", "over before it froze", "after it was noticed"],
)
def test_what_was_sent_while_a_replica_hung_unnoticed_is_allowed_when_it_is_not_idempotent(
    failure: FailedRequest, allowed: int
) -> None:
    assert judge(played(Noted(frozen=(KILLED_AT, KILLED_AT + 3))), with_failures(failure), []).allowed == allowed


@pytest.mark.parametrize(
    ("failure", "allowed"),
    [
        (replace(IN_FLIGHT, idempotent=True, failed_at=KILLED_AT - 0.1), 1),
        (replace(IN_FLIGHT, started_at=None, due_at=KILLED_AT + 0.2, failed_at=KILLED_AT + 0.2), 1),
        (replace(IN_FLIGHT, started_at=KILLED_AT + 1.1, failed_at=KILLED_AT + 1.2), 0),
        (replace(IN_FLIGHT, started_at=1001.0, failed_at=1002.0), 0),
    ],
    ids=["under way", "nobody listened", "somebody listened again", "over before the kill"],
)
def test_what_met_an_envoy_that_was_killed_is_allowed_until_somebody_listens_in_its_place(
    failure: FailedRequest, allowed: int
) -> None:
    assert judge(played(Noted(away=(KILLED_AT, KILLED_AT + 1))), with_failures(failure), []).allowed == allowed


def test_failures_that_were_counted_but_not_kept_are_forbidden() -> None:
    many = replace(with_failures(IN_FLIGHT), failed={"503": 3})
    assert judge(played(Noted(killed_at=KILLED_AT)), many, []).forbidden == 2


def test_an_act_that_did_not_come_to_its_end_is_told() -> None:
    assert judge(played(error="not within 60 s: a rollout"), CALM, []).broken == ("not within 60 s: a rollout",)


def test_a_promoted_revision_must_answer_alone_from_the_proxies_word_on() -> None:
    both = replace(CALM, revisions={"v1": SEEN, "v2": replace(SEEN, first_started=1004.9, last_started=1019.0)})
    good = judge(played(Noted(old="v1", promoted_at=1005.5)), both, [])
    assert good.broken == ()
    assert good.old_after_promotion == pytest.approx(-0.5)
    assert good.overlap == pytest.approx(0.1)
    late = judge(played(Noted(old="v1", promoted_at=1004.95)), both, [])
    assert late.broken == ("v1 was still asked 50 ms after the proxies' word that it is out",)


def test_a_revision_that_was_never_healthy_must_not_answer() -> None:
    assert judge(played(Noted(never="v2")), CALM, []).broken == ()
    assert judge(played(Noted(never="v1")), CALM, []).broken == ("v1, which was never healthy, answered 10 requests",)


FAILED_BY_CANARY = replace(
    IN_FLIGHT, idempotent=True, detail='500 {"deployment": "web", "revision": "v2", "route": ""}'
)


def test_a_failing_canary_may_fail_what_it_is_asked_and_must_leave_traffic_soon() -> None:
    soon, late = (replace(FAILED_BY_CANARY, failed_at=1010.0 + seconds) for seconds in (4.9, 5.1))
    good = judge(played(Noted(fails="v2")), with_failures(FAILED_BY_CANARY, soon), [])
    assert (good.allowed, good.forbidden, good.broken) == (2, 0, ())
    bad = judge(played(Noted(fails="v2")), with_failures(FAILED_BY_CANARY, late), [])
    assert bad.broken == ("v2 was still asked 5.1 s after its first failure",)
    for fails in ("", "v3"):
        assert judge(played(Noted(fails=fails)), with_failures(FAILED_BY_CANARY), []).allowed == 0


def test_drains_are_those_of_the_phase_and_the_unacknowledged_ones_are_counted() -> None:
    drains = drains_within([CALM], [(999.0, 9.0), (1000.0, 0.1), (1001.0, 0.3), (1019.0, None), (1020.0, 9.0)])
    assert (drains.count, drains.never) == (3, 1)
    assert (drains.p50, drains.worst) == (0.1, 0.3)
