"""The settings for a new host: this machine collects and seals them, and the new one requests and opens them."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cli.client import find_servers
from cli.terminal.exits import UnreachableError
from domain.installation.host_invitation import JOIN_PATH, SHARED_FILES, Invitation, SharedSettings, in_lines, is_here
from domain.installation.settings import database_address
from domain.text.errors import InvalidInputError
from stack.home.folder import find_home
from stack.home.server_settings import load_settings
from stack.membership import SYSTEM_FOLDER, Membership

_SEALED_FOR = "rollway host"
_NO_ADDRESS = (
    "no address is known by which other machines reach the server for people of this installation: name it, as in "
    "--url https://rollway.example.com, or let the server listen at another address with ROLLWAY_PEOPLE_HOST"
)


def environment_here() -> dict[str, str]:
    """The variables that workers of this machine have, from the shell, the units or the stack."""
    for folder in (find_home(os.environ).root, SYSTEM_FOLDER):
        file = folder / "environment"
        if not os.environ.get("DATABASE_URL") and os.access(file, os.R_OK):
            variables = in_lines(file.read_text(encoding="utf-8"))
            os.environ.update({name: value for name, value in variables.items() if name not in os.environ})
    find_servers()
    own = load_settings(find_home(os.environ))
    keys = {"ROLLWAY_CERTIFICATE_KEY": own.certificate_key} if own else {}
    return {**keys, **os.environ}


def shared_files(environ: Mapping[str, str]) -> dict[str, str]:
    """The text of each file that a new host gets. Raises InvalidInputError for a file that cannot be read."""
    texts = {}
    for variable in SHARED_FILES:
        if path := environ.get(variable):
            try:
                texts[variable] = Path(path).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidInputError(f"{variable}: {path} cannot be read: {error}", field=variable) from None
    return texts


def url_here(url: str | None, environ: Mapping[str, str]) -> str:
    """The address of the server for people. Raises InvalidInputError if it would lead another machine to itself."""
    if url is None:
        host, port = environ.get("ROLLWAY_PEOPLE_HOST", ""), environ.get("ROLLWAY_PEOPLE_PORT") or "7072"
        if is_here(host):
            raise InvalidInputError(_NO_ADDRESS, field="url")
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"
    Invitation.parse(f"{url}#x")
    if is_here(urlsplit(url).hostname or ""):
        raise InvalidInputError(
            f"--url {url} leads the new machine to itself: name an address at which it reaches the server", field="url"
        )
    return url.rstrip("/")


def settings_from(invitation: Invitation, member: Membership) -> SharedSettings:
    """Get the settings from the server for people, and open them. Raises its refusals, and UnreachableError."""
    import httpx  # noqa: PLC0415  (a tenth of a second, which commands without it save)

    from cli.remote import refusal  # noqa: PLC0415
    from traffic.certificates.x509 import SealError  # noqa: PLC0415

    where = urlsplit(invitation.url).netloc
    body = {"invitation": invitation.proof, "machine": member.machine, "host": member.host}
    try:
        # nobody on the way can read the sealed settings or replace them, so any certificate will do
        answer = httpx.post(f"{invitation.url}{JOIN_PATH}", json=body, timeout=15, verify=False)  # noqa: S501
        document = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        why = str(error) or type(error).__name__
        raise UnreachableError(f"the server at {where}, which the line names, does not answer: {why}") from None
    if not answer.is_success or "sealed" not in document:
        if "code" in document:
            raise refusal(document)
        raise UnreachableError(f"the server at {where}, which the line names, is not Rollway's server for people")
    try:
        return SharedSettings.model_validate_json(seal_of(invitation).unseal(document["sealed"]))
    except (SealError, ValueError):
        raise UnreachableError(f"this line does not open the answer of {where}: copy the whole line") from None


def seal_of(invitation: Invitation) -> Any:  # noqa: ANN401  (loaded here alone)
    from traffic.certificates.x509 import KeySeal  # noqa: PLC0415  (cryptography takes a tenth of a second)

    return KeySeal(invitation.secret, _SEALED_FOR)


def address_towards(database_url: str) -> str:
    """The address of this machine on the way to PostgreSQL. Nothing is sent."""
    host, _, port = database_address(database_url).partition("/")[0].partition(",")[0].rpartition(":")
    try:
        addresses = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
        with socket.socket(addresses[0][0], socket.SOCK_DGRAM) as probe:
            probe.connect(addresses[0][4])
            return str(probe.getsockname()[0])
    except (OSError, ValueError):
        return ""
