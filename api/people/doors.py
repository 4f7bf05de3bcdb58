"""The HTTP method, path, status and button of each command, one row a command, in the order of the buttons."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from api.people.paths import DEPLOYMENT
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


@dataclass(frozen=True, slots=True)
class Door:
    """How a command is requested over HTTP. `label`: the text of its button; empty: no button."""

    method: Literal["POST", "PUT", "DELETE"]
    path: str
    label: str = ""
    status: int = 200

    @property
    def verb(self) -> str:
        """The last word of the path, as in /v1/deployments/web/pause."""
        return self.path.rpartition("/")[2]


DOORS: Mapping[type[Command], Door] = {
    Resume: Door("POST", f"{DEPLOYMENT}/resume", "Resume"),
    Promote: Door("POST", f"{DEPLOYMENT}/promote", "Promote"),
    Pause: Door("POST", f"{DEPLOYMENT}/pause", "Pause"),
    Abort: Door("POST", f"{DEPLOYMENT}/abort", "Abort"),
    ActivateRevision: Door("POST", f"{DEPLOYMENT}/activate", "Roll out …"),
    RollingUpdate: Door("POST", f"{DEPLOYMENT}/rolling-update", "Change image or command …"),
    Undo: Door("POST", f"{DEPLOYMENT}/undo", "Undo"),
    Retry: Door("POST", f"{DEPLOYMENT}/retry", "Retry"),
    Restart: Door("POST", f"{DEPLOYMENT}/restart", "Restart"),
    Scale: Door("POST", f"{DEPLOYMENT}/scale", "Scale …"),
    Destroy: Door("POST", f"{DEPLOYMENT}/destroy", "Destroy …"),
    Apply: Door("POST", "/v1/apply", "Apply …"),
    CreateDeployment: Door("POST", "/v1/deployments", status=201),
    AddRevision: Door("POST", f"{DEPLOYMENT}/revisions"),
    SetPolicy: Door("PUT", f"{DEPLOYMENT}/policy", "Set policy …"),
    SetTraffic: Door("PUT", f"{DEPLOYMENT}/traffic", "Set traffic …"),
    SetMaintenance: Door("POST", f"{DEPLOYMENT}/maintenance", "Maintenance …"),
    SetAutoscalingRules: Door("PUT", f"{DEPLOYMENT}/autoscaling", "Set autoscaling …"),
    PushMetric: Door("POST", f"{DEPLOYMENT}/metrics"),
    ForgetHost: Door("POST", "/v1/hosts/{host}/forget", "Forget …"),
    DrainHost: Door("POST", "/v1/hosts/{host}/drain", "Drain …"),
    UndrainHost: Door("POST", "/v1/hosts/{host}/undrain", "Put back in service …"),
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
    """

    verb: str
    label: str
    what: str
    fields: tuple[CommandField, ...]
    replaces: bool
    is_planned: bool


def button_of(verb: str) -> Button:
    command = BUTTONS[verb]
    door, what = DOORS[command], str(command.__doc__).partition("\n")[0]
    return Button(verb, door.label, what, fields_of(command), door.method == "PUT", command.is_planned)


def _verb_of(command: type[Command], door: Door) -> str:
    """The last word of the path, or where that is a name the words of the task, such as `set-freeze`."""
    return command.task.rpartition(".")[2].replace("_", "-") if door.verb.startswith("{") else door.verb


BUTTONS: Mapping[str, type[Command]] = {
    _verb_of(command, door): command for command, door in DOORS.items() if door.label
}
"""The commands that have a button, by verb."""
