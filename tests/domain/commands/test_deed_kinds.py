"""A history filtered by kind: each deed of people is in one of them, and some are for admins alone."""

from itertools import chain

from domain.commands.registry import COMMANDS
from domain.model.deed_kinds import OF_ADMINS, PHASES

OF_PROGRAMS = {"push_metric", "report_route"}
"""Commands by which programs tell what they see; nobody filters by them."""
OF_MANY = {"apply"}
"""A file is recorded as what it does."""
RECORDED_AS = {"activate_revision": "activate", "create_deployment": "create"}
OF_HOSTS_AND_PEOPLE = {"invite_host", "join_host", "create_token", "revoke_token", "log_in", "log_out", "end_sessions"}
"""Deeds that no command of the registry does."""


def test_each_deed_is_of_one_kind_and_no_command_is_left_out() -> None:
    commands = {kind.task.removeprefix("rollway.") for kind in COMMANDS.values()} - OF_PROGRAMS - OF_MANY
    phases = list(chain.from_iterable(PHASES.values()))
    assert sorted(phases) == sorted({RECORDED_AS.get(name, name) for name in commands} | OF_HOSTS_AND_PEOPLE)


def test_what_moves_replicas_to_a_revision_and_back_is_found_under_rollouts() -> None:
    forward, back = ("activate", "rolling_update", "restart", "retry", "resume", "promote"), ("undo", "abort", "pause")
    assert sorted(PHASES["rollouts"]) == sorted((*forward, *back))
    assert set(PHASES) == {"rollouts", "settings", "freezes", "hosts", "subscriptions", "tokens", "sign-ins"}
    assert {"set_freeze", "delete_group"} < set(PHASES["freezes"])
    assert {"drain_host", "join_host"} < set(PHASES["hosts"])
    assert {"set_subscription", "resend_events"} < set(PHASES["subscriptions"])


def test_tokens_and_sign_ins_are_read_by_admins_alone() -> None:
    assert sorted(OF_ADMINS) == ["create_token", "end_sessions", "log_in", "log_out", "revoke_token"]
