"""Words that people bring from kubectl, Nomad and Kamal."""

import pytest

from cli.habits import HABITS, OPTIONS
from cli.listed import COMMANDS
from tests.cli.conftest import Rollway


def test_no_hint_stands_for_a_command_that_exists_and_each_leads_to_one() -> None:
    assert {words for words in HABITS if words in COMMANDS} == set()
    leads = [hint.split()[1] for hint in HABITS.values()]
    assert set(leads) - set(COMMANDS) == {"--version"}
    assert {key.split()[0] for key in OPTIONS if " " in key} <= set(COMMANDS)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("rollout status web", "'rollway rollout status' is 'rollway status web --watch' here"),
        (
            "rollout undo deployment/web --to-revision=3",
            "'rollway rollout undo' is 'rollway undo web --to REVISION' here",
        ),
        ("rollout undo web", "'rollway rollout undo' is 'rollway undo web' here"),
        ("rollout restart deployment web", "'rollway rollout restart' is 'rollway restart web' here"),
        ("describe deployment web", "'rollway describe' is 'rollway status web' here"),
        ("stop web", "'rollway stop' is 'rollway scale web 0' here"),
        ("delete -f web.yaml", "'rollway delete' is 'rollway destroy NAME' here"),
        ("get pods", "'rollway get pods' is 'rollway routes NAME' here"),
        ("deploy", "'rollway deploy' is 'rollway apply -f FILE --wait' here"),
        ("rollback web", "'rollway rollback' is 'rollway undo web' here"),
        ("exec -it web -- sh", "'rollway exec' is 'rollway routes web' here"),
        ("job run web.nomad", "'rollway job run' is 'rollway apply -f FILE' here"),
        ("alloc logs web", "'rollway alloc logs' is 'rollway logs web' here"),
        ("undo web --to-revision 3", "--to-revision of 'rollway undo' is --to REVISION here"),
        (
            "scale deployment/web --replicas=3",
            "--replicas of 'rollway scale' is the number alone: 'rollway scale web N'",
        ),
        ("status -o json", "-o of 'rollway status' is --json here"),
        ("shrink web", "No such command 'shrink'"),
        ("--nothing", "No such option: --nothing"),
    ],
)
def test_a_word_brought_along_gets_the_right_one_and_exit_code_2(rollway: Rollway, line: str, hint: str) -> None:
    ended = rollway(*line.split())
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith(hint)
