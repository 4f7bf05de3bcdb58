"""What makes a machine a host: its line, what is handed over, and addresses that lead nowhere from another machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.installation.host_invitation import (
    LASTS,
    Invitation,
    JoinRequest,
    SharedSettings,
    as_lines,
    in_lines,
    is_here,
    refuse_unreachable,
    shared_of,
)
from domain.text.errors import InvalidInputError

REACHED = {"DATABASE_URL": "postgresql://u:p@10.0.0.1/db", "REDIS_URL": "redis://:p@10.0.0.2:6379/0"}


def test_a_line_is_an_address_and_a_secret_of_which_what_is_shown_tells_nothing() -> None:
    invitation = Invitation.parse(" https://rollway.example.com/#s3cret ")
    assert (invitation.url, invitation.secret) == ("https://rollway.example.com", "s3cret")
    assert str(invitation) == "https://rollway.example.com#s3cret"
    assert Invitation.parse(str(invitation)) == invitation
    assert "s3cret" not in repr(invitation) + invitation.proof
    assert invitation.proof != Invitation.parse("https://rollway.example.com#other").proof
    assert Invitation.parse("http://h:8000/#a#b").secret == "a#b"


def test_a_line_lasts_for_the_documented_hour() -> None:
    assert LASTS.total_seconds() == 3600


@pytest.mark.parametrize("text", ["", "https://x", "https://x#", "#secret", "x#secret", "ftp://x#secret", "https://#s"])
def test_any_other_line_is_refused_with_what_is_right(text: str) -> None:
    with pytest.raises(InvalidInputError, match="LINE must be an address with a secret: it is what 'rollway"):
        Invitation.parse(text)


@pytest.mark.parametrize(
    ("variable", "url", "where"),
    [
        ("DATABASE_URL", "postgresql://u:p@127.0.0.1/db", r"127\.0\.0\.1"),
        ("DATABASE_URL", "postgresql://u:p@localhost:5432/db", "localhost"),
        ("DATABASE_URL", "postgresql://u:p@[::1]/db", "::1"),
        ("DATABASE_URL", "postgresql://u@/db?host=/run/postgresql", "a socket of this machine"),
        ("DATABASE_URL", "postgresql:///db", "a socket of this machine"),
        ("DATABASE_URL", "postgresql://u:p@10.0.0.1,localhost/db", r"10\.0\.0\.1"),
        ("REDIS_URL", "redis://:p@127.0.0.1:6379/0", r"127\.0\.0\.1"),
        ("REDIS_URL", "unix://:p@/run/redis.sock", "a socket of this machine"),
    ],
)
def test_servers_that_no_other_machine_reaches_are_refused_with_the_way_out(
    variable: str, url: str, where: str
) -> None:
    refuse_unreachable(REACHED)
    option = {"DATABASE_URL": "--database-url", "REDIS_URL": "--redis-url"}[variable]
    with pytest.raises(InvalidInputError, match=f"{variable} leads to {where}, .* new host alone with {option}$"):
        refuse_unreachable({**REACHED, variable: url})


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("10.0.0.1", False),
        ("fd00::7", False),
        ("db.internal", False),
        ("mylocalhost", False),
        ("0.0.0.0", True),
        ("::", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("db.localhost", True),
        ("/run/postgresql", True),
        ("", True),
    ],
)
def test_an_address_leads_each_machine_to_itself_or_does_not(host: str, here: bool) -> None:  # noqa: FBT001
    assert is_here(host) is here


def test_what_all_hosts_have_alike_is_shared_and_what_is_of_a_machine_is_not() -> None:
    alike = {**REACHED, "ROLLWAY_CERTIFICATE_KEY": "k", "ROLLWAY_KEEP_ROLLOUTS_DAYS": "3"}
    own = {
        "ROLLWAY_HOST": "a",
        "ROLLWAY_HOME": "/h",
        "ROLLWAY_HOST_LABELS": "z=a",
        "PATH": "/bin",
        "ROLLWAY_TOKEN": "t",
    }
    assert shared_of({**alike, **own, "ROLLWAY_SLOTS": ""}) == alike


@pytest.mark.parametrize(
    "name",
    [
        "DATABASE_URL",
        "REDIS_URL",
        "ROLLWAY_CERTIFICATE_KEY",
        "ROLLWAY_HOST_SILENCE_SECONDS",
        "ROLLWAY_DRAIN_DEADLINE_SECONDS",
        "ROLLWAY_SLOTS",
        "ROLLWAY_WEBHOOK_SECONDS",
        "ROLLWAY_EXTERNAL_ALLOW",
        "ROLLWAY_ACME_DIRECTORY",
        "ROLLWAY_ACME_EMAIL",
        "ROLLWAY_ACME_CHALLENGE",
        "ROLLWAY_REPLICA_ENV",
        "ROLLWAY_REPLICA_USER",
        "ROLLWAY_REPLICA_PROCESSES",
        "ROLLWAY_REPLICA_FILES",
        "ROLLWAY_REPLICA_PORTS",
        "ROLLWAY_LOG_MEGABYTES",
        "ROLLWAY_LOG_FILES",
        "ROLLWAY_KEEP_LOGS_DAYS",
        "ROLLWAY_KEEP_ENDED_DAYS",
    ],
)
def test_a_variable_that_all_hosts_share_is_handed_over(name: str) -> None:
    assert shared_of({name: "1", f"MY_{name}": "1"}) == {name: "1"}
    assert shared_of({name: ""}) == {}


def test_a_refusal_names_its_variable_for_programs() -> None:
    with pytest.raises(InvalidInputError) as refused:
        refuse_unreachable({**REACHED, "REDIS_URL": "redis://localhost"})
    assert refused.value.detail == {"field": "REDIS_URL"}
    with pytest.raises(InvalidInputError) as refused:
        Invitation.parse("https://x")
    assert refused.value.detail == {"field": "line"}


JOINS = {"invitation": "0123456789abcdef" * 4, "machine": "0123456789abcdef" * 2, "host": "m7"}


@pytest.mark.parametrize(
    ("taken", "refused"),
    [
        ({}, {"colour": "red"}),
        ({}, {"invitation": "a" * 63}),
        ({}, {"invitation": "a" * 65}),
        ({}, {"invitation": "A" * 64}),
        ({}, {"machine": "a" * 31}),
        ({}, {"machine": "g" * 32}),
        ({"host": "h"}, {"host": ""}),
        ({"host": "h" * 63}, {"host": "h" * 64}),
    ],
)
def test_the_limits_of_a_request_to_join(taken: dict[str, str], refused: dict[str, str]) -> None:
    assert JoinRequest.model_validate({**JOINS, **taken})
    with pytest.raises(ValidationError):
        JoinRequest.model_validate({**JOINS, **refused})


def test_the_settings_of_a_host_are_variables_and_files_and_nothing_else() -> None:
    given = {"environment": {"A": "1"}, "files": {"ROLLWAY_WEBHOOKS": "ci = https://h"}}
    assert SharedSettings.model_validate(given).model_dump() == given
    with pytest.raises(ValidationError):
        SharedSettings.model_validate({**given, "colour": "red"})


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("", 'A=""'),
        ("1", "A=1"),
        ("a/b:c=d,e", "A=a/b:c=d,e"),
        ("two words", 'A="two words"'),
        ("a\tb", 'A="a\tb"'),
        ("it's", 'A="it\'s"'),
        ('say "yes"', 'A="say \\"yes\\""'),
        ("a\\b", 'A="a\\\\b"'),
        ("a#b", 'A="a#b"'),
        ("a;b", 'A="a;b"'),
        ("a`b", 'A="a`b"'),
    ],
)
def test_a_value_stands_in_quotes_where_systemd_would_read_it_otherwise(value: str, line: str) -> None:
    assert as_lines({"A": value}) == f"{line}\n"
    assert in_lines(line) == {"A": value}


@pytest.mark.parametrize(
    ("written", "value"),
    [("'it", "'it"), ("it'", "it'"), ("\"a'", "\"a'"), ("'", "'"), ("''", ""), ("'a\\\"b'", 'a\\"b'), ("a=b", "a=b")],
)
def test_a_value_of_another_author_loses_its_own_quotes_alone(written: str, value: str) -> None:
    assert in_lines(f"A={written}") == {"A": value}


LINE = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), max_size=20).map(str.strip)


@given(st.dictionaries(st.from_regex("[A-Z_]{1,8}", fullmatch=True), LINE))
def test_an_environment_reads_back_from_its_file(environment: dict[str, str]) -> None:
    assert in_lines(as_lines(environment)) == environment


def test_an_environment_of_a_person_is_read_as_systemd_reads_it() -> None:
    written = '# a comment\n; too\n#A=2\n;A=3\n\nA=1\nB=\'two words\'\nC="a \\"b\\""\nno line\nD = 4\n'
    assert in_lines(written) == {"A": "1", "B": "two words", "C": 'a "b"', "D": "4"}
