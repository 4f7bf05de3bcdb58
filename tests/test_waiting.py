"""The one way in which tests wait."""

import time

import httpx
import pytest

from tests.support.stack.waiting import NotInTimeError, eventually


def test_the_first_true_result_is_returned() -> None:
    results = iter([0, "", "found", "more"])
    assert eventually(lambda: next(results)) == "found"


def test_a_condition_that_does_not_come_true_is_named() -> None:
    began = time.monotonic()
    with pytest.raises(NotInTimeError, match=r"^not within 0.1 s: a miracle$"):
        eventually(lambda: False, 0.1, "a miracle")
    assert time.monotonic() - began >= 0.1


def test_a_server_that_is_away_is_waited_for_and_every_other_error_is_raised() -> None:
    with pytest.raises(NotInTimeError) as failed:
        eventually(lambda: httpx.get("http://127.0.0.1:1/"), 0.1)
    assert isinstance(failed.value.__cause__, httpx.ConnectError)
    with pytest.raises(ZeroDivisionError):
        eventually(lambda: 1 / 0)
