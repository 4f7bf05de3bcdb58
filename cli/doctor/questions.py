"""Every question of the doctor's, in the order of the answers. A new finding is a row here, and who looks for it."""

from collections.abc import Sequence

from cli.doctor.looks import (
    impossible_states,
    messages_aside,
    missing_walls,
    receipts,
    replayed,
    silent_redis,
    untold_events,
)
from cli.doctor.question import DoctorQuestion
from cli.doctor.schema import migrated, schema
from cli.terminal.exits import ExitCode

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
        "Is what runs kept from what steers it?",
        missing_walls,
        "'rollway up' as root sees to it, or ROLLWAY_REPLICA_USER of the workers",
    ),
)
