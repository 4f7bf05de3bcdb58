"""The reads for people: heartbeats, hosts and entrances."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, dict_row

from db.certificates import CertificateView, certificates_of
from db.connection.arrays import columns
from db.locking.statuses import ACTIVE, IS_LIVE, IS_MISPLACED
from domain.replicas.host_choice import MISSED_AFTER, is_warned_of
from domain.text.numbers import duration
from domain.traffic.entrances import entrances_in_words, in_order
from domain.traffic.release import Reached, known_release
from domain.traffic.snapshot import Entrance, EntranceKind, RequestRules, known_rules

_SIGNS = f"""
    SELECT clock_timestamp() AS now, (SELECT max(last_seen_at) FROM hosts) AS worker,
           (SELECT max(seen_at) FROM publishers) AS api, (SELECT ticked_at FROM beat) AS beat,
           ARRAY(SELECT name FROM hosts WHERE down_since IS NULL AND replica_user IS NULL ORDER BY name) AS unwalled,
           live.proxies, live.telling
      FROM (SELECT count(*)::int AS proxies, count(stats_address)::int AS telling FROM proxies p WHERE {IS_LIVE}) live
"""


@dataclass(frozen=True, slots=True)
class SignsOfLife:
    """The last signs at the database's time `now`: of any worker, server for proxies and beat. None: never.

    `telling`: how many of the live `proxies` tell what they answer, as judges need it. `unwalled`: the hosts that are
    up and whose processes run as the workers' own user.
    """

    now: datetime
    worker: datetime | None
    api: datetime | None
    beat: datetime | None
    unwalled: Sequence[str]
    proxies: int
    telling: int

    @property
    def missing_worker(self) -> str:
        """A sentence when no worker does anything; empty when one does."""
        if self.worker is None:
            return "no worker is known yet, so nothing is started or stopped; 'rollway up' starts some"
        if self.now - self.worker <= MISSED_AFTER:
            return ""
        since = duration(self.now - self.worker)
        return f"no worker has sent a heartbeat for {since}, so nothing is started, probed or stopped; does one run?"

    @property
    def missing_wall(self) -> str:
        """A sentence when what runs reads what steers it; empty when there is an account between them."""
        if not self.unwalled:
            return ""
        where = ", ".join(self.unwalled[:3]) + (f" and {len(self.unwalled) - 3} more" if self.unwalled[3:] else "")
        return (
            f"processes on {where} run as the workers' own user and can read what steers the fleet; "
            "ROLLWAY_REPLICA_USER=@deployment gives each deployment an account of its own, where root runs the workers"
        )

    @property
    def missing_evidence(self) -> str:
        """A sentence when a judge hears of no request, or not of all; empty when it does."""
        if not self.telling:
            return "no live proxy tells what it answers, so its judge will find nothing; seconds need no judge"
        if self.telling < self.proxies:
            return f"only {self.telling} of {self.proxies} live proxies report answers: its judge sees no others"
        return ""


_FOR_ALL = """
    SELECT name, secrets_for_all FROM hosts
     WHERE down_since IS NULL AND secrets_for_all <> '{}'
       AND (SELECT count(*) > 1 FROM deployments WHERE lifecycle <> 'destroyed')
     ORDER BY name
"""


def secrets_for_all(connection: Connection[Any]) -> Mapping[str, Sequence[str]]:
    """The sources by host from which every deployment gets secrets; none where there is at most one deployment."""
    return dict(connection.execute(_FOR_ALL).fetchall())


def signs_of_life(connection: Connection[Any]) -> SignsOfLife:
    """Workers and servers for proxies show one each second, and workers note one of beat every 3 s."""
    (signs,) = connection.cursor(row_factory=class_row(SignsOfLife)).execute(_SIGNS).fetchall()
    return signs


# until when a deployment has replicas on a drained host; without a word they are on their way
_STAYS = f"""
    SELECT coalesce(jsonb_object_agg(d.name, CASE WHEN NOT there.moves THEN 'another host takes it'
                                                  WHEN d.lifecycle = 'deploying' THEN 'its rollout has room for it'
                                                  ELSE '' END), '{{}}')
      FROM (SELECT r.deployment_id, bool_and({IS_MISPLACED}) AS moves FROM routes r
             WHERE r.host = h.name AND r.stopped_at IS NULL AND r.{ACTIVE} GROUP BY r.deployment_id) there
     CROSS JOIN LATERAL (SELECT name, lifecycle FROM deployments WHERE id = there.deployment_id OFFSET 0) d
"""

_HELD = """
    coalesce((SELECT jsonb_agg(jsonb_build_object(
                         'kind', x.kind, 'device', x.device, 'amount', x.amount, 'deployment', d.name,
                         'route', r.id, 'status', r.status) ORDER BY x.kind, x.device, r.id)
                FROM held_devices x JOIN routes r ON r.id = x.route_id JOIN deployments d ON d.id = r.deployment_id
               WHERE x.host = h.name AND (x.free_at IS NULL OR x.free_at > clock_timestamp())), '[]')
