"""The ways to each deployment: by which host names and path prefixes requests reach it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from domain.installation.tokens import is_of_the_page
from domain.traffic.entrances import HOST_NAME, PREVIEW_PREFIX
from domain.traffic.snapshot import DeploymentInTraffic, Entrance, EntranceKind
from domain.traffic.tls_material import ANY_HOST

_PREFIX = re.compile(r"/([A-Za-z0-9._~!$&'()*+,;=:@%-]+/)*")


@dataclass(frozen=True, slots=True)
class Prefix:
    """A path prefix that begins and ends with a slash, and whether the replicas see it."""

    value: str
    strip: bool


@dataclass(frozen=True, slots=True)
class Ways:
    """To one deployment. No host name and no prefix occurs twice among all."""

    hosts: tuple[str, ...]
    preview_hosts: tuple[str, ...]
    prefixes: tuple[Prefix, ...]


def ways_to(deployments: Sequence[DeploymentInTraffic], faults: list[str]) -> list[Ways]:
    """The ways to each. What must be left out, since it makes no sense or belongs to another, becomes a fault."""
    hosts = _Owners("host name", faults)
    prefixes = _Owners("path prefix", faults)
    taken = [(tuple(_hosts(each, hosts, faults)), tuple(_prefixes(each, prefixes, faults))) for each in deployments]
    found = []
    for deployment, (its_hosts, its_prefixes) in zip(deployments, taken, strict=True):
        previews = [f"{PREVIEW_PREFIX}{host}" for host in its_hosts if not host.startswith(ANY_HOST)]
        # who has this very name goes first: all host names were taken before any of a preview
        free = tuple(host for host in previews if hosts.take_if_free(host, deployment.name))
        found.append(Ways(its_hosts, free, its_prefixes))
    return found


@dataclass(frozen=True, slots=True)
class _Owners:
    """The owner of each host name or path prefix; a deployment that comes second is a fault."""

    what: str
    faults: list[str]
    owner_of: dict[str, str] = field(default_factory=dict)

    def take(self, value: str, deployment: str) -> bool:
        owner = self.owner_of.setdefault(value, deployment)
        if owner != deployment:
            self.faults.append(f"{deployment}: {self.what} {value!r} belongs to {owner} already, so it is left out")
        return owner == deployment

    def take_if_free(self, value: str, deployment: str) -> bool:
        free = value not in self.owner_of
        return free and self.take(value, deployment)


def _hosts(deployment: DeploymentInTraffic, owners: _Owners, faults: list[str]) -> Iterator[str]:
    for value in dict.fromkeys(entrance.value.lower() for entrance in _of_kind(deployment, EntranceKind.HOST)):
        if not HOST_NAME.fullmatch(value):
            faults.append(f"{deployment.name}: {value!r} is no host name, so it is left out")
        elif is_of_the_page(value):
            faults.append(f"{deployment.name}: host name {value!r} is the page's alone, so it is left out")
        elif owners.take(value, deployment.name):
            yield value


def _prefixes(deployment: DeploymentInTraffic, owners: _Owners, faults: list[str]) -> Iterator[Prefix]:
    given = {_slashed(entrance.value): entrance.strip_prefix for entrance in _of_kind(deployment, EntranceKind.PREFIX)}
    for value, strip in given.items():
        if not _PREFIX.fullmatch(value):
            faults.append(f"{deployment.name}: {value!r} is no path prefix, so it is left out")
        elif owners.take(value, deployment.name):
            yield Prefix(value, strip)


def _of_kind(deployment: DeploymentInTraffic, kind: EntranceKind) -> Iterator[Entrance]:
    return (entrance for entrance in deployment.entrances if entrance.kind is kind)


def _slashed(value: str) -> str:
    return f"/{value.strip('/')}/" if value.strip("/") else "/"
