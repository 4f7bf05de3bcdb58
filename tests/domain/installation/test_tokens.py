"""Who may ask what: the table of roles, and tokens that are for some deployments alone."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from domain.installation.tokens import NewToken, NotAllowedError, Role, Token

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
