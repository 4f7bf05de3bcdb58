"""The table of seven cycles, n=3 s=1 u=1, read and stepped through."""

from datetime import timedelta

import pytest

from domain.cycle.transitions import RevisionMove
from domain.handlers.dispatch import cycle
from domain.model.decision import RouteChanges
from domain.model.picture import picture
from domain.model.states import Verdict
from tests.support.pictures.pictures import NOW, READY, V2, deploying
from tests.support.pictures.simulation import all_started, applied

N3_S1_U1 = """
| 0 | ■■■ |     | create 1, drain 1      |
| 1 | ■■  | ◇   | wait                   |
| 2 | ■■  | ■   | create 1, drain 1      |
| 3 | ■   | ■◇  | wait                   |
| 4 | ■   | ■■  | create 1, drain 1      |
| 5 |     | ■■◇ | wait                   |
| 6 |     | ■■■ | completed, swap, ready |
"""

N3_S1_U0 = """
| 0 | ■■■ |     | create 1               |
| 1 | ■■■ | ◇   | wait                   |
| 2 | ■■■ | ■   | drain 1                |
| 3 | ■■  | ■   | create 1               |
| 4 | ■■  | ■◇  | wait                   |
| 5 | ■■  | ■■  | drain 1                |
| 6 | ■   | ■■  | create 1               |
| 7 | ■   | ■■◇ | wait                   |
| 8 | ■   | ■■■ | drain 1                |
| 9 |     | ■■■ | completed, swap, ready |
"""

N2_S0_U1 = """
| 0 | ■■ |    | drain 1                |
| 1 | ■  |    | create 1               |
| 2 | ■  | ◇  | wait                   |
| 3 | ■  | ■  | drain 1                |
| 4 |    | ■  | create 1               |
| 5 |    | ■◇ | wait                   |
| 6 |    | ■■ | completed, swap, ready |
"""

CONTINUOUS_N3_S1_U1 = """
| 0 | ■■■ |     | create 1, drain 1      |
| 1 | ■■  | ◇   | create 1               |
| 2 | ■■  | ◇◇  | wait                   |
| 3 | ■■  | ■■  | drain 2                |
| 4 |     | ■■  | create 1               |
| 5 |     | ■■◇ | wait                   |
| 6 |     | ■■■ | completed, swap, ready |
"""


def said(changes: RouteChanges) -> str:
    parts = []
    if changes.created:
        parts.append(f"create {changes.created}")
    if changes.drain_route_ids:
        parts.append(f"drain {len(changes.drain_route_ids)}")
    return ", ".join(parts)


@pytest.mark.parametrize(
    ("table", "n", "s", "u", "pacing"),
    [
        pytest.param(N3_S1_U1, 3, 1, 1, "wave", id="n=3 s=1 u=1, of the README"),
        pytest.param(N3_S1_U0, 3, 1, 0, "wave", id="nothing may be missing"),
        pytest.param(N2_S0_U1, 2, 0, 1, "wave", id="nothing may be added"),
        pytest.param(CONTINUOUS_N3_S1_U1, 3, 1, 1, "continuous", id="continuous"),
    ],
)
def test_a_rollout_goes_as_the_table_says(table: str, n: int, s: int, u: int, pacing: str) -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()]
    now = NOW
    deployment = deploying("■" * n + "|", n, s, u, spec={"pacing": pacing})
    for _number, old, new, happens in rows:
        now += timedelta(seconds=5)
        drawn = picture(deployment.routes, deployment.current_revision_id, deployment.deploying_revision_id)
        assert drawn == f"{old}|{new}"
        decision = cycle(deployment, now)
        without = {Verdict.SUCCESS: "completed, swap, ready", Verdict.SKIPPED: "wait"}
        words = without.get(decision.verdict, said(decision.changes))
        assert (drawn, words) == (drawn, happens)
        deployment = applied(decision, now)
        if decision.verdict is Verdict.SKIPPED:
            deployment = all_started(deployment, now)
    assert (deployment.status, deployment.current_revision_id, decision.revision) == (READY, V2, RevisionMove.SWAP)
    assert deployment.deploying_revision_id is None
    assert deployment.rollout is None
