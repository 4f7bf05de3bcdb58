"""Documents are applied, and changes rolled out, by one command in one transaction: wholly or not at all."""

import threading
from typing import Any

import pytest
from sqlalchemy import Engine

from domain.steering.gates import FrozenError
from domain.text.errors import InvalidInputError, RollwayError
from domain.traffic.entrances import EntranceTakenError
from tests.support.pictures.pictures import PENDING, PROVISIONING, READY, SCALING
from tests.support.rows.deployments import ROLLING, SPEC, ask, make_deployment, read, snapshot, write
from tests.support.rows.rows import told

NOT = {**SPEC, "command": ["sleep", "61"]}


def document(name: str, **fields: Any) -> dict[str, Any]:
    return {"deployment": name, "revision": {"name": "v1", **SPEC}, **fields}


def names(engine: Engine) -> list[str]:
    return [row["name"] for row in read(engine, "SELECT name FROM deployments ORDER BY name")]


def test_all_documents_are_applied_and_each_says_what_became_of_it(engine: Engine) -> None:
    documents = [document("web", replicas=2, policy=ROLLING), {"deployment": "api"}]
    done = ask(engine, "apply", documents=documents, actor="ann", reason="first day")
    web, api = done.result["documents"]
    assert web["done"] == ["created, 2 replicas wanted", "revision v1 added", "revision v1 activated"]
    assert (api["done"], api["results"][0]["deployment"]) == (["created, 1 replica wanted"], "api")
    assert [result.get("revision") for result in web["results"]] == [None, "v1", "v1"]
    assert done.statuses == (PENDING, PENDING, PENDING, PENDING)
    assert ("create", "ann", "created with 2 replicas wanted: first day") in told(engine)
    assert read(engine, "SELECT count(*) AS n FROM commands") == [{"n": 1}]


def test_null_and_left_out_are_two_things(engine: Engine) -> None:
    ask(engine, "apply", documents=[document("web", policy=ROLLING)])
    ask(engine, "apply", documents=[document("web")], request_id="again")
    assert read(engine, "SELECT strategy FROM policies") == [{"strategy": "rolling_update"}]
    assert ask(engine, "apply", documents=[document("web")], request_id="again").repeated
    done = ask(engine, "apply", documents=[document("web", policy=None)])
    assert done.result["documents"][0]["done"] == ["policy removed"]
    assert read(engine, "SELECT strategy FROM policies") == []


def test_a_rollout_that_it_begins_is_named(engine: Engine) -> None:
    made = make_deployment(engine, "■■■", status=READY, policy=ROLLING)
    done = ask(engine, "apply", documents=[{"deployment": "web", "revision": {"name": "v9", **NOT}}])
    (row,) = read(engine, "SELECT id FROM rollouts WHERE deployment_id = %s", made.id)
    (told_of,) = done.result["documents"]
    assert (told_of["rollout_id"], done.statuses[-1]) == (str(row["id"]), PROVISIONING)
    assert told_of["done"] == ["revision v9 added", "rollout from v1 to v9 started"]


def test_what_is_held_back_by_failed_starts_is_tried_now(engine: Engine) -> None:
    made = make_deployment(engine, "■", n=2, status=SCALING)
    tired = "UPDATE deployments SET failed_revision_id = %s, failed_starts = 4, last_failed_at = now()"
    write(engine, tired, made.v1)
    ran = document("web")
    assert ask(engine, "apply", documents=[ran], activate=False).result["documents"][0]["done"] == []
    done = ask(engine, "apply", documents=[ran], reason="the package is there")
    assert done.result["documents"][0]["done"] == ["tried again now, 4 failed starts forgotten"]
    assert snapshot(engine, made.id).start_failures is None
    assert ask(engine, "apply", documents=[ran]).result["documents"][0]["done"] == []
    write(engine, tired, made.v1)
    write(engine, "UPDATE deployments SET came_up_at = now()")
    assert ask(engine, "apply", documents=[ran]).result["documents"][0]["done"] == [], "one has come up since"


@pytest.mark.parametrize(
    ("last", "refusal"),
    [
        (document("api", traffic={"hosts": ["taken.example.com"]}), EntranceTakenError),
        (document("frozen"), FrozenError),
        (document("api", revision={**SPEC, "env": {"A": "***"}}), InvalidInputError),
    ],
)
def test_nothing_is_written_where_the_last_document_is_refused(
    engine: Engine, last: dict[str, Any], refusal: type[RollwayError]
) -> None:
    ask(engine, "create_deployment", deployment="other")
    ask(engine, "set_traffic", deployment="other", hosts=["taken.example.com"])
    ask(engine, "create_deployment", deployment="frozen")
    until = {"starts_at": "2020-01-01T00:00:00Z", "ends_at": "2100-01-01T00:00:00Z"}
    ask(engine, "set_freeze", freeze="holiday", deployments=["frozen"], **until)
    before = read(engine, "SELECT id, name, version FROM deployments ORDER BY name"), told(engine)
    with pytest.raises(refusal):
        ask(engine, "apply", documents=[document("web", policy=ROLLING), last])
    assert (read(engine, "SELECT id, name, version FROM deployments ORDER BY name"), told(engine)) == before
    assert names(engine) == ["frozen", "other"]


