"""`rollway why`."""

from dataclasses import asdict

from api.people.paths import DEPLOYMENT
from cli.client import Reader
from cli.options import AsJson, DeploymentName
from cli.show.status import warn_of_missing_worker
from cli.terminal.output import print_json, printer
from db.audit.explanations import WhyView
from domain.model.decision import WaitsFor


def why(*, deployment: DeploymentName, as_json: AsJson = False) -> None:
    """Say why a deployment waits, in one sentence. Touches nothing.

    The replica, host, secret, person or time that it waits for; the inequality that blocks it; how long that usually
    takes, as the deployment's past replicas took; and what happens when, if nothing else happens before. Of a rollout
    also what came otherwise than planned, so far, and which settings come with it, and when; of a certificate that is
    missing or not renewed, why.
    """
    with Reader() as reader:
        told = reader.view(WhyView, f"{DEPLOYMENT}/why", deployment)
        if as_json:
            return print_json(asdict(told))
        console = printer()
        console.print(f"{told.sentence}.")
        if told.waits_for in (WaitsFor.NOTHING, WaitsFor.PERSON):  # all others say it in their sentence
            warn_of_missing_worker(reader, console)
    if told.brings:
        console.print(f"its rollout brings settings: {told.brings}")
    for deviation in told.deviations:
        console.print(f"otherwise than planned: {deviation}", style="yellow")
    for fault in told.certificates:
        console.print(fault, style="yellow")
    return None
