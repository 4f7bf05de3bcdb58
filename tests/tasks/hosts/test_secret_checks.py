"""Hosts say which secrets they can have, and a revision is activated only where one of them has all."""

from datetime import timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from db.commands.execute import Origin, execute
from db.connection.transactions import in_transaction
from db.replicas.lost_hosts import forget_host
from db.replicas.secret_requests import Share, UnaskedSecretsError, answer, ask_for_secrets, take_secrets
from domain.commands.registry import parse_command
from domain.revisions.secret_refs import MissingSecretError, SecretCheck
from runtime.host_secrets import HostSecrets
from tasks.hosts.heartbeat import Heartbeat
from tasks.hosts.secret_checks import SecretAnswers, check_secrets
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import HERE, ask, make_deployment, read, write
from tests.support.rows.hosts import go_down, up
from tests.support.workers.secrets import NONE, VALUE, answering, checks, referring


def test_each_host_that_is_up_is_asked_and_answers_for_itself(
    engine: Engine, secrets: HostSecrets, secrets_folder: Path
) -> None:
    (secrets_folder / "db").write_text(VALUE)
    up(engine, HERE, "other", "gone")
    go_down(engine, "gone")
    up(engine, HERE, "other")
    reference = f"file:{secrets_folder}/db"
    with answering(engine, secrets), answering(engine, HostSecrets("other")):
        mine, others = check_secrets(engine, "web", [reference])
    assert mine == SecretCheck(HERE, reference, is_answered=True)
    assert (others.host, others.is_answered) == ("other", True)
    assert "ROLLWAY_SECRETS_ALLOW" in str(others.fault)
    assert VALUE not in str(read(engine, "SELECT * FROM host_secrets"))


def test_who_asks_again_gets_another_answer_and_what_was_lacked_is_looked_at_again(
    engine: Engine, secrets: HostSecrets, secrets_folder: Path
) -> None:
    up(engine, HERE)
    asking, look = (
        partial(ask_for_secrets, deployment="web", references=[f"file:{secrets_folder}/db"]),
        SecretAnswers(engine, secrets).look,
    )
    in_transaction(engine, asking)
    assert checks(engine) == [(HERE, False, None)]
    look()
    assert checks(engine) == [(HERE, True, NONE)]
    (secrets_folder / "db").write_text(VALUE)
    look()
    assert checks(engine) == [(HERE, True, NONE)], "it looked a moment ago"
    write(engine, "UPDATE host_secrets SET checked_at = checked_at - interval '11 seconds'")
    look()
    assert checks(engine) == [(HERE, True, None)]
    (secrets_folder / "db").unlink()
    write(engine, "UPDATE host_secrets SET checked_at = checked_at - interval '11 seconds'")
    look()
    assert checks(engine) == [(HERE, True, None)], "nobody asked"
    in_transaction(engine, asking)
    assert checks(engine) == [(HERE, False, None)]
    look()
    assert checks(engine) == [(HERE, True, NONE)]


def test_an_answer_to_an_earlier_question_is_none_to_the_next(engine: Engine) -> None:
    up(engine, HERE)
    asking = partial(ask_for_secrets, deployment="web", references=["env:DB"])
    in_transaction(engine, asking)
    share = Share(are_commands=False, limit=100, most=100, lease=timedelta(seconds=15))
    take = partial(take_secrets, host=HERE, again_after=timedelta(seconds=10), share=share)
    (before,) = in_transaction(engine, take)
    in_transaction(engine, asking)
    in_transaction(engine, partial(answer, host=HERE, answers=[(*before, None)]))
    assert checks(engine) == [(HERE, False, None)]


def test_a_host_that_does_not_answer_is_not_waited_for_without_end(
    engine: Engine, secrets: HostSecrets, secrets_folder: Path
) -> None:
    (secrets_folder / "db").write_text(VALUE)
    up(engine, HERE, "hangs")
    with answering(engine, secrets):
        said = check_secrets(engine, "web", [f"file:{secrets_folder}/db"], 2)
    assert [(check.host, check.is_answered) for check in said] == [("hangs", False), (HERE, True)]


def test_what_nobody_asks_for_is_forgotten_and_so_is_what_a_forgotten_host_said(
    engine: Engine, secrets: HostSecrets, secrets_folder: Path
) -> None:
    up(engine, HERE, "other")
    in_transaction(engine, partial(ask_for_secrets, deployment="shop", references=[f"file:{secrets_folder}/old"]))
    write(engine, "UPDATE host_secrets SET asked_at = asked_at - interval '61 minutes'")
    in_transaction(engine, partial(ask_for_secrets, deployment="web", references=[f"file:{secrets_folder}/new"]))
    SecretAnswers(engine, secrets).look()
    left = read(engine, "SELECT host, right(reference, 3) AS name FROM host_secrets ORDER BY 1, 2")
    assert [tuple(row.values()) for row in left] == [(HERE, "new"), ("other", "new"), ("other", "old")]
    go_down(engine, "other")
    in_transaction(engine, partial(forget_host, name="other"))
    assert {row["host"] for row in read(engine, "SELECT host FROM host_secrets")} == {HERE}


