"""How long a runtime that gives no answer is left alone."""

from domain.replicas.health import pause_after


def test_each_try_waits_longer_and_none_longer_than_ten_seconds() -> None:
    assert [pause_after(tries).total_seconds() for tries in (1, 2, 3, 4, 5, 6, 10_000)] == [1, 2, 4, 8, 10, 10, 10]
