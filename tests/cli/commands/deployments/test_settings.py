"""`rollway create`, `policy`, `autoscaling`, `push-metric` and `traffic --set`: what they show is what --set reads."""

import json
from pathlib import Path

import pytest
import yaml
from sqlalchemy import Engine

from stack.home.folder import project_root
from tests.cli.conftest import Rollway
from tests.support.pictures.autoscaling import check
from tests.support.rows.deployments import make_deployment

pytestmark = pytest.mark.usefixtures("servers")

RULE = "{metric: queue, source: pushed, comparator: '>', threshold: 10, step: 1, max_replicas: 8}"
POLICY = "{strategy: rolling_update, spec: {max_surge: 2, max_unavailable: 0}}"


def test_a_deployment_is_created_and_runs_nothing_yet(rollway: Rollway) -> None:
    ended = rollway("create", "api", "--replicas", "4", "--policy", POLICY)
    assert (ended.code, ended.out) == (0, "api is created; 'rollway apply' gives it a first revision\n")
    shown = json.loads(rollway("status", "api", "--json").out)
    assert (shown["desired_replicas"], shown["policy"]["strategy"]) == (4, "rolling_update")
    assert rollway("create", "api").code == 1


def test_a_policy_is_shown_as_it_can_be_set(rollway: Rollway, engine: Engine, tmp_path: Path) -> None:
    make_deployment(engine)
    assert rollway("policy", "web", "--set", POLICY).out == "web is rolled out by rolling_update from now on\n"
    shown = rollway("policy", "web").out
    assert "max_surge: 2\n" in shown
    (tmp_path / "policy.yaml").write_text(shown)
    assert rollway("policy", "web", "--remove").out.startswith("web has no policy from now on")
    assert rollway("policy", "web").out == "web has no policy: its replicas are just replaced\n"
    assert rollway("policy", "web", "--set", str(tmp_path / "policy.yaml"), "--json").code == 0
    assert rollway("policy", "web").out == shown


def test_rules_are_set_act_on_what_is_pushed_and_go_again(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine)
    assert rollway("autoscaling", "web").out == "web has no autoscaling rules: its size is what people set\n"
    assert rollway("autoscaling", "web", "--set", f"[{RULE}]").out == "web has 1 autoscaling rule from now on\n"
    shown = rollway("autoscaling", "web").out
    assert shown.startswith("- metric: queue\n  source: pushed\n")
    assert rollway("push-metric", "web", "queue", "9.5").out == "queue of web is 9.5 now; no rule acts on it\n"
    assert rollway("push-metric", "web", "queue", "11").out == "queue of web is 11 now; a rule acts on it\n"
    assert rollway("autoscaling", "web", "--remove").out == "web has no autoscaling rules from now on\n"


def test_the_example_of_rules_for_proxies_is_taken_and_shown_and_status_says_what_they_see(
    rollway: Rollway, engine: Engine
) -> None:
    make_deployment(engine)
    example = str(project_root() / "examples/autoscaling/by_requests.yaml")
    assert rollway("autoscaling", "web", "--set", example).out == "web has 3 autoscaling rules from now on\n"
    assert yaml.safe_load(rollway("autoscaling", "web").out)[1]["metric"] == "answers_under_way"
    check(engine)
    said = rollway("status", "web").out
    assert "requests_per_second has no value yet: no proxy has told it" in " ".join(said.split())


def test_where_one_deployment_is_reached_is_set_alone(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine)
    said = rollway("traffic", "web", "--set", "{hosts: [web.example.com]}")
    assert (said.code, said.out) == (0, "web is reached by web.example.com from now on\n")
    assert "web.example.com" in rollway("traffic", "web").out
    assert rollway("traffic", "web", "--reset").code == 0
    assert "web.example.com" not in rollway("traffic", "web").out


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("policy web --set nowhere.yaml", "--set: nowhere.yaml: cannot be read: No such file"),
        ("policy web --set {strategy", "--set: line 1, column 10: "),
        ("policy web --set {strategy}", "policy.strategy: "),
        ("policy web --set {} --remove", "--set and --remove do not go together"),
        ("policy web --set [1]", "policy: "),
        ("autoscaling web --set {}", "--set: must be a list of rules, such as [{"),
        ("autoscaling web --set [{metric:}]", "rule 1, metric: "),
        ("push-metric web queue nan", "value: "),
        ("push-metric web queue 3", "metric: no rule of web"),
        ("traffic web --set {actor}", "--set: must be fields with their values; the fields are hosts"),
        ("traffic web --set [1]", "--set: must be fields"),
        ("traffic --reset", "name the deployment"),
        ("create BAD", "deployment: "),
        ("create api --policy 3", "--policy: 3: cannot be read"),
    ],
)
def test_a_setting_that_makes_no_sense_is_one_sentence_with_its_field(
    rollway: Rollway, engine: Engine, line: str, sentence: str
) -> None:
    make_deployment(engine)
    ended = rollway(*line.split())
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1), ended
    assert ended.err.startswith(sentence)


def test_a_maintenance_begins_with_a_page_of_ones_own_and_ends(
    rollway: Rollway, engine: Engine, tmp_path: Path
) -> None:
    make_deployment(engine, "■", n=1)
    (tmp_path / "sorry.html").write_text("<h1>Sorry</h1>")
    begun = rollway("maintenance", "web", "on", "--page", str(tmp_path / "sorry.html"), "--reason", "disks")
    assert (begun.code, begun.out) == (0, "web is in maintenance: callers get 503 until 'off'\n")
    for command in (("status", "web"), ("status",)):
        assert "(disks); callers get 503" in " ".join(rollway(*command).out.split())
    (service,) = json.loads(rollway("traffic", "web", "--json").out)["services"]
    assert service["maintenance"]["page"] == "<h1>Sorry</h1>"
    assert rollway("maintenance", "web", "off").out == "web is not in maintenance any more\n"
    assert json.loads(rollway("status", "web", "--json").out)["maintenance"] == ""
    missing = rollway("maintenance", "web", "on", "--page", str(tmp_path / "none.html"))
    assert (missing.code, "none.html: cannot be read: No such file" in missing.err) == (2, True)
