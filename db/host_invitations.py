"""Invitations, each of which makes one machine a host: the hash of its proof, and the sealed settings."""

from datetime import datetime
from typing import Any

from psycopg import Connection

from db.access_tokens import hash_of, why_spent
from db.fleet_history import record_deed
from domain.installation.host_invitation import LASTS, HostTakenError, JoinRequest
from domain.installation.tokens import NoTokenError

_INVITE = """
    WITH forgotten AS (DELETE FROM host_invitations WHERE ends_at < clock_timestamp() - interval '1 day')
    INSERT INTO host_invitations (hash, sealed, made_by, ends_at) VALUES (%s, %s, %s, clock_timestamp() + %s)
    RETURNING ends_at
"""

# the same machine may ask again, with another name too: it was cut off, or its name was taken
_JOIN = """
    UPDATE host_invitations i
       SET used_at = coalesce(i.used_at, clock_timestamp()), machine = %(machine)s, host = %(host)s
      FROM (SELECT hash, host FROM host_invitations WHERE hash = %(hash)s FOR UPDATE) was
     WHERE i.hash = was.hash AND i.ends_at > clock_timestamp() AND coalesce(i.machine = %(machine)s, true)
    RETURNING i.sealed, i.made_by, was.host
"""

_WHY = "SELECT used_at, ends_at > clock_timestamp(), host FROM host_invitations WHERE hash = %s"

# a name is taken while a host with it is up, and for a minute after another machine has joined with it, since the
# workers of that machine may be about to start; a machine that has left again frees its name
_TAKEN = """
    SELECT 'is up, at ' || address FROM hosts h
     WHERE name = %(host)s AND down_since IS NULL
       AND NOT EXISTS (SELECT FROM host_invitations WHERE hash = %(hash)s AND machine = %(machine)s AND host = h.name)
    UNION ALL
    SELECT 'joins just now' FROM host_invitations
     WHERE host = %(host)s AND machine <> %(machine)s AND used_at > clock_timestamp() - interval '1 minute'
       AND NOT EXISTS (SELECT FROM fleet_history
                        WHERE phase = 'forget_host' AND target = %(host)s AND created_at > used_at)
"""
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('rollway hosts join'))"


def invite_host(connection: Connection, proof: str, sealed_settings: str, actor: str) -> datetime:
    """Write an invitation for the machine that will show `proof`; returns when it ends."""
    row = connection.execute(_INVITE, (hash_of(proof), sealed_settings, actor, LASTS)).fetchone()
    assert row is not None  # noqa: S101  (an INSERT without a condition returns its row)
    ends_at: datetime = row[0]
    record_deed(
        connection, "invite_host", "a new host", actor, f"a line that makes one machine a host, until {ends_at:%H:%M}"
    )
    return ends_at


def join_host(connection: Connection[Any], request: JoinRequest) -> str | None:
    """Use the invitation, and return its sealed settings; None for an unknown invitation.

    Raises NoTokenError for an invitation that another machine has used or that has ended, and HostTakenError.
    """
    connection.execute(_ONE_AT_A_TIME)
    values = {"hash": hash_of(request.invitation), "machine": request.machine, "host": request.host}
    if (conflict := connection.execute(_TAKEN, values).fetchone()) and _is_known(connection, values["hash"]):
        message = f"a host called {request.host} {conflict[0]}; give this one another name with --name"
        raise HostTakenError(message, host=request.host)
    row = connection.execute(_JOIN, values).fetchone()
    if row is None:
        _refuse_spent(connection, values["hash"])
        return None
    sealed_settings, made_by, previous_host = row
    if previous_host != request.host:
        record_deed(connection, "join_host", request.host, made_by, f"{request.host} joins, by a line of {made_by}")
    return str(sealed_settings)


def _is_known(connection: Connection[Any], invitation_hash: object) -> bool:
    return connection.execute(_WHY, (invitation_hash,)).fetchone() is not None


def _refuse_spent(connection: Connection[Any], invitation_hash: object) -> None:
    row = connection.execute(_WHY, (invitation_hash,)).fetchone()
    if row is None:
        return
    by = f" by {row[2]}" if row[2] else ""
    why = why_spent(row[:2], "an hour", by) or "cannot be used"
    raise NoTokenError(f"this line {why}; 'rollway hosts join' on a machine of the installation prints another")