"""

_HOSTS = f"""
    SELECT h.name, h.address, h.last_seen_at, h.down_since, h.registered_at, h.clock_offset_seconds, h.contract,
           h.replica_user, h.deaf_since, h.drained_at, h.drained_by, h.labels, h.resources, {_HELD} AS held,
           CASE WHEN h.down_since IS NULL THEN h.memory_of_others ELSE '{{}}' END AS memory_of_others,
           clock_timestamp() AS now,
           CASE WHEN h.drained_at IS NULL THEN '{{}}' ELSE ({_STAYS}) END AS stays,
           coalesce(r.replicas, '{{}}') AS replicas,
           CASE WHEN h.down_since IS NOT NULL THEN 'down'
                WHEN h.deaf_since IS NOT NULL THEN 'deaf'
                WHEN h.last_seen_at < clock_timestamp() - interval '{MISSED_AFTER.total_seconds()} s' THEN 'silent'
                ELSE 'up' END AS state
      FROM hosts h
      LEFT JOIN (SELECT host, jsonb_object_agg(status, count) AS replicas
                   FROM (SELECT host, status, count(*) FROM routes
                          WHERE stopped_at IS NULL AND host IS NOT NULL GROUP BY host, status) counted
                  GROUP BY host) r ON r.host = h.name
     ORDER BY h.name
"""


@dataclass(frozen=True, slots=True)
class HeldView:
    """A device, or a part of an amount, that the replica of a route holds until it is gone."""

    kind: str
    device: str
    amount: float
    deployment: str
    route: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """A host at the database's time `now`. `replicas`: how many are not stopped, by status.

    `state`: a silent host was not seen for some seconds, and is not known to be down. `clock_offset_seconds`: the
    seconds that its clock is ahead; `is_clock_off`: enough for a warning. `contract`: that of its workers.
    `replica_user`: the user of its processes; None: the user of the worker. `deaf_since`: since when Redis has not
    answered it. `drained_at`: since when it is drained, by `drained_by`. `stays`: by deployment whose replicas stay on
    a drained host, what must happen before they leave; empty if they are leaving. `labels`: from its workers.
    `resources`: by kind and device, the amount for replicas; `held`: the parts that replicas hold. `memory_of_others`:
    by kind and device, the gigabytes in use on devices that no replica holds.
    """

    name: str
    address: str
    last_seen_at: datetime
    down_since: datetime | None
    registered_at: datetime
    clock_offset_seconds: float
    is_clock_off: bool
    contract: int
    replica_user: str | None
    deaf_since: datetime | None
    drained_at: datetime | None
    drained_by: str | None
    now: datetime
    replicas: dict[str, int]
    stays: dict[str, str]
    state: Literal["up", "silent", "deaf", "down"]
    labels: dict[str, str]
    resources: dict[str, dict[str, float]]
    held: list[HeldView]
    memory_of_others: dict[str, dict[str, float]]


def all_hosts(connection: Connection[Any]) -> list[HostView]:
    """Every host that has ever shown a sign of life and was not forgotten, by name."""
    rows = connection.cursor(row_factory=dict_row).execute(_HOSTS).fetchall()
    return [
        HostView(
            **{**row, "held": [HeldView(**each) for each in row["held"]]},
            is_clock_off=is_warned_of(row["clock_offset_seconds"]),
        )
        for row in rows
    ]


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
        return self.entrances, self.rules

    @property
    def hosts(self) -> list[str]:
        return [entrance.value for entrance in self.entrances if entrance.kind is EntranceKind.HOST]

    def urls(self, envoy: str) -> list[str]:
        """URLs that work without a name server: *.localhost, which is every machine itself, and path prefixes.

        `envoy`: the URL of the proxy of this machine; empty: there is none, and no URL.
        """
        if not envoy:
            return []
        prefixes = [entrance.value for entrance in self.entrances if entrance.kind is EntranceKind.PREFIX]
        local = [host for host in self.hosts if host.endswith(".localhost") and not host.startswith("*.")]
        by_name = [f"http://{host}:{urlsplit(envoy).port}/" for host in local]
        return [*by_name, *(f"{envoy}{prefix}" for prefix in prefixes)]


def reached_at(connection: Connection[Any], deployment_id: UUID) -> ReachedView:
    """Read where a deployment that is known to exist is reached."""
    rows = connection.execute(_REACHED, (deployment_id,)).fetchall()
    entrances = (
        Entrance(_KINDS[kind], value, strip_prefix) for *_, kind, value, strip_prefix in rows if kind in _KINDS
    )
    timeout, hedge, preview, idle, protocol, together, stored_release = rows[0][:7]
    rules = known_rules(timeout, hedge, idle, protocol, together, preview=preview)
    certificates = () if rules.tls is None else tuple(certificates_of(connection, deployment_id))
    release = known_release(stored_release)
    brings = f"{stored_release['moment']} {entrances_in_words(*release)}" if release else ""
    return ReachedView(in_order(entrances), rules, certificates, brings)


def owners_of(connection: Connection[Any], entrances: Iterable[Entrance], deployment: str) -> dict[Entrance, str]:
    """The entrances of `entrances` that another deployment than this one has, each with its name."""
    keys = {(entrance.kind.value, entrance.value): entrance for entrance in entrances}
    rows = connection.execute(_OWNERS, _WANTED.arrays(keys, deployment=deployment)).fetchall()
    return {keys[kind, value]: name for kind, value, name in rows}
