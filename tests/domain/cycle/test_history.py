"""The timeline: what merges with the record before it."""

from dataclasses import replace
from uuid import UUID

from domain.cycle.writes import HistoryKey, history_key
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment
from domain.model.states import Verdict
from tests.support.pictures.pictures import NOW, ROLLOUT, deploying, resting

PHASE = "deploying_provisioning"


def key_of(deployment: Deployment, phase: str = PHASE) -> str:
    return str(history_key(phase, cycle(deployment, NOW)))


def merges(last: str | None, key: HistoryKey) -> bool:
    return last == str(key)


def test_two_cycles_of_a_rollout_that_do_the_same_are_one_record() -> None:
    first, second = cycle(deploying("■■■|"), NOW), cycle(deploying("■■|"), NOW)
    assert first.reason != second.reason
    assert merges(str(history_key(PHASE, first)), history_key(PHASE, second))


def test_the_first_record_merges_with_nothing() -> None:
    assert not merges(None, history_key(PHASE, cycle(deploying("■■■|"), NOW)))


def test_rollout_phase_result_error_and_target_each_make_a_new_record() -> None:
    key = history_key(PHASE, cycle(deploying("■■■|"), NOW))
    assert key.rollout_id == ROLLOUT
    assert key.result is Verdict.NEED_RETRY
    for other in (
        replace(key, rollout_id=UUID(int=9)),
        replace(key, rollout_id=None),
        replace(key, phase="scaling"),
        replace(key, result=Verdict.SUCCESS),
        replace(key, error_code="ValueError"),
        replace(key, target=str(cycle(deploying("|■■■"), NOW).to)),
    ):
        assert not merges(str(key), other)
        assert not merges(str(other), key)


def test_an_error_is_remembered_by_its_type_and_not_by_its_words() -> None:
    broken = replace(deploying("■■■|"), deploying_revision_id=None)
    key = history_key(PHASE, cycle(broken, NOW))
    assert key.error_code == "ValueError"
    assert merges(str(key), history_key(PHASE, cycle(replace(broken, name="api"), NOW)))


def test_a_hardened_verdict_is_its_own_error_code() -> None:
    late = deploying("■■■|", rollout={"deadline": NOW})
    assert history_key(PHASE, cycle(late, NOW)).error_code == "expired"
    failed = deploying("■■■|", rollout={"failed_routes": 3})
    assert history_key(PHASE, cycle(failed, NOW)).error_code == "give_up"


def test_a_wait_writes_no_history() -> None:
    assert not cycle(deploying("■■|◇"), NOW).changes_anything
    assert cycle(deploying("■■■|"), NOW).changes_anything
    assert cycle(deploying("|■■■"), NOW).changes_anything


def test_records_outside_a_rollout_have_none() -> None:
    assert key_of(resting("■■"), "scaling").startswith("- scaling need_retry - scaling")
