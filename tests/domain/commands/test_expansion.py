"""What a document comes to: the commands that make its deployment match, each in a sentence."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from domain.autoscaling.rule import AutoscalingRule
from domain.commands.apply.document import Apply
from domain.commands.apply.expansion import (
    Part,
    Stored,
    StoredDeployment,
    StoredRevision,
    notes,
    parts,
    refuse_beyond,
    settings_alone,
    told_of,
)
from domain.installation.tokens import NotAllowedError, Role
from domain.revisions.revision import RevisionExistsError, RevisionSpec, revision_name
from domain.steering.activation import DeploymentAlreadyInProgressError
from domain.strategies.builtin import parse_policy
from domain.text.errors import InvalidInputError, RollwayError, WrongStateError
from domain.traffic.entrances import EntranceTakenError, TrafficSettings
from domain.traffic.snapshot import USUAL, Entrance, EntranceKind
from tests.support.pictures.pictures import DESTROYING, NOW, PENDING, READY, V1, V2, deploying, resting, rolling_back
from tests.support.workers.payloads import RULE

ROLLING: dict[str, Any] = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 1}}
POLICY = parse_policy(ROLLING)
SERVE: dict[str, Any] = {"command": ["serve"], "working_directory": "/srv"}
SPEC = RevisionSpec.model_validate(SERVE).model_dump(mode="json")
NEW = {"revision": {**SERVE, "name": "v2"}}
SAME = {"revision": {**SERVE, "name": "v1"}}
DEFAULT = TrafficSettings()
RUNS = StoredDeployment(
    resting("■■■", 3, READY, current_revision_id=V1), POLICY, "v1", None, (DEFAULT.entrances_of("web"), USUAL)
)
ROLLS = StoredDeployment(deploying("■■|■"), POLICY, "v1", "v2", RUNS.reachable)
GOES_BACK = replace(ROLLS, snapshot=rolling_back("■■|■"))
FIRST, SECOND = StoredRevision(V1, "v1", SPEC), StoredRevision(V2, "v2", SPEC)
SHOP = {"traffic": {"hosts": ["shop.example"]}}
SHOP_AS = Entrance(EntranceKind.HOST, "shop.example")
RULED = replace(RUNS, rules=(AutoscalingRule.model_validate(RULE),))
TIRED = replace(RUNS, failed_starts=2)
GIVEN_UP = replace(RUNS, snapshot=replace(RUNS.snapshot, degraded_reason="no port is free"))
RESTS = replace(RUNS, snapshot=replace(RUNS.snapshot, retry_at=NOW))
NOTHING = replace(RUNS, snapshot=resting("", 1, PENDING, current_revision_id=None), policy=None, current=None)
CHOSEN = replace(NOTHING, snapshot=resting("", 1, PENDING, current_revision_id=V1), current="v1")
RESTARTED = replace(RUNS, snapshot=resting("■■■", 3, READY, current_revision_id=V2), current="v1.r2")


def applied(*documents: dict[str, Any], **more: Any) -> Apply:
    given = [{"deployment": "web", **document} for document in documents]
    return Apply.model_validate({"request_id": "r", "actor": "ann", "reason": "why", "documents": given, **more})


def parts_of(stored: Stored, document: dict[str, Any], **more: Any) -> list[Part]:
    apply = applied(document, **more)
    return parts(apply.documents[0], stored, apply)


def told(stored: Stored, document: dict[str, Any], **more: Any) -> list[str]:
    return [f"{type(part.command).__name__}: {part.sentence}" for part in parts_of(stored, document, **more)]


@pytest.mark.parametrize(
    ("stored", "document", "more", "expected"),
    [
        (Stored(), {}, {}, ["CreateDeployment: created, 1 replica wanted"]),
        (Stored(), {"replicas": 0}, {}, ["CreateDeployment: created, 0 replicas wanted"]),
        (
            Stored(),
            {"replicas": 2, "policy": ROLLING, **NEW, **SHOP},
            {},
            [
                "CreateDeployment: created, 2 replicas wanted",
                "SetTraffic: reached as shop.example",
                "AddRevision: revision v2 added",
                "ActivateRevision: revision v2 activated",
            ],
        ),
        (
            Stored(),
            {"traffic": None},
            {},
            [
                "CreateDeployment: created, 1 replica wanted",
                "SetTraffic: reached as web, web.localhost, /web/",
            ],
        ),
        (Stored(RUNS, FIRST), {}, {}, []),
        (Stored(RUNS, FIRST), {**SAME, "replicas": 3, "policy": ROLLING, "traffic": None}, {}, []),
        (Stored(RUNS, FIRST), SAME, {"through_freeze": True}, []),
        (Stored(RESTARTED, FIRST, is_restarted=True), SAME, {}, []),
        (Stored(RESTARTED, FIRST), SAME, {}, ["ActivateRevision: rollout from v1.r2 to v1 started"]),
        (
            Stored(None, SECOND),
            NEW,
            {},
            ["CreateDeployment: created, 1 replica wanted", "ActivateRevision: revision v2 activated"],
        ),
        (Stored(RUNS), {"policy": None}, {}, ["SetPolicy: policy removed"]),
        (Stored(replace(RUNS, policy=None)), {"policy": None}, {}, []),
        (
            Stored(RUNS),
            {"policy": {"strategy": "recreate"}},
            {},
            ["SetPolicy: policy recreate, for rollouts from now on"],
        ),
        (Stored(RUNS), {"replicas": 5}, {}, ["Scale: scaled from 3 to 5 replicas"]),
        (Stored(RULED), {"replicas": 5}, {}, []),
        (Stored(RUNS), SHOP, {}, ["SetTraffic: reached as shop.example"]),
        (
            Stored(RUNS),
            NEW,
            {},
            ["AddRevision: revision v2 added", "ActivateRevision: rollout from v1 to v2 started"],
        ),
        (
            Stored(RUNS),
            {**NEW, "replicas": 5, **SHOP},
            {},
            [
                "AddRevision: revision v2 added",
                "ActivateRevision: rollout from v1 to v2 started, with 5 replicas",
                "SetTraffic: from the first new replica on reached as shop.example",
            ],
        ),
        (
            Stored(RULED, SECOND),
            {**NEW, "replicas": 5},
            {},
            ["ActivateRevision: rollout from v1 to v2 started"],
        ),
        (Stored(RUNS), {**NEW, "replicas": 5, **SHOP}, {"activate": False}, ["AddRevision: revision v2 added"]),
        (Stored(RUNS), {**NEW, "replicas": 5, **SHOP, "activate": False}, {}, ["AddRevision: revision v2 added"]),
        (
            Stored(RUNS, FIRST),
            {**SAME, "replicas": 5, **SHOP, "activate": False},
            {},
            ["Scale: scaled from 3 to 5 replicas", "SetTraffic: reached as shop.example"],
        ),
        (
            Stored(replace(RUNS, policy=None)),
            {**NEW, "replicas": 5, **SHOP},
            {},
            [
                "Scale: scaled from 3 to 5 replicas",
                "SetTraffic: reached as shop.example",
                "AddRevision: revision v2 added",
                "ActivateRevision: revision v2 activated",
            ],
        ),
        (
            Stored(RUNS),
            {**NEW, "policy": None},
            {},
            ["SetPolicy: policy removed", "AddRevision: revision v2 added", "ActivateRevision: revision v2 activated"],
        ),
        (
            Stored(replace(RUNS, policy=None), SECOND),
            {**NEW, "policy": ROLLING},
            {},
            [
                "SetPolicy: policy rolling_update, for rollouts from now on",
                "ActivateRevision: rollout from v1 to v2 started",
            ],
        ),
        (
            Stored(NOTHING),
            NEW,
            {},
            ["AddRevision: revision v2 added", "ActivateRevision: revision v2 activated"],
        ),
        (Stored(CHOSEN, FIRST), SAME, {}, []),
        (Stored(CHOSEN, SECOND), NEW, {}, ["ActivateRevision: revision v2 activated"]),
        (Stored(ROLLS, SECOND), NEW, {}, []),
        (
            Stored(ROLLS, SECOND),
            {**NEW, "replicas": 5, **SHOP},
            {},
            [
                "Scale: rollout to v2 scaled from 3 to 5 replicas",
                "SetTraffic: from the first new replica on reached as shop.example",
            ],
        ),
        (Stored(replace(ROLLS, policy=None), SECOND), NEW, {}, []),
        (
            Stored(replace(ROLLS, policy=None)),
            {"revision": {**SERVE, "name": "v3"}},
            {"supersede": True},
            ["AddRevision: revision v3 added", "ActivateRevision: rollout to v3 started, leaving the one to v2"],
        ),
        (Stored(ROLLS), {"replicas": 5}, {}, ["Scale: scaled from 3 to 5 replicas"]),
        (
            Stored(ROLLS),
            {"revision": {**SERVE, "name": "v3"}, "replicas": 4, **SHOP},
            {"supersede": True, "through_freeze": True},
            [
                "AddRevision: revision v3 added",
                "ActivateRevision: rollout to v3 started, leaving the one to v2, with 4 replicas",
                "SetTraffic: from the first new replica on reached as shop.example",
            ],
        ),
        (
            Stored(ROLLS, FIRST),
            {**SAME, "replicas": 5, **SHOP},
            {"supersede": True},
            [
                "Scale: scaled from 3 to 5 replicas",
                "SetTraffic: reached as shop.example",
                "ActivateRevision: rollout to v1 started, leaving the one to v2",
            ],
        ),
        (Stored(TIRED, FIRST), SAME, {}, ["Retry: tried again now, 2 failed starts forgotten"]),
        (Stored(replace(RUNS, failed_starts=1)), {}, {}, ["Retry: tried again now, 1 failed start forgotten"]),
        (Stored(GIVEN_UP), {}, {}, ["Retry: tried again now, 0 failed starts forgotten"]),
        (Stored(RESTS, FIRST), SAME, {}, ["Retry: tried again now, 0 failed starts forgotten"]),
        (Stored(RESTS, FIRST), {**SAME, "activate": False}, {}, []),
        (Stored(RESTS, FIRST), SAME, {"activate": False}, []),
        (
            Stored(TIRED, SECOND),
            NEW,
            {},
            ["ActivateRevision: rollout from v1 to v2 started"],
        ),
    ],
)
def test_what_a_document_comes_to(
    stored: Stored, document: dict[str, Any], more: dict[str, Any], expected: list[str]
) -> None:
    assert told(stored, document, **({"reason": "why"} | more)) == expected


@pytest.mark.parametrize(
    ("stored", "document", "error", "message"),
    [
        (
            Stored(replace(RUNS, snapshot=resting("■", 1, DESTROYING))),
            {},
            WrongStateError,
            "web is being destroyed; apply again when 'rollway status' no longer lists it",
        ),
        (
            Stored(RUNS, FIRST),
            {"revision": {"command": ["else"], "name": "v1"}},
            RevisionExistsError,
            "revision v1 of web exists with another content",
        ),
        (
            Stored(RUNS, owners={SHOP_AS: "cart"}),
            SHOP,
            EntranceTakenError,
            "host shop.example is cart's, so web cannot have it",
        ),
        (Stored(ROLLS), {"revision": {**SERVE, "name": "v3"}}, DeploymentAlreadyInProgressError, "web is deploying v2"),
        (Stored(GOES_BACK, SECOND), NEW, DeploymentAlreadyInProgressError, "web is rolling back from v2"),
    ],
)
def test_what_cannot_be_is_refused(
    stored: Stored, document: dict[str, Any], error: type[RollwayError], message: str
) -> None:
    with pytest.raises(error, match=f"^{message}"):
        parts_of(stored, document)


def test_a_document_that_is_refused_names_its_deployment_and_the_state() -> None:
    with pytest.raises(WrongStateError) as refused:
        parts_of(Stored(replace(RUNS, snapshot=resting("■", 1, DESTROYING))), {})
    assert refused.value.detail == {"deployment": "web", "state": "destroying"}


def test_what_another_deployment_has_of_the_usual_entrances_is_left_to_it() -> None:
    name, localhost, prefix = RUNS.reachable[0]
    own = replace(RUNS, reachable=((localhost, prefix), USUAL))
    assert told(Stored(own, owners={name: "cart"}), {"traffic": None}) == []
    assert told(Stored(RUNS, owners={name: "cart"}), {"traffic": None}) == [
        "SetTraffic: reached as web.localhost, /web/"
    ]


def test_settings_of_a_rollout_are_compared_with_those_that_it_brings() -> None:
    brought = TrafficSettings.model_validate(SHOP["traffic"])
    release = (brought.entrances_of("web"), brought.rules)
    assert told(Stored(replace(ROLLS, release=release), SECOND), {**NEW, **SHOP}) == []
    assert told(Stored(replace(ROLLS, reachable=release), SECOND), {**NEW, **SHOP}) == []
    assert told(Stored(replace(RUNS, release=release)), {**NEW, **SHOP})[-1].endswith("reached as shop.example")


def test_a_command_of_a_document_says_who_asked_and_why() -> None:
    (create, add, activate) = (part.command for part in parts_of(Stored(), NEW, supersede=True))
    for command in (create, add, activate):
        assert (command.request_id, command.actor, command.reason) == ("r", "ann", "why")
    assert activate.model_dump()["supersede"] is True


@pytest.mark.parametrize(
    ("stored", "document", "sections"),
    [
        (Stored(RUNS), {"replicas": 5, **SHOP, "policy": None}, {"replicas", "traffic", "policy"}),
        (Stored(RUNS), {"replicas": 5}, {"replicas"}),
        (Stored(RUNS), {}, set()),
        (Stored(RUNS), {"replicas": 5, **NEW}, set()),
        (Stored(ROLLS), {"replicas": 5}, set()),
        (Stored(), {"replicas": 5}, set()),
    ],
)
def test_a_file_that_changes_settings_of_a_deployment_at_rest_alone_names_its_sections(
    stored: Stored, document: dict[str, Any], sections: set[str]
) -> None:
    assert settings_alone(stored, parts_of(stored, document)) == sections


def test_a_role_gives_no_part_that_it_could_not_give_alone() -> None:
    changes = parts_of(Stored(RUNS), {**NEW, "policy": None})
    refuse_beyond(Role.ADMIN, changes)
    with pytest.raises(
        NotAllowedError, match=r"^policy removed: this needs the role admin, and not operator; noth"
    ) as no:
        refuse_beyond(Role.OPERATOR, changes)
    assert no.value.detail == {"needed": Role.ADMIN, "role": Role.OPERATOR}
    refuse_beyond(Role.RELEASER, parts_of(Stored(RUNS, SECOND), NEW))


def test_the_outcome_of_a_document_has_its_sentences_and_its_rollout() -> None:
    changes = parts_of(Stored(RUNS), NEW)
    document = applied(NEW).documents[0]
    results: list[dict[str, Any]] = [
        {"revision": "v2"},
        {"rollout_id": None},
        {"rollout_id": "0199"},
        {"rollout_id": "0200"},
    ]
    assert told_of(document, changes, results) == {
        "deployment": "web",
        "done": ["revision v2 added", "rollout from v1 to v2 started"],
        "results": results,
        "rollout_id": "0199",
    }
    assert told_of(document, [], [])["rollout_id"] is None


@pytest.mark.parametrize(
    ("stored", "document", "more", "note"),
    [
        (Stored(RULED), {"replicas": 5}, {}, "replicas: 5 is for a new deployment; rules set the size, 3 now"),
        (Stored(RULED), {"replicas": 3}, {}, ""),
        (Stored(RULED), {}, {}, ""),
        (Stored(RUNS), {"replicas": 5}, {}, ""),
        (
            Stored(RUNS, SECOND),
            {**NEW, "replicas": 3},
            {"activate": False},
            "replicas and traffic come with v2: apply the file when that is to run",
        ),
        (
            Stored(RUNS, SECOND),
            {**NEW, "traffic": None, "activate": False},
            {},
            "replicas and traffic come with v2: apply the file when that is to run",
        ),
        (Stored(RUNS, SECOND), {**NEW, "activate": False}, {}, ""),
        (Stored(RUNS, SECOND), {**NEW, "replicas": 5}, {}, ""),
        (Stored(ROLLS, SECOND), {**NEW, "replicas": 5}, {"activate": False}, ""),
        (Stored(None, SECOND), {**NEW, "replicas": 5}, {"activate": False}, ""),
    ],
)
def test_a_part_of_a_document_without_effect_is_noted(
    stored: Stored, document: dict[str, Any], more: dict[str, Any], note: str
) -> None:
    apply = applied(document, **more)
    assert notes(apply.documents[0], stored, apply) == ((note,) if note else ())


@pytest.mark.parametrize(
    ("documents", "fault"),
    [
        ([{}, {}], "deployment: web is in two documents; give it one"),
        (
            [SHOP, {"deployment": "cart", **SHOP}],
            "traffic: shop.example is in two documents; only one deployment can be reached by it",
        ),
    ],
)
def test_two_documents_that_disagree_are_refused(documents: list[dict[str, Any]], fault: str) -> None:
    with pytest.raises(ValidationError) as refused:
        applied(*documents)
    assert InvalidInputError.of(refused.value).message == fault


def test_documents_of_several_deployments_are_taken() -> None:
    usual: dict[str, Any] = {"traffic": {}}  # what another has of its names is left to that one
    assert (
        len(applied(usual, {"deployment": "cart", "traffic": {"hosts": ["web"]}}, {"deployment": "api"}).documents) == 3
    )


def test_a_document_that_is_sent_on_says_what_it_said_and_no_more() -> None:
    (document,) = applied({"policy": None, "replicas": 0}).documents
    assert document.model_dump() == {"deployment": "web", "replicas": 0, "policy": None}
    assert (document.activate, document.mentions_policy, document.wanted_traffic) == (True, True, None)
    whole = applied({})
    assert (whole.activate, whole.supersede, whole.through_freeze) == (True, False, False)
    (plain,) = whole.documents
    assert (plain.revision_name, plain.mentions_policy, plain.asked_entrances) == (None, False, ())
    (unnamed,) = applied({"revision": SERVE}).documents
    assert unnamed.revision_name == revision_name("web", RevisionSpec.model_validate(SERVE))


def test_a_document_with_a_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValidationError) as refused:
        applied({"replica": 3})
    assert InvalidInputError.of(refused.value, model=Apply).message == (
        "document 1, replica: there is no such field; did you mean replicas?"
    )
