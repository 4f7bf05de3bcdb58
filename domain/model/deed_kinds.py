"""The kinds of deeds that a history is filtered by, and those that only admins read."""

from collections.abc import Mapping
from typing import Literal

Kind = Literal["rollouts", "settings", "freezes", "hosts", "subscriptions", "tokens", "sign-ins"]
"""The kinds of deeds."""

PHASES: Mapping[Kind, tuple[str, ...]] = {
    "rollouts": (
        *("activate", "rolling_update", "restart", "retry", "undo"),
        *("abort", "pause", "resume", "promote"),
    ),
    "settings": (
        *("create", "destroy", "scale", "add_revision", "set_policy", "set_traffic"),
        *("set_maintenance", "set_autoscaling_rules"),
    ),
    "freezes": ("set_freeze", "delete_freeze", "set_group", "delete_group"),
    "hosts": ("drain_host", "undrain_host", "forget_host", "invite_host", "join_host"),
    "subscriptions": ("set_subscription", "delete_subscription", "resend_events", "forget_events"),
    "tokens": ("create_token", "revoke_token"),
    "sign-ins": ("log_in", "log_out", "end_sessions"),
}
"""The phases of the records of each kind."""

OF_ADMINS = (*PHASES["tokens"], *PHASES["sign-ins"])
"""The phases of the records that only admins read."""
