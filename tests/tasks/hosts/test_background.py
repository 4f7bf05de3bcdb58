"""What a worker looks after from a thread of its own."""

import threading

from tasks.hosts.background import keep_looking


def test_what_a_look_raises_is_no_end_and_the_end_is_when_it_is_said() -> None:
    looks: list[int] = []
    until = threading.Event()

    def look() -> None:
        looks.append(len(looks))
        if len(looks) == 1:
            raise MemoryError("for now")
        until.set()

    thread = keep_looking(look, 0, until, name="test", trouble="not looked", host="east")
    thread.join(30)
    assert not thread.is_alive()
    assert looks == [0, 1]
