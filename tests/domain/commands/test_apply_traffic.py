"""The traffic that a document brings with a new revision: when it holds, and how its replicas are spoken to."""

from dataclasses import replace
from typing import Any

import pytest

from domain.commands.apply.document import Apply
from domain.commands.apply.expansion import Stored, StoredDeployment, StoredRevision, parts
from domain.revisions.revision import RevisionSpec
from domain.strategies.builtin import parse_policy
from domain.traffic.entrances import TrafficSettings
from domain.traffic.snapshot import USUAL
from domain.traffic.wire import Protocol, Wire
from tests.support.pictures.pictures import READY, V1, V2, resting

SERVE: dict[str, Any] = {"command": ["serve"], "working_directory": "/srv"}
SPEC = RevisionSpec.model_validate(SERVE).model_dump(mode="json")
USUAL_PLACE = (TrafficSettings().entrances_of("web"), USUAL)
RUNS = StoredDeployment(resting("■■■", 3, READY, current_revision_id=V1), None, "v1", None, USUAL_PLACE)
SECOND = StoredRevision(V2, "v2", SPEC)
IN_HTTP_2 = replace(SECOND, wire=Wire(Protocol.HTTP2))


def told_of_traffic(stored: Stored, **document: Any) -> list[str]:
    given = {"deployment": "web", "revision": {**SERVE, "name": "v2"}, **document}
    apply = Apply.model_validate({"request_id": "r", "documents": [given]})
    return [part.sentence for part in parts(apply.documents[0], stored, apply) if "reached as" in part.sentence]


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
