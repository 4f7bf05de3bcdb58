"""`rollway why`."""

from dataclasses import replace

from cli.options import AsJson, DeploymentName
from cli.output import print_json, printer
from cli.servers import Reader
from cli.show.signs import missing_worker
from cli.show.status import overdue
from db.audit.receipts import deviations_of
from db.views.why import waiting
from domain.foresight.why import why as found


def why(*, deployment: DeploymentName, as_json: AsJson = False) -> None:
    """Say why a deployment waits, in one sentence. Touches nothing.

    The replica, host, secret, person or time that it waits for; the inequality that blocks it; how long that usually
    takes, as the deployment's past replicas took; and what happens when, if nothing else happens before. Of a rollout
    also what came otherwise than planned, so far.
    """
    with Reader() as reader:
        seen = reader.read(waiting, deployment)
        otherwise = reader.read(deviations_of, seen.view.rollout_id) if seen.view.rollout_id else []
    missing = missing_worker(seen.signs) or overdue(seen.view)
    told = found(seen.deployment, seen.now, replace(seen.around, missing_worker=missing))
    if as_json:
        return print_json({**told.as_json(), "deviations": otherwise})
    console = printer()
    console.print(f"{told.sentence}.")
    for deviation in otherwise:
        console.print(f"otherwise than planned: {deviation}", style="yellow")
    return None
