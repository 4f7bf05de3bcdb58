"""A plan before anything starts: its waves as pictures, how far it goes, what holds, how long, what it warns of."""

import random
from typing import Any

import pytest

from domain.model.deployment import Deployment
from domain.model.policy import RolloutLimits
from domain.planning.plan_input import Subject
from domain.planning.replica_timings import Timings
from domain.planning.rollout_plan import Plan, plan
from domain.planning.run import course
from domain.planning.simulator import LearnedFates
from domain.strategies.builtin import parse_policy
from tests.support.pictures.pictures import NOW, READY, RECREATE, blue_green, deploying, resting

TAUGHT = Timings(starts=(2.0, 2.0, 2.0, 3.0, 4.0), stops=(1.0, 1.5), wakes=(0.1,))


def planned(deployment: Deployment, learned: Timings = TAUGHT, **subject: Any) -> Plan:
    return plan(Subject(deployment, **subject), NOW, learned, random.Random(7).random)


def drawn(foreseen: Plan) -> list[str]:
    """E.g. "■■■|  create 1, drain 1"."""
    shown = []
    for wave in foreseen.waves:
        counts = {"create": wave.create, "promote": wave.promote, "drain": wave.drain, "park": wave.park}
        moves = ", ".join(f"{word} {count}" for word, count in counts.items() if count) or "done"
        asks = ", asks a person" * wave.waits_for_person + ", asks its judge" * wave.waits_for_judge
        shown.append(f"{wave.picture}  {moves}{asks}")
    return shown


@pytest.mark.parametrize(
    ("deployment", "waves", "most_live", "most_running", "fewest_serving"),
    [
        (
            deploying("■■■|"),
            ["■■■|  create 1, drain 1", "■■|■  create 1, drain 1", "■|■■  create 1, drain 1", "|■■■  done"],
            3,
            4,
            2,
        ),
        (
            deploying("■■■|", u=3),
            ["■■■|  create 1, drain 2", "■|■  create 2, drain 1", "|■■■  done"],
            3,
            4,
            1,
        ),
        (deploying("■■|", 2, policy=RECREATE), ["■■|  drain 2", "|  create 2", "|■■  done"], 2, 2, 0),
        (
            deploying("■■|", 2, policy=blue_green(scale_down_delay_seconds=60)),
            ["■■|  create 2", "■■|□□  promote 2, park 2, asks a person"],
            4,
            4,
            2,
        ),
        (deploying("|", 0), ["|  done"], 0, 0, 0),
        (
            resting("■|", 1, READY),
            ["■|  done", "■|  create 1", "■|■  drain 1", "■  done"],
            2,
            2,
            1,
        ),
    ],
)
def test_a_plan_says_wave_by_wave_what_is_done_and_how_far_it_goes(
    deployment: Deployment, waves: list[str], most_live: int, most_running: int, fewest_serving: int
) -> None:
    foreseen = planned(deployment)
    assert drawn(foreseen) == waves
    assert (foreseen.most_live, foreseen.fewest_serving) == (most_live, fewest_serving)
    assert foreseen.most_running == most_running
    assert foreseen.is_certain
    assert foreseen.ends_ready
    assert foreseen.ceiling >= foreseen.most_live
    assert foreseen.floor <= foreseen.fewest_serving


@pytest.mark.parametrize(
    ("deployment", "guarantee"),
    [
        (
            deploying("■■■|"),
            "never more than 4 live, never fewer than 2 of 3 serving, unless a replica fails on its own",
        ),
        (
            deploying("■■■|", u=3),
            "never more than 4 live, never fewer than 1 of 3 serving, unless a replica fails on its own",
        ),
        (deploying("■|", 1, s=0), "never more than 1 live; none has to stay, so for a while none may serve"),
        (
            deploying("■■|", 2, policy=RECREATE),
            "never more than 2 live or stopping, and old and new never run at the same time",
        ),
        (resting("■■|"), "never more than 4 live, never fewer than 3 of 3 serving, unless a replica fails on its own"),
    ],
)
def test_the_guarantee_is_one_line(deployment: Deployment, guarantee: str) -> None:
    assert planned(deployment).guarantee.partition("; at the busiest moment ")[0] == guarantee


