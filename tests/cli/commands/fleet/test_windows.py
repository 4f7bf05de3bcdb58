"""`rollway freeze`, `unfreeze`, `freezes`, `group`, `ungroup` and `groups`, and the way through a freeze."""

import json
import re
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.cli.conftest import Rollway
from tests.support.rows.deployments import ask, make_deployment, read
from tests.support.rows.windows import freeze
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

pytestmark = pytest.mark.usefixtures("servers")


def test_freezes_are_set_shown_and_ended(rollway: Rollway, engine: Engine) -> None:
    assert "rollway freeze" in rollway("freezes").out
    weekend = ("--cron", "0 18 * * FRI", "--for", "62h", "--time-zone", "Europe/Berlin")
    assert rollway("freeze", "weekend", *weekend, "--group", "shop", "--pause").out.startswith("weekend: ")
    once = ("--starts-at", "2100-12-24T18:00+01:00", "--ends-at", "2101-01-02T09:00Z", "--deployment", "shop-*")
    assert rollway("freeze", "fair", *once).out == "fair: from 2100-12-24 17:00 UTC, for shop-*\n"
    assert rollway("freeze", "tonight", "--for", "4h").out.startswith("tonight: on until 20")
    (lasts,) = read(
        engine, "SELECT ends_at - starts_at AS s, starts_at <= now() AS on FROM freezes WHERE name = 'tonight'"
    )
    assert (lasts["s"].total_seconds(), lasts["on"]) == (4 * 3600, True)
    assert rollway("unfreeze", "tonight").code == 0
    freeze(engine, "now", reason="nobody is here")
    shown = {line.split()[0]: " ".join(line.split()) for line in rollway("freezes").out.splitlines()}
    assert "0 18 * * FRI Europe/Berlin for 2 d 14 h" in shown["weekend"]
    assert "group shop" in shown["weekend"]
    assert "pauses" in shown["weekend"]
    assert "2100-12-24 17:00 UTC to 2101-01-02 09:00 UTC shop-* finishes" in shown["fair"]
    assert "on until 20" in shown["now"]
    assert [view["name"] for view in json.loads(rollway("freezes", "--json").out)] == ["fair", "now", "weekend"]
    assert rollway("unfreeze", "fair").out == "fair freezes nothing any more\n"
    gone = rollway("unfreeze", "fair")
    assert (gone.code, gone.err) == (1, "there is no freeze fair; 'rollway freezes' lists those that exist.\n")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--cron", "0 18 * * FRI", "--for", "soon"), "--for must be a number with s, m, h or d behind"),
        (("--cron", "0 18 * *", "--for", "2d"), "--cron: must be a cron line of five fields"),
        (("--cron", "0 18 * * *", "--for", "2d", "--time-zone", "Mars/Olympus"), "no time zone 'Mars/Olympus'"),
        (("--starts-at", "tomorrow", "--ends-at", "2100-01-01T00:00Z"), "--starts-at:"),
        ((), "needs --for, with --cron or from now on, or --starts-at and --ends-at"),
        (("--for", "10s"), "--for: must be at least 60"),
    ],
)
def test_a_freeze_that_makes_no_sense_is_refused_with_a_sentence(
    rollway: Rollway, options: tuple[str, ...], says: str
) -> None:
    refused = rollway("freeze", "weekend", *options)
    assert refused.code == 2
    assert says in refused.err


def test_groups_are_made_shown_and_ended_with_who_waits(rollway: Rollway, engine: Engine) -> None:
    assert "rollway group" in rollway("groups").out
    for name in ("api", "web"):
        make_deployment(engine, "■■■", name=name)
    said = rollway("group", "shop", "api", "web", "--at-most", "1", "--in-order")
    assert said.out == "shop: api, web roll out at most 1 at once, in this order\n"
    for name in ("web", "api"):
        ask(engine, "activate_revision", deployment=name, revision="v2")
    run_until_quiet(coordinator_without_redis(engine))
    (line,) = rollway("groups").out.splitlines()[1:]
    assert line.split() == ["shop", "1", "api", "web", "api", "→", "web"]
    assert "waits for the rollout of api: group shop goes in order" in rollway("status", "web").out
    why = rollway("why", "web").out
    held = "web is not going forward: waits for the rollout of api: group shop goes in order"
    assert why.startswith(f"{held}; but no worker is known yet, so nothing is started or stopped;")
    assert re.search(r"; in \d s it is looked at again\.$", why)
    freeze(engine, "fair", deployments=["web"])
    assert "web is not going forward: held by the freeze fair until 20" in rollway("why", "web").out
    waited = rollway("activate", "web", "v2", "--wait", "--timeout", "0.2")
    assert waited.code == 4
    assert json.loads(rollway("groups", "--json").out)[0]["waiting"] == ["web"]
    assert rollway("ungroup", "shop").out == "shop is no longer a group\n"


def test_over_http_too_a_file_is_refused_in_a_freeze_before_anything_of_it_is_done(
    rollway: Rollway, laptop: Rollway, engine: Engine, tmp_path: Path
) -> None:
    make_deployment(engine, "■■■")
    freeze(engine, "holidays", reason="nobody is here", deployments=["web", "new*"])
    for name in ("web", "newest"):
        file = tmp_path / f"{name}.yaml"
        file.write_text(f"deployment: {name}\nreplicas: 5\nrevision: {{name: v3, command: sleep 60}}\n")
        for words in (("apply", "-f", str(file)), ("apply", "-f", str(file), "--json")):
            assert laptop(*words) == rollway(*words), words
    assert read(engine, "SELECT name, desired_replicas FROM deployments") == [{"name": "web", "desired_replicas": 3}]
    assert read(engine, "SELECT name FROM revisions WHERE name = 'v3'") == []
    made = laptop("apply", "-f", str(tmp_path / "newest.yaml"), "--through-freeze", "--reason", "it leaks")
    assert made.code == 0, made.err


def test_what_a_freeze_refuses_goes_through_it_with_a_reason(rollway: Rollway, engine: Engine, tmp_path: Path) -> None:
    make_deployment(engine, "■■■")
    freeze(engine, "holidays", reason="nobody is here")
    file = tmp_path / "web.yaml"
    file.write_text("deployment: web\nreplicas: 5\nrevision: {name: v3, command: sleep 60}\n")
    for words in (("activate", "web", "v2"), ("restart", "web"), ("apply", "-f", str(file))):
        refused = rollway(*words)
        assert refused.code == 1
        assert refused.err.startswith("nothing of web starts in the freeze holidays (nobody is here) until ")
        assert "--through-freeze" in refused.err
    assert read(engine, "SELECT desired_replicas, version FROM deployments") == [{"desired_replicas": 3, "version": 1}]
    assert json.loads(rollway("activate", "web", "v2", "--json").out)["error"]["code"] == "frozen"
    unsaid = rollway("activate", "web", "v2", "--through-freeze")
    assert (unsaid.code, "--through-freeze needs a --reason" in unsaid.err) == (2, True)
    assert rollway("apply", "-f", str(file), "--through-freeze", "--reason", "it leaks").code == 0
    assert "through freeze holidays: it leaks" in rollway("history", "web").out
