"""What Postgres itself refuses, whoever asks: each CHECK with a statement that breaks it."""

from typing import LiteralString

import psycopg
import pytest
from sqlalchemy import Engine

from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import ask, make_deployment, read, write

IN_A_ROLLOUT = "WHERE name = 'rolls'"
AT_REST = "WHERE name = 'rests'"
A_ROUTE = (
    "WHERE id = (SELECT r.id FROM routes r JOIN deployments d ON d.id = r.deployment_id WHERE d.name = 'rests' LIMIT 1)"
)

BROKEN: dict[LiteralString, str] = {
    f"UPDATE deployments SET desired_replicas = -1 {AT_REST}": "deployments_desired_replicas_check",
    f"UPDATE deployments SET lifecycle = 'melting' {AT_REST}": "deployments_lifecycle_check",
    f"UPDATE deployments SET sub_step = 'pondering' {IN_A_ROLLOUT}": "deployments_sub_step_check",
    f"UPDATE deployments SET deploying_revision_id = NULL {IN_A_ROLLOUT}": "deployments_deploying_has_revision_check",
    f"UPDATE deployments SET rollout_id = NULL {IN_A_ROLLOUT}": "deployments_deploying_has_rollout_check",
    f"UPDATE deployments SET sub_step = NULL {IN_A_ROLLOUT}": "deployments_deploying_has_sub_step_check",
    f"UPDATE deployments SET sub_step = 'provisioning' {AT_REST}": "deployments_deploying_has_sub_step_check",
    f"UPDATE deployments SET deploying_revision_id = current_revision_id {IN_A_ROLLOUT}": (
        "deployments_deploying_is_another_revision_check"
    ),
    f"UPDATE deployments SET current_revision_id = NULL {AT_REST}": "deployments_working_has_revision_check",
    f"UPDATE deployments SET paused_at = now() {AT_REST}": "deployments_only_rollouts_pause_check",
    f"UPDATE deployments SET degraded_reason = 'tired' {AT_REST}": "deployments_degraded_is_retried_check",
    f"UPDATE deployments SET retry_at = now() {AT_REST}": "deployments_degraded_is_retried_check",
    f"UPDATE deployments SET failed_starts = -1 {AT_REST}": "deployments_failed_starts_check",
    f"UPDATE deployments SET failed_starts = 1 {AT_REST}": "deployments_failed_starts_check",
    "UPDATE rollouts SET to_revision_id = from_revision_id": "rollouts_goes_somewhere_check",
    "UPDATE rollouts SET floor = -1": "rollouts_budget_check",
    "INSERT INTO held_devices VALUES (uuidv7(), 'gpu', '0', 'h', 0)": "held_devices_amount_check",
    "UPDATE rollouts SET floor = ceiling + 1": "rollouts_budget_check",
    "UPDATE rollouts SET outcome = 'vanished', ended_at = now()": "rollouts_outcome_check",
    "UPDATE rollouts SET ended_at = now()": "rollouts_ended_has_outcome_check",
    "UPDATE rollouts SET outcome = 'completed'": "rollouts_ended_has_outcome_check",
    "UPDATE rollouts SET outcome = 'completed', ended_at = now(), clock_stopped_at = now()": (
        "rollouts_ended_clock_runs_no_more_check"
    ),
    "UPDATE rollouts SET weight = 10000": "rollouts_weight_check",
    "UPDATE rollouts SET unanswered = -1": "rollouts_unanswered_check",
    f"UPDATE routes SET status = 'melted' {A_ROUTE}": "routes_status_check",
    f"UPDATE routes SET traffic_status = 'some' {A_ROUTE}": "routes_traffic_status_check",
    f"UPDATE routes SET traffic_ratio = 1.5 {A_ROUTE}": "routes_traffic_ratio_check",
    f"UPDATE routes SET seat = -1 {A_ROUTE}": "routes_seat_check",
    f"UPDATE routes SET status = 'failed', status_reason = 'broke' {A_ROUTE}": "routes_gone_has_no_traffic_check",
    f"UPDATE routes SET status = 'terminating', traffic_status = 'inactive', drain_started_at = NULL {A_ROUTE}": (
        "routes_terminating_drains_check"
    ),
    f"UPDATE routes SET started_at = NULL {A_ROUTE}": "routes_running_was_started_check",
    f"UPDATE routes SET status = 'terminated', traffic_status = 'inactive' {A_ROUTE}": (
        "routes_terminated_was_stopped_check"
    ),
    f"UPDATE routes SET status = 'failed', traffic_status = 'inactive', status_reason = '' {A_ROUTE}": (
        "routes_failed_says_why_check"
    ),
    f"UPDATE routes SET parked_until = now() {A_ROUTE}": "routes_parked_is_out_of_traffic_check",
    f"INSERT INTO drain_looks SELECT id, 1, 2 FROM routes {A_ROUTE}": "drain_looks_counts_check",
    "INSERT INTO intervals SELECT id, 1, now(), 2, 3, 2, 0, 0, 0 FROM rollouts": "intervals_counts_check",
    """
    WITH i AS (INSERT INTO intervals SELECT id, 1, now(), 2, 2, 2, 0, 0, 0 FROM rollouts RETURNING rollout_id)
    INSERT INTO answers SELECT rollout_id, 1, rollout_id, 1, -1, 0, '{}', 1, 0, 0, 0, 0 FROM i
    """: "answers_counts_check",
    "INSERT INTO rollout_steps SELECT id, 1, 'x', now(), 'perhaps', '{}', '{}' FROM rollouts": (
        "rollout_steps_verdict_check"
    ),
    "INSERT INTO rollout_steps SELECT id, 1, 'x', now(), 'success', '{}', '{}', 1 FROM rollouts": (
        "rollout_steps_whole_step_check"
    ),
    """
    INSERT INTO deployment_history (deployment_id, phase, result, target, actor, message, attempts)
    SELECT id, 'x', 'x', 'x', 'x', 'x', 0 FROM deployments
    """: "deployment_history_attempts_check",
    "INSERT INTO certificates (deployment_id, kind, name) SELECT id, 'x', '' FROM deployments": (
        "certificates_kind_check"
    ),
    "UPDATE autoscaling_rules SET source = 'guessed'": "autoscaling_rules_source_check",
    "UPDATE autoscaling_rules SET aggregate = 'median'": "autoscaling_rules_aggregate_check",
    "UPDATE autoscaling_rules SET comparator = '<>'": "autoscaling_rules_comparator_check",
    "UPDATE autoscaling_rules SET threshold = 'NaN'": "autoscaling_rules_threshold_check",
    "UPDATE autoscaling_rules SET step = 0": "autoscaling_rules_step_check",
    "UPDATE autoscaling_rules SET min_replicas = max_replicas + 1": "autoscaling_rules_replicas_check",
    "UPDATE autoscaling_rules SET cooldown_seconds = -1": "autoscaling_rules_seconds_check",
    "UPDATE metric_values SET value = 'Infinity'": "metric_values_value_check",
    "UPDATE metric_values SET missing = -1": "metric_values_missing_check",
    f"UPDATE deployments SET request_timeout_seconds = 0 {AT_REST}": "deployments_request_timeout_check",
    f"UPDATE deployments SET hedge_after_seconds = 0 {AT_REST}": "deployments_hedge_check",
    f"UPDATE deployments SET idle_timeout_seconds = 0 {AT_REST}": "deployments_idle_timeout_check",
    f"UPDATE deployments SET protocol = 'http9' {AT_REST}": "deployments_protocol_check",
    "INSERT INTO entrances SELECT 'smell', 'x', id FROM deployments": "entrances_kind_check",
    "INSERT INTO proxies (node_id, kind, silence_seconds) VALUES ('edge', 'envoy', 0)": "proxies_silence_seconds_check",
    "INSERT INTO tokens VALUES ('t', 'short', 'viewer', DEFAULT, 'a')": "tokens_hash_check",
    "INSERT INTO tokens VALUES ('t', sha256('s'), 'king', DEFAULT, 'a')": "tokens_role_check",
    "WITH t AS (INSERT INTO tokens VALUES ('t', sha256('s'), 'viewer', DEFAULT, 'a') RETURNING name)"
    " INSERT INTO sessions SELECT 'short', name, now() FROM t": "sessions_hash_check",
    "WITH t AS (INSERT INTO tokens VALUES ('t', sha256('s'), 'viewer', DEFAULT, 'a') RETURNING name)"
    " INSERT INTO login_links SELECT 'short', name, now() FROM t": "login_links_hash_check",
    "INSERT INTO host_invitations VALUES ('short', '', 'a', now())": "host_invitations_hash_check",
    "INSERT INTO hosts (name, address, silent_looks) VALUES ('rack', 'h', -1)": "hosts_silent_looks_check",
    "INSERT INTO hosts (name, address, deaf_looks) VALUES ('rack', 'h', -1)": "hosts_deaf_looks_check",
    "INSERT INTO installation (contract, is_only) VALUES (1, false)": "installation_is_only_check",
    "INSERT INTO beat (is_only) VALUES (false)": "beat_is_only_check",
    "UPDATE subscriptions SET webhook = NULL": "subscriptions_goes_one_way_check",
    "UPDATE subscriptions SET task = 'told'": "subscriptions_goes_one_way_check",
    "UPDATE subscriptions SET queue = 'celery'": "subscriptions_goes_one_way_check",
    "UPDATE subscriptions SET give_up_after_seconds = 0": "subscriptions_give_up_after_seconds_check",
    "INSERT INTO receipts SELECT id, id, 0, '', '' FROM deployments": "receipts_number_check",
    "UPDATE outbox SET tries = -1": "outbox_tries_check",
    "UPDATE freezes SET cron = NULL": "freezes_has_one_window_check",
    "UPDATE freezes SET time_zone = NULL": "freezes_has_one_window_check",
    "UPDATE freezes SET starts_at = now(), ends_at = now() + interval '1 day'": "freezes_has_one_window_check",
    "UPDATE freezes SET starts_at = now()": "freezes_has_one_window_check",
    "UPDATE freezes SET duration_seconds = 0": "freezes_lasts_check",
    "UPDATE freezes SET cron = NULL, time_zone = NULL, duration_seconds = NULL, starts_at = now(), ends_at = now()": (
        "freezes_lasts_check"
    ),
    "UPDATE deployment_groups SET most_at_once = 0": "deployment_groups_most_at_once_check",
    "UPDATE outbox SET given_up_at = now()": "outbox_given_up_says_why_check",
    "UPDATE preparations SET state = 'begun', started_at = now()": "preparations_state_check",
    "UPDATE preparations SET state = 'running'": "preparations_has_started_check",
    "UPDATE preparations SET state = 'done', started_at = now()": "preparations_has_ended_check",
}


