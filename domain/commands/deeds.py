"""Says in one sentence what each command about the fleet has done: for the history and for the command line."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from domain.commands.base import Command
from domain.commands.fleet_commands import (
    DeleteFreeze,
    DeleteGroup,
    DeleteSubscription,
    ForgetEvents,
    ResendEvents,
    SetFreeze,
    SetGroup,
    SetSubscription,
)
from domain.commands.replica_commands import DrainHost, ForgetHost, UndrainHost
from domain.steering.gates import instant
from domain.text.numbers import number_of

_MOST_NAMED = 5
_Answer = Mapping[str, Any]


def staying(names: Sequence[str]) -> str:
    """The deployments that no other host takes; empty where there is none."""
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"no other host takes {', '.join(names[:_MOST_NAMED])}{more}, so these stay"


def drained(answer: _Answer) -> str:
    """The replicas of a host that is drained, and those that stay there."""
    there = f"replicas of {number_of(answer['deployments'], 'deployment')}"
    return "; ".join(filter(None, (there, staying(answer["stay"]))))


def _freeze_set(answer: _Answer) -> str:
    end, start = (
        datetime.fromisoformat(at) if (at := answer[name]) else None for name in ("frozen_until", "starts_at")
    )
    when = f"on until {instant(end)}" if end else f"from {instant(start)}" if start else "over"
    members = [*answer.get("deployments", ()), *(f"group {group}" for group in answer.get("groups", ()))]
    return f"{answer['freeze']}: {when}, for {', '.join(members) or 'all deployments'}"


def _group_set(answer: _Answer) -> str:
    budget = f"at most {answer['most_at_once']} at once" if answer["most_at_once"] else "any number at once"
    order = ", in this order" if answer["in_order"] else ""
    return f"{answer['group']}: {', '.join(answer['deployments'])} roll out {budget}{order}"


def _subscription_set(answer: _Answer) -> str:
    task = f"the task {answer['task']} in queue {answer['queue']}"
    target = f"the target {answer['webhook']}" if answer["webhook"] else task
    return f"{answer['subscription']}: {target} is told from now on"


_SENTENCES: Mapping[type[Command], Callable[[_Answer], str]] = {
    SetFreeze: _freeze_set,
    DeleteFreeze: lambda answer: f"{answer['freeze']} freezes nothing any more",
    SetGroup: _group_set,
    DeleteGroup: lambda answer: f"{answer['group']} is no longer a group",
    SetSubscription: _subscription_set,
    DeleteSubscription: lambda answer: f"{answer['subscription']} is no longer subscribed",
    ResendEvents: lambda answer: f"{answer['subscription']}: {number_of(answer['events'], 'event')} sent again now",
    ForgetEvents: lambda answer: f"{answer['subscription']}: {number_of(answer['events'], 'event')} forgotten",
    DrainHost: lambda answer: f"{answer['host']} is drained, with {drained(answer)}",
    UndrainHost: lambda answer: f"{answer['host']} takes replicas again",
    ForgetHost: lambda answer: f"{answer['host']} is forgotten",
}
_TARGETS = ("freeze", "group", "subscription", "host")


def deed(command: type[Command], answer: _Answer) -> str:
    """The command about the fleet in a sentence, from its answer; empty for any other command."""
    sentence = _SENTENCES.get(command)
    return sentence(answer) if sentence else ""


def target_of(answer: _Answer) -> str:
    """The name of the freeze, group, subscription or host in the answer of such a command."""
    return next(str(answer[name]) for name in _TARGETS if name in answer)
