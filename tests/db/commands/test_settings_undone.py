"""A file that changes settings alone begins no rollout, and an undo puts its settings back."""

from random import Random

import pytest
from sqlalchemy import Engine

from api.people.doors import BUTTONS
from db.connection.transactions import transaction
from db.views.deployment_views import existing_deployments
from db.views.rollout_records import past_of, sections
from domain.commands.base import StaleVersionError
from domain.planning.buttons import available_commands
from domain.steering.command_effect import Context
from domain.steering.rollout_history import AlreadyUndoneError, NoPreviousRevisionError
from domain.traffic.entrances import EntranceTakenError
from tests.db.commands.test_release import EVERYTHING, OF_V1, OF_V2, make, random_settings
from tests.support.rows.deployments import ask, make_deployment, read, snapshot
from tests.support.rows.releases import STRATEGIES, apply, file, go_on, settle

ALL = ("replicas", "policy", "traffic")
OTHER_POLICY = {"strategy": "rolling_update", "spec": {"max_surge": 3, "max_unavailable": 0}}


def settings(engine: Engine) -> dict[str, object]:
    with transaction(engine) as connection:
        return sections(connection, "web", ALL)


@pytest.mark.parametrize("seed", range(12))
def test_any_settings_after_any_others_and_then_an_undo_leave_everything_as_it_was(engine: Engine, seed: int) -> None:
    chance = Random(seed)
    made = make_deployment(engine, "■■■", policy=STRATEGIES[chance.choice(list(STRATEGIES))])
    apply(engine, {"deployment": "web", **random_settings(chance)})
    settle(engine, made)
    before = settings(engine)
    new = {**random_settings(chance), "policy": OTHER_POLICY}
    names = chance.sample(sorted(new), chance.randrange(1, len(new) + 1))
    apply(engine, {"deployment": "web", **{name: new[name] for name in names}})
    settle(engine, made)
    after = settings(engine)
    undone = ask(engine, "undo", deployment="web").result
    settle(engine, made)
    assert (settings(engine), len(undone["settings"])) == (before, sum(before[name] != after[name] for name in ALL))
    assert read(engine, "SELECT FROM rollouts") == []


def test_every_setting_of_traffic_comes_back_and_goes_again(engine: Engine) -> None:
    make(engine, "rolling_update")
    first = settings(engine)
    apply(engine, {"deployment": "web", "traffic": EVERYTHING})
    second = settings(engine)
    ask(engine, "undo", deployment="web")
    assert settings(engine) == first != second
    apply(engine, {"deployment": "web", "traffic": EVERYTHING})
    apply(engine, {"deployment": "web", "traffic": None})
    ask(engine, "undo", deployment="web")
    assert settings(engine) == second


def test_a_second_undo_is_refused_and_names_what_is_further_back(engine: Engine) -> None:
    made = make(engine, "rolling_update")
    apply(engine, file("v3"))
    go_on(engine, made, "ended")
    apply(engine, {"deployment": "web", "replicas": 5})
    result = ask(engine, "undo", deployment="web").result
    assert (result["settings"], result["rollout_id"]) == (["scaled from 5 to 3 replicas"], None)
    with pytest.raises(AlreadyUndoneError, match="are undone already; 'rollway undo web --to v1' goes further back"):
        ask(engine, "undo", deployment="web")


def test_where_no_rollout_came_before_a_second_undo_has_nothing_to_go_back_to(engine: Engine) -> None:
    make_deployment(engine)
    apply(engine, {"deployment": "web", "replicas": 5})
    ask(engine, "undo", deployment="web")
    with pytest.raises(AlreadyUndoneError, match=r"the last file brought to web are undone already$"):
        ask(engine, "undo", deployment="web")
    rows = read(engine, "SELECT message FROM deployment_history WHERE phase = 'scale' ORDER BY created_at")
    assert [row["message"] for row in rows] == ["from 3 to 5 replicas", "from 5 to 3 replicas: as before the last file"]


