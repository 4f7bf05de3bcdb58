"""What the commands of a document carry, when the traffic of a new revision holds, and how it is spoken to."""

from dataclasses import replace
from typing import Any

import pytest

from domain.commands.apply.document import Apply
from domain.commands.apply.expansion import Part, Stored, StoredDeployment, StoredRevision, parts
from domain.revisions.revision import RevisionExistsError, RevisionSpec
from domain.strategies.builtin import parse_policy
from domain.traffic.entrances import TrafficSettings
from domain.traffic.snapshot import USUAL
from domain.traffic.wire import Protocol, Wire
from tests.support.pictures.pictures import READY, V1, V2, deploying, resting

SERVE: dict[str, Any] = {"command": ["serve"], "working_directory": "/srv"}
SPEC = RevisionSpec.model_validate(SERVE).model_dump(mode="json")
USUAL_PLACE = (TrafficSettings().entrances_of("web"), USUAL)
RUNS = StoredDeployment(resting("■■■", 3, READY, current_revision_id=V1), None, "v1", None, USUAL_PLACE)
SECOND = StoredRevision(V2, "v2", SPEC)
ROLLING: dict[str, Any] = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 1}}
CHOSEN = parse_policy(ROLLING)
ROLLS = replace(RUNS, snapshot=deploying("■■|■"), policy=CHOSEN, deploying="v2")
NEW = {"revision": {**SERVE, "name": "v2"}}
SHOP = {"traffic": {"hosts": ["shop.example"]}}
IN_HTTP_2 = replace(SECOND, wire=Wire(Protocol.HTTP2))


def parts_of(stored: Stored, document: dict[str, Any], **more: Any) -> list[Part]:
    given = {"deployment": "web", **document}
    apply = Apply.model_validate({"request_id": "r", "reason": "why", "documents": [given], **more})
    return parts(apply.documents[0], stored, apply)


def told_of_traffic(stored: Stored, **document: Any) -> list[str]:
    sentences = [part.sentence for part in parts_of(stored, {**NEW, **document})]
    return [sentence for sentence in sentences if "reached as" in sentence]


CREATE, POLICY, SCALE = "create_deployment", "set_policy", "scale"
TRAFFIC, ADD, ACTIVATE = "set_traffic", "add_revision", "activate_revision"


@pytest.mark.parametrize(
    ("stored", "document", "more", "carried"),
    [
        (
            Stored(),
            {"replicas": 4, "policy": ROLLING, **NEW, **SHOP},
            {"supersede": True},
            {
                CREATE: {"desired_replicas": 4, "policy": ROLLING},
                TRAFFIC: {"hosts": ("shop.example",), "with_rollout": False},
                ADD: {"name": "v2", "spec": RevisionSpec.model_validate(SERVE).model_dump()},
                ACTIVATE: {"revision": "v2", "desired_replicas": None, "supersede": True, "through_freeze": False},
            },
        ),
        (Stored(RUNS), {"policy": ROLLING}, {}, {POLICY: {"policy": ROLLING}}),
        (Stored(RUNS), {"replicas": 5}, {}, {SCALE: {"desired_replicas": 5, "with_rollout": False}}),
        (
            Stored(ROLLS, SECOND),
            {**NEW, "replicas": 5, **SHOP},
            {},
            {
                SCALE: {"desired_replicas": 5, "with_rollout": True},
                TRAFFIC: {"hosts": ("shop.example",), "with_rollout": True},
            },
        ),
        (
            Stored(replace(RUNS, policy=CHOSEN), SECOND),
            {**NEW, "replicas": 5},
            {"through_freeze": True},
            {ACTIVATE: {"revision": "v2", "desired_replicas": 5, "supersede": False, "through_freeze": True}},
        ),
        (Stored(replace(RUNS, failed_starts=1)), {}, {}, {"retry": {"now": True}}),
    ],
)
def test_the_commands_of_a_document_carry_what_it_says(
    stored: Stored, document: dict[str, Any], more: dict[str, Any], carried: dict[str, dict[str, Any]]
) -> None:
    commands = {part.command.task.removeprefix("rollway."): part.command for part in parts_of(stored, document, **more)}
    assert list(commands) == list(carried)
    for task, values in carried.items():
        assert commands[task].model_dump().items() >= {"deployment": "web", "reason": "why", **values}.items()


@pytest.mark.parametrize(
    ("policy", "moment"),
    [
        ({"strategy": "rolling_update"}, "from the first new replica on"),
        ({"strategy": "recreate"}, "from the first new replica on"),
        ({"strategy": "blue_green"}, "with the promotion"),
        ({"strategy": "canary"}, "with the first weight"),
    ],
)
def test_the_sentence_says_when_the_settings_hold(policy: dict[str, Any], moment: str) -> None:
    stored = Stored(replace(RUNS, policy=parse_policy(policy)), SECOND)
    place = {"hosts": ["shop.example"]}
    assert told_of_traffic(stored, traffic=place) == [f"{moment} reached as shop.example"]
    assert told_of_traffic(Stored(RUNS, SECOND), traffic=place, policy=policy) == [f"{moment} reached as shop.example"]
    assert told_of_traffic(Stored(RUNS, SECOND), traffic=place) == ["reached as shop.example"]


@pytest.mark.parametrize(
    ("revision", "protocol", "told"),
    [
        (SECOND, "http1", []),
        (
            SECOND,
            "http2",
            ["from the first new replica on reached as web, web.localhost, /web/, replicas speak HTTP/2"],
        ),
        (IN_HTTP_2, "http2", []),
        (IN_HTTP_2, "http1", ["from the first new replica on reached as web, web.localhost, /web/"]),
    ],
)
def test_settings_are_compared_with_how_the_replicas_of_the_revision_are_spoken_to(
    revision: StoredRevision, protocol: str, told: list[str]
) -> None:
    stored = Stored(replace(RUNS, policy=parse_policy({"strategy": "rolling_update"})), revision)
    assert told_of_traffic(stored, traffic={"protocol": protocol}) == told


def test_a_document_with_the_mask_that_people_are_shown_means_the_stored_values() -> None:
    env = {"A": "1", "B": {"secret": "env:B"}}
    stored = StoredRevision(V1, "v1", {**SPEC, "env": env})
    shown = {"revision": {**SERVE, "name": "v1", "env": {"A": "***", "B": {"secret": "env:B"}}}}
    assert parts_of(Stored(RUNS, stored), shown) == []
    other = {"revision": {**SERVE, "name": "v1", "env": {"A": "2", "B": {"secret": "env:B"}}}}
    with pytest.raises(RevisionExistsError):
        parts_of(Stored(RUNS, stored), other)
