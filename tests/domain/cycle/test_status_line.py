"""A deployment in a word and a tone: the first thing that a list says of it."""

import pytest

from domain.model.picture import revisions_in_words, standing
from domain.model.states import DeploymentLifecycleStatus
from tests.support.pictures.pictures import DESTROYING, PENDING, PROVISIONING, READY, ROLLING_BACK, SCALING


@pytest.mark.parametrize(
    ("status", "known", "said"),
    [
        (READY, "", ("ready", "good")),
        (SCALING, "", ("scaling", "moves")),
        (PROVISIONING, "", ("deploying", "moves")),
        (PENDING, "", ("pending", "rests")),
        (DESTROYING, "", ("destroying", "rests")),
        (READY, "degraded", ("ready, degraded", "bad")),
        (SCALING, "failing", ("scaling, failing", "bad")),
        (SCALING, "failing degraded", ("scaling, degraded", "bad")),
        (PROVISIONING, "asked failing", ("waits", "warn")),
        (PROVISIONING, "asked", ("waits", "warn")),
        (PROVISIONING, "paused asked degraded", ("paused", "warn")),
        (ROLLING_BACK, "asked", ("rolling back", "bad")),
    ],
)
def test_a_deployment_is_said_in_a_word_with_its_tone(
    status: DeploymentLifecycleStatus, known: str, said: tuple[str, str]
) -> None:
    told = {f"is_{name}": name in known.split() for name in ("paused", "asked", "degraded", "failing")}
    assert standing(status, **told) == said


@pytest.mark.parametrize(
    ("current", "deploying", "serving", "is_well", "said"),
    [
        ("v1", "v2", ["v1"], True, "v1 → v2"),
        (None, "v1", [], True, "v1"),
        ("v2", None, ["v2", "v2"], True, "v2"),
        ("v2", None, ["v1", "v2"], True, "v2"),
        ("v2", None, [], False, "v2"),
        (None, None, [], True, ""),
        # without a policy the pointer moves at once, and what serves is another revision
        ("v3", None, ["v2", "v2"], True, "v2 serves, v3 starts"),
        ("v3", None, ["v2", "v1"], False, "v1 and v2 serve, v3 fails"),
    ],
)
def test_the_revisions_are_told_by_what_serves(
    current: str | None, deploying: str | None, serving: list[str], is_well: object, said: str
) -> None:
    assert revisions_in_words(current, deploying, serving, is_well=bool(is_well)) == said
