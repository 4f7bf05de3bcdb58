"""Secrets over HTTP: the server asks the hosts whether they can have them."""

from collections.abc import Sequence

from cli.remote import Remote
from cli.remote_views.asking import made, path_of
from domain.revisions.secret_checks import SecretCheck


def secret_checks_of(remote: Remote, deployment: str, references: Sequence[str]) -> list[SecretCheck]:
    """What the hosts say of these secrets, for a deployment of that name, which need not exist yet."""
    found = remote.ask("POST", f"{path_of(deployment)}/secrets", json={"references": list(references)})
    return [made(SecretCheck, check) for check in found["items"]]
