"""`rollway slots`, against a real Valkey."""

import json

import pytest

from tests.cli.conftest import Rollway

pytestmark = pytest.mark.usefixtures("servers")


def test_the_number_of_workers_that_share_a_handler_is_shown_set_and_given_back(rollway: Rollway) -> None:
    assert "ROLLWAY_SLOTS" in rollway("slots").out
    assert rollway("slots", "4").out == "4 for each handler\n"
    assert json.loads(rollway("slots", "--json").out) == {"slots": 4}
    rollway("slots", "--reset")
    assert json.loads(rollway("slots", "--json").out) == {"slots": None}


@pytest.mark.parametrize("wrong", [["0"], ["65"], ["many"], ["3", "--reset"]])
def test_a_number_that_makes_no_sense_is_refused(rollway: Rollway, wrong: list[str]) -> None:
    assert rollway("slots", *wrong).code == 2
