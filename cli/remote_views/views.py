"""Each view with what reads the same over HTTP."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from api.people.reads.shapes import shape_of
from api.people.resources.table import READS, Read
from cli.remote import Remote
from cli.remote_views import applied, deployments, rollouts
from cli.remote_views.asking import made
from cli.remote_views.table import table_over_http, table_shown
from db.audit.receipts import deviations_of
from db.audit.shown import receipt_shown
from db.commands.apply.ahead import applied_ahead
from db.commands.apply.difference import differences
from db.cycle.rules import rules_of
from db.views.ahead.foresight import foreseeable, last_rollout_of, rollout_of_id
from db.views.deployments import deployment_by_id, deployment_named, existing_deployments
from db.views.documents import deployment_document
from db.views.fleet.entrances import reached_at
from db.views.progress import progress_of
from db.views.rollouts import RolloutView
from db.views.routes import all_routes, last_failed_route, routes_abbreviated
from db.views.timeline import hidden_differences, history_of, revision_shown, revisions_of, steps_of


def _read(read: Read, remote: Remote, *named: str) -> Any:  # noqa: ANN401  (what the view makes)
    """What the server shows at the read's path, as the view would have made it."""
    names = iter(named)
    found = remote.get(re.sub("{[^}]+}", lambda _: quote(next(names), ""), read.path))
    shape = shape_of(read.source)
    (kind,) = shape.views
    return [made(kind, each) for each in found["items"]] if shape.listed else made(kind, found)


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
    foreseeable: rollouts.foreseeable,
    receipt_shown: rollouts.receipt_shown,
    last_rollout_of: rollouts.last_rollout_of,
    rollout_of_id: lambda remote, rollout_id: made(RolloutView, remote.get(f"/v1/rollouts/{rollout_id}")),
    steps_of: rollouts.steps_of,
    deviations_of: lambda remote, rollout_id: remote.get(f"/v1/rollouts/{rollout_id}/plan")["deviations"],
    table_shown: table_over_http,
    **{read.view: partial(_read, read) for read in READS if read.view},
}
"""By the view that reads the same from the database."""
