"""No event is lost that found all slots of its handler taken."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis

from tasks.redis.locks import Slots
from tests.support.stack.slots import KEY, Sent, slots


def test_a_note_outlives_the_longest_hold(redis_client: redis.Redis, sent: Sent) -> None:
    with slots(redis_client, sent, seconds=3).hold("x", "x"):
        with slots(redis_client, sent, seconds=3).hold("x", "x") as other:
            assert other is None
        assert int(redis_client.ttl("rollway:again:x")) >= 60


def test_events_that_found_all_slots_taken_are_sent_once_more_each(redis_client: redis.Redis, sent: Sent) -> None:
    mine = slots(redis_client, sent)
    with mine.hold("deploying", "deploying/provisioning"):
        for key in ("deploying/provisioning", "deploying/rolling_back", "deploying/provisioning"):
            with mine.hold("deploying", key) as slot:
                assert slot is None
        assert sent == []
    assert sorted(sent) == ["deploying/provisioning", "deploying/rolling_back"]
    with mine.hold("deploying", "deploying/provisioning"):
        pass
    assert len(sent) == 2


def test_they_are_sent_even_when_the_holder_failed(redis_client: redis.Redis, sent: Sent) -> None:
    mine = slots(redis_client, sent)

    def fail() -> None:
        with mine.hold("x", "a"):
            with mine.hold("x", "b"):
                pass
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert sent == ["b"]
    assert not redis_client.exists(KEY)


class SomebodyElseFirst(redis.Redis):
    """A client that lets something happen before it leaves a note."""

    first: Callable[[], object] = int

    def pipeline(self, *arguments: Any, **options: Any) -> Any:
        first, self.first = self.first, int
        first()
        return super().pipeline(*arguments, **options)


def test_a_holder_that_lets_go_just_before_the_note_is_left_is_noticed(
    redis_client: redis.Redis, redis_url: str, sent: Sent
) -> None:
    holder = slots(redis_client, sent).hold("x", "a")
    assert holder.__enter__() is not None
    with SomebodyElseFirst.from_url(redis_url) as late:
        late.first = lambda: holder.__exit__(None, None, None)
        with slots(late, sent).hold("x", "b") as slot:
            assert slot is not None, "nobody would ever read the note"
    assert sent == []


def test_no_event_is_lost_among_four_threads(redis_client: redis.Redis, redis_url: str) -> None:
    """Each event asks for work to be done after it: the number it adds must be seen by a later holder."""
    asked, done, guard = [0], [0], threading.Lock()
    queue: list[str] = []

    def run(own: Slots) -> None:
        with own.hold("x", "x") as slot:
            if slot is not None:
                seen = asked[0]
                time.sleep(0)  # others come in between
                with guard:
                    done[0] = max(done[0], seen)

    def work() -> None:
        with redis.Redis.from_url(redis_url) as mine:
            own = Slots(mine, 1, 5, queue.extend)
            for _ in range(150):
                with guard:
                    asked[0] += 1
                run(own)
                while queue:
                    try:
                        queue.pop()
                    except IndexError:
                        break
                    run(own)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    while queue:
        queue.pop()
        run(Slots(redis_client, 1, 5, queue.extend))
    assert (asked[0], done[0]) == (600, 600)
    assert redis_client.keys("rollway:lock:*") == []
