"""The targets of webhooks: a line for each, with its URL and the secrets that sign its events."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from domain.text.errors import InvalidInputError

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


_PREFIX = "whsec_"


_LEAST_BYTES, _MOST_BYTES = 24, 64


@dataclass(frozen=True, slots=True)
class Target:
    """A receiver. `keys`: from its secrets, the newest first. Neither the keys nor the URL are ever shown."""

    url: str = field(repr=False)
    keys: tuple[bytes, ...] = field(repr=False)


def parse_targets(text: str) -> Mapping[str, Target]:
    """The targets by name, from lines `name = URL whsec_...`. Raises InvalidInputError with the line but no secret."""
    targets: dict[str, Target] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, _, rest = (part.strip() for part in line.partition("="))
        url, *secrets = rest.split() or [""]
        keys = tuple(map(_key, secrets))
        if not _NAME.fullmatch(name) or name in targets or not _is_url(url) or not keys or b"" in keys:
            right = (
                f"'name = URL {_PREFIX}...': a name, once, an http or https URL, and one secret or more, "
                f"{_LEAST_BYTES} to {_MOST_BYTES} bytes in base64 after {_PREFIX}, as 'openssl rand -base64 32' makes"
            )
            raise InvalidInputError(f"line {number} must be {right}", field=f"line {number}")
        targets[name] = Target(url, keys)
    return targets


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _key(secret: str) -> bytes:
    """The key of a secret; empty for an invalid one."""
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError:
        return b""
    return key if secret.startswith(_PREFIX) and _LEAST_BYTES <= len(key) <= _MOST_BYTES else b""
