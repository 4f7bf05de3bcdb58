"""Two proxies with one id are told from one that lost a connection."""

from contextlib import ExitStack

from api.proxies.presence import Doubles


def test_two_proxies_overlap_each_other_in_turn() -> None:
    doubles = Doubles()
    with ExitStack() as polls, doubles.poll("edge"):
        second = polls.enter_context(ExitStack())
        second.enter_context(doubles.poll("edge"))
        assert not doubles.are_two("edge")
        with doubles.poll("edge"):
            assert doubles.are_two("edge")
            assert not doubles.are_two("another")


def test_a_poll_that_was_left_behind_is_overlapped_once_by_the_proxy_that_came_back() -> None:
    doubles = Doubles()
    with doubles.poll("edge"):
        for _ in range(5):
            with doubles.poll("edge"):
                assert not doubles.are_two("edge")


def test_a_proxy_that_polls_again_and_again_is_one() -> None:
    doubles = Doubles()
    for _ in range(5):
        with doubles.poll("edge"):
            assert not doubles.are_two("edge")
