"""The signs of life of worker hosts, once a second, and the looks that find hosts silent, deaf, or back.

down: no worker of the host shows a sign of life. deaf: they do, and report that Redis, by which they are asked to work,
does not answer them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from psycopg import Connection
from psycopg.rows import scalar_row
from psycopg.types.json import Jsonb

from domain.devices.needs import Capacity
from domain.installation.contract import CONTRACT
from domain.replicas.host_choice import FRESH_SECONDS
from domain.revisions.host_labels import Labels

# what a worker does not report stays as it was
_SIGN_OF_LIFE = """
    INSERT INTO hosts (name, address, clock_offset_seconds, contract, replica_user,
                       labels, resources, memory_of_others, secrets_for_all, webhooks, unasked_since)
    VALUES (%(host)s, %(address)s, %(offset)s, %(contract)s, %(replica_user)s, coalesce(%(labels)s, '{}'::jsonb),
            coalesce(%(resources)s, '{}'::jsonb), coalesce(%(others)s, '{}'::jsonb),
            coalesce(%(secrets)s, '{}'::text[]), %(webhooks)s::text[],
            CASE WHEN %(is_deaf)s THEN clock_timestamp() END)
    ON CONFLICT (name) DO UPDATE
       SET last_seen_at = clock_timestamp(), address = excluded.address,
           back_at = CASE WHEN hosts.last_seen_at < clock_timestamp() - make_interval(secs => %(fresh)s)
                          THEN clock_timestamp() ELSE hosts.back_at END,
           clock_offset_seconds = excluded.clock_offset_seconds, contract = excluded.contract,
           replica_user = excluded.replica_user,
           labels = coalesce(%(labels)s, hosts.labels), resources = coalesce(%(resources)s, hosts.resources),
           memory_of_others = coalesce(%(others)s, hosts.memory_of_others),
           secrets_for_all = coalesce(%(secrets)s, hosts.secrets_for_all),
           webhooks = coalesce(%(webhooks)s, hosts.webhooks),
           unasked_since = CASE WHEN %(is_deaf)s IS NULL THEN hosts.unasked_since
                                WHEN %(is_deaf)s THEN coalesce(hosts.unasked_since, clock_timestamp()) END
"""

# the reader runs on this host: a host that was silent is back at this moment
_BACK_AT = """
    SELECT CASE WHEN last_seen_at < clock_timestamp() - make_interval(secs => %s) THEN clock_timestamp()
                ELSE back_at END
      FROM hosts WHERE name = %s
"""

# a sign that lies ahead is from before the database's clock was set back: a host that is up gives another one soon
_IS_HEARD = "(last_seen_at BETWEEN clock_timestamp() - make_interval(secs => %(fresh)s) AND clock_timestamp())"
# one worker of a host that is asked is enough: its next sign of life says so
_IS_UNASKED = "coalesce(unasked_since < clock_timestamp() - make_interval(secs => %(fresh)s), false)"

_COUNT_LOOKS = f"""
    WITH was AS MATERIALIZED (
        SELECT name, down_since IS NOT NULL AS down, deaf_since IS NOT NULL AS deaf FROM hosts
         WHERE silent_looks > 0 OR down_since IS NOT NULL OR NOT {_IS_HEARD} OR deaf_looks > 0 OR {_IS_UNASKED}
         ORDER BY name FOR UPDATE SKIP LOCKED) -- a worker that is cut off may hold the row of its host
    UPDATE hosts h
       SET silent_looks = CASE WHEN {_IS_HEARD} THEN 0 ELSE silent_looks + 1 END,
           down_since = CASE WHEN {_IS_HEARD} THEN NULL
                             WHEN silent_looks + 1 >= %(looks)s THEN coalesce(down_since, clock_timestamp()) END,
           deaf_looks = CASE WHEN {_IS_UNASKED} THEN deaf_looks + 1 ELSE 0 END,
           deaf_since = CASE WHEN NOT {_IS_UNASKED} THEN NULL
                             WHEN deaf_looks + 1 >= %(looks)s THEN coalesce(deaf_since, clock_timestamp()) END
      FROM was WHERE h.name = was.name
    RETURNING h.name, was.down AS was_down, h.down_since IS NOT NULL AS is_down,
              was.deaf AS was_deaf, h.deaf_since IS NOT NULL AS is_deaf
