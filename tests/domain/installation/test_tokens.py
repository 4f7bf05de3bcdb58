"""Who may ask what: the table of roles, and tokens that are for some deployments alone."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from domain.installation.tokens import (
    SECRET_BYTES,
    SECRET_PREFIX,
    NewToken,
    NotAllowedError,
    Role,
    SessionEnd,
    Token,
    login_path,
)

VIEWER, RELEASER, OPERATOR, ADMIN = Role


def token(role: Role, *deployments: str) -> Token:
    return Token(name="ann", role=role, deployments=deployments, created_by="bob", created_at=datetime.now(UTC))


@pytest.mark.parametrize(
    ("role", "may"),
    [
        (VIEWER, {VIEWER}),
        (RELEASER, {VIEWER, RELEASER}),
        (OPERATOR, {VIEWER, RELEASER, OPERATOR}),
        (ADMIN, {VIEWER, RELEASER, OPERATOR, ADMIN}),
    ],
)
def test_each_role_may_do_what_the_ones_before_it_may(role: Role, may: set[Role]) -> None:
    assert {needed for needed in Role if token(role).may(needed)} == may
    for needed in may:
        token(role).refuse_below(needed)
    for needed in set(Role) - may:
        with pytest.raises(NotAllowedError, match=f"needs the role {needed}, and the token ann has {role}"):
            token(role).refuse_below(needed)


def test_a_token_without_a_list_is_for_every_deployment_and_for_the_whole_fleet() -> None:
    everywhere = token(VIEWER)
    assert everywhere.is_for_all
    assert everywhere.sees("web")
    everywhere.refuse_others("web")
    everywhere.refuse_others(None)


def test_a_token_with_a_list_is_for_those_alone() -> None:
    limited = token(ADMIN, "shop", "cart")
    assert (limited.is_for_all, limited.sees("cart"), limited.sees("web")) == (False, True, False)
    limited.refuse_others("cart")
    with pytest.raises(NotAllowedError, match="the token ann is for shop, cart, not for web"):
        limited.refuse_others("web")
    with pytest.raises(NotAllowedError, match="not for what is about the whole fleet"):
        limited.refuse_others(None)


@pytest.mark.parametrize(
    ("taken", "refused"),
    [
        ({"days": 0.001}, {"days": 0}),
        ({"days": 3650}, {"days": 3650.1}),
        ({"days": 3650}, {"days": -1}),
        ({"actor": "b"}, {"actor": ""}),
        ({"actor": "b" * 200}, {"actor": "b" * 201}),
        ({"deployments": ("web",) * 1000}, {"deployments": ("web",) * 1001}),
        ({}, {"colour": "red"}),
    ],
)
def test_the_limits_of_a_new_token(taken: dict[str, Any], refused: dict[str, Any]) -> None:
    given = {"name": "ann", "role": VIEWER, "actor": "bob"}
    assert NewToken.model_validate({**given, **taken})
    with pytest.raises(ValidationError):
        NewToken.model_validate({**given, **refused})


def test_what_a_new_token_leaves_open() -> None:
    made = NewToken.model_validate({"name": "ann", "role": "viewer", "actor": "bob"})
    assert made.model_dump() == {"name": "ann", "role": VIEWER, "deployments": (), "days": None, "actor": "bob"}


@pytest.mark.parametrize(("role", "days"), [(VIEWER, 90), (RELEASER, 90), (OPERATOR, 90), (ADMIN, None)])
def test_a_token_ends_after_ninety_days_unless_it_is_for_everything(role: Role, days: float | None) -> None:
    assert role.usual_days == days


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("ended", "Your session was ended."),
        ("token", "Your token was revoked or has expired."),
        ("age", "Your session was too old: log in again."),
    ],
)
def test_who_has_to_log_in_again_reads_why(word: str, sentence: str) -> None:
    assert SessionEnd(word).sentence == sentence


def test_the_secret_of_a_login_is_in_the_part_of_the_link_that_no_browser_sends() -> None:
    path, _, fragment = login_path("s3cret").partition("#")
    assert (path, fragment) == ("/login", "link=s3cret")


def test_a_refusal_names_both_roles_for_programs() -> None:
    with pytest.raises(NotAllowedError) as refused:
        token(VIEWER).refuse_below(ADMIN)
    assert refused.value.detail == {"needed": ADMIN, "role": VIEWER}


def test_a_secret_has_256_bits_and_a_beginning_by_which_it_is_known_in_a_log() -> None:
    assert SECRET_BYTES * 8 == 256
    assert SECRET_PREFIX == "rollway_"
