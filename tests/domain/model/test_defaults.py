"""What a policy leaves out."""

from domain.strategies.builtin import STRATEGIES, parse_policy


def test_what_a_policy_leaves_out_is_careful() -> None:
    spec = {name: parse_policy({"strategy": name}).as_json()["spec"] for name in STRATEGIES}
    assert spec["rolling_update"] == {
        "max_surge": 1,
        "max_unavailable": 0,
        "undo_max_surge": None,
        "pacing": "wave",
        "min_ready_seconds": 0,
        "count_stopping": False,
        "sleep_seconds": 0,
    }
    assert spec["blue_green"]["auto_promote"] is False
    assert spec["recreate"] == {"count_stopping": True}
