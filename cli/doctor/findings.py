"""Every question of the doctor, in the order of the answers. A new finding is a row here, and its check."""

from collections.abc import Sequence

from cli.doctor.checks import (
    DoctorQuestion,
    certificates_that_fail,
    drifted,
    held_replicas,
    impossible_states,
    lost_hosts,
    messages_aside,
    migrated,
    missing_walls,
    receipts,
    renamed,
    replayed,
    retention_behind,
    schema,
    secrets_of_others,
    silent_redis,
    untold_events,
    wrong_clocks,
)
from cli.terminal.exits import ExitCode
from db.audit.drift import EVENTS, LOOKS, OPEN_ROLLOUTS, PLACES, UNSEALED

QUESTIONS: Sequence[DoctorQuestion] = (
    DoctorQuestion(
        "Is there a state that should be impossible?",
        impossible_states,
        "'rollway history DEPLOYMENT' shows what happened before; where nobody changed rows by hand, report it",
        ExitCode.REFUSED,
        "rollway_impossible_states_total",
    ),
    DoctorQuestion(
        "Is every receipt as it was sealed?",
        receipts,
        "'rollway receipt ROLLOUT' shows it; where nobody changed rows by hand, report it",
        ExitCode.REFUSED,
        "rollway_impossible_states_total",
    ),
    DoctorQuestion(
        "Has every rollout that ended a receipt?",
        drifted(UNSEALED),
        "workers seal what has none yet, where they and beat run: 'rollway status' shows whether they do; what somebody"
        " removed is not made again",
        ExitCode.REFUSED,
    ),
    DoctorQuestion(
        "Does every recorded decision come out again?",
        replayed,
        "'rollway replay ROLLOUT' shows how it was decided; report it",
        ExitCode.REFUSED,
    ),
    DoctorQuestion(
        "Is the database made of what the migrations make?",
        schema,
        "'rollway doctor --json' has statements that mend it: jq -r '.schema[].mends' gets them, and psql runs them",
        ExitCode.REFUSED,
    ),
    DoctorQuestion(
        "Has the database seen the migrations of this release, and no others?",
        migrated,
        "'rollway migrate' runs those that are missing; what is newer is looked at with its own release",
        ExitCode.REFUSED,
    ),
    DoctorQuestion(
        "Has every replica an address of its own, on a host that is known?",
        drifted(PLACES),
        "'rollway restart DEPLOYMENT' makes new replicas; 'rollway forget-host HOST' ends those of a lost host",
        ExitCode.REFUSED,
    ),
    DoctorQuestion(
        "Does every host send heartbeats?",
        lost_hosts,
        "'rollway up' there starts its worker; 'rollway forget-host HOST' forgets one that never comes back; one that"
        " Redis does not answer has another REDIS_URL, or a network between that is cut",
        ExitCode.REFUSED,
        "rollway_host_silence_seconds",
    ),
    DoctorQuestion(
        "Is every host's clock right?",
        wrong_clocks,
        "chrony, or another NTP client of that host, sets its clock; 'rollway hosts' shows by how much all are off",
        ExitCode.REFUSED,
        "rollway_host_clock_offset_seconds",
    ),
    DoctorQuestion(
        "Is every certificate there, and renewed in time?",
        certificates_that_fail,
        "docs/certificates.md says what to do about each sentence; 'rollway status DEPLOYMENT' shows all of one",
        ExitCode.REFUSED,
        "rollway_certificate_seconds",
    ),
    DoctorQuestion(
        "Is every deployment looked at again?",
        drifted(LOOKS),
        "'rollway scale DEPLOYMENT N', with the N that it has, has it looked at now",
        ExitCode.REFUSED,
    ),
    DoctorQuestion(
        "Does every rollout end?",
        drifted(OPEN_ROLLOUTS),
        "'rollway why DEPLOYMENT' says what it waits for; 'rollway undo DEPLOYMENT' takes it back",
        metric="rollway_rollout_still_seconds",
    ),
    DoctorQuestion(
        "Is every event delivered, or given up, in its time?",
        drifted(EVENTS),
        "workers deliver events: 'rollway status' shows whether they and beat run",
        ExitCode.REFUSED,
        "rollway_events",
    ),
    DoctorQuestion(
        "Is what is too old cut?",
        retention_behind,
        "'rollway status' shows whether workers run, which cut; their own ROLLWAY_KEEP_* may keep more",
        metric="rollway_table_bytes",
    ),
    DoctorQuestion(
        "Is what each revision runs what its name was made from?",
        renamed,
        "'rollway revisions show DEPLOYMENT REVISION' shows it; where nobody named it so by hand, report it",
    ),
    DoctorQuestion(
        "Does Redis answer?",
        silent_redis,
        "'rollway status' shows what runs, 'rollway up' starts what is missing",
        metric="rollway_redis_up",
    ),
    DoctorQuestion(
        "Did every message fit?",
        messages_aside,
        "'rollway doctor --json' has the last ones, with the reasons; whoever sends them mends them",
        metric="rollway_messages_put_aside_total",
    ),
    DoctorQuestion(
        "Has every subscription been told of its events?",
        untold_events,
        "'rollway subscriptions' shows them; the receiver must answer, or 'rollway unsubscribe NAME' ends it",
        metric="rollway_events",
    ),
    DoctorQuestion(
        "May replicas of this machine be started and stopped?",
        held_replicas,
        "'kill -9' ends that process; the supervisor, or systemd, starts the worker again, and no replica ends with it",
        ExitCode.REFUSED,
    ),
    DoctorQuestion(
        "Is what runs kept from what steers it?",
        missing_walls,
        "'rollway up' as root sees to it, or ROLLWAY_REPLICA_USER of the workers",
    ),
    DoctorQuestion(
        "Are the secrets of each deployment its own?",
        secrets_of_others,
        "{deployment} in ROLLWAY_SECRETS_ALLOW and ROLLWAY_SECRETS_ENV_FILE of the workers divides them, as in"
        " file:/run/secrets/{deployment}; docs/secrets.md says how",
    ),
)
