"""Another supervisor for parts that run: after the first one was killed, and for a restart."""

import threading
from dataclasses import replace

import pytest

from runtime.machine.identity import identify
from stack.home.stack_state import PartState
from stack.part_specs import Ready, StackPart
from stack.stack_errors import StackError
from stack.stack_status import StackStatus, stack_status
from stack.up import _needed, stay, take_over
from tests.support.stack.small_stack import SmallStack, alive, kill
from tests.support.stack.waiting import eventually


def part(name: str, *command: str) -> StackPart:
    return StackPart(name=name, command=command, cwd="/", ready=Ready("log", "ready"))


def found(name: str, *command: str, condition: str = "running") -> PartState:
    return PartState(name=name, condition=condition, digest=part(name, *command).digest)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("runs", "becomes"),
    [
        pytest.param(found("beat", "old"), "ended", id="nobody wants it"),
        pytest.param(found("api", "new", condition="starting"), "ended", id="it was not up"),
        pytest.param(found("envoy", "new"), "restarted", id="it is to be restarted"),
        pytest.param(found("envoy-leaving", "old", condition="draining"), "kept", id="it is leaving its place"),
        pytest.param(found("api", "old"), "restarted", id="it was started from another plan"),
        pytest.param(found("api", "new"), "kept", id="it is as it should be"),
    ],
)
def test_what_becomes_of_a_part_that_runs(runs: PartState, becomes: str) -> None:
    takeover = take_over([part("api", "new"), part("envoy", "new")], [runs], ["envoy"])
    assert getattr(takeover, becomes) == (runs,)
    assert takeover.sentence.startswith(becomes)


@pytest.mark.parametrize(
    ("kept", "runs"),
    [(("api", "worker1"), False), (("worker1", "envoy"), True), ((), True)],
    ids=["envoy alone is restarted", "what comes after it is restarted", "nothing runs"],
)
def test_what_ends_by_itself_runs_again_only_where_something_is_started_that_comes_after_it(
    kept: tuple[str, ...],
    runs: bool,  # noqa: FBT001
) -> None:
    migrate = replace(part("migrate"), ready=Ready("exit"))
    parts = (
        migrate,
        replace(part("worker1"), after=("migrate",)),
        replace(part("api"), after=("migrate",)),
        replace(part("envoy"), after=("api",)),
    )
    assert _needed(parts, kept) == (parts if runs else parts[1:])


def test_a_part_whose_files_say_something_else_is_another_part() -> None:
    envoy = part("envoy", "new")
    assert envoy.digest != replace(envoy, configuration="another bootstrap").digest


def pids(status: StackStatus) -> dict[str, int | None]:
    return {part.name: part.pid for part in status.parts}


def lose_the_supervisor(small: SmallStack) -> None:
    kill(small.state().supervisor.pid)
    eventually(lambda: stack_status(small.home).phase == "lost")


@pytest.mark.e2e
def test_up_after_a_killed_supervisor_keeps_what_runs_and_watches_over_it(small_stack: SmallStack) -> None:
    before = pids(small_stack.up())
    lose_the_supervisor(small_stack)
    assert "'rollway up' takes over what runs" in stack_status(small_stack.home).advice

    status = small_stack.up()
    assert status.running
    assert pids(status) == before
    assert "without a supervisor; kept: postgres, valkey, worker1, beat" in small_stack.texts()
    kill(before["worker1"] or 0)
    eventually(lambda: pids(stack_status(small_stack.home))["worker1"] not in (None, before["worker1"]))
    assert small_stack.down()
    assert alive([pid for pid in before.values() if pid]) == []


@pytest.mark.e2e
def test_up_starts_what_is_missing_ends_what_is_unwanted_and_restarts_what_should_run_otherwise(
    small_stack: SmallStack,
) -> None:
    small_stack.scripts["flower"] = small_stack.scripts["worker1"]
    before = pids(small_stack.up())
    lose_the_supervisor(small_stack)
    kill(before["beat"] or 0)
    del small_stack.scripts["flower"]
    small_stack.scripts["worker1"] = "echo another one is ready.; exec sleep 1000"

    after = pids(small_stack.up())
    assert {name: after[name] == before[name] for name in after} == {
        "postgres": True,
        "valkey": True,
        "worker1": False,
        "beat": False,
    }
    assert alive([before["flower"] or 0, before["worker1"] or 0]) == []


