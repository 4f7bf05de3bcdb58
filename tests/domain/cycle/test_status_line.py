"""A deployment in a word and a tone: the first thing that a list says of it."""

import pytest

from domain.model.picture import standing
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
