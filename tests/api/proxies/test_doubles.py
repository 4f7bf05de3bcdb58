"""Two proxies with one id are told from one that lost a connection."""

from api.proxies.presence import Doubles


def test_two_proxies_speak_on_in_turn() -> None:
    doubles = Doubles()
    with doubles.open_stream("edge") as first, doubles.open_stream("edge") as second:
        first()
        assert not doubles.are_two("edge")
        second()
        first()
        assert doubles.are_two("edge")
        assert not doubles.are_two("another")


def test_a_stream_that_was_left_behind_says_nothing_more() -> None:
    doubles = Doubles()
    with doubles.open_stream("edge") as left:
        left()
        for _ in range(5):
            with doubles.open_stream("edge") as newer:
                newer()
                newer()
                assert not doubles.are_two("edge")


def test_a_proxy_that_comes_again_and_again_is_one() -> None:
    doubles = Doubles()
    for _ in range(5):
        with doubles.open_stream("edge") as speaks:
            speaks()
            assert not doubles.are_two("edge")
