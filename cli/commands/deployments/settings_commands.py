"""`rollway create`, `policy`, `autoscaling`, `push-metric`: a deployment's settings, one at a time."""

from typing import Annotated, Any

import typer
import yaml

from api.people.paths import DEPLOYMENT
from api.people.strict_yaml import documents_of
from cli.apply import text_of
from cli.client import Reader
from cli.options import DeploymentName
from cli.sending import Asker, Result, Verb, asking, carry_out
from cli.subcommands import sends
from cli.terminal.exits import UsageError
from cli.terminal.output import print_json, printer
from domain.autoscaling.rule import AutoscalingState
from domain.commands.deployment_commands import CreateDeployment, SetAutoscalingRules, SetPolicy, SetTraffic
from domain.commands.replica_commands import PushMetric
from domain.text.errors import InvalidInputError

_Set = Annotated[
    str | None,
    typer.Option(
        "--set", metavar="FILE|YAML", help="From a file, - for standard input, or written out.", show_default=False
    ),
]
_Remove = Annotated[bool, typer.Option("--remove", help="Remove it.")]
_Policy = Annotated[
    str | None,
    typer.Option("--policy", metavar="FILE|YAML", help="As 'rollway policy --set' has it.", show_default="no rollouts"),
]


@sends(CreateDeployment, desired_replicas="--replicas")
def create(asker: Asker, *, policy: _Policy = None, **fields: object) -> None:
    """Create a deployment that runs nothing yet. 'rollway apply' does this too, and the rest with it."""
    policy_fields = None if policy is None else yaml_of(policy, "--policy")
    result = asker.send(CreateDeployment, policy=policy_fields, **fields)
    asker.say(f"{result['deployment']} is created; 'rollway apply' gives it a first revision", result)


@asking
def policy(
    *,
    deployment: DeploymentName,
    values: _Set = None,
    remove: _Remove = False,
    asker: Asker,
) -> None:
    """Show the policy, or set it for rollouts that begin from now on. What is shown is what --set reads.

    Without a policy there are no rollouts: replicas are just replaced.
    """
    if _changes(values, remove=remove):
        return carry_out(_SET_POLICY, asker, deployment=deployment, policy=yaml_of(values) if values else None)
    with Reader() as reader:
        current = reader.ask(f"{DEPLOYMENT}/policy", deployment)["policy"]
    return _show(current, f"{deployment} has no policy: its replicas are just replaced", as_json=asker.as_json)


@asking
def autoscaling(
    *,
    deployment: DeploymentName,
    values: _Set = None,
    remove: _Remove = False,
    asker: Asker,
) -> None:
    """Show the autoscaling rules, or replace all of them. What is shown is what --set reads; the first that fires wins.

    A rule: {metric: requests_per_second, source: proxy, comparator: '>', threshold: 50, step: 1, max_replicas: 8}.
    """
    if _changes(values, remove=remove):
        rules = yaml_of(values) if values else []
        if not isinstance(rules, list):
            example = yaml.safe_dump(SetAutoscalingRules.example["rules"], default_flow_style=True, width=1000)
            raise InvalidInputError(f"--set: must be a list of rules, such as {example.strip()}", field="--set")
        return carry_out(_SET_RULES, asker, deployment=deployment, rules=rules)
    with Reader() as reader:
        state = reader.view(AutoscalingState, f"{DEPLOYMENT}/autoscaling", deployment)
    rules = [rule.model_dump(mode="json", exclude_defaults=True) for rule in state.rules]
    return _show(rules, f"{deployment} has no autoscaling rules: its size is what people set", as_json=asker.as_json)


@sends(PushMetric)
def push_metric(asker: Asker, *, deployment: DeploymentName, metric: str, value: float) -> None:
    """Push a metric value, for autoscaling rules with source 'pushed'."""
    result = asker.send(PushMetric, deployment=deployment, metric=metric, value=value)
    acts = "a rule acts on it" if result["fires"] else "no rule acts on it"
    asker.say(f"{metric} of {deployment} is {value:g} now; {acts}", result)


def change_traffic(asker: Asker, deployment: str, values: str | None) -> None:
    """Set its entrances from now on; without settings show those of a new deployment. Raises its refusals."""
    settings = {} if values is None else yaml_of(values)
    if not isinstance(settings, dict) or set(settings) - set(SetTraffic.model_fields) or _COMMON & set(settings):
        fields = ", ".join(name for name in SetTraffic.model_fields if name not in _COMMON)
        raise InvalidInputError(f"--set: must be fields with their values; the fields are {fields}", field="--set")
    carry_out(_SET_TRAFFIC, asker, deployment=deployment, **settings)


def yaml_of(values: str, option: str = "--set") -> Any:  # noqa: ANN401 -- whatever YAML can say
    """Read a file, or standard input for -, or YAML itself, which begins with { or [. Raises InvalidInputError.

    What it means is read by the command that it is for.
    """
    where = option if values.startswith(("{", "[")) else f"{option}: {values}"
    try:
        documents = documents_of(values if values.startswith(("{", "[")) else text_of(values))
    except ValueError as error:
        raise InvalidInputError(f"{where}: {error}", field=option) from None
    except OSError as error:
        raise InvalidInputError(f"{where}: cannot be read: {error.strerror}", field=option) from None
    if len(documents) != 1 or documents[0] is None:
        raise InvalidInputError(f"{where}: must hold one YAML document, and holds {len(documents)}", field=option)
    return documents[0]


def _changes(values: str | None, *, remove: bool) -> bool:
    """Raises UsageError."""
    if values is not None and remove:
        raise UsageError("--set and --remove do not go together")
    return remove or values is not None


def _show(value: object, nothing: str, *, as_json: bool) -> None:
    if as_json:
        print_json(value)
    elif value:
        printer().print(yaml.safe_dump(value, sort_keys=False, allow_unicode=True), end="")
    else:
        printer().print(nothing)


def _policy_set(result: Result) -> str:
    if result["policy"] is None:
        return f"{result['deployment']} has no policy from now on: its replicas are just replaced"
    return f"{result['deployment']} is rolled out by {result['policy']['strategy']} from now on"


def _rules_set(result: Result) -> str:
    count = len(result["rules"])
    return f"{result['deployment']} has {count or 'no'} autoscaling rule{'' if count == 1 else 's'} from now on"


def _traffic_set(result: Result) -> str:
    addresses = ", ".join(entrance["value"] for entrance in result["entrances"]) or "nothing"
    return f"{result['deployment']} is reached by {addresses} from now on"


_COMMON = {"request_id", "actor", "reason", "schema_version", "deployment", "expected_version"}
_SET_POLICY = Verb(SetPolicy, _policy_set)
_SET_RULES = Verb(SetAutoscalingRules, _rules_set)
_SET_TRAFFIC = Verb(SetTraffic, _traffic_set)
