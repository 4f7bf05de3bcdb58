"""A handler's lock is one of n slots, held by a token."""

import threading
from collections.abc import Iterable
from contextlib import ExitStack

import pytest
import redis
from redis.lock import Lock

from domain.text.errors import InvalidInputError
from tasks.redis.locks import Slots, ask_for_slots, slots_asked_for
from tests.support.stack.slots import KEY, Sent, slots
from tests.support.stack.waiting import eventually


def test_one_slot_is_held_by_one_and_free_again_afterwards(redis_client: redis.Redis, sent: Sent) -> None:
    two = slots(redis_client, sent), slots(redis_client, sent)
    with two[0].hold("scaling", "scaling") as mine:
        assert mine is not None
        with two[1].hold("scaling", "scaling") as other:
            assert other is None
        with two[1].hold("destroying", "destroying") as elsewhere:
            assert elsewhere is not None
    with two[1].hold("scaling", "scaling") as now:
        assert now is not None


def test_a_worker_that_rests_leaves_its_slot_to_others_though_its_work_goes_on(
    redis_client: redis.Redis, sent: Sent
) -> None:
    mine, other = slots(redis_client, sent), slots(redis_client, sent)
    with mine.hold("scaling", "scaling") as held:
        assert held is not None
        mine.let_go()
        assert not held.is_held
        with other.hold("scaling", "scaling") as now:
            assert now is not None


def holding(stack: ExitStack, count: int, workers: Iterable[Slots], lock_id: str = "x") -> bool:
    """Whether exactly the first `count` of these workers get a slot."""
    held = [stack.enter_context(worker.hold(lock_id, lock_id)) is not None for worker in workers]
    return held == [True] * count + [False] * (len(held) - count)


def test_n_slots_are_held_by_n_workers_and_no_more(redis_client: redis.Redis, sent: Sent) -> None:
    with ExitStack() as stack:
        assert holding(stack, 3, [slots(redis_client, sent, count=3) for _ in range(4)])


def test_a_worker_takes_one_slot_of_a_handler_and_leaves_the_others_to_workers_on_other_cores(
    redis_client: redis.Redis, sent: Sent
) -> None:
    mine, other = slots(redis_client, sent, count=3), slots(redis_client, sent, count=3)
    with mine.hold("x", "x") as first, mine.hold("x", "x") as second, other.hold("x", "x") as third:
        assert first is not None
        assert second is None
        assert third is not None
        with mine.hold("y", "y") as of_another_handler:
            assert of_another_handler is not None
    assert sent == ["x"], "what the second was sent for may have come after the last look of the first"
    with mine.hold("x", "x") as again:
        assert again is not None


def test_what_is_done_alone_has_one_slot_whatever_their_number(redis_client: redis.Redis, sent: Sent) -> None:
    two = slots(redis_client, sent, count=3), slots(redis_client, sent, count=3)
    with two[0].hold("probe", "probe", single=True) as first, two[1].hold("probe", "probe", single=True) as other:
        assert first is not None
        assert other is None


def test_their_number_changes_while_workers_run(redis_client: redis.Redis, sent: Sent) -> None:
    workers = [slots(redis_client, sent, count=2) for _ in range(4)]

    def are_held_by(count: int) -> bool:
        with ExitStack() as stack:
            return holding(stack, count, workers)

    assert are_held_by(2)
    ask_for_slots(redis_client, 3)
    assert slots_asked_for(redis_client) == 3
    eventually(lambda: are_held_by(3))
    ask_for_slots(redis_client, 1)
    eventually(lambda: are_held_by(1))
    ask_for_slots(redis_client, None)
    assert slots_asked_for(redis_client) is None
    eventually(lambda: are_held_by(2))


@pytest.mark.parametrize("count", [0, -1, 65])
def test_a_number_of_slots_that_makes_no_sense_is_refused(redis_client: redis.Redis, count: int) -> None:
    with pytest.raises(InvalidInputError, match="slots must be a number from 1 to 64"):
        ask_for_slots(redis_client, count)
    assert slots_asked_for(redis_client) is None


@pytest.mark.parametrize("nonsense", ["many", "0", "65", "²", ""])
def test_nonsense_in_redis_counts_as_no_number(redis_client: redis.Redis, sent: Sent, nonsense: str) -> None:
    redis_client.set("rollway:slots", nonsense)
    with ExitStack() as stack:
        assert holding(stack, 2, [slots(redis_client, sent, count=2) for _ in range(3)])


