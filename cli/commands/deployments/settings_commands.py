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
_Remove = Annotated[bool, typer.Option("--remove", help="Take it away.")]
_Policy = Annotated[
    str | None,
    typer.Option("--policy", metavar="FILE|YAML", help="As 'rollway policy --set' has it.", show_default="no rollouts"),
]


@sends(CreateDeployment, desired_replicas="--replicas")
def create(asker: Asker, *, policy: _Policy = None, **said: object) -> None:
    """Create a deployment that runs nothing yet. 'rollway apply' does this too, and the rest with it."""
    given = None if policy is None else yaml_of(policy, "--policy")
    result = asker.send(CreateDeployment, policy=given, **said)
    asker.say(f"{result['deployment']} is created; 'rollway apply' gives it a first revision", result)


@asking
def policy(
    *,
    deployment: DeploymentName,
    given: _Set = None,
    remove: _Remove = False,
    asker: Asker,
) -> None:
    """Show the policy, or set it for rollouts that begin from now on. What is shown is what --set reads.

    Without a policy there are no rollouts: replicas are just replaced.
    """
    if _changes(given, remove=remove):
        return carry_out(_SET_POLICY, asker, deployment=deployment, policy=yaml_of(given) if given else None)
    with Reader() as reader:
        found = reader.ask(f"{DEPLOYMENT}/policy", deployment)["policy"]
    return _show(found, f"{deployment} has no policy: its replicas are just replaced", as_json=asker.as_json)


@asking
def autoscaling(
    *,
    deployment: DeploymentName,
    given: _Set = None,
    remove: _Remove = False,
    asker: Asker,
) -> None:
    """Show the autoscaling rules, or replace all of them. What is shown is what --set reads; the first that fires wins.

    A rule: {metric: requests_per_second, source: proxy, comparator: '>', threshold: 50, step: 1, max_replicas: 8}.
    """
    if _changes(given, remove=remove):
        rules = yaml_of(given) if given else []
        if not isinstance(rules, list):
            example = yaml.safe_dump(SetAutoscalingRules.example["rules"], default_flow_style=True, width=1000)
            raise InvalidInputError(f"--set: must be a list of rules, such as {example.strip()}", field="--set")
        return carry_out(_SET_RULES, asker, deployment=deployment, rules=rules)
    with Reader() as reader:
        found = reader.view(AutoscalingState, f"{DEPLOYMENT}/autoscaling", deployment)
    rules = [rule.model_dump(mode="json", exclude_defaults=True) for rule in found.rules]
    return _show(rules, f"{deployment} has no autoscaling rules: its size is what people set", as_json=asker.as_json)


@sends(PushMetric)
def push_metric(asker: Asker, *, deployment: DeploymentName, metric: str, value: float) -> None:
    """Tell the value of a metric now, for autoscaling rules with source 'pushed'."""
    result = asker.send(PushMetric, deployment=deployment, metric=metric, value=value)
    acts = "a rule acts on it" if result["fires"] else "no rule acts on it"
    asker.say(f"{metric} of {deployment} is {value:g} now; {acts}", result)


def change_traffic(asker: Asker, deployment: str, given: str | None) -> None:
    """Set where it is reached, from now on; without settings where a new deployment is. Raises its refusals."""
    settings = {} if given is None else yaml_of(given)
    if not isinstance(settings, dict) or set(settings) - set(SetTraffic.model_fields) or _COMMON & set(settings):
        fields = ", ".join(name for name in SetTraffic.model_fields if name not in _COMMON)
        raise InvalidInputError(f"--set: must be fields with their values; the fields are {fields}", field="--set")
    carry_out(_SET_TRAFFIC, asker, deployment=deployment, **settings)


def yaml_of(given: str, option: str = "--set") -> Any:  # noqa: ANN401 -- whatever YAML can say
    """Read a file, or standard input for -, or YAML itself, which begins with { or [. Raises InvalidInputError.

    What it means is read by the command that it is for.
    """
    where = option if given.startswith(("{", "[")) else f"{option}: {given}"
    try:
        documents = documents_of(given if given.startswith(("{", "[")) else text_of(given))
    except ValueError as error:
        raise InvalidInputError(f"{where}: {error}", field=option) from None
    except OSError as error:
        raise InvalidInputError(f"{where}: cannot be read: {error.strerror}", field=option) from None
    if len(documents) != 1 or documents[0] is None:
        raise InvalidInputError(f"{where}: must hold one YAML document, and holds {len(documents)}", field=option)
    return documents[0]


def _changes(given: str | None, *, remove: bool) -> bool:
    """Raises UsageError."""
    if given is not None and remove:
        raise UsageError("--set and --remove do not go together")
    return remove or given is not None


def _show(found: object, nothing: str, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    elif found:
        printer().print(yaml.safe_dump(found, sort_keys=False, allow_unicode=True), end="")
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
    reached = ", ".join(entrance["value"] for entrance in result["entrances"]) or "nothing"
    return f"{result['deployment']} is reached by {reached} from now on"


_COMMON = {"request_id", "actor", "reason", "schema_version", "deployment", "expected_version"}
_SET_POLICY = Verb(SetPolicy, _policy_set)
_SET_RULES = Verb(SetAutoscalingRules, _rules_set)
_SET_TRAFFIC = Verb(SetTraffic, _traffic_set)
