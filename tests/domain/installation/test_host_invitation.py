"""What makes a machine a host: its line, what is handed over, and addresses that lead nowhere from another machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.installation.host_invitation import Invitation, as_lines, in_lines, is_here, refuse_unreachable, shared_of
from domain.text.errors import InvalidInputError

REACHED = {"DATABASE_URL": "postgresql://u:p@10.0.0.1/db", "REDIS_URL": "redis://:p@10.0.0.2:6379/0"}


def test_a_line_is_an_address_and_a_secret_of_which_what_is_shown_tells_nothing() -> None:
    invitation = Invitation.parse(" https://rollway.example.com/#s3cret ")
    assert (invitation.url, invitation.secret) == ("https://rollway.example.com", "s3cret")
    assert str(invitation) == "https://rollway.example.com#s3cret"
    assert Invitation.parse(str(invitation)) == invitation
    assert "s3cret" not in repr(invitation) + invitation.proof
    assert invitation.proof != Invitation.parse("https://rollway.example.com#other").proof


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


@pytest.mark.parametrize(("host", "here"), [("10.0.0.1", False), ("db.internal", False), ("0.0.0.0", True), ("", True)])
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


LINE = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), max_size=20).map(str.strip)


@given(st.dictionaries(st.from_regex("[A-Z_]{1,8}", fullmatch=True), LINE))
def test_an_environment_reads_back_from_its_file(environment: dict[str, str]) -> None:
    assert in_lines(as_lines(environment)) == environment


def test_an_environment_of_a_person_is_read_as_systemd_reads_it() -> None:
    written = '# a comment\n; too\n\nA=1\nB=\'two words\'\nC="a \\"b\\""\nno line\nD = 4\n'
    assert in_lines(written) == {"A": "1", "B": "two words", "C": 'a "b"', "D": "4"}
