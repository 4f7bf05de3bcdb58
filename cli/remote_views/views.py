"""Each view with what reads the same over HTTP."""

from collections.abc import Callable, Mapping
from typing import Any

from cli.remote_views import applied, deployments, rollouts
from cli.remote_views.asking import made, path_of
from cli.remote_views.table import table_over_http, table_shown
from db.audit.receipts import deviations_of
from db.audit.shown import WhyView, receipt_shown, why_shown
from db.commands.apply.ahead import applied_ahead
from db.commands.apply.difference import differences
from db.cycle.rules import rules_of
from db.proxies.acks import ProxyView, list_proxies
from db.views.ahead.foresight import foreseeable, last_rollout_of, rollout_of_id
from db.views.deployments import deployment_by_id, deployment_named, existing_deployments
from db.views.documents import deployment_document
from db.views.fleet.entrances import reached_at
from db.views.fleet.hosts import HostView, all_hosts
from db.views.fleet.signs import SignsOfLife, signs_of_life
from db.views.fleet.subscriptions import SubscriptionView, all_subscriptions
from db.views.fleet.windows import FreezeView, GroupView, freezes_shown, groups_shown
from db.views.progress import progress_of
from db.views.rollouts import RolloutView
from db.views.routes import all_routes, last_failed_route, routes_abbreviated
from db.views.timeline import hidden_differences, history_of, revision_shown, revisions_of, steps_of

VIEWS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    deployment_named: deployments.deployment_named,
    deployment_by_id: deployments.deployment_by_id,
    existing_deployments: deployments.existing_deployments,
    deployment_document: deployments.deployment_document,
    reached_at: deployments.reached_at,
    differences: applied.differences,
    applied_ahead: applied.applied_ahead,
    rules_of: deployments.rules_of,
    revisions_of: deployments.revisions_of,
    revision_shown: deployments.revision_shown,
    hidden_differences: deployments.hidden_differences,
    all_routes: deployments.all_routes,
    last_failed_route: deployments.last_failed_route,
    routes_abbreviated: deployments.routes_abbreviated,
    history_of: deployments.history_of,
    progress_of: deployments.progress_of,
    why_shown: lambda remote, name: made(WhyView, remote.get(f"{path_of(name)}/why")),
    foreseeable: rollouts.foreseeable,
    receipt_shown: rollouts.receipt_shown,
    last_rollout_of: rollouts.last_rollout_of,
    rollout_of_id: lambda remote, rollout_id: made(RolloutView, remote.get(f"/v1/rollouts/{rollout_id}")),
    steps_of: rollouts.steps_of,
    deviations_of: lambda remote, rollout_id: remote.get(f"/v1/rollouts/{rollout_id}/plan")["deviations"],
    signs_of_life: lambda remote: made(SignsOfLife, remote.get("/v1/signs-of-life")),
    freezes_shown: lambda remote: [made(FreezeView, found) for found in remote.get("/v1/freezes")["items"]],
    groups_shown: lambda remote: [made(GroupView, found) for found in remote.get("/v1/groups")["items"]],
    all_hosts: lambda remote: [made(HostView, host) for host in remote.get("/v1/hosts")["items"]],
    all_subscriptions: lambda remote: [
        made(SubscriptionView, found) for found in remote.get("/v1/subscriptions")["items"]
    ],
    list_proxies: lambda remote: [made(ProxyView, found) for found in remote.get("/v1/proxies")["items"]],
    table_shown: table_over_http,
}
"""By the view that reads the same from the database."""
