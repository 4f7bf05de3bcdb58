"""Hints for words of kubectl, Nomad, Kamal and Docker: the command that does the same here."""

from collections.abc import Mapping, Sequence

from cli.catalog import COMMANDS

_ELSEWHERE: Mapping[str, str] = {
    "rollway --help": "help",
    "rollway status NAME --watch": "rollout | rollout status | get rollout | wait",
    "rollway history NAME": "rollout history | get events | job history | audit",
    "rollway undo NAME": "rollout undo | job revert | rollback | service rollback",
    "rollway restart NAME": "rollout restart | job restart | redeploy | app boot",
    "rollway pause NAME": "rollout pause | deployment pause",
    "rollway resume NAME": "rollout resume | deployment resume | continue",
    "rollway status NAME": "describe | show | inspect | job status | deployment status",
    "rollway status": "get | ls | list | details | service ls",
    "rollway routes NAME": "get pods | ps | alloc status | app details | service ps",
    "rollway hosts": "get nodes | nodes | node status | node ls",
    "rollway drain-host NAME": "drain | cordon | node drain",
    "rollway undrain-host NAME": "uncordon",
    "rollway revisions list NAME": "images | versions",
    "rollway --install-completion": "completion",
    "rollway apply --help": "explain",
    "rollway create NAME": "create deployment",
    "rollway rolling-update NAME --image IMAGE": "set image | image | update | upgrade | service update",
    "rollway apply -f FILE": "set env | edit | patch | replace | run | job run",
    "rollway destroy NAME": "delete | remove | rm | job stop",
    "rollway autoscaling NAME --set FILE": "autoscale",
    "rollway traffic NAME --set '{hosts: [HOST]}'": "expose",
    "rollway logs NAME --follow": "attach",
    "rollway status --watch": "top",
    "rollway --version": "version",
    "rollway up": "start | setup",
    "rollway scale NAME N": "job scale | service scale",
    "rollway plan -f FILE": "job plan",
    "rollway token create NAME": "login",
    "rollway promote NAME": "job promote | deployment promote | set weight",
    "rollway abort NAME": "deployment fail | cancel",
    "rollway logs NAME": "alloc logs | app logs | service logs",
    "rollway apply -f FILE --wait": "deploy | release",
    "rollway scale NAME 0": "stop | app stop",
    "rollway proxies": "proxy",
    "rollway open": "ui | page | dashboard | web | browse",
}
"""Our commands, with the words of other tools for the same."""

HABITS: Mapping[str, str] = {typed: here for here, words in _ELSEWHERE.items() for typed in words.split(" | ")}
"""Our command by the words of other tools. NAME becomes the deployment that the line names."""

_OTHERWISE: Mapping[str, str] = {
    "'rollway routes NAME' says where its replicas are": "exec | alloc exec | port-forward",
    "'rollway status' says which stack is meant": "config | cluster-info | context | info",
    "a replica that ends or is sick is replaced by itself, and 'rollway restart DEPLOYMENT' replaces all": (
        "kill | delete pod | delete pods"
    ),
    "'rollway plan' says what a change will do, and from when to when it is done": "rehearse",
}
"""A sentence, with the words of other tools for which we have no command."""

OTHERWISE: Mapping[str, str] = {
    typed: sentence for sentence, words in _OTHERWISE.items() for typed in words.split(" | ")
}
"""The sentence by the words of other tools."""

_TOOLS = ("kubectl", "argo", "rollouts", "nomad", "kamal", "docker", "compose")

OPTIONS: Mapping[str, str] = {
    "create -f": "'rollway apply -f FILE'",
    "create --file": "'rollway apply -f FILE'",
    "create --filename": "'rollway apply -f FILE'",
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
"""The hint by the unknown option, with its command where that matters."""

_FILES = (".yaml", ".yml")
_KINDS = ("rollout", "deployment", "deployments", "deploy", "deployment.apps", "pod", "pods", "service", "svc", "job")


def hint_for_words(arguments: Sequence[str]) -> str | None:
    """The hint for a command that does not exist, or None for words that we do not know."""
    words = [word for word in arguments if not word.startswith("-")]
    while words and words[0] in _TOOLS:
        words = words[1:]
    for count in (2, 1):
        typed = " ".join(words[:count])
        if len(words) >= count and typed in OTHERWISE:
            return f"there is no 'rollway {typed}'; {_fill_in(OTHERWISE[typed], words[count:])}"
        if len(words) >= count and typed in HABITS:
            return f"'rollway {typed}' is '{_fill_in(_here(typed, arguments, words[count:]), words[count:])}' here"
    return f"'{arguments[0]} {words[0]}' is 'rollway {words[0]}' here" if words and words[0] in COMMANDS else None


def _here(typed: str, words: Sequence[str], rest: Sequence[str]) -> str:
    """An undo that names a revision says so here as well; kubectl's numbers are no names. A stack starts, or a name."""
    if typed == "start" and rest:
        return HABITS["job scale"]
    is_named = any(word.startswith("--to-revision") for word in words)
    return HABITS[typed] + (" --to REVISION" if is_named and HABITS[typed].startswith("rollway undo") else "")


def hint_for_missing(words: Sequence[str]) -> str | None:
    """The hint for a missing argument: a file may have been given without its option."""
    files = [word for word in words[1:] if word.endswith(_FILES) or word == "-"]
    return f"a file is named with -f: 'rollway {words[0]} -f {files[0]}'" if len(files) == 1 else None


def hint_for_option(words: Sequence[str], option: str) -> str | None:
    """The hint for an option that does not exist, or None for one that we do not know."""
    if words[0] == "scale" and option[1:].isdigit():
        return f"replicas must be 0 or more, not {option}; 0 stops all of them"
    typed = next((key for key in (f"{words[0]} {option}", option) if key in OPTIONS), None)
    if typed is None:
        return None
    return f"{option} of 'rollway {words[0]}' is {_fill_in(OPTIONS[typed], words[1:])} here"


def hint_for_value(words: Sequence[str]) -> str | None:
    """The hint for a deployment or a revision in the place of a verb."""
    if words[0] != "revisions":
        return None
    name = words[1]
    lists = f"'rollway revisions list {name}' lists the revisions of the deployment {name}"
    return f"{lists}, 'rollway revisions show DEPLOYMENT REVISION' shows one"


def bare_name(name: str) -> str:
    """The name in deployment/web."""
    kind, slash, rest = name.partition("/")
    return rest if slash and kind in _KINDS else name


def _fill_in(hint: str, rest: Sequence[str]) -> str:
    names = [
        bare_name(word)
        for word in rest
        if word not in _KINDS and not word.startswith("-") and not word.endswith(_FILES)
    ]
    return hint.replace("NAME", names[0]) if names else hint