@pytest.mark.parametrize(
    ("deployment", "learned", "warning"),
    [
        (
            deploying("■|", 1, s=0),
            TAUGHT,
            "one replica and max_surge 0: it is taken away before the new one starts, and nothing serves in between",
        ),
        (
            deploying("■■|", 2, policy=RECREATE),
            TAUGHT,
            "recreate stops every old replica before the first new one starts: nothing serves in between",
        ),
        (
            deploying("|", 0),
            TAUGHT,
            "0 replicas are wanted: it completes without starting one, and proves nothing about the revision",
        ),
        (
            deploying("■■■|", policy=blue_green()),
            TAUGHT,
            "it waits for a person once the new set is healthy: 'rollway promote web'",
        ),
        (
            deploying("■■■|"),
            Timings(),
            "no start of a replica of web is on record yet: no timing data",
        ),
        (deploying("■■■|"), Timings((2.0,), failed_starts=1), "1 of the last 2 starts of web failed"),
        (
            deploying("■■■|", limits=RolloutLimits(timeout_seconds=7)),
            Timings(starts=(3.0,), stops=(1.0,)),
            (
                "in 100 of 100 runs it goes back though no replica fails: the timeout of 7 s has passed; last: "
                "waiting: 1 new starting; 2 of 3 ready"
            ),
        ),
        (deploying("■■■|"), TAUGHT, None),
    ],
)
def test_a_plan_warns_in_words(deployment: Deployment, learned: Timings, warning: str | None) -> None:
    assert planned(deployment, learned).warnings == (() if warning is None else (warning,))


def judged(**judge: Any) -> Deployment:
    policy = parse_policy({"strategy": "canary", "spec": {"steps": ["10%", "50%"], "judge": judge}})
    return deploying("■■|", 2, policy=policy, rollout={"weight": 0})


@pytest.mark.parametrize(
    ("judge", "asks", "least", "warning"),
    [
        ({}, "its judge", 60, "30 s and 100 requests at the soonest; undecided after 30 min it waits for a person"),
        (
            {"at_least": {"seconds": 3600}, "at_most": {"seconds": 7200}, "if_undecided": "abort"},
            "its judge",
            7200,
            "1 h and 100 requests at the soonest; undecided after 2 h it goes back",
        ),
        ({"dry_run": True}, "a person", 0, "it waits for a person once the new set is healthy"),
    ],
)
def test_a_plan_of_a_judged_canary_waits_for_its_judge_and_not_for_a_person(
    judge: dict[str, Any], asks: str, least: float, warning: str
) -> None:
    foreseen = planned(judged(**judge))
    at_weights = ["■■|■  done", f"■■|■  done, asks {asks}", f"■■|■  done, asks {asks}"]
    rest = ["■■|■  drain 1", "■|■  create 1", "■|■■  drain 1", "|■■  done"]
    assert drawn(foreseen) == ["■■|  create 1", *at_weights, *rest]
    said, *doubts = foreseen.warnings
    assert (warning in said, len(doubts)) == (True, 2 * bool(least))
    assert foreseen.seconds is not None
    assert least <= foreseen.seconds.p50 <= least + 60
    assert foreseen.ends_ready


def test_a_plan_of_a_canary_that_goes_on_undecided_says_nothing_of_proxies() -> None:
    foreseen = planned(judged(at_most={"seconds": 5}, if_undecided="promote"))
    reasons = [wave.why for wave in foreseen.waves]
    assert any(why.endswith("the rest follows, for undecided after 5 s") for why in reasons)
    assert not any("proxy" in why for why in reasons)


