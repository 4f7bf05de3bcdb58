"""The trace of the message that began a rollout is kept with it, and that of no other message."""

from sqlalchemy import Engine

from db.commands.execute import Origin, execute
from domain.commands.registry import parse_command
from tests.support.rows.deployments import make_deployment, read

ASKED, LATER = (f"00-{digit * 32}-{digit * 16}-01" for digit in "12")


def ask(engine: Engine, command: str, traceparent: str | None, **payload: str) -> None:
    asked = parse_command(f"rollway.{command}", {"request_id": command, "deployment": "web", **payload})
    execute(engine, asked, origin=Origin(traceparent))


def kept(engine: Engine) -> list[object]:
    return [row["traceparent"] for row in read(engine, "SELECT traceparent FROM rollouts ORDER BY started_at")]


def test_a_rollout_keeps_the_trace_of_the_message_that_began_it(engine: Engine) -> None:
    make_deployment(engine)
    ask(engine, "activate_revision", ASKED, revision="v2")
    ask(engine, "pause", LATER)
    assert kept(engine) == [ASKED]


def test_a_rollout_that_began_without_a_trace_gets_none_from_who_pauses_it(engine: Engine) -> None:
    make_deployment(engine)
    ask(engine, "activate_revision", None, revision="v2")
    ask(engine, "pause", LATER)
    assert kept(engine) == [None]
