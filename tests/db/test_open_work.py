"""What an alarm finds to do: all of it is asked for at once."""

from sqlalchemy import Engine

from db.connection.transactions import in_transaction, transaction
from db.due_work import OpenWork, note_tick, open_work
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import ask, make_deployment, write
from tests.support.rows.hosts import up


def test_an_alarm_finds_wishes_routes_without_a_host_and_events(engine: Engine) -> None:
    def found() -> OpenWork:
        return in_transaction(engine, open_work)

    nothing = OpenWork(has_pending_commands=False, is_unplaced=False, has_events=False, has_rules=False)
    up(engine, "here")
    made = make_deployment(engine, "◇", n=1, status=SCALING)
    assert found() == nothing
    write(engine, "UPDATE routes SET host = NULL")
    assert found() == nothing._replace(is_unplaced=True)
    write(engine, "UPDATE routes SET stopped_at = now()")
    assert found() == nothing, "it needs no host any more"
    write(engine, "INSERT INTO wishes (deployment_id, request_id, task, payload) VALUES (%s, 'r', 't', '{}')", made.id)
    assert found() == nothing._replace(has_pending_commands=True)
    write(engine, "DELETE FROM wishes")
    ask(engine, "set_subscription", subscription="ci", webhook="ci")
    make_deployment(engine, name="told")
    ask(engine, "scale", deployment="told", desired_replicas=4)
    assert found() == nothing._replace(has_events=True)
    write(engine, "UPDATE outbox SET due_at = now() + interval '1 hour'")
    assert found() == nothing


def test_a_tick_is_noted_by_others_while_a_worker_that_notes_one_is_cut_off(engine: Engine) -> None:
    for _ in ("the first tick of all", "a later one"):
        write(engine, "UPDATE beat SET ticked_at = clock_timestamp() - interval '1 minute'")
        with transaction(engine) as cut_off, transaction(engine) as other:
            note_tick(cut_off)
            other.execute("SET LOCAL lock_timeout = '1 s'")
            note_tick(other)
        with transaction(engine) as connection:
            recent = connection.execute("SELECT ticked_at > clock_timestamp() - interval '30 s' FROM beat").fetchall()
        assert recent == [(True,)]
