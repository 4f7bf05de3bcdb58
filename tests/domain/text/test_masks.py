"""What of an environment is shown, and what stands for the rest."""

import pytest

from domain.revisions.revision import RevisionSpec, with_values_of
from domain.revisions.secret_refs import differ_unseen, masked
from domain.text.errors import InvalidInputError
from tests.support.workers.payloads import ask

DB = "file:/run/secrets/db"


def test_people_see_names_and_references_and_no_values() -> None:
    spec = {"runtime": "process", "env": {"A": "1", "B": {"secret": DB}, "C": {"secret": DB, "new": "1"}}}
    assert masked(spec) == {"runtime": "process", "env": {"A": "***", "B": {"secret": DB}, "C": "***"}}


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ({"A": "1", "B": "1"}, {"A": "2", "B": "1"}, ["A"]),
        ({"B": "1", "A": "1"}, {"B": "2", "A": "2"}, ["A", "B"]),
        ({"A": "1"}, {"B": "1"}, []),
        ({"A": {"secret": DB}}, {"A": {"secret": "env:DB"}}, []),
        ({"A": {"secret": DB}}, {"A": "1"}, []),
        ("none that this release reads", {"A": "1"}, []),
        (None, {"A": "1"}, []),
    ],
)
def test_values_that_differ_and_look_alike_are_named(before: object, after: object, names: list[str]) -> None:
    assert differ_unseen({"env": before}, {"env": after}) == names
    assert differ_unseen({"env": after}, {"env": before}) == names


def test_a_value_that_is_not_shown_is_that_of_the_revision_it_is_taken_from() -> None:
    stored = {"command": ["serve"], "env": {"A": "1", "B": {"secret": DB}}}
    spec = RevisionSpec.model_validate({"command": ["else"], "env": {"A": "***", "B": "***", "C": "***", "D": "4"}})
    taken = with_values_of(stored, spec)
    assert taken.model_dump(mode="json")["env"] == {"A": "1", "B": {"secret": DB}, "C": "***", "D": "4"}
    assert taken.command == spec.command
    assert with_values_of(stored, taken.model_copy(update={"env": {}})).env == {}
    assert masked({"env": "1"}) == {"env": "***"}
    assert masked({"command": ["serve"]}) == {"command": ["serve"]}


def test_a_value_that_is_not_shown_is_refused_where_nothing_says_whose_it_is() -> None:
    spec = {"command": ["serve"], "env": {"A": "***"}}
    assert ask("add_revision", spec=spec, values_of="v1").values_of == "v1"
    assert ask("add_revision", spec={**spec, "env": {"A": "1"}})
    with pytest.raises(InvalidInputError, match=r"env.A: \*\*\* means a value that is not shown; write the value"):
        ask("add_revision", spec=spec)
