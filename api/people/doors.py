"""The HTTP method, path, status and button of each command, a row for each, in the order of the buttons."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from api.people.paths import DEPLOYMENT, named_in
from domain.commands.apply.document import Apply
from domain.commands.base import Command
from domain.commands.deployment_commands import (
    AddRevision,
    CreateDeployment,
    Destroy,
    Scale,
    SetAutoscalingRules,
    SetMaintenance,
    SetPolicy,
    SetTraffic,
)
from domain.commands.fields import CommandField, fields_of
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
from domain.commands.replica_commands import DrainHost, ForgetHost, PushMetric, ReportRoute, UndrainHost
from domain.commands.rollout_commands import (
    Abort,
    ActivateRevision,
    Pause,
    Promote,
    Restart,
    Resume,
    Retry,
    RollingUpdate,
    Undo,
)
from domain.planning.buttons import Offer


@dataclass(frozen=True, slots=True)
class Door:
    """The HTTP request of a command. `label`: the text of its button; empty: no button.

    `group`: the heading above its button on a deployment's page. `does`: the text of the confirming button, with the
    {name} of the deployment or the host, and the chosen {revision}; empty: the label and the name.
    """

    method: Literal["POST", "PUT", "DELETE"]
    path: str
    label: str = ""
    group: str = ""
    does: str = ""
    status: int = 200

    @property
    def verb(self) -> str:
        """The last word of the path, as in /v1/deployments/web/pause."""
        return self.path.rpartition("/")[2]


_RELEASE, _RUN, _SETTINGS = "Release", "Run", "Settings"

DOORS: Mapping[type[Command], Door] = {
    Resume: Door("POST", f"{DEPLOYMENT}/resume", "Resume …", _RELEASE),
    Promote: Door("POST", f"{DEPLOYMENT}/promote", "Promote …", _RELEASE),
    Pause: Door("POST", f"{DEPLOYMENT}/pause", "Pause …", _RELEASE),
    Abort: Door("POST", f"{DEPLOYMENT}/abort", "Abort …", _RELEASE, "Abort the rollout of {name}"),
    ActivateRevision: Door("POST", f"{DEPLOYMENT}/activate", "Roll out …", _RELEASE, "Roll out {revision}"),
    Undo: Door("POST", f"{DEPLOYMENT}/undo", "Undo …", _RELEASE, "Undo: back to {revision}"),
    RollingUpdate: Door(
        "POST",
        f"{DEPLOYMENT}/rolling-update",
        "New revision …",
        _RELEASE,
        "Roll out the new revision of {name}",
    ),
    Retry: Door("POST", f"{DEPLOYMENT}/retry", "Retry …", _RELEASE),
    Scale: Door("POST", f"{DEPLOYMENT}/scale", "Scale …", _RUN),
    Restart: Door("POST", f"{DEPLOYMENT}/restart", "Restart …", _RUN),
    SetMaintenance: Door("POST", f"{DEPLOYMENT}/maintenance", "Maintenance …", _RUN, "Set maintenance of {name}"),
    Apply: Door("POST", "/v1/apply", "Apply …", does="Apply"),
    CreateDeployment: Door("POST", "/v1/deployments", status=201),
    AddRevision: Door("POST", f"{DEPLOYMENT}/revisions"),
    SetPolicy: Door("PUT", f"{DEPLOYMENT}/policy", "Set policy …", _SETTINGS, "Set policy of {name}"),
    SetTraffic: Door("PUT", f"{DEPLOYMENT}/traffic", "Set traffic …", _SETTINGS, "Set traffic of {name}"),
    SetAutoscalingRules: Door(
        "PUT", f"{DEPLOYMENT}/autoscaling", "Set autoscaling …", _SETTINGS, "Set autoscaling of {name}"
    ),
    Destroy: Door("POST", f"{DEPLOYMENT}/destroy", "Destroy …", "Danger"),
    PushMetric: Door("POST", f"{DEPLOYMENT}/metrics"),
    ForgetHost: Door("POST", "/v1/hosts/{host}/forget", "Forget …"),
    DrainHost: Door("POST", "/v1/hosts/{host}/drain", "Drain …"),
    UndrainHost: Door("POST", "/v1/hosts/{host}/undrain", "Put back in service …", does="Put {name} back in service"),
    ReportRoute: Door("POST", "/v1/routes/{route_id}/report"),
    SetFreeze: Door("PUT", "/v1/freezes/{freeze}", "Freeze …"),
    DeleteFreeze: Door("DELETE", "/v1/freezes/{freeze}", "End freeze …"),
    SetGroup: Door("PUT", "/v1/groups/{group}", "Group …"),
    DeleteGroup: Door("DELETE", "/v1/groups/{group}", "Delete group …"),
    SetSubscription: Door("PUT", "/v1/subscriptions/{subscription}", "Add subscription …"),
    DeleteSubscription: Door("DELETE", "/v1/subscriptions/{subscription}", "Remove subscription …"),
    ResendEvents: Door("POST", "/v1/subscriptions/{subscription}/resend", "Resend events …"),
    ForgetEvents: Door("DELETE", "/v1/subscriptions/{subscription}/events", "Discard events …"),
}


@dataclass(frozen=True, slots=True)
class Button:
    """A command as a page shows it.

    `verb`: its word in the path of the page. `what`: its effect, in a sentence. `fields`: the fields of its dialog.
    `replaces`: whether it sets what a read of its own path shows. `is_planned`: whether it can be planned.
    `group`: the heading above it; empty: none. `does`: the text of the confirming button, with {name} and {revision} to
    be filled in. `revision`: the one that it leads to. `values`: the initial values of its fields.
    """

    verb: str
    label: str
    what: str
    fields: tuple[CommandField, ...]
    replaces: bool
    is_planned: bool
    group: str = ""
    does: str = ""
    revision: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


def button_of(verb: str, offer: Offer | None = None) -> Button:
    """The button of a command, with a deployment's offer; without an offer it is a button of the fleet."""
    command = BUTTONS[verb]
    door, what = DOORS[command], str(command.__doc__).partition("\n")[0]
    title = door.label.removesuffix(" …")
    goal = f": {offer.goal}" if offer and offer.goal else ""
    button = Button(
        verb,
        f"{title}{goal} …",
        (offer and offer.what) or what,
        fields_of(command),
        door.method == "PUT",
        command.is_planned,
        door.group,
        door.does or (f"{title} {{name}}" if named_in(door.path) else title),
    )
    return replace(button, revision=offer.revision, values=offer.values) if offer else button


def _verb_of(command: type[Command], door: Door) -> str:
    """The last word of the path; where that is a name, the words of the task, such as `set-freeze`."""
    return command.task.rpartition(".")[2].replace("_", "-") if door.verb.startswith("{") else door.verb


BUTTONS: Mapping[str, type[Command]] = {
    _verb_of(command, door): command for command, door in DOORS.items() if door.label
}
"""The commands that have a button, by verb."""