@pytest.mark.parametrize("is_over", [False, True])
def test_after_a_later_rollout_an_undo_goes_back_to_the_revision_and_leaves_the_settings(
    engine: Engine, *, is_over: bool
) -> None:
    made = make(engine, "rolling_update")
    apply(engine, {"deployment": "web", "replicas": 5})
    settle(engine, made)
    apply(engine, file("v3"))
    if is_over:
        go_on(engine, made, "ended")
    assert "settings" not in ask(engine, "undo", deployment="web").result
    go_on(engine, made, "ended")
    (row,) = read(engine, "SELECT v.name FROM deployments d JOIN revisions v ON v.id = d.current_revision_id")
    assert (row["name"], settings(engine)["replicas"]) == ("v1", 5)


def test_settings_that_came_during_a_rollout_are_no_release_of_their_own(engine: Engine) -> None:
    made = make(engine, "rolling_update")
    apply(engine, file("v3"))
    apply(engine, {"deployment": "web", "replicas": 5})
    go_on(engine, made, "ended")
    assert "settings" not in ask(engine, "undo", deployment="web").result


def test_what_a_person_has_changed_since_stays(engine: Engine) -> None:
    make(engine, "rolling_update")
    apply(engine, {"deployment": "web", "replicas": 5, "traffic": OF_V2})
    ask(engine, "scale", deployment="web", desired_replicas=6)
    before = settings(engine)
    result = ask(engine, "undo", deployment="web").result
    assert result["settings"] == ["reached as web.example.com, /web/, each request within 30 s"]
    assert settings(engine)["replicas"] == 6 == before["replicas"]


def test_where_a_person_has_changed_all_of_it_since_the_undo_is_that_of_the_last_rollout(engine: Engine) -> None:
    make_deployment(engine)
    apply(engine, {"deployment": "web", "replicas": 5})
    ask(engine, "scale", deployment="web", desired_replicas=6)
    with pytest.raises(NoPreviousRevisionError, match="scaled from 5 to 6 replicas"):
        ask(engine, "undo", deployment="web")


def test_an_entrance_that_another_deployment_has_taken_since_refuses_the_whole_undo(engine: Engine) -> None:
    make(engine, "rolling_update")
    make_deployment(engine, name="other")
    apply(engine, {"deployment": "web", "replicas": 5, "traffic": OF_V2})
    ask(engine, "set_traffic", deployment="other", hosts=OF_V1["hosts"])
    before = settings(engine)
    with pytest.raises(EntranceTakenError, match=r"web\.example\.com is other's"):
        ask(engine, "undo", deployment="web")
    assert settings(engine) == before


def test_an_undo_of_settings_wants_the_version_that_was_looked_at(engine: Engine) -> None:
    made = make_deployment(engine)
    apply(engine, {"deployment": "web", "replicas": 5})
    version = snapshot(engine, made.id).version
    with pytest.raises(StaleVersionError):
        ask(engine, "undo", deployment="web", expected_version=version - 1)
    assert ask(engine, "undo", deployment="web", expected_version=version).result["version"] == version + 1


def test_a_rollout_that_is_undone_says_which_settings_come_back_and_when(engine: Engine) -> None:
    made = make(engine, "rolling_update")
    apply(engine, file("v3", traffic=OF_V2))
    go_on(engine, made, "ended")
    (settings,) = ask(engine, "undo", deployment="web").result["settings"]
    assert settings.endswith("web.example.com, /web/, each request within 30 s")


def test_a_rollout_that_turns_back_says_which_settings_come_back_and_when(engine: Engine) -> None:
    made = make(engine, "rolling_update")
    apply(engine, file("v3", traffic=OF_V2))
    go_on(engine, made, "met")
    (settings,) = ask(engine, "undo", deployment="web").result["settings"]
    assert settings.startswith("as soon as the new revision answers nobody web.example.com")


def test_the_button_is_there_after_such_a_file_and_gone_after_its_undo(engine: Engine) -> None:
    make_deployment(engine)
    assert "undo" not in buttons(engine)
    apply(engine, {"deployment": "web", "replicas": 5})
    assert "undo" in buttons(engine)
    ask(engine, "undo", deployment="web")
    assert "undo" not in buttons(engine)


def buttons(engine: Engine) -> tuple[str, ...]:
    with transaction(engine) as connection:
        (view,) = existing_deployments(connection, ["web"])
        taken = available_commands(view.snapshot, past_of(connection, view), Context("offered", view.now, view.id))
        return tuple(verb for verb, command in BUTTONS.items() if command in taken)
