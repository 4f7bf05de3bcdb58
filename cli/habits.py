"""Words that people bring from kubectl, Nomad, Kamal and Docker, and what says the same here."""

from collections.abc import Mapping, Sequence

HABITS: Mapping[str, str] = {
    "rollout": "rollway status NAME --watch",
    "rollout status": "rollway status NAME --watch",
    "rollout history": "rollway history NAME",
    "rollout undo": "rollway undo NAME",
    "rollout restart": "rollway restart NAME",
    "rollout pause": "rollway pause NAME",
    "rollout resume": "rollway resume NAME",
    "describe": "rollway status NAME",
    "get": "rollway status",
    "get pods": "rollway routes NAME",
    "get nodes": "rollway hosts",
    "get events": "rollway history NAME",
    "explain": "rollway apply --help",
    "create deployment": "rollway create NAME",
    "set image": "rollway rolling-update NAME --image IMAGE",
    "set env": "rollway apply -f FILE",
    "edit": "rollway apply -f FILE",
    "patch": "rollway apply -f FILE",
    "replace": "rollway apply -f FILE",
    "delete": "rollway destroy NAME",
    "remove": "rollway destroy NAME",
    "rm": "rollway destroy NAME",
    "autoscale": "rollway autoscaling NAME --set FILE",
    "expose": "rollway traffic NAME --set '{hosts: [HOST]}'",
    "port-forward": "rollway routes NAME",
    "exec": "rollway routes NAME",
    "attach": "rollway logs NAME --follow",
    "top": "rollway status --watch",
    "ps": "rollway routes NAME",
    "ls": "rollway status",
    "list": "rollway status",
    "wait": "rollway status NAME --watch",
    "version": "rollway --version",
    "cluster-info": "rollway status",
    "config": "rollway status",
    "cordon": "rollway hosts",
    "drain": "rollway hosts",
    "node status": "rollway hosts",
    "node drain": "rollway hosts",
    "run": "rollway apply -f FILE",
    "start": "rollway up",
    "stop": "rollway down",
    "job run": "rollway apply -f FILE",
    "job plan": "rollway plan -f FILE",
    "job status": "rollway status NAME",
    "job stop": "rollway destroy NAME",
    "job history": "rollway history NAME",
    "job revert": "rollway undo NAME",
    "job scale": "rollway scale NAME N",
    "job promote": "rollway promote NAME",
    "job restart": "rollway restart NAME",
    "deployment status": "rollway status NAME",
    "deployment promote": "rollway promote NAME",
    "deployment fail": "rollway abort NAME",
    "deployment pause": "rollway pause NAME",
    "deployment resume": "rollway resume NAME",
    "alloc logs": "rollway logs NAME",
    "alloc status": "rollway routes NAME",
    "alloc exec": "rollway routes NAME",
    "setup": "rollway up",
    "deploy": "rollway apply -f FILE --wait",
    "redeploy": "rollway restart NAME",
    "rollback": "rollway undo NAME",
    "app logs": "rollway logs NAME",
    "app details": "rollway routes NAME",
    "app boot": "rollway restart NAME",
    "app stop": "rollway scale NAME 0",
    "proxy": "rollway proxies",
    "details": "rollway status",
    "audit": "rollway history NAME",
    "cancel": "rollway abort NAME",
    "continue": "rollway resume NAME",
    "release": "rollway apply -f FILE --wait",
    "update": "rollway rolling-update NAME --image IMAGE",
    "upgrade": "rollway rolling-update NAME --image IMAGE",
    "service update": "rollway rolling-update NAME --image IMAGE",
    "service rollback": "rollway undo NAME",
    "service scale": "rollway scale NAME N",
    "service logs": "rollway logs NAME",
    "service ls": "rollway status",
    "service ps": "rollway routes NAME",
}
"""By the words that the line begins with, the longest first. NAME becomes the deployment that the line names."""

OPTIONS: Mapping[str, str] = {
    "undo --to-revision": "--to REVISION",
    "scale --replicas": "the number alone: 'rollway scale NAME N'",
    "logs --tail": "--lines N",
    "logs --previous": "the id of the replica that is gone: 'rollway routes NAME --all' lists it",
    "logs -p": "the id of the replica that is gone: 'rollway routes NAME --all' lists it",
    "apply --filename": "--file FILE",
    "--image": "'rollway rolling-update NAME --image IMAGE'",
    "--output": "--json",
    "-o": "--json",
    "--namespace": "nothing: names of deployments are enough here",
    "--context": "ROLLWAY_HOME or DATABASE_URL, which say whose deployments are meant",
    "--record": "--reason TEXT",
    "--force": "--yes",
    "--watch": "'rollway status NAME --watch'",
    "--follow": "'rollway logs NAME --follow'",
    "--dry-run": "'rollway apply --help' or 'rollway status NAME', which change nothing",
    "--detach": "nothing: only --wait waits",
}
"""By the option that does not exist, with the command that it was given to where that matters."""

_KINDS = ("deployment", "deployments", "deploy", "deployment.apps", "pod", "pods", "service", "svc", "job")


def hint_for_words(given: Sequence[str]) -> str | None:
    """What somebody who typed a command that does not exist is told, or None where the words mean nothing to us."""
    words = [word for word in given if not word.startswith("-")]
    for count in (2, 1):
        typed = " ".join(words[:count])
        if len(words) >= count and typed in HABITS:
            return f"'rollway {typed}' is '{_named(HABITS[typed] + _further(typed, given), words[count:])}' here"
    return None


def _further(typed: str, given: Sequence[str]) -> str:
    """An undo that names a revision says so here as well; kubectl's numbers are no names."""
    is_named = any(word.startswith("--to-revision") for word in given)
    return " --to REVISION" if is_named and HABITS[typed].startswith("rollway undo") else ""


def hint_for_option(given: Sequence[str], option: str) -> str | None:
    """What somebody who typed an option that does not exist is told, or None where it means nothing to us."""
    typed = next((key for key in (f"{given[0]} {option}", option) if key in OPTIONS), None)
    if typed is None:
        return None
    return f"{option} of 'rollway {given[0]}' is {_named(OPTIONS[typed], given[1:])} here"


def bare_name(name: str) -> str:
    """The name in deployment/web."""
    kind, slash, rest = name.partition("/")
    return rest if slash and kind in _KINDS else name


def _named(hint: str, rest: Sequence[str]) -> str:
    names = [bare_name(word) for word in rest if word not in _KINDS and not word.startswith("-")]
    return hint.replace("NAME", names[0]) if names else hint