def test_a_reference_of_a_kind_that_this_release_does_not_know_is_one_it_lacks(
    engine: Engine, secrets: HostSecrets
) -> None:
    up(engine, HERE)
    in_transaction(engine, partial(ask_for_secrets, deployment="web", references=["vault:db"]))
    SecretAnswers(engine, secrets).look()
    assert checks(engine) == [(HERE, True, "this release of Rollway cannot read it")]


def added(engine: Engine, folder: Path) -> None:
    ask(engine, "create_deployment", deployment="web")
    ask(engine, "add_revision", deployment="web", name="v1", spec=referring(folder))


def ask_for_its_secrets(engine: Engine, command: str, **payload: object) -> None:
    """As a worker does that finds secrets in a command which nobody was asked for."""
    given = {"request_id": uuid4().hex, "deployment": "web", **payload}
    with pytest.raises(UnaskedSecretsError) as unasked:
        execute(engine, parse_command(f"rollway.{command}", given), origin=Origin(secrets=()))
    check_secrets(engine, unasked.value.deployment, unasked.value.references)


def test_an_activation_is_refused_where_no_host_has_the_secret_and_names_host_and_reference(
    engine: Engine, secrets: HostSecrets, secrets_folder: Path
) -> None:
    added(engine, secrets_folder)
    up(engine, HERE)
    with answering(engine, secrets):
        ask_for_its_secrets(engine, "activate_revision", revision="v1")
        with pytest.raises(MissingSecretError) as refused:
            ask(engine, "activate_revision", deployment="web", revision="v1")
        assert refused.value.message == f"no host can run v1: host {HERE} lacks file:{secrets_folder}/db ({NONE})"
        (secrets_folder / "db").write_text(VALUE)
        ask_for_its_secrets(engine, "activate_revision", revision="v1")
        assert ask(engine, "activate_revision", deployment="web", revision="v1").result["activation"] == "first"


def test_a_restart_asks_for_the_secrets_of_the_current_revision(
    engine: Engine, secrets: HostSecrets, secrets_folder: Path
) -> None:
    make_deployment(engine, "■", n=1, status=SCALING, spec=referring(secrets_folder))
    up(engine, HERE)
    with answering(engine, secrets):
        ask_for_its_secrets(engine, "restart")
        with pytest.raises(MissingSecretError, match=rf"no host can run v1\.r2: host {HERE} lacks"):
            ask(engine, "restart", deployment="web")
        (secrets_folder / "db").write_text(VALUE)
        ask_for_its_secrets(engine, "restart")
        assert ask(engine, "restart", deployment="web").result["revision"] == "v1.r2"


def test_where_one_host_has_the_secret_the_others_are_named_and_passed_over(
    engine: Engine, secrets: HostSecrets, secrets_folder: Path
) -> None:
    (secrets_folder / "db").write_text(VALUE)
    added(engine, secrets_folder)
    up(engine, HERE, "bare")
    with answering(engine, secrets), answering(engine, HostSecrets("bare")):
        ask_for_its_secrets(engine, "activate_revision", revision="v1")
    result = ask(engine, "activate_revision", deployment="web", revision="v1").result
    assert list(result["passed_over"]) == ["bare"]


def test_with_no_host_up_nobody_is_waited_for(engine: Engine, secrets_folder: Path) -> None:
    added(engine, secrets_folder)
    ask_for_its_secrets(engine, "activate_revision", revision="v1")
    assert ask(engine, "activate_revision", deployment="web", revision="v1").result["activation"] == "first"


def test_a_host_that_nobody_asks_looks_at_nothing(engine: Engine, secrets: HostSecrets, secrets_folder: Path) -> None:
    up(engine, HERE)
    taken: list[object] = []
    giver = Heartbeat(engine, HERE, "127.0.0.1", when_secrets_are_wanted=lambda: taken.append(None))
    giver.show()
    assert taken == []
    in_transaction(engine, partial(ask_for_secrets, deployment="web", references=[f"file:{secrets_folder}/db"]))
    giver.show()
    assert len(taken) == 1
    SecretAnswers(engine, secrets).look()
    giver.show()
    assert len(taken) == 1, "it was looked at, and is lacked: again in a while"
    write(engine, "UPDATE host_secrets SET checked_at = checked_at - interval '11 seconds'")
    giver.show()
    assert len(taken) == 2
