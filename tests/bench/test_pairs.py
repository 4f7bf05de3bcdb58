"""A verdict over pairs is given only where chance would hardly give it."""

import random
import subprocess
import sys

import pytest

from tools.bench.against.pairs import LEAST, Than, compared


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([0.9] * 10, Than.FASTER),
        ([0.9] * 9 + [3.0], Than.FASTER),
        ([0.9] * 8 + [1.1] * 2, Than.UNKNOWN),
        ([1.02] * 9 + [0.5], Than.SLOWER),
        ([0.7, 1.3] * 5, Than.UNKNOWN),
        ([0.9] * 15 + [1.1] * 5, Than.FASTER),
    ],
)
def test_one_pair_of_ten_may_say_otherwise_and_five_of_twenty(ratios: list[float], verdict: Than) -> None:
    assert compared(ratios).verdict is verdict


def test_the_same_work_is_called_faster_or_slower_less_than_once_in_twenty_times() -> None:
    dice = random.Random(7)
    found = [compared([dice.lognormvariate(0, 0.3) for _ in range(LEAST)]).verdict for _ in range(4_000)]
    assert sum(verdict is not Than.UNKNOWN for verdict in found) / len(found) < 0.05


@pytest.mark.parametrize(
    ("said", "told"),
    [(["no-such-commit"], "COMMIT: git knows no no-such-commit here"), (["HEAD", "--pairs", "9"], "9 cannot tell")],
)
def test_what_it_cannot_do_is_told_at_once(said: list[str], told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.bench.against", *said], capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0, told in done.stderr) == (True, True)