def test_a_plan_of_a_judged_canary_says_when_no_proxy_tells_and_no_other_plan_does() -> None:
    silent = "no live proxy tells what it answers"
    assert silent in planned(judged(), missing_evidence=silent).warnings
    assert silent not in planned(judged(dry_run=True), missing_evidence=silent).warnings
    assert silent not in planned(deploying("■■■|"), missing_evidence=silent).warnings


def test_a_plan_warns_of_a_revision_without_a_health_check() -> None:
    assert planned(deploying("■■■|"), has_health_check=False).warnings == (
        "the revision has no health check: a replica counts as healthy once it has run for 3 s",
    )


def test_where_nothing_is_learned_a_plan_says_no_times() -> None:
    foreseen = planned(deploying("■■■|"), Timings())
    assert foreseen.seconds is None
    assert {wave.takes for wave in foreseen.waves} == {None}


def test_times_are_the_sum_of_what_past_replicas_took() -> None:
    foreseen = planned(deploying("■■■|"), Timings(starts=(2.0,), stops=(1.0,), wakes=(0.5,)))
    assert foreseen.seconds is not None
    assert str(foreseen.seconds) == "8.0 s"  # three starts of 2 s, and a look after each and before the first
    assert [str(wave.takes) for wave in foreseen.waves] == ["2.5 s", "2.5 s", "2.5 s", "0.0 s"]


def test_a_plan_of_continuous_pacing_says_that_its_waves_depend_on_who_comes_up_first() -> None:
    foreseen = planned(deploying("■" * 6 + "|", 6, "50%", "25%", spec={"pacing": "continuous"}))
    assert not foreseen.is_certain
    assert foreseen.ceiling == 9
    assert (foreseen.most_live, foreseen.fewest_serving) <= (9, 5)


def test_what_runs_at_most_is_what_runs_in_the_worst_of_all_orders() -> None:
    assert planned(deploying("■■■|", 3, 1, 0), Timings((1.0, 9.0), (1.0, 20.0))).most_running == 6, "two stop slowly"


def test_a_plan_as_json_is_plain() -> None:
    document = planned(deploying("■■■|")).as_json()
    assert (document["waves"][0]["create"], set(document["seconds"])) == (1, {"p50", "p90"})


def test_a_revision_that_is_called_differently_is_warned_of() -> None:
    told = "its replicas are called differently: in http2, each as its revision has it"
    assert told in planned(deploying("■■■|"), speaks="http2").warnings
    assert told not in planned(deploying("■■■|")).warnings


SLOW_OR_QUICK = Timings(starts=(1.0, 9.0), stops=(1.0, 9.0))


@pytest.mark.parametrize(
    ("deployment", "most_live", "most_running"),
    [
        # a quick stop leaves room for one more that lives
        (deploying("■■■|", 3, 1, 1, spec={"pacing": "continuous", "count_stopping": True}), 4, 4),
        # slow ones pile up
        (deploying("■■■■|", 4, 2, 1), 5, 8),
    ],
)
def test_the_most_at_once_is_that_of_any_run_and_not_of_the_usual_one(
    deployment: Deployment, most_live: int, most_running: int
) -> None:
    usual = course(deployment, NOW, LearnedFates(timings=SLOW_OR_QUICK))
    assert (usual.most_live, usual.most_running) != (most_live, most_running)
    foreseen = planned(deployment, SLOW_OR_QUICK)
    assert (foreseen.most_live, foreseen.most_running) == (most_live, most_running)


@pytest.mark.parametrize("learned", [Timings(starts=(5.0,)), Timings(stops=(3.0,)), Timings()])
def test_where_no_start_or_no_stop_is_learned_they_are_taken_to_differ(learned: Timings) -> None:
    by_order = deploying("■■■■|", 4, 1, 1, spec={"pacing": "continuous", "count_stopping": True})
    assert not planned(by_order, learned).is_certain
    assert planned(by_order, Timings(starts=(2.0,), stops=(2.0,))).is_certain