"""

_ANY_SILENT = "SELECT FROM hosts WHERE silent_looks > 0 OR down_since IS NOT NULL OR deaf_looks > 0 LIMIT 1"


class HostsTurned(NamedTuple):
    """The hosts that a look found to be `down` or `deaf` from now on; `back`, or `asked` again, those no longer so."""

    down: frozenset[str]
    back: frozenset[str]
    deaf: frozenset[str]
    asked: frozenset[str]


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The facts that a worker reports about its host with a heartbeat. None: it does not report this one.

    `resources`: the devices of the host for replicas. `memory_of_others`: the gigabytes in use on its devices by
    programs that are no replicas. `secrets_for_all`: the sources of secrets that every deployment gets.
    `webhooks`: the targets that it knows, by name. `is_deaf`: whether Redis does not answer this worker; a host is deaf
    only if Redis answers none of its workers.
    """

    labels: Labels | None = None
    resources: Capacity | None = None
    memory_of_others: Capacity | None = None
    secrets_for_all: Sequence[str] | None = None
    webhooks: Sequence[str] | None = None
    is_deaf: bool | None = None


_NO_FACTS = HostFacts()


def show_sign_of_life(  # noqa: PLR0913  (all that a heartbeat says)
    connection: Connection,
    host: str,
    address: str,
    clock_offset: float = 0.0,
    replica_user: str | None = None,
    facts: HostFacts = _NO_FACTS,
) -> None:
    """Write a heartbeat; the first one makes the host known. `clock_offset`: the seconds that its clock is ahead.

    `replica_user`: the user of its processes; None: the user of the worker.
    """
    values = {
        "host": host,
        "address": address,
        "offset": clock_offset,
        "contract": CONTRACT,
        "replica_user": replica_user,
        "labels": _json(facts.labels),
        "resources": _json(facts.resources),
        "others": _json(facts.memory_of_others),
        "secrets": _list(facts.secrets_for_all),
        "webhooks": _list(facts.webhooks),
        "is_deaf": facts.is_deaf,
        "fresh": FRESH_SECONDS,
    }
    connection.execute(_SIGN_OF_LIFE, values)


def _json(fact: Mapping[str, object] | None) -> Jsonb | None:
    return None if fact is None else Jsonb(dict(fact))


def _list(fact: Sequence[str] | None) -> list[str] | None:
    return None if fact is None else list(fact)


def back_at(connection: Connection, host: str) -> datetime | None:
    """When the host showed itself again after a time without a sign of life; None when it never did."""
    cursor = connection.cursor(row_factory=scalar_row).execute(_BACK_AT, (FRESH_SECONDS, host))
    return next(iter(cursor.fetchall()), None)


def look_at_signs_of_life(connection: Connection, fresh_seconds: float, looks: int) -> HostsTurned:
    """Count the looks in a row that found a host silent, or deaf; `looks` of them make it down, or deaf.

    Looks are counted, not seconds: while nobody looked, nobody could be heard, so that Postgres, Redis or all workers
    being away for a while does not make every host silent or deaf.
    """
    rows = connection.execute(_COUNT_LOOKS, {"fresh": fresh_seconds, "looks": looks}).fetchall()
    return HostsTurned(
        frozenset(name for name, was_down, is_down, *_ in rows if is_down and not was_down),
        frozenset(name for name, was_down, is_down, *_ in rows if was_down and not is_down),
        frozenset(name for name, *_, was_deaf, is_deaf in rows if is_deaf and not was_deaf),
        frozenset(name for name, *_, was_deaf, is_deaf in rows if was_deaf and not is_deaf),
    )


def has_silent(connection: Connection) -> bool:
    """Whether any host was silent or deaf at the last look, or is down."""
    return connection.execute(_ANY_SILENT).fetchone() is not None
