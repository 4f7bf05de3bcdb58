"""Who holds a deployment that a command waits for, in words, and what would end it."""

from datetime import timedelta

import pytest

from domain.steering.command_effect import Holder, refusal

LONG = timedelta(seconds=40)


@pytest.mark.parametrize(
    ("holder", "sentence"),
    [
        (Holder(), "web is held by another session"),
        (Holder(None, "psql", LONG), "web is held by another session"),
        (Holder(123), "web has been held by process 123 of PostgreSQL"),
        (Holder(123, "psql"), "web has been held by psql, process 123 of PostgreSQL"),
        (Holder(123, None, LONG), "web has been held for 40 s by process 123 of PostgreSQL"),
        (Holder(0, "psql", timedelta()), "web has been held for 0 s by psql, process 0 of PostgreSQL"),
    ],
)
def test_a_session_is_named_as_far_as_postgres_shows_it(holder: Holder, sentence: str) -> None:
    assert holder.sentence("web") == sentence


def test_the_refusal_says_what_ends_the_session_where_it_is_known() -> None:
    known, unknown = refusal("web", Holder(123)), refusal("web", Holder())
    assert known.message.endswith("ask again when it is done; 'SELECT pg_terminate_backend(123)' ends it")
    assert unknown.message == "web is held by another session; ask again when it is done"
    assert known.detail == unknown.detail == {"deployment": "web"}
