"""Changes deployments outside the coordinator: in one transaction, and after its commit workers are woken."""

from collections.abc import Callable
from uuid import UUID

from psycopg import Connection
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.due_work import statuses_of
from domain.model.states import DeploymentLifecycleStatus
from tasks.redis.wake import Waker


def change_and_wake(engine: Engine, waker: Waker, work: Callable[[Connection], frozenset[UUID]]) -> frozenset[UUID]:
    """Run `work` in a transaction; then wake the handlers of the deployments whose ids it returned, and proxies.

    Returns those ids. When there are none, nothing is sent.
    """

    def change(connection: Connection) -> tuple[frozenset[UUID], frozenset[DeploymentLifecycleStatus]]:
        touched = work(connection)
        return touched, statuses_of(connection, touched) if touched else frozenset()

    touched, statuses = in_transaction(engine, change)
    waker.after_change(statuses)
    return touched