@pytest.mark.e2e
def test_a_restart_goes_from_part_to_part_and_keeps_the_data(small_stack: SmallStack) -> None:
    before = pids(small_stack.up())
    small_stack.remember("first")
    small_stack.said.clear()

    after = pids(small_stack.restart())
    assert [name for name in after if after[name] == before[name]] == []
    told = [notice.part for notice in small_stack.said if notice.text == "restarted"]
    assert told == ["postgres", "valkey", "worker1", "beat"]
    assert small_stack.remembered()[0] == ["first"]

    again = pids(small_stack.restart("worker1"))
    assert [name for name in again if again[name] != after[name]] == ["worker1"]


@pytest.mark.e2e
def test_a_restart_stops_at_the_first_part_that_does_not_come_up_and_the_rest_runs_on(small_stack: SmallStack) -> None:
    before = pids(small_stack.up())
    small_stack.scripts["worker1"] = "echo ModuleNotFoundError: no such app; exit 1"

    with pytest.raises(StackError, match="worker1 does not start: ModuleNotFoundError: no such app"):
        small_stack.restart()
    status = stack_status(small_stack.home)
    assert status.supervisor_pid is not None
    assert pids(status)["beat"] == before["beat"]
    assert pids(status)["postgres"] not in (None, before["postgres"])


@pytest.mark.e2e
def test_a_restart_of_nothing_or_of_what_there_is_not_is_refused(small_stack: SmallStack) -> None:
    small_stack.home.create()
    with pytest.raises(StackError, match=r"Nothing is running in .*: start it with 'rollway up'"):
        small_stack.restart()
    before = pids(small_stack.up())
    with pytest.raises(StackError, match="There is no part 'worker9' to restart; there are postgres, valkey, worker1"):
        small_stack.restart("worker9")
    assert pids(stack_status(small_stack.home)) == before


@pytest.mark.e2e
def test_a_restart_from_another_shell_runs_the_stack_as_it_was_asked_for(small_stack: SmallStack) -> None:
    """A worker that came back under another host name would leave its replicas to nobody."""
    small_stack.environ = {"ROLLWAY_HOST": "rack-7"}
    small_stack.scripts["worker1"] = 'echo "host $ROLLWAY_HOST is ready."; exec sleep 1000'
    small_stack.up()
    small_stack.environ = {"ROLLWAY_HOST": "another", "DATABASE_URL": "postgresql://elsewhere/rollway"}
    small_stack.restart("worker1")
    told = "DATABASE_URL, ROLLWAY_HOST: what runs keeps what it was started with"
    assert any(text.startswith(told) for text in small_stack.texts())
    lose_the_supervisor(small_stack)
    small_stack.up()
    assert small_stack.home.log("worker1").read_text() == "host rack-7 is ready.\n" * 2
    assert "elsewhere" not in small_stack.state().database_url


@pytest.mark.e2e
def test_who_stays_in_the_foreground_stays_through_a_restart(small_stack: SmallStack) -> None:
    small_stack.up()
    staying = threading.Thread(target=stay, args=(small_stack.home, small_stack.said.append))
    staying.start()
    small_stack.restart("worker1", "beat")
    assert staying.is_alive()
    small_stack.down()
    staying.join(timeout=600)
    assert not staying.is_alive()


@pytest.mark.e2e
def test_what_a_part_started_is_asked_to_end_with_it(small_stack: SmallStack) -> None:
    """Asked, and not only killed: it has time to finish."""
    said = small_stack.home.root / "asked"
    child = f"trap 'echo ended > {said}; exit' TERM; while :; do sleep 0.05; done"
    small_stack.scripts["worker1"] = f"( {child} ) & echo $! > {said}; echo it is ready.; exec sleep 1000"
    small_stack.up()
    eventually(said.exists)
    left = identify(int(said.read_text()))
    assert left is not None
    small_stack.down()
    eventually(lambda: said.read_text() == "ended\n")
