"""The example of a model server, planned and applied on hosts with devices, and refused where it could never move."""

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine

from stack.home.folder import project_root
from tests.cli.conftest import Rollway
from tests.support.rows.deployments import read, start_all
from tests.support.rows.hosts import has
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

EXAMPLE = project_root() / "examples/vllm.yaml"
IN_PLACE = "spec: {max_surge: 1, max_unavailable: 1}"
HELD = "SELECT host || ' ' || kind || device AS device FROM held_devices ORDER BY 1"
pytestmark = pytest.mark.usefixtures("servers")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "vllm.yaml"


def change(file: Path, *changes: tuple[str, str]) -> None:
    """The example, and what another release of it says."""
    text = EXAMPLE.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


HOSTS_PREPARED = COMPLETED = (0, 0)
IN_PLACE_WAVES = [HOSTS_PREPARED, (0, 1), (1, 0), (0, 1), (1, 0), COMPLETED]
NEXT = ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B-AWQ")


def serve(rollway: Rollway, engine: Engine) -> None:
    """The example runs: two replicas, each with a GPU of its own."""
    assert rollway("apply", "-f", str(EXAMPLE)).code == 0
    run_until_quiet(coordinator_without_redis(engine))
    start_all(engine)


def refusal(rollway: Rollway, file: Path) -> str:
    """What planning and applying are refused with, both the same."""
    ended = [rollway(word, "-f", str(file)) for word in ("plan", "apply")]
    assert [each.code for each in ended] == [1, 1]
    (sentence,) = {" ".join(each.err.split()) for each in ended}
    return sentence


def refusal_by_name(rollway: Rollway, file: Path) -> str:
    """What planning the revision by its name is refused with, once it is known."""
    assert rollway("apply", "-f", str(file), "--no-activate").code == 0
    (newest, *_) = json.loads(rollway("revisions", "list", "chat", "--json").out)
    ended = rollway("plan", "chat", newest["name"])
    assert ended.code == 1
    return " ".join(ended.err.split())


def waves(rollway: Rollway, file: Path) -> list[tuple[int, int]]:
    planned = rollway("plan", "-f", str(file), "--json")
    assert planned.code == 0, planned.err
    return [(wave["create"], wave["drain"]) for wave in json.loads(planned.out)[0]["waves"]]


def test_each_replica_has_a_gpu_and_a_rollout_goes_in_place(rollway: Rollway, engine: Engine, file: Path) -> None:
    has(engine, "a", "gpu=1")
    has(engine, "b", "gpu=1")
    serve(rollway, engine)
    assert [row["device"] for row in read(engine, HELD)] == ["a gpu0", "b gpu0"]
    change(file, NEXT)
    assert waves(rollway, file) == IN_PLACE_WAVES
    assert rollway("apply", "-f", str(file)).code == 0
    rest = json.loads(rollway("plan", "chat", "--json").out)["waves"]
    assert [(wave["create"], wave["drain"]) for wave in rest] == IN_PLACE_WAVES


def test_a_free_gpu_is_used_first(rollway: Rollway, engine: Engine, file: Path) -> None:
    has(engine, "a", "gpu=3")
    serve(rollway, engine)
    change(file, NEXT)
    assert waves(rollway, file) == [HOSTS_PREPARED, (1, 1), (0, 1), (1, 0), COMPLETED]


def test_without_a_gpu_it_is_refused(rollway: Rollway, engine: Engine) -> None:
    has(engine, "a", "memory_gb=64")
    assert "each replica needs a GPU, and all hosts have room for 0 of 2, even if nothing else ran there; " in (
        refusal(rollway, EXAMPLE)
    )
    assert read(engine, "SELECT FROM deployments") == []


def test_a_second_set_needs_room_for_all_of_it(rollway: Rollway, engine: Engine, file: Path) -> None:
    has(engine, "a", "gpu=3")
    serve(rollway, engine)
    blue_green = ("strategy: rolling_update\n", "strategy: blue_green\n"), (f"  {IN_PLACE}\n", "")
    change(file, NEXT, *blue_green)
    assert (
        "blue_green runs 2 new replicas next to the old ones, each needs a GPU, and there is room for 1; "
        "roll in place ('rollway policy chat --set " in refusal(rollway, file) == refusal_by_name(rollway, file)
    )
    has(engine, "b", "gpu=1")
    assert rollway("apply", "-f", str(file)).code == 0


def test_where_none_may_be_missing_and_every_gpu_is_taken_it_is_refused(
    rollway: Rollway, engine: Engine, file: Path
) -> None:
    has(engine, "a", "gpu=2")
    serve(rollway, engine)
    change(file, NEXT, (IN_PLACE, "spec: {max_surge: 1, max_unavailable: 0}"))
    assert (
        "a new replica needs a GPU: 2 of 2 in use, 1 old one must leave before a new one finds room, and 0 may be "
        "missing (max_unavailable); let 1 be missing (" in refusal(rollway, file) == refusal_by_name(rollway, file)
    )
    has(engine, "b", "gpu=1")
    assert rollway("apply", "-f", str(file)).code == 0