def test_postgres_refuses_a_row_that_breaks_a_check(engine: Engine, subtests: pytest.Subtests) -> None:
    make_deployment(engine, "■■■|", name="rolls", status=PROVISIONING)
    make_deployment(engine, "■■■", name="rests")
    rule = {"metric": "load", "source": "pushed", "comparator": ">", "threshold": 1, "step": 1, "max_replicas": 3}
    ask(engine, "set_autoscaling_rules", deployment="rests", rules=[rule])
    ask(engine, "push_metric", deployment="rests", metric="load", value=1)
    ask(engine, "set_subscription", subscription="ci", webhook="ci")
    ask(engine, "set_freeze", freeze="night", cron="0 22 * * *", duration_seconds=60, deployments=["nobody"])
    ask(engine, "set_group", group="shop", deployments=["rests"])
    ask(engine, "scale", deployment="rests", desired_replicas=4)
    query = (
        "INSERT INTO preparations (revision_id, deployment_id, host) SELECT id, deployment_id, 'here' FROM revisions"
    )
    write(engine, query)
    for statement, constraint in BROKEN.items():
        with subtests.test(statement):
            with pytest.raises(psycopg.errors.CheckViolation) as refused:
                write(engine, statement)
            assert refused.value.diag.constraint_name == constraint


