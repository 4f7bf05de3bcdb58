"""The reads for people: where deployments are reached, and whose an entrance is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from db.certificates import CertificateView, certificates_of
from db.locking.rows import columns
from domain.traffic.descriptions import entrances_in_words
from domain.traffic.entrances import in_order
from domain.traffic.release import Reached, known_release
from domain.traffic.snapshot import Entrance, EntranceKind, RequestRules, known_rules

_REACHED = """
    SELECT d.request_timeout_seconds, d.hedge_after_seconds, d.preview, d.idle_timeout_seconds, d.protocol, d.rules,
           o.traffic, n.kind, n.value, n.strip_prefix
      FROM deployments d LEFT JOIN entrances n ON n.deployment_id = d.id AND NOT n.reserved
      LEFT JOIN rollouts o ON o.id = d.rollout_id
     WHERE d.id = %s
"""

_WANTED = columns("kind text, value text")

_OWNERS = f"""
    SELECT n.kind, n.value, d.name
      FROM entrances n JOIN deployments d ON d.id = n.deployment_id
     WHERE (n.kind, n.value) IN (SELECT * FROM {_WANTED})
       AND d.lifecycle <> 'destroyed' AND d.name <> %(deployment)s
"""


_KINDS = {kind.value: kind for kind in EntranceKind}


@dataclass(frozen=True, slots=True)
class ReachedView:
    """Shows where a deployment is reached, what proxies do with its requests, and the certificates that they show.

    Entrances of a kind that only a newer release knows are left out. `brings`: what of it comes with the rollout under
    way, and when, in words.
    """

    entrances: tuple[Entrance, ...]
    rules: RequestRules
    certificates: tuple[CertificateView, ...] = ()
    brings: str = ""

    @property
    def reached(self) -> Reached:
        """The entrances with the rules."""
        return self.entrances, self.rules

    @property
    def hosts(self) -> list[str]:
        """The host names by which it is reached."""
        return [entrance.value for entrance in self.entrances if entrance.kind is EntranceKind.HOST]


def reached_at(connection: Connection[Any], deployment_id: UUID) -> ReachedView:
    """Read where a deployment that is known to exist is reached."""
    rows = connection.execute(_REACHED, (deployment_id,)).fetchall()
    found = (Entrance(_KINDS[kind], value, strip_prefix) for *_, kind, value, strip_prefix in rows if kind in _KINDS)
    timeout, hedge, preview, idle, protocol, together, stored = rows[0][:7]
    rules = known_rules(timeout, hedge, idle, protocol, together, preview=preview)
    certificates = () if rules.tls is None else tuple(certificates_of(connection, deployment_id))
    release = known_release(stored)
    brings = f"{stored['moment']} {entrances_in_words(*release)}" if release else ""
    return ReachedView(in_order(found), rules, certificates, brings)


def owners_of(connection: Connection[Any], wanted: Iterable[Entrance], deployment: str) -> dict[Entrance, str]:
    """The entrances of `wanted` that another deployment than this one has, each with its name."""
    keys = {(entrance.kind.value, entrance.value): entrance for entrance in wanted}
    rows = connection.execute(_OWNERS, _WANTED.arrays(keys, deployment=deployment)).fetchall()
    return {keys[kind, value]: name for kind, value, name in rows}
