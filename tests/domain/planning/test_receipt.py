"""The receipt of a rollout, from the steps that it left behind, and the chain of receipts."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.cycle.recording import changes_from_json
from domain.model.policy import DeploymentPolicy, RolloutLimits
from domain.planning.recorded_rollout import RecordedAct, RecordedStep, extremes, waves
from domain.planning.sealed_receipt import RecordedRollout, Sealed, broken, check_seal, receipt, seal_receipt
from tests.support.pictures.pictures import NOW, RECREATE, blue_green, deploying, rolling_update
from tests.support.worlds.recorded import steps_of

BEFORE = RecordedAct(NOW, "ann", "activate", "rollout to v2 started: sale")


def recorded(steps: Sequence[RecordedStep], **changed: Any) -> RecordedRollout:
    rollout = RecordedRollout(
        id="r1",
        deployment="web",
        from_revision="v1",
        to_revision="v2",
        policy={"strategy": "rolling_update"},
        ceiling=4,
        floor=2,
        count_stopping=False,
        actor="ann",
        reason="sale",
        started_at=NOW,
        ended_at=steps[-1].at if steps else None,
        outcome="completed" if steps else None,
        back_reason=None,
        failed_routes=0,
        steps=steps,
        acts=[BEFORE],
    )
    return replace(rollout, **changed)


def test_the_waves_the_waits_and_the_measures_are_those_of_the_steps() -> None:
    made = receipt(recorded(steps_of(deploying("■■■|"))))
    moved = [(wave["picture"], wave["create"], wave["drain"], wave["took_seconds"]) for wave in made["waves"]]
    assert moved == [("■■■|", 1, 1, 1.0), ("■■|■", 1, 1, 1.0), ("■|■■", 1, 1, 1.0), ("|■■■", 0, 0, 0.0)]
    assert [(wait["after_wave"], wait["seconds"], wait["waits_for"]) for wait in made["waits"]] == [
        (1, 1.0, "route"),
        (2, 1.0, "route"),
        (3, 1.0, "route"),
    ]
    assert made["waits"][0]["reason"] == "waiting: 1 new starting; 0 of 3 ready"
    assert made["measured"] == {
        "most_live": 3,
        "most_stopping": 1,
        "most_live_and_stopping": 4,
        "fewest_serving": 2,
        "is_ceiling_kept": True,
        "is_floor_kept": True,
    }
    assert made["replayed"] == {"steps": 4, "equal": 4, "refused": 0, "differing": []}
    assert made["acts"] == [
        {"at": NOW.isoformat(), "actor": "ann", "what": "activate", "said": "rollout to v2 started: sale"}
    ]
    assert made["requests"] == {"said": "not measured: no proxy told what it has answered"}


@pytest.mark.parametrize(
    "policy",
    [
        rolling_update(1, 0),
        rolling_update(2, 1, pacing="continuous"),
        rolling_update(1, 1, count_stopping=True),
        blue_green(auto_promote=True, scale_down_delay_seconds=60),
        RECREATE,
    ],
)
def test_every_strategy_keeps_what_it_promised(policy: DeploymentPolicy) -> None:
    measured = extremes(steps_of(deploying("■■■|", policy=policy)))
    assert measured is not None
    assert (measured.is_ceiling_kept, measured.is_floor_kept) == (True, True)


def changed(step: RecordedStep, **changes: Any) -> RecordedStep:
    """The step as if this had been decided."""
    decision = {**step.decision, "changes": {**step.decision["changes"], **changes}}
    return replace(step, decision=decision, changes=changes_from_json(decision))


def test_a_step_that_broke_a_budget_or_is_decided_otherwise_today_is_told() -> None:
    first, *others = steps_of(deploying("■■■|"))
    drained = [str(route.id) for route in first.deployment.routes]
    broken = receipt(recorded([changed(first, drain_route_ids=drained), *others]))
    assert (broken["measured"]["is_floor_kept"], broken["measured"]["is_ceiling_kept"]) == (False, True)
    assert broken["replayed"]["differing"] == [1]
    (created,) = first.decision["changes"]["rollout_specs"]
    broken = receipt(recorded([changed(first, rollout_specs=[{**created, "count": 3}]), *others]))
    assert (broken["measured"]["is_floor_kept"], broken["measured"]["is_ceiling_kept"]) == (True, False)


def test_what_postgres_did_not_write_is_no_decision_that_differs() -> None:
    first, *others = steps_of(deploying("■■■|"))
    refused = replace(first, decision={**first.decision, "verdict": "error"})
    assert receipt(recorded([refused, *others]))["replayed"] == {"steps": 4, "equal": 3, "refused": 1, "differing": []}


def test_between_two_steps_that_follow_at_once_nothing_was_waited_for() -> None:
    steps = steps_of(deploying("|", 3, 3, 3, limits=RolloutLimits(failure_budget=1), rollout={"failed_routes": 2}))[:2]
    assert [step.phase for step in steps] == ["deploying_provisioning", "deploying_rolling_back"]
    assert receipt(recorded(steps))["waits"] == []


@pytest.mark.parametrize(("what", "waits_for"), [("resume", "person"), ("promote", "person"), ("scale", "route")])
def test_who_held_a_rollout_is_what_it_waited_for(what: str, waits_for: str) -> None:
    first, second, *_ = steps_of(deploying("■■■|"))
    act = RecordedAct(second.at - timedelta(seconds=0.5), "bob", what, "")
    (wait,) = receipt(recorded([first, second], acts=[act]))["waits"]
    assert wait["waits_for"] == waits_for
    assert wait["reason"].endswith(f"{what} by bob") is (waits_for == "person")


def test_one_under_way_has_no_end_and_one_without_a_step_has_no_measures() -> None:
    made = receipt(recorded([]))
    assert (made["ended_at"], made["outcome"], made["measured"], made["waves"]) == (None, None, None, [])


def test_a_receipt_has_these_parts() -> None:
    made = receipt(recorded(steps_of(deploying("■■■|", 3, 1, 0))))
    told = {name: value for name, value in made.items() if not isinstance(value, list | dict)}
    assert told == {
        "form": 1,
        "rollout": "r1",
        "deployment": "web",
        "from": "v1",
        "to": "v2",
        "actor": "ann",
        "reason": "sale",
        "started_at": NOW.isoformat(),
        "ended_at": made["ended_at"],
        "seconds": 3.0,
        "outcome": "completed",
        "back_reason": None,
        "failed_replicas": 0,
    }
    parts = ["policy", "promised", "measured", "requests", "waves", "waits", "acts", "replayed"]
    assert made.keys() - told.keys() == set(parts)
    assert made["promised"] == {"most_live": 4, "fewest_serving": 2, "counts_stopping": False}
    assert (made["measured"]["most_live"], made["measured"]["fewest_serving"]) == (4, 3)


def test_a_sealed_text_is_compact_and_sorted_and_says_every_letter_as_it_is() -> None:
    assert seal_receipt({"b": 1, "a": "größer"}, None).text == '{"a":"größer","b":1,"number":1,"previous_sha256":null}'


def test_a_wave_has_these_parts() -> None:
    first, second, *_ = steps_of(deploying("■■■|"))
    wave, _ = waves([first, replace(second, at=first.at + timedelta(seconds=1.23456))], None)
    assert (wave.pop("at"), wave.pop("phase")) == (first.at.isoformat(), "deploying_provisioning")
    assert wave.pop("why").startswith("creating 1")
    moves = {"create": 1, "drain": 1, "promote": 0, "park": 0}
    told = {"number": 1, "begins_seconds": 0, "took_seconds": 1.235, "verdict": "need_retry", "picture": "■■■|"}
    assert wave == {**told, **moves}


def test_the_same_rows_give_the_same_receipt() -> None:
    first, again = (seal_receipt(receipt(recorded(steps_of(deploying("■■■|")))), None) for _ in range(2))
    assert first == again


def test_who_changes_a_receipt_breaks_its_own_seal_and_the_next_one() -> None:
    first = seal_receipt(receipt(recorded(steps_of(deploying("■■■|")))), None)
    second = seal_receipt(receipt(recorded([])), first)
    assert (check_seal(first, None).is_intact, check_seal(first, None).is_joined) == (True, None)
    assert (check_seal(second, first).is_intact, check_seal(second, first).is_joined) == (True, True)
    forged = Sealed(1, first.text.replace('"ann"', '"bob"'), first.sha256)
    assert (check_seal(forged, None).is_intact, check_seal(second, forged).is_joined) == (False, False)
    assert json.loads(second.text)["previous_sha256"] == first.sha256
    assert [json.loads(each.text)["number"] for each in (first, second)] == [first.number, second.number] == [1, 2]


def test_a_chain_of_receipts_names_the_one_that_is_changed_or_gone() -> None:
    first = seal_receipt({"rollout": "r1"}, None)
    second = seal_receipt({"rollout": "r2"}, first)
    forged = replace(first, text=first.text.replace("r1", "r9"))
    for current, before, is_oldest, fault in [
        (first, None, True, None),
        (second, first, False, None),
        (second, None, True, None),  # the older ones are cut
        (second, None, False, "receipt 1 is gone, and receipt 2 is not"),
        (forged, None, True, "receipt 1 was changed after it was sealed"),
        (second, forged, False, "receipt 1 is not the one that was there when receipt 2 was sealed"),
    ]:
        assert broken(current, before, is_oldest=is_oldest) == fault