def test_help_is_worth_asking_for_while_a_slot_is_free(redis_client: redis.Redis, sent: Sent) -> None:
    two = slots(redis_client, sent, count=2), slots(redis_client, sent, count=2)
    with two[0].hold("x", "x"):
        assert two[0].is_one_free("x")
        with two[1].hold("x", "x"):
            assert not two[0].is_one_free("x")
        assert two[0].is_one_free("x")
        assert not slots(redis_client, sent).is_one_free("x")
        assert not two[0].is_one_free(None), "whoever runs a handler without a lock needs no slot"


def test_a_handler_without_a_lock_id_holds_nothing(redis_client: redis.Redis, sent: Sent) -> None:
    with (
        slots(redis_client, sent).hold(None, "reconcile") as first,
        slots(redis_client, sent).hold(None, "reconcile") as second,
    ):
        assert first is not None
        assert second is not None
        assert first.is_held
        assert second.is_held
    assert redis_client.keys() == []


def test_a_lock_that_was_lost_is_found_lost(redis_client: redis.Redis, sent: Sent) -> None:
    with slots(redis_client, sent, seconds=3).hold("x", "x") as slot:
        assert slot is not None
        assert slot.is_held
        redis_client.flushall()
        eventually(lambda: not slot.is_held)


def test_only_the_owner_lets_go_and_only_the_owner_renews(redis_client: redis.Redis, sent: Sent) -> None:
    late, other = slots(redis_client, sent, seconds=0.3), slots(redis_client, sent, seconds=60)
    with late.hold("x", "x") as slot:
        assert slot is not None
        redis_client.delete(KEY)
        taken = other.hold("x", "x")
        assert taken.__enter__() is not None
        eventually(lambda: not slot.is_held)
        assert redis_client.pttl(KEY) > 50_000
    assert redis_client.exists(KEY), "the late one must not end the lock of its successor"
    taken.__exit__(None, None, None)
    assert not redis_client.exists(KEY)


def test_a_lock_lives_on_while_its_holder_works_and_no_longer(redis_client: redis.Redis, sent: Sent) -> None:
    with slots(redis_client, sent, seconds=3).hold("x", "x") as slot:
        assert slot is not None
        for _ in range(2):
            redis_client.pexpire(KEY, 2500)  # it is renewed each second: there is time for a renewal that comes late
            eventually(lambda: redis_client.pttl(KEY) > 2500)
        assert slot.is_held
    assert not redis_client.exists(KEY)
    eventually(lambda: renewing() == 0)


def renewing() -> int:
    """How many threads renew locks here."""
    return [thread.name for thread in threading.enumerate()].count("lock renewal")


def test_all_that_a_worker_holds_is_renewed_by_one_thread(redis_client: redis.Redis, sent: Sent) -> None:
    eventually(lambda: renewing() == 0, what="threads of other tests to end")
    worker = slots(redis_client, sent, seconds=3)
    keys = (KEY, KEY.replace("x", "y"))
    with worker.hold("x", "x"), worker.hold("y", "y"):
        for key in keys:
            redis_client.pexpire(key, 2500)
        eventually(lambda: all(redis_client.pttl(key) > 2500 for key in keys))
        assert renewing() == 1


def test_a_renewal_that_is_under_way_when_the_work_ends_has_lost_nothing(
    redis_client: redis.Redis, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    reacquire, under_way, goes_on = Lock.reacquire, threading.Event(), threading.Event()

    def reacquire_slowly(lock: Lock) -> bool:
        under_way.set()
        goes_on.wait(60)
        return bool(reacquire(lock))

    monkeypatch.setattr(Lock, "reacquire", reacquire_slowly)
    with slots(redis_client, sent, seconds=3).hold("x", "x") as slot:
        assert slot is not None
        assert under_way.wait(60)
        threading.Timer(0.1, goes_on.set).start()
    eventually(lambda: renewing() == 0)
    assert slot.is_held
    assert not redis_client.exists(KEY)


def test_the_lock_of_a_worker_that_was_killed_ends_by_itself(redis_client: redis.Redis, sent: Sent) -> None:
    lock = redis_client.lock(KEY, timeout=0.2, thread_local=False)
    assert lock.acquire(blocking=False)

    def free() -> bool:
        with slots(redis_client, sent).hold("x", "x") as slot:
            return slot is not None

    assert not free()
    eventually(free)
