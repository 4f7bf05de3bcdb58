"""Each alert's fault is made with real parts: a real Prometheus sees its expression become true, and false again."""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from stack.home.folder import project_root
from tests.support.faults import faults_at_rest, faults_at_work
from tests.support.faults.prometheus import MISSING, RULES, program, rules
from tests.support.faults.watched import Watched
from tests.support.stack.waiting import eventually
from tools.reference.metrics import metrics

Fault = Callable[[Watched], AbstractContextManager[Mapping[str, str]]]
"""Makes a fault; yields labels of the alert that it fires, and puts it right."""

FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "nobody works": {
        "RollwayServiceDown": faults_at_rest.none_serves,
        "RollwayCallersFail": faults_at_rest.requests_fail,
        "RollwayCallersFailSlowly": faults_at_rest.requests_fail,
        "RollwayRolledBack": faults_at_rest.a_rollout_goes_back,
        "RollwayReplicasMissing": faults_at_rest.too_few_serve,
        "RollwayDegraded": faults_at_rest.scaling_gives_up,
        "RollwayRolloutStuck": faults_at_rest.a_rollout_stands_still,
        "RollwayRolloutWaits": faults_at_rest.somebody_pauses_and_forgets,
        "RollwayDrainStuck": faults_at_rest.a_replica_does_not_leave,
        "RollwayMarksOverdue": faults_at_rest.nobody_looks,
        "RollwayClockOff": faults_at_rest.a_clock_goes_wrong,
        "RollwayQueueLong": faults_at_rest.nobody_reads_a_queue,
        "RollwayEventsGivenUp": faults_at_rest.nobody_takes_an_event,
        "RollwayWrongTokens": faults_at_rest.somebody_tries_tokens,
        "RollwayProxyRefuses": faults_at_rest.a_proxy_refuses,
        "RollwayRedisAway": faults_at_rest.a_server_has_no_redis,
        "RollwayCertificateEnds": faults_at_rest.a_certificate_was_not_renewed,
        "RollwayTableStale": faults_at_rest.postgres_falls_silent,
    },
    "a worker and a beat work": {
        "RollwayHostDown": faults_at_work.a_host_falls_silent,
        "RollwayDiskFull": faults_at_work.a_disk_fills,
        "RollwayDecisionsLate": faults_at_work.marks_are_left_lying,
        "RollwayDrainsCut": faults_at_work.a_replica_does_not_end,
        "RollwayTasksFail": faults_at_work.a_task_raises,
        "RollwayMessagesPutAside": faults_at_work.somebody_sends_nonsense,
        "RollwayImpossibleState": faults_at_work.rows_contradict_each_other,
    },
    "they are killed": {
        "RollwayTargetDown": faults_at_work.a_worker_is_killed,
        "RollwayNoTicks": faults_at_work.beat_is_killed,
        "RollwayNoWorker": faults_at_work.nobody_is_heard_of,
    },
}


def test_each_alert_has_a_fault_that_makes_it_fire_and_a_runbook() -> None:
    named = {rule["alert"]: rule["annotations"]["runbook"] for rule in rules()}
    assert sorted(alert for faults in FAULTS.values() for alert in faults) == sorted(named)
    assert named == {alert: f"docs/runbooks/{alert}.md" for alert in named}
    pages = {path.stem for path in project_root().glob("docs/runbooks/*.md")}
    assert pages == {*named, "README"}


@pytest.mark.parametrize("when", FAULTS)
def test_each_fault_makes_its_alert_fire_until_it_is_put_right(watched: Watched, when: str) -> None:
    if watched.prometheus is None:
        pytest.skip(MISSING)
    prometheus, began = watched.prometheus, time.monotonic()
    labels: dict[str, Mapping[str, str]] = {}
    with ExitStack() as faults:
        for alert, fault in FAULTS[when].items():
            labels[alert] = faults.enter_context(fault(watched))
        for alert, of in labels.items():
            eventually(partial(prometheus.has_fired, alert, of, began), 60, f"{alert} to fire: {of}")
        summaries = [found["annotations"]["summary"] for found in prometheus.firing()]
        assert [summary for summary in summaries if "error" in summary or "no value" in summary] == []
    for alert, of in labels.items():
        eventually(partial(prometheus.is_over, alert, of), 60, f"{alert} to be over: {of}")


def test_a_full_disk_is_told_on_when_the_process_that_told_of_it_has_died(tmp_path: Path) -> None:
    promtool = program("promtool")
    if promtool is None:
        pytest.skip(MISSING)
    told = {"rollway_home_free_bytes": "5x9 stale", "rollway_home_size_bytes": "100x9 stale"}
    series = [{"series": f'{name}{{instance="vm"}}', "values": values} for name, values in told.items()]
    (rule,) = (each for each in rules() if each["alert"] == "RollwayDiskFull")
    said = {"summary": "the disk of ROLLWAY_HOME at vm has 5% left", "runbook": rule["annotations"]["runbook"]}
    fires = {"exp_labels": {"instance": "vm", **rule["labels"]}, "exp_annotations": said}
    expected = {"eval_time": "50m", "alertname": rule["alert"], "exp_alerts": [fires]}
    tried = {"interval": "1m", "input_series": series, "alert_rule_test": [expected]}
    file = tmp_path / "disk.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "tests": [tried]}), encoding="utf-8")
    ended = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


DASHBOARD = project_root() / "stack/monitoring/rollway.dashboard.json"
PAGES = [project_root() / "docs/watching.md", *project_root().glob("docs/runbooks/*.md")]
_NAME = re.compile(r"\b(?:rollway|celery|process)_[a-z_]+\b")
_SAMPLES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}


def expressions() -> Iterator[str]:
    """Of all panels."""
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]


@pytest.fixture(scope="module")
def shown(watched: Watched) -> dict[str, tuple[str, ...]]:
    """The metrics that real processes show, each with the names of its samples."""
    watched.work()
    pages = [watched.of_the_fleet(), *(watched.page(name) for name in ("api", "people", "worker", "beat"))]
    families = [family for page in pages for family in text_string_to_metric_families(page.text)]
    return {family.name: tuple(family.name + end for end in _SAMPLES[family.type]) for family in families}


def test_every_metric_that_a_file_names_is_shown(shown: dict[str, tuple[str, ...]]) -> None:
    samples = {sample for names in shown.values() for sample in names}
    files = [RULES, DASHBOARD, *PAGES]
    named = {str(file): set(_NAME.findall(file.read_text(encoding="utf-8"))) - samples for file in files}
    assert {file: names for file, names in named.items() if names} == {}


def test_every_metric_that_is_shown_stands_in_the_reference_and_no_other(shown: dict[str, tuple[str, ...]]) -> None:
    listed = {name for rows in metrics().values() for name, *_ in rows if not name.startswith("process_")}
    ours = {names[0].removesuffix("_bucket") for name, names in shown.items() if not name.startswith("process_")}
    assert listed == ours


def test_prometheus_understands_every_panel_and_most_of_them_show_something(
    watched: Watched, shown: dict[str, tuple[str, ...]]
) -> None:
    assert shown
    if watched.prometheus is None:
        pytest.skip(MISSING)
    prometheus = watched.prometheus
    asked = list(expressions())
    empty = [expression for expression in asked if not prometheus.ask(expression)]
    assert len(empty) < len(asked) / 3, empty
