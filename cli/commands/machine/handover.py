"""What is handed over to a new host: gathered and sealed on this machine, asked for and opened on the new one."""

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
    "no address is known by which another machine reaches the server for people of this installation: --url names it, "
    "as in --url https://rollway.example.com; where none is in front of it, ROLLWAY_PEOPLE_HOST is where it listens"
)


def environment_here() -> dict[str, str]:
    """What the workers of this machine have: of the shell, of the units, or of the stack."""
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
    """The text of each file that a new host gets too. Raises InvalidInputError for one that cannot be read."""
    texts = {}
    for variable in SHARED_FILES:
        if path := environ.get(variable):
            try:
                texts[variable] = Path(path).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidInputError(f"{variable}: {path} cannot be read: {error}", field=variable) from None
    return texts


def url_here(url: str | None, environ: Mapping[str, str]) -> str:
    """The address of the server for people. Raises InvalidInputError for one that leads another machine to itself."""
    if url is None:
        host, port = environ.get("ROLLWAY_PEOPLE_HOST", ""), environ.get("ROLLWAY_PEOPLE_PORT") or "7072"
        if is_here(host):
            raise InvalidInputError(_NO_ADDRESS, field="url")
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"
    Invitation.parse(f"{url}#x")
    if is_here(urlsplit(url).hostname or ""):
        raise InvalidInputError(
            f"--url {url} leads the new machine to itself: name an address that it reaches", field="url"
        )
    return url.rstrip("/")


def settings_from(invitation: Invitation, member: Membership) -> SharedSettings:
    """What the server for people hands over, opened. Raises its refusals, and UnreachableError."""
    import httpx  # noqa: PLC0415  (a tenth of a second, which commands without it save)

    from cli.remote import refusal  # noqa: PLC0415
    from traffic.certificates.x509 import SealError  # noqa: PLC0415

    where = urlsplit(invitation.url).netloc
    body = {"invitation": invitation.proof, "machine": member.machine, "host": member.host}
    try:
        # nobody in between can open what comes, or put something else in its place: so any certificate will do
        answer = httpx.post(f"{invitation.url}{JOIN_PATH}", json=body, timeout=15, verify=False)  # noqa: S501
        document = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        why = str(error) or type(error).__name__
        raise UnreachableError(f"the server at {where}, which the line names, cannot be asked: {why}") from None
    if not answer.is_success or "sealed" not in document:
        if "code" in document:
            raise refusal(document)
        raise UnreachableError(f"what answers at {where}, which the line names, is no server of Rollway for people")
    try:
        return SharedSettings.model_validate_json(seal_of(invitation).unseal(document["sealed"]))
    except (SealError, ValueError):
        raise UnreachableError(f"what answers at {where} was not made for this line: copy all of it") from None


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