def test_no_check_is_left_out(engine: Engine) -> None:
    checks = "SELECT conname FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype = 'c'"
    assert set(BROKEN.values()) == {row["conname"] for row in read(engine, checks)}


FOREIGN: dict[LiteralString, str] = {
    f"UPDATE deployments SET current_revision_id = (SELECT current_revision_id FROM deployments {IN_A_ROLLOUT})"
    f" {AT_REST}": "deployments_current_revision_id_fkey",
    f"UPDATE deployments SET deploying_revision_id = (SELECT current_revision_id FROM deployments {AT_REST})"
    f" {IN_A_ROLLOUT}": "deployments_deploying_revision_id_fkey",
    f"UPDATE deployments SET rollout_id = id {IN_A_ROLLOUT}": "deployments_rollout_id_fkey",
    f"UPDATE routes SET revision_id = (SELECT current_revision_id FROM deployments {IN_A_ROLLOUT}) {A_ROUTE}": (
        "routes_revision_id_fkey"
    ),
    f"UPDATE rollouts SET from_revision_id = (SELECT current_revision_id FROM deployments {AT_REST})": (
        "rollouts_from_revision_id_fkey"
    ),
}


def test_a_revision_belongs_to_its_deployment(engine: Engine, subtests: pytest.Subtests) -> None:
    make_deployment(engine, "■■■|", name="rolls", status=PROVISIONING)
    make_deployment(engine, "■■■", name="rests")
    for statement, constraint in FOREIGN.items():
        with subtests.test(statement):
            with pytest.raises(psycopg.errors.ForeignKeyViolation) as refused:
                write(engine, statement)
            assert refused.value.diag.constraint_name == constraint


def test_a_deployment_has_one_open_rollout(engine: Engine) -> None:
    make_deployment(engine, "■■■|", status=PROVISIONING)
    with pytest.raises(psycopg.errors.UniqueViolation) as refused:
        write(
            engine,
            """
            INSERT INTO rollouts (deployment_id, from_revision_id, to_revision_id, strategy, spec, limits,
                                  desired_at_start, ceiling, floor, actor, reason)
            SELECT deployment_id, from_revision_id, to_revision_id, strategy, spec, limits, 3, 4, 2, '', ''
              FROM rollouts
            """,
        )
    assert refused.value.diag.constraint_name == "rollouts_one_open_key"
