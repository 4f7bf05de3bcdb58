"""Two proxies with one id are told from one that lost a connection, or is restarted hot."""

import asyncio

from sqlalchemy import create_engine

from api.proxies.proxy_liveness import Doubles
from api.proxies.recorder import Recorder
from api.proxies.server_metrics import Observed
from traffic.resources import Watermark


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


def test_the_two_processes_of_an_envoy_that_is_restarted_hot_are_one_proxy() -> None:
    doubles = Doubles()
    with doubles.open_stream("edge", "10.0.0.3:9902") as old, doubles.open_stream("edge", "10.0.0.3:9902") as new:
        for _ in range(3):
            old()
            new()
        assert not doubles.are_two("edge")
        with doubles.open_stream("edge", "10.0.0.4:9902"):
            new()
            old()
            assert doubles.are_two("edge")


def test_a_proxy_knows_only_what_both_of_its_processes_know() -> None:
    async def known() -> list[int | None]:
        recorder = Recorder(create_engine("postgresql+psycopg://"), Observed(), lambda: None)
        found: list[int | None] = []

        def says(stream: str, number: int) -> None:
            recorder.knows("edge", Watermark(number, "1:1:", f"v{number}"), is_news=True, by=stream)
            found.append(mark.number if (mark := recorder.watermark("edge")) else None)

        with recorder.hears_of("edge", "old"):
            says("old", 1)
            with recorder.hears_of("edge", "new"):
                says("old", 2)  # the new one holds it not yet
                says("new", 2)
                says("new", 3)
                says("old", 4)
                says("new", 6)
            says("old", 5)
        with recorder.hears_of("edge", "again"):
            says("again", 7)
        return found

    assert asyncio.run(known()) == [1, 1, 2, 2, 3, 4, 5, 7]
