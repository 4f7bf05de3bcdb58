"""Words that people bring from kubectl, Nomad and Kamal."""

import re

import pytest

from cli.catalog import COMMANDS
from cli.command_hints import HABITS, OPTIONS, OTHERWISE
from tests.cli.conftest import Rollway


def test_no_hint_stands_for_a_command_that_exists_and_each_leads_to_one() -> None:
    assert {words for words in (*HABITS, *OTHERWISE) if words in COMMANDS} == set()
    assert set(HABITS) & set(OTHERWISE) == set()
    leads = [hint.split()[1] for hint in HABITS.values()]
    leads += [name for said in OTHERWISE.values() for name in re.findall("'rollway ([a-z-]+)", said)]
    assert set(leads) - set(COMMANDS) == {"--version", "--help", "--install-completion"}
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
        ("exec -it web -- sh", "there is no 'rollway exec'; 'rollway routes web' says where its replicas are"),
        ("job run web.nomad", "'rollway job run' is 'rollway apply -f FILE' here"),
        ("alloc logs web", "'rollway alloc logs' is 'rollway logs web' here"),
        ("undo web --to-revision 3", "--to-revision of 'rollway undo' is --to REVISION here"),
        (
            "scale deployment/web --replicas=3",
            "--replicas of 'rollway scale' is the number alone: 'rollway scale web N'",
        ),
        ("status -o json", "-o of 'rollway status' is --json here"),
        ("start web", "'rollway start' is 'rollway scale web N' here"),
        ("start", "'rollway start' is 'rollway up' here"),
        ("rehearse web v2 --by 60", "there is no 'rollway rehearse'; 'rollway plan' says what a change will do"),
        ("dashboard", "'rollway dashboard' is 'rollway open' here"),
        ("config view", "there is no 'rollway config'; 'rollway status' says which stack is meant"),
        ("drain vm1", "'rollway drain' is 'rollway drain-host vm1' here"),
        ("kubectl uncordon vm1", "'rollway uncordon' is 'rollway undrain-host vm1' here"),
        ("show web", "'rollway show' is 'rollway status web' here"),
        ("nodes", "'rollway nodes' is 'rollway hosts' here"),
        ("completion bash", "'rollway completion' is 'rollway --install-completion' here"),
        ("delete pod web-1", "there is no 'rollway delete pod'; a replica that ends or is sick is replaced by itself"),
        ("kubectl argo rollouts get rollout web", "'rollway get rollout' is 'rollway status web --watch' here"),
        ("kubectl scale web 3", "'kubectl scale' is 'rollway scale' here"),
        ("docker ps web", "'rollway ps' is 'rollway routes web' here"),
        ("kubectl", "No such command 'kubectl'"),
        ("help", "'rollway help' is 'rollway --help' here"),
        ("image web web:2", "'rollway image' is 'rollway rolling-update web --image IMAGE' here"),
        ("login", "'rollway login' is 'rollway token create NAME' here"),
        ("create -f web.yaml", "-f of 'rollway create' is 'rollway apply -f FILE' here"),
        ("apply web.yaml --wait", "a file is named with -f: 'rollway apply -f web.yaml'"),
        ("apply", "Missing option '--file' / '-f'"),
        ("revisions web", "'rollway revisions list web' lists the revisions of the deployment web, 'rollway revisions"),
        ("scale web 1.5", "Invalid value for 'DESIRED_REPLICAS': must be a whole number, such as 3"),
        ("scale web -1", "replicas must be 0 or more, not -1; 0 stops all of them"),
        ("shrink web", "No such command 'shrink'"),
        ("--nothing", "No such option: --nothing"),
    ],
)
def test_a_word_brought_along_gets_the_right_one_and_exit_code_2(rollway: Rollway, line: str, hint: str) -> None:
    ended = rollway(*line.split())
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith(hint)
