"""What the spec of each strategy may be, for every search and law: a new strategy is one row here."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from hypothesis import strategies as st

AMOUNTS = st.one_of(
    st.sampled_from([1, 0, 1, "25%"]), st.integers(0, 13), st.integers(0, 120).map(lambda percent: f"{percent}%")
)
COUNTING = (False, True)
QUICK_JUDGE = {"at_least": {"requests": 1, "seconds": 0}, "at_most": {"seconds": 1}}
"""A judge that needs little and gives up soon."""


@dataclass(frozen=True, slots=True)
class Specs:
    """`arbitrary`: any that may be, for Hypothesis. `told`: of which it is told what they wait for.

    `searched`: from whose small starts all that can happen is looked through; empty where that is for `told`.
    """

    arbitrary: st.SearchStrategy[dict[str, Any]]
    told: Sequence[dict[str, Any]]
    searched: Sequence[dict[str, Any]] = ()


def _can_move(spec: dict[str, Any]) -> bool:
    """Neither a rollout nor an undo without room to move."""
    zero = {0, "0%"}
    return spec["max_unavailable"] not in zero or not {spec["max_surge"], spec.get("undo_max_surge")} & zero


SPECS: dict[str, Specs] = {
    "rolling_update": Specs(
        arbitrary=st.fixed_dictionaries(
            {
                "max_surge": AMOUNTS,
                "max_unavailable": AMOUNTS,
                "pacing": st.sampled_from(["wave", "continuous"]),
                "min_ready_seconds": st.sampled_from([0, 0, 10]),
                "count_stopping": st.booleans(),
                "undo_max_surge": st.none() | AMOUNTS,
            }
        ).filter(_can_move),
        told=(
            {},
            {"max_unavailable": 1, "min_ready_seconds": 7.5},
            {"pacing": "continuous", "max_surge": 2},
            {"pacing": "continuous", "min_ready_seconds": 30, "count_stopping": True},
        ),
        searched=[
            {"max_surge": surge, "max_unavailable": unavailable, "pacing": pacing, "count_stopping": counting}
            for surge, unavailable, pacing, counting in product((0, 1, 2), (0, 1, 2), ("wave", "continuous"), COUNTING)
            if surge or unavailable
        ]
        + [
            {"max_surge": "50%", "max_unavailable": "50%"},
            {"max_surge": 1, "max_unavailable": 0, "min_ready_seconds": 10, "undo_max_surge": "100%"},
            {"max_surge": 1, "max_unavailable": 1, "min_ready_seconds": 10, "pacing": "continuous"},
        ],
    ),
    "blue_green": Specs(
        arbitrary=st.fixed_dictionaries(
            {
                "auto_promote": st.booleans(),
                "promote_delay_seconds": st.sampled_from([0, 0, 10, 60]),
                "scale_down_delay_seconds": st.sampled_from([0, 60, 600]),
                "count_stopping": st.booleans(),
            }
        ),
        told=({}, {"auto_promote": True, "promote_delay_seconds": 60}, {"scale_down_delay_seconds": 90}),
        searched=[
            {"auto_promote": auto, "scale_down_delay_seconds": delay, "count_stopping": counting}
            for auto, delay, counting in product((False, True), (0, 60), COUNTING)
        ]
        + [{"auto_promote": True, "promote_delay_seconds": 10}],
    ),
    "recreate": Specs(
        arbitrary=st.just({}),
        told=({},),
    ),
    "canary": Specs(
        arbitrary=st.fixed_dictionaries(
            {
                "steps": st.sampled_from([["5%"], [{"weight": "5%", "seconds": 10}, "50%"], ["1%", "30%", "99.9%"]]),
                "replicas": st.sampled_from(["auto", "auto", 1, 3]),
                "mirror": st.sampled_from([None, None, {"share": "10%", "seconds": 10}]),
                "max_surge": st.sampled_from([1, 1, 2, "25%", "100%"]),
                "max_unavailable": AMOUNTS,
                "min_ready_seconds": st.sampled_from([0, 0, 10]),
                "count_stopping": st.booleans(),
                "undo_max_surge": st.none() | AMOUNTS,
            }
        ).filter(_can_move)
        | st.fixed_dictionaries(
            {
                "steps": st.sampled_from([["5%"], ["5%", "50%"], ["1%", "30%", "49.9%"]]),
                "replicas": st.sampled_from(["auto", "auto", 1]),
                "max_surge": st.sampled_from([2, 2, 3, 12]),
                "max_unavailable": AMOUNTS,
                "count_stopping": st.booleans(),
                "undo_max_surge": st.none() | AMOUNTS,
                "judge": st.sampled_from([{"baseline": "fresh", "if_undecided": then} for then in ("hold", "promote")]),
            }
        ).filter(_can_move),
        told=(
            {},
            {"steps": [{"weight": "5%", "seconds": 20}, "50%"], "min_ready_seconds": 10},
            {"steps": ["5%"], "mirror": {"share": "10%", "seconds": 15}, "replicas": 2, "count_stopping": True},
            {"steps": ["5%"], "judge": {"at_most": {"seconds": 90}}},
            {"steps": ["5%", "50%"], "judge": {"baseline": "fresh", "if_undecided": "abort"}, "max_surge": 4},
        ),
        searched=[
            {"steps": ["5%"], "max_surge": surge, "max_unavailable": unavailable, "count_stopping": counting}
            for surge, unavailable, counting in ((1, 0, False), (1, 1, True), (2, 0, False))
        ]
        + [{"steps": [{"weight": "5%", "seconds": 10}, "60%"]}]
        + [
            {"steps": ["5%"], "judge": {**QUICK_JUDGE, "if_undecided": undecided}}
            for undecided in ("hold", "promote", "abort")
        ]
        + [{"steps": ["60%"], "judge": {**QUICK_JUDGE, "if_undecided": "abort"}}]
        + [{"steps": ["50%"], "max_surge": 2, "undo_max_surge": 1, "judge": {**QUICK_JUDGE, "baseline": "fresh"}}],
    ),
}
