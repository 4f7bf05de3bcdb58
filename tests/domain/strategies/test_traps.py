"""The traps of rollouts that others fell into, each with the tests that show it; ELSEWHERE needs real parts."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]

TRAPS = {
    "swap and READY in two transactions": ("test_trap_swap_and_ready_are_one_decision",),
    "the clock taken from history": (
        "test_trap_the_clock_is_the_rollouts_own_and_a_wait_moves_nothing",
        "test_trap_a_second_rollout_does_not_inherit_the_clock_of_the_first",
    ),
    "mutating cycles exempt from the deadline": (
        "test_trap_a_mutating_cycle_is_not_exempt_from_the_deadline_and_nothing_of_it_is_applied",
        "test_trap_routes_that_fail_at_once_end_the_rollout_instead_of_being_created_for_ever",
    ),
    "one 'something changed' flag for a whole batch": (
        "test_trap_no_flag_for_a_whole_batch_each_deployment_gets_its_own_verdict",
    ),
    "rollback that only clears a pointer": (
        "test_trap_a_rollback_is_a_rollout_and_ends_only_when_the_current_revision_is_complete_and_alone",
        "test_trap_a_rollback_never_stops_the_side_that_serves",
        "test_trap_a_blue_green_rollback_never_stops_the_side_that_serves",
    ),
    "scaling that counts routes whatever their revision or traffic": (
        "test_trap_scaling_does_not_count_routes_whatever_their_revision_or_traffic",
    ),
    "activation accepted while destroying": (
        "test_trap_no_activation_is_accepted_while_destroying",
        "test_trap_destroying_finds_what_a_cycle_in_flight_created",
    ),
    "float percent": (
        "test_trap_percents_are_integers_surge_up_unavailable_down",
        "test_trap_every_percent_of_100_is_itself",
    ),
    "a new health state in no bucket": (
        "test_trap_a_health_state_that_nobody_thought_of_is_counted_and_drained_first",
        "test_trap_a_health_state_in_no_bucket_would_create_without_end",
    ),
    "a probe that looks only at running routes, and a gate that waits for it": (
        "test_trap_a_probe_changes_what_the_gate_waits_for",
    ),
    "a start delay counted from the row's creation": (
        "test_trap_a_start_delay_counts_from_the_start_of_the_replica_and_not_from_its_row",
    ),
    "old routes that never came up": (
        "test_trap_old_replicas_that_never_came_up_neither_hold_the_budget_nor_are_refilled",
    ),
    "naive timestamps": ("test_trap_naive_timestamps_are_found_by_the_first_comparison",),
    "manual promotion rolled back by a generic timeout": (
        "test_trap_a_manual_promotion_is_never_rolled_back_by_a_generic_timeout",
        "test_trap_waiting_for_a_person_is_never_rolled_back_by_a_timeout",
    ),
}

ELSEWHERE = {
    "swap and READY in two transactions": "test_the_swap_and_ready_are_one_transaction",
    "the clock taken from history": "test_a_second_rollout_does_not_inherit_the_clock_or_the_failures_of_the_first",
    "mutating cycles exempt from the deadline": "test_a_timeout_takes_everything_back_within_the_budget",
    "activation accepted while destroying": "test_destroying_in_the_middle_of_a_rollout",
    "a probe that looks only at running routes, and a gate that waits for it": (
        "test_a_replica_is_started_becomes_healthy_breaks_and_mends"
    ),
    "a start delay counted from the row's creation": (
        "test_a_replica_that_never_gets_well_is_failed_at_its_start_deadline"
    ),
}


def names_in(folder: Path) -> Iterator[str]:
    for file in folder.rglob("test_*.py"):
        yield from re.findall(r"^\s*def (test_\w+)", file.read_text(), re.MULTILINE)


IN_THE_DOMAIN = set(names_in(TESTS / "domain"))


@pytest.mark.parametrize("trap", TRAPS)
def test_each_trap_is_shown_by_tests_named_after_it(trap: str) -> None:
    assert set(TRAPS[trap]) <= IN_THE_DOMAIN


def test_every_test_of_a_trap_is_in_the_table() -> None:
    listed = {name for names in TRAPS.values() for name in names}
    assert {name for name in IN_THE_DOMAIN if name.startswith("test_trap_")} == listed


def test_what_needs_real_parts_is_shown_where_they_are() -> None:
    everywhere = set(names_in(TESTS)) - IN_THE_DOMAIN
    assert set(ELSEWHERE) <= set(TRAPS)
    assert set(ELSEWHERE.values()) <= everywhere
