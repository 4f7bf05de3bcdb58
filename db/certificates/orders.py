"""Orders of certificates under way at an authority: accounts, orders, and challenges that proxies answer."""

from typing import Any

from psycopg import Connection

from db.certificates.turns import OWN, TakenCertificate
from db.locking.statuses import IS_LIVE

_NOTE_ORDER = f"UPDATE certificates SET order_url = %(url)s, order_key = %(order_key)s WHERE {OWN}"

_NOTE_CHALLENGE = f"""
    UPDATE certificates SET token = %(token)s, answer = %(answer)s, challenge_xid = pg_current_xact_id() WHERE {OWN}
"""

# a live proxy that holds a table from before the answer was written would answer otherwise
_PROXIES = f"""
    SELECT count(*)::int,
           count(*) FILTER (WHERE p.acked_snapshot IS NULL
                               OR NOT pg_visible_in_snapshot(c.challenge_xid, p.acked_snapshot))::int
      FROM proxies p, (SELECT challenge_xid FROM certificates WHERE {OWN}) c
     WHERE {IS_LIVE}
"""

_ACCOUNT = "SELECT sealed_key, url FROM acme_accounts WHERE directory = %s"

_NOTE_ACCOUNT = """
    INSERT INTO acme_accounts AS a (directory, sealed_key, url) VALUES (%s, %s, %s)
        ON CONFLICT (directory) DO UPDATE SET directory = a.directory
    RETURNING sealed_key, url
"""


def note_order(connection: Connection[Any], taken: TakenCertificate, url: str, order_key: str) -> None:
    """Note an order as soon as the authority has taken it, so that whoever comes after a crash goes on with it."""
    connection.execute(_NOTE_ORDER, {**taken.own, "url": url, "order_key": order_key})


def note_challenge(connection: Connection[Any], taken: TakenCertificate, token: str, answer: str) -> None:
    """Have proxies answer a challenge."""
    connection.execute(_NOTE_CHALLENGE, {**taken.own, "token": token, "answer": answer})


def proxies_of_challenge(connection: Connection[Any], taken: TakenCertificate) -> tuple[int, int]:
    """Return how many proxies are live, and how many of them would not answer the challenge yet."""
    live, behind = connection.execute(_PROXIES, taken.own).fetchone() or (0, 0)
    return live, behind


def account_at(connection: Connection[Any], directory: str) -> tuple[str, str] | None:
    """Return the sealed key and the address of the account there; None where there is none."""
    row = connection.execute(_ACCOUNT, (directory,)).fetchone()
    return row and (row[0], row[1])


def note_account(connection: Connection[Any], directory: str, sealed_key: str, url: str) -> tuple[str, str]:
    """Note an account, and return the one that is there: where somebody else was faster theirs stays."""
    ((key, at),) = connection.execute(_NOTE_ACCOUNT, (directory, sealed_key, url))
    return key, at


def forget_account(connection: Connection[Any], directory: str) -> None:
    """Forget an account that its authority does not know."""
    connection.execute("DELETE FROM acme_accounts WHERE directory = %s", (directory,))
