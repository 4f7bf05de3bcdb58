"""Commands about deployments: what releases, steers and shows them."""

from collections.abc import Mapping

from cli.listed.listed import Listed
from cli.terminal.exits import READING, WAITING, WRITING, ExitCode

_CHANGE = "cli.commands.deployments.change_commands"

RELEASE: Mapping[str, Listed] = {
    "apply": Listed(
        "cli.apply",
        "Make deployments what a YAML file says",
        (*WAITING, ExitCode.DIFFERENT),
        "rollway apply -f examples/web.yaml --wait\n"
        "cat web.yaml | rollway apply -f -\n"
        "rollway apply -f web.yaml --dry-run",
    ),
    "diff": Listed(
        "cli.apply",
        "Show what a file would change",
        (*READING, ExitCode.DIFFERENT),
        "rollway diff -f examples/web.yaml\nrollway diff -f web.yaml --json",
    ),
    "plan": Listed(
        "cli.planning.plan_command",
        "Show what a change will do before it starts",
        READING,
        "rollway plan web v2\nrollway plan -f examples/web.yaml --json",
    ),
    "activate": Listed(_CHANGE, "Make a revision the running one"),
    "rolling-update": Listed(
        "cli.commands.deployments.change_commands",
        "Roll out what runs with another image or command",
        WAITING,
        "rollway rolling-update web --image web:2\n"
        "rollway rolling-update web v2 -- python serve.py\n"
        "rollway rolling-update web --rollback",
    ),
    "create": Listed(
        "cli.commands.deployments.settings_commands",
        "Create a deployment that runs nothing yet",
        WRITING,
        "rollway create web --replicas 3 --policy '{strategy: rolling_update}'",
    ),
    "policy": Listed(
        "cli.commands.deployments.settings_commands",
        "Show the policy, or set it",
        WRITING,
        "rollway policy web\n"
        "rollway policy web --set '{strategy: rolling_update, spec: {max_surge: 2, max_unavailable: 0}}'\n"
        "rollway policy web --set policy.yaml",
    ),
    "autoscaling": Listed(
        "cli.commands.deployments.settings_commands",
        "Show the autoscaling rules, or replace all of them",
        WRITING,
        "rollway autoscaling web\nrollway autoscaling web --set rules.yaml\nrollway autoscaling web --remove",
    ),
    "push-metric": Listed(
        "cli.commands.deployments.settings_commands",
        "Tell the value of a metric now",
        WRITING,
        "rollway push-metric web queue_length 17",
    ),
}

STEER: Mapping[str, Listed] = {
    "pause": Listed(_CHANGE, "Hold a rollout where it is"),
    "resume": Listed(_CHANGE, "Go on with a paused rollout"),
    "promote": Listed(_CHANGE, "Move the traffic to a green set"),
    "abort": Listed(_CHANGE, "Leave a rollout: old and new trade places"),
    "undo": Listed(_CHANGE, "Go back to what ran before, at once"),
    "retry": Listed(_CHANGE, "Begin again what was rolled back, or try failed starts now"),
    "scale": Listed(_CHANGE, "Change how many replicas are wanted"),
    "maintenance": Listed(
        "cli.commands.deployments.change_commands",
        "Answer callers by 503, or no longer",
        WRITING,
        "rollway maintenance web on --reason 'the database moves'\n"
        "rollway maintenance web on --page sorry.html --allow 'x-from-inside: yes'\n"
        "rollway maintenance web off",
    ),
    "destroy": Listed(_CHANGE, "Drain every replica and end the deployment"),
}

WATCH: Mapping[str, Listed] = {
    "status": Listed(
        "cli.commands.deployments.status_commands",
        "Show how everything is",
        READING,
        "rollway status\nrollway status web --watch",
    ),
    "why": Listed(
        "cli.planning.why_command", "Say why a deployment waits, in one sentence", READING, "rollway why web"
    ),
    "receipt": Listed(
        "cli.planning.receipt_command", "Show what a rollout promised, and what it did", READING, "rollway receipt web"
    ),
    "replay": Listed(
        "cli.planning.receipt_command", "Decide every step of a rollout once more", READING, "rollway replay web --at 3"
    ),
    "history": Listed(
        "cli.commands.deployments.history",
        "Show what happened, who wanted it and why",
        READING,
        "rollway history web -n 50\nrollway history",
    ),
    "events": Listed(
        "cli.events_command",
        "Show what changes as it changes",
        READING,
        "rollway events --follow\nrollway events web shop --follow --json",
    ),
    "routes": Listed(
        "cli.commands.deployments.status_commands",
        "Show the replicas of a deployment",
        READING,
        "rollway routes web --all",
    ),
    "revisions": Listed(
        "cli.commands.deployments.revisions_command",
        "List revisions, show one, or how two differ",
        (*READING, ExitCode.DIFFERENT),
        "rollway revisions list web\nrollway revisions show web v2 > web.yaml\nrollway revisions diff web v1 v2",
    ),
    "probe": Listed(
        "cli.commands.deployments.history",
        "Examine how replicas answer, and say what mends them",
        READING,
        "rollway probe web\nrollway probe web --revision v2 --json",
    ),
    "logs": Listed(
        "cli.commands.deployments.logs_command",
        "Show what a replica has printed",
        READING,
        "rollway logs web --follow\nrollway logs 3f2a9c1b",
    ),
}
