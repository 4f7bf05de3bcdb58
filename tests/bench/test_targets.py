"""Targets are met, missed, or missed by no more than what the passes differ among themselves."""

import subprocess
import sys
import time

import psutil
import pytest

from tools.bench.__main__ import SECTIONS
from tools.bench.passes import in_turns, middle
from tools.bench.processor import children_seconds, processor_seconds
from tools.bench.targets import TARGETS, Verdict, judged

FLOOR = "mutating over floor, 100"
TOGETHER = "two over one, rollouts"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1.5, 1.7, 1.8], Verdict.MET),
        ([1.4, 1.8, 1.9], Verdict.WITHIN_NOISE),
        ([1.8, 1.8, 1.9], Verdict.MISSED),
        ([], Verdict.NOT_MEASURED),
    ],
)
def test_a_target_is_missed_by_more_than_its_noise_or_not_at_all(values: list[float], verdict: Verdict) -> None:
    found = {judgement.target.name: judgement for judgement in judged("cycle", {FLOOR: values})}
    assert found[FLOOR].verdict is verdict
    assert len(found) == sum(target.section == "cycle" for target in TARGETS)


@pytest.mark.parametrize(
    ("values", "cores", "verdict"),
    [
        ([1.71, 1.72, 1.9], 4, Verdict.MET),
        ([1.4, 1.5, 1.6], 4, Verdict.MISSED),
        ([1.4, 1.5, 1.6], 2, Verdict.NOT_MEASURED),
    ],
)
def test_at_least_so_much_is_judged_where_there_are_cores_for_it(
    values: list[float], cores: int, verdict: Verdict
) -> None:
    (found,) = (each for each in judged("storm", {TOGETHER: values}, cores) if each.target.name == TOGETHER)
    assert found.verdict is verdict


def test_every_target_is_of_a_section_and_has_a_name_of_its_own() -> None:
    assert {target.section for target in TARGETS} <= set(SECTIONS)
    assert len({(target.section, target.name) for target in TARGETS}) == len(TARGETS)


def test_cases_take_turns_and_a_row_is_made_of_medians() -> None:
    order: list[str] = []
    numbers = iter(range(6))

    def run(case: str) -> int:
        order.append(case)
        return next(numbers)

    assert in_turns(3, "ab", run) == {"a": [0, 2, 4], "b": [1, 3, 5]}
    assert order == list("ababab")
    rows = [{"what": "a", "seconds": 1.0, "wait": None}, {"what": "a", "seconds": 9.0, "wait": 5}]
    assert middle([*rows, {"what": "a", "seconds": 2.0, "wait": None}]) == {"what": "a", "seconds": 2.0, "wait": 5}


def test_processor_time_is_told_of_a_process_and_of_those_below_it() -> None:
    works = "import time\nwhile time.process_time() < 0.3: pass\nprint(time.process_time(), flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", works], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin
        assert child.stdout
        told = float(child.stdout.readline())
        itself, above = psutil.Process(child.pid), psutil.Process()
        assert told <= processor_seconds(itself) < told + 5
        assert children_seconds(above) >= told
        assert processor_seconds(above) >= told + time.process_time() / 2
        child.stdin.close()