def test_an_entrance_moves_from_one_document_to_a_later_one(engine: Engine) -> None:
    ask(engine, "apply", documents=[document("api", traffic={"hosts": ["www.example.com"]})])
    moved = [
        document("api", traffic={"hosts": ["old.example.com"]}),
        document("web", traffic={"hosts": ["www.example.com"]}),
    ]
    ask(engine, "apply", documents=moved)
    query = "SELECT d.name, e.value FROM entrances e JOIN deployments d ON d.id = e.deployment_id ORDER BY d.name"
    assert [tuple(row.values()) for row in read(engine, query)] == [
        ("api", "old.example.com"),
        ("web", "www.example.com"),
    ]


def test_files_that_name_the_same_deployments_in_another_order_do_not_lock_each_other_out(engine: Engine) -> None:
    ask(engine, "apply", documents=[document("api"), document("web")])
    failures: list[Exception] = []

    def scale(order: list[str], replicas: int) -> None:
        try:
            for step in range(10):
                ask(engine, "apply", documents=[{"deployment": name, "replicas": replicas + step} for name in order])
        except Exception as error:  # noqa: BLE001  (whatever it is, it is the finding)
            failures.append(error)

    threads = [threading.Thread(target=scale, args=given) for given in ((["api", "web"], 1), (["web", "api"], 50))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_two_documents_that_claim_the_same_are_refused_by_name(engine: Engine) -> None:
    with pytest.raises(InvalidInputError, match="deployment: web is in two documents; give it one"):
        ask(engine, "apply", documents=[document("web"), document("web")])


def test_a_whole_content_is_rolled_out_with_the_values_that_it_does_not_show(engine: Engine) -> None:
    spec = {**SPEC, "env": {"A": "1", "B": "2"}}
    deployment = make_deployment(engine, "■■■", status=READY, policy=ROLLING, spec=spec)
    changed = {**spec, "env": {"A": "***", "B": "3"}}
    for masked, why in (({"NEW": "***"}, "means the value in v1"), ({"A": "$PORT"}, "no shell reads")):
        with pytest.raises(InvalidInputError, match=why):
            ask(engine, "rolling_update", deployment=deployment.name, spec={**spec, "env": masked})
    with pytest.raises(InvalidInputError, match="spec is the whole content: leave image and command out"):
        ask(engine, "rolling_update", deployment=deployment.name, spec=changed, command=["serve"])
    same = {**spec, "env": {"A": "***", "B": "***"}}
    assert ask(engine, "rolling_update", deployment=deployment.name, spec=same).result["activation"] == "already_active"
    done = ask(engine, "rolling_update", deployment=deployment.name, spec=changed, values_of="v1", revision="v9").result
    assert (done["activation"], done["revision"]) == ("begun", "v9")
    (stored,) = read(engine, "SELECT spec FROM revisions WHERE name = 'v9'")
    assert stored["spec"]["env"] == {"A": "1", "B": "3"}


def test_a_policy_that_is_none_is_refused_with_its_path(engine: Engine) -> None:
    policy = {"strategy": "rolling_update", "spec": {"max_surge": -1}}
    with pytest.raises(InvalidInputError, match=r"^document 2, policy.spec.max_surge: must be"):
        ask(engine, "apply", documents=[document("api"), document("web", policy=policy)])


def test_a_rolling_update_adds_the_revision_and_begins_the_rollout(engine: Engine) -> None:
    make_deployment(engine, "■■■", status=READY, policy=ROLLING)
    done = ask(engine, "rolling_update", deployment="web", command=["sleep", "61"])
    assert (done.result["activation"], done.statuses) == ("begun", (PROVISIONING,))
    again = ask(engine, "rolling_update", deployment="web", command=["sleep", "61"])
    assert (again.result["activation"], again.result["revision"]) == ("resumed", done.result["revision"])


def test_a_rolling_update_that_is_refused_leaves_no_revision(engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING, policy=ROLLING)
    before = read(engine, "SELECT id FROM revisions ORDER BY id")
    with pytest.raises(RollwayError, match=r"under way|supersede"):
        ask(engine, "rolling_update", deployment="web", command=["sleep", "61"])
    assert read(engine, "SELECT id FROM revisions ORDER BY id") == before
